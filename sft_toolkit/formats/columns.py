"""The columns of a record: which of them have names that say what they are, without regard to case."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from sft_toolkit.formats.labels import LABELS
from sft_toolkit.formats.loss_flags import MASKED, TRAINED
from sft_toolkit.formats.tool_results import MEDIA

SYSTEMS = ("system", "system_prompt", "system_message", "system_instruction", "systeminstruction", "instructions")
TOOLS = ("tools", "functions", "available_tools")
NESTED_TOOLS = (
    ("extra", "tools"),
    ("metadata", "tools"),
    ("toolconfig", "tools"),
    ("chat_template_kwargs", "xml_tools"),
)
"""Columns inside which tools are looked for, and the key there."""
CONVERSATIONS = ("conversations", "conversation", "contents")
_LABELS = ("id", *LABELS, "effort", "provenance")
_READ_BY_NAME = frozenset({"messages", *SYSTEMS, *TOOLS, *MEDIA, *_LABELS})
EMPTY: tuple[Any, ...] = (None, "", [], {})


class Layout:
    """What the names of a record's columns say. The same names are looked at once.

    `is_plain`: those with a known name are messages, tools and labels, spelled as the toolkit spells them.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.by_fold: dict[str, str] = {}
        for name in names:
            fold = name.casefold()
            if fold not in self.by_fold or name == fold:
                self.by_fold[fold] = name
        self.systems = self._present(SYSTEMS)
        self.tools = self._present(TOOLS)
        self.nested_tools = tuple((self.by_fold[fold], key) for fold, key in NESTED_TOOLS if fold in self.by_fold)
        self.media = self._present(MEDIA)
        self.flags = self._present((*TRAINED, *MASKED))
        self.is_plain = (
            "messages" in names
            and self.tools in ((), ("tools",))
            and not (self.systems or self.nested_tools or self.media or self.flags)
            and all(fold in names for fold in _LABELS if fold in self.by_fold)
        )
        self.labels = {fold: self.by_fold[fold] for fold in _LABELS if fold in self.by_fold}

    def _present(self, folds: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self.by_fold[fold] for fold in folds if fold in self.by_fold)

    @cached_property
    def plain_columns(self) -> tuple[tuple[str, str], ...]:
        """What each column is taken for where the layout is plain."""
        return tuple((name, name) for name in self.names if name in ("messages", "tools", *_LABELS))

    @cached_property
    def label_names(self) -> frozenset[str]:
        """The columns with the names of labels or messages: those that a record of the toolkit's holds itself."""
        return frozenset(name for name in self.names if name.casefold() in ("messages", *_LABELS))

    @cached_property
    def is_read_by_name(self) -> frozenset[str]:
        """The columns that would be read again under their own name."""
        return frozenset(name for name in self.names if name.casefold() in _READ_BY_NAME)


layout_of = lru_cache(maxsize=4096)(Layout)


@dataclass(slots=True)
class Columns:
    """A record with the layout of its columns. Null ones are as good as absent."""

    record: dict[str, Any]
    layout: Layout

    def name(self, fold: str) -> str | None:
        """The column of that name, in whatever case, that holds something: neither null nor empty."""
        name = self.layout.by_fold.get(fold)
        return name if name is not None and is_held(self.record[name]) else None

    def value(self, fold: str) -> Any:
        """Its value, None where it holds nothing."""
        name = self.name(fold)
        return None if name is None else self.record[name]

    def held(self) -> dict[str, Any]:
        """The columns that hold something."""
        return {name: value for name, value in self.record.items() if is_held(value)}


def columns_of(record: dict[str, Any]) -> Columns:
    return Columns(record, layout_of(tuple(record)))


def is_held(value: Any) -> bool:
    """False for null and for what is empty, blank text included."""
    if isinstance(value, str):
        return bool(value) and not value.isspace()
    return value not in EMPTY


@dataclass(slots=True)
class Draft:
    """What a record is taken for: messages as they are written, and what each column that went in was taken for.

    Of the columns taken, those in `kept` survive as they are, since something in them is not read. `context` counts the
    first messages that are context, whose answers are not trained. `system`, `tools` and `labels` are those that a
    mapping names; `unread` are columns that may hold the answer where `messages`, which win over them, end with a
    question; `number` counts the records that one row gives.
    """

    messages: list[Any]
    record: dict[str, Any]
    taken: dict[str, str] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    context: int = 0
    system: str | None = None
    tools: Any = None
    labels: dict[str, Any] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    number: int | None = None
