"""Records in the toolkit's own form, which is OpenAI's: messages, tools and labels, nothing to look for elsewhere.

A short way for what most runs read most of the time; `RecordReader` reads the others, and gives the same for these.
"""

from __future__ import annotations

from typing import Any

import xxhash

from sft_toolkit.conversation import Conversation, Message
from sft_toolkit.errors import RecordError
from sft_toolkit.formats.assistant_turns import RESULT_MARK, names_of, read_dialects
from sft_toolkit.formats.canonical import canonical_message
from sft_toolkit.formats.columns import layout_of
from sft_toolkit.formats.dialects.registry import may_hold_markup
from sft_toolkit.formats.labels import effort_of, is_provenance, read_id, read_label
from sft_toolkit.formats.refusals import map_line
from sft_toolkit.formats.surroundings import TOOLS_IN_SYSTEM
from sft_toolkit.formats.system_text import tools_in_text
from sft_toolkit.formats.tools import normalise_tools
from sft_toolkit.json_text import encode

_WHERE_CALLS_ARE = f"calls without a mark are read where tools are declared: {map_line('tools', 'COLUMN')}"
_READ = frozenset({"messages", "tools", "id", "dataset", "domain", "difficulty", "effort", "provenance"})


def plain_conversation(record: dict[str, Any]) -> Conversation | None:
    """The conversation of a record in the toolkit's own form, None where any of it takes a second look.

    Raises RecordError for labels, tools and markup that cannot be read.
    """
    layout = layout_of(tuple(record))
    given = record.get("messages")
    provenance = record.get("provenance")
    if not layout.is_plain or type(given) is not list or not (provenance is None or is_provenance(provenance)):
        return None
    notes: list[str] = []
    messages: list[Message] = []
    for one in given:
        message = canonical_message(one, notes)
        if message is None or _takes_a_look(message):
            return None
        messages.append(message)
    if not messages or messages[-1].role == "user":
        return None
    tools = _tools(record.get("tools"), messages, notes)
    if not _read_markup(messages, tools):
        return None
    check_results(messages, range(len(messages)))
    return Conversation(
        id=read_id(record.get("id")) or content_hash(messages, tools),
        messages=messages,
        tools=tools,
        dataset=read_label("dataset", record.get("dataset")),
        domain=read_label("domain", record.get("domain")),
        difficulty=read_label("difficulty", record.get("difficulty")),
        effort=effort_of(record, "the record has"),
        provenance=list(provenance or ()),
        extra={name: value for name, value in record.items() if name not in _READ} if len(record) > 1 else {},
        notes=notes,
        columns=layout.plain_columns,
    )


def _takes_a_look(message: Message) -> bool:
    """Whether a message may be empty or a tool's result in markup."""
    content = message.content or ""
    if message.role != "assistant":
        return RESULT_MARK in content
    return not message.tool_calls and not message.reasoning and (not content or message.text.isspace())


def _tools(given: Any, messages: list[Message], notes: list[str]) -> list[dict[str, Any]]:
    tools = normalise_tools(given) if given else []
    for message in messages:
        if message.role in ("system", "developer") and (written := tools_in_text(message.text)):
            notes.append(TOOLS_IN_SYSTEM)
            tools = tools or written
    return tools


def _read_markup(messages: list[Message], tools: list[dict[str, Any]]) -> bool:
    """Read the dialects of assistant messages; False where one holds nothing besides its markup."""
    for at, message in enumerate(messages):
        content = message.content
        if message.role == "assistant" and type(content) is str and may_hold_markup(content):
            follows = at + 1 < len(messages) and messages[at + 1].role == "tool"
            read_dialects(message, at, names_of(tools), follows, tools)
            if _takes_a_look(message):
                return False
    return True


def content_hash(messages: list[Message], tools: list[dict[str, Any]]) -> str:
    """The id of a record that has none: equal content has equal ids."""
    return xxhash.xxh3_128_hexdigest(encode([[message.to_record() for message in messages], tools]))


def check_results(messages: list[Message], places: list[int] | range) -> None:
    """A tool result must follow a call; where every call so far has an id, it must name one of them.

    `places` are the indexes that an error names. Raises RecordError.
    """
    seen: set[str | None] = set()
    for place, message in zip(places, messages, strict=True):
        if message.tool_calls:
            seen.update([call.id for call in message.tool_calls])
        elif message.role == "tool":
            identity = message.tool_call_id
            if not seen or (identity is not None and None not in seen and identity not in seen):
                raise RecordError(
                    "tool_result_without_call",
                    f"message {place} is a tool result that follows no such call",
                    "" if seen else _WHERE_CALLS_ARE,
                )
