"""What surrounds a conversation in its record: the system prompt, the declared tools, columns of pictures and sound."""

from __future__ import annotations

from typing import Any

from sft_toolkit.conversation import Message
from sft_toolkit.errors import RecordError
from sft_toolkit.formats.columns import Draft, Layout, is_held
from sft_toolkit.formats.loss_flags import MASKED, FlagNames
from sft_toolkit.formats.mapping import ColumnMapping
from sft_toolkit.formats.parts import Contents, are_parts, read_parts
from sft_toolkit.formats.paths import opened
from sft_toolkit.formats.refusals import map_line, shown
from sft_toolkit.formats.system_text import tools_in_text
from sft_toolkit.formats.tools import normalise_tools
from sft_toolkit.formats.turns import Turn, carries_text

SYSTEM, TOOLS = "system", "tools"
_PROMPT_ROLES = (None, "system", "developer", "user", "model")
TOOLS_IN_SYSTEM = "tools_in_system_text"
SYSTEM_REPLACED = "system_prompt_replaced_by_mapping"


def refuse_media(record: dict[str, Any], layout: Layout) -> None:
    """Raises RecordError for a column of pictures, video or sound that is not empty."""
    for name in layout.media:
        if is_held(opened(record[name])):
            raise RecordError(
                "image_part" if "image" in name.casefold() else "unsupported_part",
                f"the record has {name}, and only text can be trained here",
                "drop such records, or the column where the answers do not depend on it",
            )


def apply_flag_lists(turns: list[Turn], draft: Draft, layout: Layout, flags: FlagNames) -> None:
    """Take turns out of the loss as a column of flags says, which has one for each message, or for each answer.

    Raises RecordError for a list of another length or with other values.
    """
    for name in layout.flags if flags.read else ():
        values = draft.record[name]
        if not isinstance(values, list) or not values or name in draft.taken:
            continue
        answers = [turn for turn in turns if turn.is_assistants]
        if len(values) == len(draft.messages):
            flagged = [(turn, values[turn.at]) for turn in answers]
        elif len(values) == len(answers):
            flagged = list(zip(answers, values, strict=True))
        else:
            raise _bad_flags(name, f"has {len(values)} flags for {len(draft.messages)} messages")
        if not all(value in (0, 1) for value in values):
            raise _bad_flags(name, "holds more than 0 and 1")
        is_masked = name.casefold() in MASKED
        for turn, value in flagged:
            if bool(value) is is_masked:
                turn.message.weight = 0
        draft.taken[name] = "weight"


def _bad_flags(name: str, why: str) -> RecordError:
    return RecordError("bad_weight", f"{name} is a list that {why}", f"{map_line('weight')} leaves flags unread")


def with_system(
    turns: list[Turn], draft: Draft, layout: Layout, mapping: ColumnMapping, notes: list[str]
) -> list[Turn]:
    """The turns with the record's system prompt in front.

    Raises RecordError where two system prompts differ, the conversation's own included.
    """
    own = next((turn for turn in turns if turn.message.role in ("system", "developer")), None)
    if draft.system is not None:
        text: str | None = draft.system
        if own is not None and text and own.message.content != text:
            notes.append(SYSTEM_REPLACED)
            turns = [turn for turn in turns if turn is not own]
            own = None
    elif mapping.unread(SYSTEM) or not layout.systems:
        return turns
    else:
        text = _system_column(draft, layout, own)
    if not text or (own is not None and own.message.content == text):
        return turns
    if own is not None and not carries_text(own.message.extra):
        turns = [turn for turn in turns if turn is not own]
    return [Turn(Message("system", text), "system", 0, {}), *turns]


def _system_column(draft: Draft, layout: Layout, own: Turn | None) -> str | None:
    """The one text of the columns that hold a system prompt; those are taken."""
    found: dict[str, str] = {}
    for name in layout.systems:
        value = draft.record[name]
        if name in draft.taken:
            continue
        contents = _system_text(name, value) if is_held(value) else Contents()
        if contents.rest:
            draft.kept.add(name)
        if contents.text:
            found[name] = contents.text
        else:
            draft.taken[name] = SYSTEM
    held = dict(found)
    said = own.message.text if own is not None else ""
    if said:
        held["the conversation's own system message"] = said
    if len({text.strip() for text in held.values()}) > 1:
        column = next(iter(found))
        raise RecordError(
            "two_system_prompts",
            f"the system prompts of {' and '.join(held)} differ",
            f"{map_line(SYSTEM, column)} takes this one, {map_line(SYSTEM)} none of the columns",
        )
    draft.taken.update(dict.fromkeys(found, SYSTEM))
    return said if said and found else next(iter(found.values()), None)


def _system_text(name: str, value: Any) -> Contents:
    """A system prompt as text or as text parts, bare or in an object."""
    inside = opened(value)
    if isinstance(value, str) and not _is_prompt(inside):
        return Contents([value])
    value = inside
    if isinstance(value, dict) and value.get("role") in _PROMPT_ROLES:
        value = value.get("parts", value.get("content", [value]))
    if isinstance(value, str):
        return Contents([value])
    if isinstance(value, list) and are_parts(value):
        return read_parts(value, FlagNames(), 0, [])
    raise RecordError(
        "bad_system", f"{name} is {shown(value)}, not a system prompt", f"{map_line(SYSTEM)} leaves it unread"
    )


def _is_prompt(inside: Any) -> bool:
    """Whether what a text holds as JSON is a system prompt in parts, not a prompt that happens to be JSON."""
    if isinstance(inside, dict):
        return inside.keys() <= {"role", "parts"} and _is_prompt(inside.get("parts"))
    return isinstance(inside, list) and are_parts(inside, strictly=True)


def declared_tools(
    turns: list[Turn], draft: Draft, layout: Layout, mapping: ColumnMapping, notes: list[str]
) -> list[dict[str, Any]]:
    """The declared tools: by mapping, from columns, from the system message, from its text; the first not empty.

    Raises RecordError for a declaration that cannot be read.
    """
    tools = _mapped_or_column(draft, layout, mapping)
    for turn in turns:
        if turn.message.role in ("system", "developer"):
            if turn.functions is not None and not tools:
                tools = normalise_tools(turn.functions)
            text = turn.message.content
            written = tools_in_text(text) if isinstance(text, str) else []
            if written:
                notes.append(TOOLS_IN_SYSTEM)
                tools = tools or written
    return tools


def _mapped_or_column(draft: Draft, layout: Layout, mapping: ColumnMapping) -> list[dict[str, Any]]:
    if mapping.paths(TOOLS) and (tools := normalise_tools(draft.tools)):
        return tools
    if mapping.unread(TOOLS):
        return []
    for name in layout.tools:
        if name in draft.taken:
            continue
        value = draft.record[name]
        tools = normalise_tools(value) if is_held(value) else []
        draft.taken[name] = TOOLS
        if tools:
            return tools
    for name, key in layout.nested_tools:
        held = opened(draft.record[name])
        inside = held.get(key) if isinstance(held, dict) else None
        if isinstance(inside, list | dict | str) and is_held(inside) and (tools := normalise_tools(inside)):
            draft.taken[name] = f"{TOOLS} (its {key})"
            draft.kept.add(name)
            return tools
    return []
