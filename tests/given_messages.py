"""Conversations as a test gives them, past the reader: it would refuse empty answers and read markup in texts."""

from __future__ import annotations

from typing import Any

from sft_toolkit.conversation import Conversation, Message, ToolCall


def as_given(messages: list[dict[str, Any]]) -> Conversation:
    """The conversation whose messages have exactly these contents, reasoning, calls and weights."""
    return Conversation("given", [_message(message) for message in messages])


def _message(given: dict[str, Any]) -> Message:
    calls = [ToolCall(call["function"]["name"], call["function"]["arguments"]) for call in given.get("tool_calls", [])]
    return Message(
        given["role"],
        given["content"],
        reasoning=given.get("reasoning") or None,
        tool_calls=calls,
        weight=given.get("weight"),
    )
