"""Asking for tool calls and reading them: by native tool calling, as JSON under a schema, or as text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from sft_toolkit.conversation import ToolCall
from sft_toolkit.json_text import decode, encode_text
from sft_toolkit.teachers.replies import Reply
from sft_toolkit.teachers.requests import Request
from sft_toolkit.tool_calls.decode import decode_arguments

NATIVE, JSON, TEXT = "tools", "json", "text"
FORMS = (NATIVE, JSON, TEXT)

_ASKING = (
    "You are given the reasoning of an assistant that is about to call tools. Make exactly the tool calls that follow "
    "from it, with exactly the values it names, and no others. Leave out arguments it does not speak of."
)
_AS_JSON = (
    'Answer with JSON alone: {"calls": [{"name": "…", "arguments": {…}}]}, an empty list where no call follows. '
    "The tools are:\n"
)
_SCANNER = json.JSONDecoder()
_OPENING_BRACKET = re.compile(r"[\[{]")
_BLOCK = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)


def call_request(reasoning: str, tools: list[dict[str, Any]], form: str, sample: int) -> Request:
    """The question which calls follow from `reasoning`: the checker sees nothing else but the tools."""
    user = {"role": "user", "content": reasoning}
    if form == NATIVE:
        return Request([{"role": "system", "content": _ASKING}, user], sample, tools=tools)
    system = {"role": "system", "content": f"{_ASKING}\n{_AS_JSON}{encode_text(tools)}"}
    options = {"response_format": _response_format(tools)} if form == JSON else {}
    return Request([system, user], sample, options=options)


def read_calls(reply: Reply) -> list[ToolCall] | None:
    """The calls of a reply, from its tool calls or else from JSON in its text; None where it holds neither.

    An answer that calls nothing is an empty list where it says so as JSON, else None.
    """
    if reply.tool_calls:
        return reply.tool_calls
    found = (_calls(value) for value in _values(reply.content))
    return next((calls for calls in found if calls is not None), None)


def _values(text: str) -> Iterator[Any]:
    """The JSON objects and lists of a text, outermost first; blocks like <tool_call>…</tool_call> count together."""
    blocks = _BLOCK.findall(text)
    if blocks:
        yield [_decoded(block) for block in blocks]
        return
    at = 0
    while (start := _OPENING_BRACKET.search(text, at)) is not None:
        try:
            _, end = _SCANNER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            at = start.end()
            continue
        yield _decoded(text[start.start() : end])
        at = end


def _decoded(text: str) -> Any:
    try:
        return decode(text)
    except ValueError:
        return None


def _calls(value: Any) -> list[ToolCall] | None:
    """Calls from `{"calls": […]}`, a list of calls, or one call; None where `value` is none of these."""
    if isinstance(value, dict) and isinstance(value.get("calls"), list):
        value = value["calls"]
    elif isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return None
    calls = [_call(each) for each in value]
    return None if None in calls else [call for call in calls if call is not None]


def _call(value: Any) -> ToolCall | None:
    function = value.get("function", value) if isinstance(value, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return None
    arguments = decode_arguments(function.get("arguments", function.get("parameters")))
    return ToolCall(function["name"], arguments.value, problem=arguments.problem)


def _response_format(tools: list[dict[str, Any]]) -> dict[str, Any]:
    """The structured-output option that allows calls of the declared tools only."""
    shapes = [
        {
            "type": "object",
            "properties": {
                "name": {"const": tool["function"]["name"]},
                "arguments": tool["function"].get("parameters") or {"type": "object"},
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    schema = {
        "type": "object",
        "properties": {"calls": {"type": "array", "items": {"anyOf": shapes} if shapes else {"type": "object"}}},
        "required": ["calls"],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": "calls", "schema": schema, "strict": True}}
