"""Ids and labels of records as data sets write them: numbers are their text, what is neither is refused by name."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from sft_toolkit.conversation import EFFORTS
from sft_toolkit.errors import RecordError
from sft_toolkit.formats.refusals import map_line, shown

LABELS = ("dataset", "domain", "difficulty")


def read_id(given: Any, path: str = "id") -> str | None:
    """The id as text: a number as the record writes it, MongoDB's `{"$oid": x}` is x; None where there is none."""
    if isinstance(given, dict) and given.keys() == {"$oid"}:
        given = given["$oid"]
    if given is None or given == "":
        return None
    return _text("id", given, path)


def read_label(key: str, given: Any, path: str | None = None) -> str | None:
    """A label as text; empty ones are none. Raises RecordError, naming its path, for a list or an object."""
    return None if given is None or given == "" else _text(key, given, path or key)


def _text(key: str, given: Any, path: str) -> str:
    if isinstance(given, str):
        return given
    if isinstance(given, bool) and key != "id":
        return "true" if given else "false"
    if isinstance(given, int | float | Decimal) and not isinstance(given, bool):
        return str(given)
    inner = f"{map_line(key, f'{path}.0')} takes its first, " if isinstance(given, list) else ""
    raise RecordError(
        f"bad_{key}",
        f"{path} is neither text nor a number but {shown(given)}",
        f"{inner}{map_line(key)} leaves it unread",
    )


def effort_of(given: dict[str, Any], where: str) -> str | None:
    """The effort level of a record or message. An unknown one would be written into prompts: refused."""
    effort = given.get("effort")
    if effort is None or effort == "" or (isinstance(effort, str) and effort in EFFORTS):
        return effort or None
    raise RecordError(
        "bad_effort",
        f"{where} effort {shown(effort)}; known efforts: {', '.join(EFFORTS)}",
        f"{map_line('effort')} leaves it unread",
    )


def is_provenance(given: Any) -> bool:
    """Whether a value is the toolkit's own list of the stages that a record went through."""
    return isinstance(given, list) and all(isinstance(entry, dict) and "stage" in entry for entry in given)
