"""The assistant's turns once the tools are known: dialects in the text, calls in messages of their own, empty ones."""

from __future__ import annotations

from typing import Any

from sft_toolkit.conversation import LOSS_SPANS, Message, ToolCall
from sft_toolkit.errors import RecordError
from sft_toolkit.formats.dialects import read_assistant_text, read_tool_response
from sft_toolkit.formats.dialects.registry import may_hold_markup
from sft_toolkit.formats.reasoning import agreed
from sft_toolkit.formats.refusals import listed, map_line
from sft_toolkit.formats.speakers import CALL, THOUGHT
from sft_toolkit.formats.turns import Turn, carries_text

RESULT_MARK = "<tool_response>"
_PARTIAL = frozenset({CALL, THOUGHT})
LAST_EMPTY = "empty_last_message_left_out"


def finished(turns: list[Turn], tools: list[dict[str, Any]], notes: list[str]) -> list[Turn]:
    """The turns with results unwrapped, dialects read, calls and thoughts joined to their turn, and none empty.

    Raises RecordError that names the message.
    """
    turns = _unwrapped([turn for turn in turns if not _says_nothing(turn)])
    names = names_of(tools)
    for place, turn in enumerate(turns):
        text = turn.message.content
        if turn.message.role == "assistant" and isinstance(text, str) and may_hold_markup(text):
            follows = place + 1 < len(turns) and turns[place + 1].message.role == "tool"
            read_dialects(turn.message, turn.at, names, follows, tools)
    if any(turn.kind in _PARTIAL for turn in turns):
        turns = _joined(turns)
    return _without_empty(turns, notes)


def _says_nothing(turn: Turn) -> bool:
    """Whether it is a system message without text, as declarations of tools may leave it."""
    message = turn.message
    return message.content is None and message.role in ("system", "developer") and not carries_text(message.extra)


def _unwrapped(turns: list[Turn]) -> list[Turn]:
    """Each `<tool_response>` block as a tool message, where a tool speaks or a user after a call says nothing else."""
    if not any(_may_be_blocks(turn) for turn in turns):
        return turns
    found: list[Turn] = []
    for turn in turns:
        text = turn.message.content
        may_be = turn.message.role == "tool" or (turn.message.role == "user" and _after_call(found))
        blocks = read_tool_response(text) if may_be and isinstance(text, str) else None
        if blocks is None:
            found.append(turn)
            continue
        turn.message.role = turn.kind = "tool"
        turn.message.content = blocks[0]
        found += [turn, *(Turn(Message("tool", more), "tool", turn.at, turn.given) for more in blocks[1:])]
    return found


def _may_be_blocks(turn: Turn) -> bool:
    text = turn.message.content
    return turn.message.role in ("tool", "user") and isinstance(text, str) and RESULT_MARK in text


def _after_call(before: list[Turn]) -> bool:
    """Whether the last to speak, tools apart, is the assistant with a call, in whatever form."""
    last = next((turn for turn in reversed(before) if turn.message.role != "tool"), None)
    return last is not None and last.is_assistants and (bool(last.message.tool_calls) or bool(last.message.content))


def read_dialects(
    message: Message, at: int, names: frozenset[str] | None, follows: bool, tools: list[dict[str, Any]]
) -> None:
    """Take reasoning and calls out of the text of an assistant message, `names` being those of the declared `tools`.

    `follows`: a tool speaks next. Raises RecordError that names the message, which is at index `at`.
    """
    try:
        reading = read_assistant_text(message.text, tools_declared=names, tool_message_follows=follows, tools=tools)
        message.reasoning = agreed([text for text in (message.reasoning, reading.reasoning) if text])
        calls = [call.to_tool_call() for call in reading.calls]
        if calls and message.tool_calls and not _same(calls, message.tool_calls):
            raise RecordError("ambiguous_calls", "the text holds other calls than tool_calls", "keep one of them")
    except RecordError as error:
        raise RecordError(error.reason, f"message {at} (assistant): {error.detail}", error.hint) from error
    message.tool_calls = message.tool_calls or calls
    content = reading.content or None if reading.calls else reading.content
    if LOSS_SPANS in message.extra and content != message.content:
        detail = f"message {at} (assistant): loss_spans count characters of a text that holds reasoning or calls"
        raise RecordError("bad_loss_spans", detail, "write reasoning and tool_calls under keys of their own first")
    message.content = content


def names_of(tools: list[dict[str, Any]]) -> frozenset[str] | None:
    """The names of the declared tools, None where there are none."""
    return frozenset(tool["function"]["name"] for tool in tools) if tools else None


def _same(ours: list[ToolCall], theirs: list[ToolCall]) -> bool:
    return [(call.name, call.arguments) for call in ours] == [(call.name, call.arguments) for call in theirs]


def _joined(turns: list[Turn]) -> list[Turn]:
    """Calls that follow one another and the text right before them as one turn; thoughts go with what follows."""
    found: list[Turn] = []
    for turn in turns:
        last = found[-1] if found else None
        both = last is not None and last.is_assistants and turn.is_assistants
        if both and last is not None and (turn.kind == CALL or last.kind == THOUGHT):
            _join(last, turn)
        else:
            found.append(turn)
    return found


def _join(turn: Turn, more: Turn) -> None:
    mine, other = turn.message, more.message
    if turn.kind == THOUGHT or mine.content is None:
        mine.content = other.content if mine.content is None else mine.content
    thoughts = [text for text in (mine.reasoning, other.reasoning) if text]
    mine.reasoning = "\n\n".join(dict.fromkeys(thoughts)) or None
    mine.tool_calls += other.tool_calls
    mine.weight = min((weight for weight in (mine.weight, other.weight) if weight is not None), default=None)
    for key in ("name", "mask_reason", "mask_detail", "effort"):
        if getattr(mine, key) is None:
            setattr(mine, key, getattr(other, key))
    clashing = {key: value for key, value in other.extra.items() if mine.extra.setdefault(key, value) != value}
    if clashing:
        mine.extra.setdefault("source_joined", []).append(clashing)
    turn.kind = more.kind


def _without_empty(turns: list[Turn], notes: list[str]) -> list[Turn]:
    """Raises RecordError for an assistant message that would train its stop token alone.

    The last one is left out where it follows another message of the assistant: some data sets close with it.
    """
    for place, turn in enumerate(turns):
        message = turn.message
        if message.role != "assistant":
            if message.content is None:
                _require_text(turn)
            continue
        if message.tool_calls or message.reasoning or (message.content and message.text.strip()):
            continue
        closes = place == len(turns) - 1 and place > 0 and turns[place - 1].is_assistants
        if closes and not carries_text(message.extra):
            notes.append(LAST_EMPTY)
            return turns[:-1]
        if message.weight != 0:
            raise _empty(turn)
    return turns


def _require_text(turn: Turn) -> None:
    if turn.message.role == "user" or carries_text(turn.message.extra):
        keys = _text_keys(turn)
        hint = map_line("content", keys[0]) if keys else ""
        raise RecordError("empty_message", f"message {turn.at} has no text; its keys: {listed(turn.given)}", hint)


def _empty(turn: Turn) -> RecordError:
    keys = _text_keys(turn)
    hint = f"{map_line('content', keys[0])} reads its text there" if keys else "drop the record"
    detail = f"message {turn.at} (assistant) has neither text nor reasoning nor a call"
    return RecordError(
        "empty_message",
        f"{detail}, so that its stop token alone would be trained; its keys: {listed(turn.given)}",
        hint,
    )


def _text_keys(turn: Turn) -> list[str]:
    return [key for key, value in turn.message.extra.items() if isinstance(value, str) and value.strip()]
