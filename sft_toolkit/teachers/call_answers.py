"""Asking for tool calls and reading them: by native tool calling, as JSON under a schema, or as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sft_toolkit.conversation import ToolCall
from sft_toolkit.json_text import encode_text
from sft_toolkit.teachers.answered_calls import answers_in
from sft_toolkit.teachers.replies import Reply
from sft_toolkit.teachers.requests import Request

NATIVE: Final = "tools"
JSON: Final = "json"
TEXT: Final = "text"

_ASKING = (
    "You are given the reasoning of an assistant that is about to call tools. Make exactly the tool calls that follow "
    "from it, with exactly the values it names, and no others. Leave out arguments it does not speak of."
)
_AS_JSON = (
    'Answer with JSON alone: {"calls": [{"name": "…", "arguments": {…}}]}, an empty list where no call follows. '
    "The tools are:\n"
)


def call_request(reasoning: str, tools: list[dict[str, Any]], form: str, sample: int) -> Request:
    """The question which calls follow from `reasoning`: the checker sees nothing else but the tools."""
    user = {"role": "user", "content": reasoning}
    if form == NATIVE:
        return Request([{"role": "system", "content": _ASKING}, user], sample, tools=tools)
    system = {"role": "system", "content": f"{_ASKING}\n{_AS_JSON}{encode_text(tools)}"}
    options = {"response_format": _response_format(tools)} if form == JSON else {}
    return Request([system, user], sample, options=options)


def read_calls(reply: Reply, tools: Sequence[dict[str, Any]] = ()) -> list[ToolCall] | None:
    """The calls of a reply, from its tool calls or else from its text as people write them; None where it has neither.

    Of several answers in a text the last one counts: a draft comes first. An answer that calls nothing is an empty list
    where it says so as JSON, else None.
    """
    if reply.tool_calls:
        return reply.tool_calls
    answers = list(answers_in(reply.content, tools))
    return max(answers, key=lambda answer: answer[0])[1] if answers else None


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
