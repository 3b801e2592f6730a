"""What became of a call: which tool message answers it, whether it failed, what the environment said was wrong."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from sft_toolkit.conversation import Message, ToolCall
from sft_toolkit.errors import UsageError
from sft_toolkit.json_text import decode

Site = tuple[int, int]
"""Where a call stands: (message index, index among that message's calls)."""

Patterns = tuple[re.Pattern[str], ...]

UNKNOWN_TOOL_CODE = -32601
INVALID_ARGUMENTS_CODE = -32602
"""JSON-RPC 2.0 section 5.1, "method not found" and "invalid params", which MCP takes over."""

_ERROR_FLAGS = ("is_error", "isError")
_EXIT_CODES = ("exit_code", "exitCode", "exit_status", "returncode", "return_code")
_FAILED_STATUS = frozenset({"error", "failed", "failure"})
_FAILURE_TEXT = re.compile(r"(?i:error)(?![\w-])|Traceback\b")
_DIGITS = re.compile(r"-?[0-9]{1,10}")
_CODE_IN_TEXT = re.compile(r"(?:Error: )?MCP error (-[0-9]{1,10})\b")


@dataclass
class Pairing:
    """Results by the call that they answer. `unpaired` counts results that could not be given to any call."""

    results: dict[Site, Message] = field(default_factory=dict)
    unpaired: int = 0


def pair_results(messages: Sequence[Message]) -> Pairing:
    """Pair results with calls: by id with the nearest open call, else by position in the turn if the counts agree."""
    pairing = Pairing()
    open_calls = _OpenCalls()
    waiting: list[Message] = []
    calling_turn = -1
    for turn, message in enumerate(messages):
        if message.role == "tool":
            site = open_calls.take_nearest(message.tool_call_id)
            if site is None:
                waiting.append(message)
            else:
                pairing.results[site] = message
        else:
            if waiting:
                _pair_by_position(waiting, open_calls.take_all(calling_turn, len(waiting)), pairing)
                waiting = []
            if message.tool_calls:
                calling_turn = turn
                open_calls.add(turn, message.tool_calls)
    _pair_by_position(waiting, open_calls.take_all(calling_turn, len(waiting)), pairing)
    return pairing


class _OpenCalls:
    """Calls that wait for a result, found in a time that does not grow with their number."""

    def __init__(self) -> None:
        self._of_turn: dict[int, dict[Site, None]] = {}
        self._by_id: dict[str, list[deque[Site]]] = {}

    def add(self, turn: int, calls: Sequence[ToolCall]) -> None:
        self._of_turn[turn] = dict.fromkeys((turn, index) for index in range(len(calls)))
        queues: dict[str, deque[Site]] = {}
        for index, call in enumerate(calls):
            if call.id is not None:
                queues.setdefault(call.id, deque()).append((turn, index))
        for identity, queue in queues.items():
            self._by_id.setdefault(identity, []).append(queue)

    def take_nearest(self, identity: str | None) -> Site | None:
        """The latest turn counts; of calls of one turn under one id, the first that is still open."""
        queues = self._by_id.get(identity, []) if identity is not None else []
        while queues:
            site = queues[-1].popleft()
            if not queues[-1]:
                queues.pop()
            if site in self._of_turn[site[0]]:
                del self._of_turn[site[0]][site]
                return site
        return None

    def take_all(self, turn: int, count: int) -> list[Site]:
        """The open calls of a turn where there are so many; else none."""
        sites = list(self._of_turn.get(turn, ()))
        if len(sites) != count:
            return []
        self._of_turn[turn] = {}
        return sites


def _pair_by_position(waiting: list[Message], sites: list[Site], pairing: Pairing) -> None:
    """Give results without a usable id to as many open calls, or to none."""
    pairing.unpaired += len(waiting) - len(sites)
    pairing.results.update(zip(sites, waiting, strict=False))


def compile_patterns(parameter: str, patterns: Iterable[str]) -> Patterns:
    """Compile regular expressions. Raises UsageError naming `parameter`."""
    compiled = []
    for pattern in patterns:
        try:
            compiled.append(re.compile(pattern))
        except re.error as fault:
            raise UsageError(
                f"`{parameter}` {pattern!r} is not a regular expression: {fault}", "escape special characters with \\"
            ) from fault
    return tuple(compiled)


def failed(result: Message | None, patterns: Patterns = ()) -> bool | None:
    """Whether the call that `result` answers failed; None where there is no result.

    A failure is said by a flag on the message or at the top level of its JSON content, or by the words that the text
    begins with. Text further inside says nothing: a tool may well return a page about errors.
    """
    if result is None:
        return None
    text = result.text.lstrip()
    return (
        _says_failed(result.extra)
        or bool(_FAILURE_TEXT.match(text))
        or begins_with(patterns, result)
        or _says_failed(_object_in(text))
    )


def begins_with(patterns: Patterns, result: Message) -> bool:
    """True where the text of a result, or the error message in its JSON content, begins with one of `patterns`."""
    if not patterns:
        return False
    text = result.text.lstrip()
    return any(pattern.match(said) for said in (text, _error_message(_object_in(text))) for pattern in patterns)


def carries_code(result: Message, code: int) -> bool:
    """True where a result is the JSON-RPC error `code`: as an error object, or as MCP clients print it."""
    if _code_of(result.extra) == code:
        return True
    text = result.text.lstrip()
    if str(code) not in text:
        return False
    printed = _CODE_IN_TEXT.match(text)
    return int(printed[1]) == code if printed else _code_of(_object_in(text)) == code


def _code_of(fields: Mapping[str, Any]) -> Any:
    error = fields.get("error")
    return error.get("code") if isinstance(error, dict) else fields.get("code")


def _says_failed(fields: Mapping[str, Any]) -> bool:
    return bool(
        fields
        and (
            any(fields.get(flag) is True for flag in _ERROR_FLAGS)
            or str(fields.get("status")).lower() in _FAILED_STATUS
            or any(_is_nonzero(fields.get(code)) for code in _EXIT_CODES)
            or fields.get("error")
            or fields.get("success") is False
        )
    )


def _is_nonzero(code: Any) -> bool:
    """Exit codes are numbers, or their digits where a data set holds columns of text."""
    if isinstance(code, str):
        return bool(_DIGITS.fullmatch(code)) and int(code) != 0
    return isinstance(code, (int, float, Decimal)) and code != 0


def _object_in(text: str) -> dict[str, Any]:
    if not text.startswith("{"):
        return {}
    try:
        decoded = decode(text)
    except (ValueError, RecursionError):
        return {}
    return decoded if isinstance(decoded, dict) else {}


def _error_message(fields: Mapping[str, Any]) -> str:
    error = fields.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else ""
