"""The variables that a chat template gets beside messages and tools: the run's own, and those that a record brings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError, UsageError
from sft_toolkit.json_text import decode

RECORD_KEY = "chat_template_kwargs"
"""Where TRL, SmolTalk2 and vLLM keep a record's own variables: an object, or JSON text of one."""

TEMPLATE_KEY = "chat_template"
"""The one of them that is for the renderer: the name of a template."""

GIVEN = frozenset({"messages", "tools", "add_generation_prompt"})
"""What a template is given of the conversation itself."""

_NAME = re.compile(r"[^\W\d]\w*")
_SWITCH_LENGTH = 16
_SHORT = re.compile(rf"\S{{0,{_SWITCH_LENGTH}}}")

Variables = dict[str, Any]


def require_names(variables: Mapping[str, Any]) -> None:
    """Raises UsageError for a name that a template cannot read, or that means the conversation itself."""
    for name in variables:
        if name in GIVEN:
            raise UsageError(f"template variable {name}: the template gets it from the record", "leave it out")
        if not _NAME.fullmatch(name):
            raise UsageError(f"template variable {name!r}: not a name", "a name is of letters, digits and _")


def record_variables(conversation: Conversation) -> Variables:
    """The record's own variables. Null is absent: columns of objects are padded with it.

    Raises RecordError where they are no object, or give what the conversation itself gives.
    """
    given = conversation.extra.get(RECORD_KEY)
    if isinstance(given, str):
        try:
            given = decode(given) if given.strip() else None
        except ValueError as fault:
            raise _unusable(f"is text that is not JSON: {fault}") from fault
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise _unusable("is not an object of names and values")
    variables = {name: value for name, value in given.items() if value is not None}
    for name in variables:
        if name in GIVEN:
            raise _unusable(f"holds {name}, which the template gets from the record's own columns")
    return variables


def switches(variables: Mapping[str, Any]) -> Variables:
    """Those variables that may change how turns begin and end: flags, numbers, single words. Long texts do not."""
    return {name: value for name, value in sorted(variables.items()) if _is_switch(value)}


def _is_switch(value: Any) -> bool:
    return isinstance(value, (bool, int, float, Decimal)) or (
        isinstance(value, str) and _SHORT.fullmatch(value) is not None
    )


def _unusable(what: str) -> RecordError:
    return RecordError("bad_template_variables", f"{RECORD_KEY} {what}")
