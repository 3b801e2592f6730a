"""What a stage is: a pure function of (batch of conversations, options, seed), and an account of what it did."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import xxhash

from sft_toolkit.choices import require_choices
from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError
from sft_toolkit.json_text import encode

if TYPE_CHECKING:
    import pyarrow as pa


class Progress(Protocol):
    """What can say how far it has come."""

    def line(self, seconds: float) -> str:
        """One line for a person, `seconds` after the beginning."""


@dataclass(slots=True)
class ColumnsRead:
    """Of the `records` of one file: in how many each column was read as what (`kept`: as nothing, and survives)."""

    records: int = 0
    uses: dict[str, Counter[str]] = field(default_factory=dict)

    def count(self, column: str, use: str, records: int) -> None:
        self.uses.setdefault(column, Counter())[use] += records

    def add(self, other: ColumnsRead) -> None:
        self.records += other.records
        for column, uses in other.uses.items():
            self.uses.setdefault(column, Counter()).update(uses)

    def to_json(self) -> dict[str, Any]:
        return {"records": self.records, "columns": {name: dict(uses) for name, uses in self.uses.items()}}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> ColumnsRead:
        return cls(value["records"], {name: Counter(uses) for name, uses in value["columns"].items()})


@dataclass(slots=True)
class Counters:
    """How many records came in, went out, and why the rest did not; `notes` counts what else is worth reporting.

    `splits` counts labels within groups of records: group, label, how often. `files` says of each input file what its
    columns were read as, where a stage reports it.
    """

    records_in: int = 0
    records_out: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    splits: dict[str, Counter[str]] = field(default_factory=dict)
    files: dict[str, ColumnsRead] = field(default_factory=dict)

    def add(self, other: Counters) -> None:
        self.records_in += other.records_in
        self.records_out += other.records_out
        self.rejected.update(other.rejected)
        self.notes.update(other.notes)
        for group, labels in other.splits.items():
            self.splits.setdefault(group, Counter()).update(labels)
        for file, columns in other.files.items():
            self.files.setdefault(file, ColumnsRead()).add(columns)

    def line(self, seconds: float) -> str:
        rejected = sum(self.rejected.values())
        rate = self.records_in / seconds if seconds > 0 else 0.0
        return f"{self.records_in:,} in, {self.records_out:,} out, {rejected:,} rejected, {rate:,.0f}/s"

    def to_json(self) -> dict[str, Any]:
        splits = {group: dict(sorted(labels.items())) for group, labels in sorted(self.splits.items())}
        return {
            "in": self.records_in,
            "out": self.records_out,
            "rejected": dict(sorted(self.rejected.items())),
            "notes": dict(sorted(self.notes.items())),
            **({"splits": splits} if splits else {}),
            **({"files": {name: columns.to_json() for name, columns in self.files.items()}} if self.files else {}),
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Counters:
        splits = {group: Counter(labels) for group, labels in value.get("splits", {}).items()}
        files = {name: ColumnsRead.from_json(columns) for name, columns in value.get("files", {}).items()}
        return cls(value["in"], value["out"], Counter(value["rejected"]), Counter(value["notes"]), splits, files)


@dataclass(frozen=True, slots=True)
class Rejection:
    """A record that was not passed on, and why: one line of the quarantine file. `record` is raw text if unreadable.

    `partner` names what the record lost to, where the stage compares; None for stages that never do.
    """

    origin: str
    reason: str
    detail: str
    record: dict[str, Any] | str
    partner: tuple[str, ...] | None = None


class Outcome:
    """Where a stage reports what became of its records.

    `drop` is for what the user's own choice leaves out (an over-long document under `--overlong drop`);
    `fault` is for what is wrong with a record: it stops the run unless `quarantine` is set. `note` counts the rest.
    """

    def __init__(self, quarantine: bool) -> None:
        self.quarantine = quarantine
        self.counters = Counters()
        self.rejections: list[Rejection] = []

    def note(self, name: str, count: int = 1) -> None:
        if count:
            self.counters.notes[name] += count

    def split(self, group: str, label: str) -> None:
        """Count a label that a record of `group` got."""
        self.counters.splits.setdefault(group, Counter())[label] += 1

    def drop(
        self, conversation: Conversation, reason: str, detail: str, partner: tuple[str, ...] | None = None
    ) -> None:
        self._reject(Rejection(conversation.origin, reason, detail, conversation.to_record(), partner))

    def fault(self, conversation: Conversation, error: RecordError) -> None:
        """Reject a faulty record, or raise `error` with file, line and id where faults stop the run."""
        if not self.quarantine:
            place = f"{conversation.origin}: " if conversation.origin else ""
            raise RecordError(error.reason, f"{place}record {conversation.id}: {error.detail}", error.hint) from error
        self.drop(conversation, error.reason, error.detail)

    def unreadable(self, origin: str, error: RecordError, record: dict[str, Any] | str) -> None:
        """Reject what could not even be read as a conversation, or raise `error` with file and line."""
        if not self.quarantine:
            raise RecordError(error.reason, f"{origin}: {error.detail}", error.hint) from error
        self._reject(Rejection(origin, error.reason, error.detail, record))

    def _reject(self, entry: Rejection) -> None:
        self.counters.rejected[entry.reason] += 1
        self.rejections.append(entry)


@dataclass(frozen=True)
class StageOptions:
    """Base of all stages: a frozen dataclass of the options that decide what comes out.

    It is their one source: what a stage does, what is hashed and what a manifest states are read from its fields.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        """Raise UsageError for a value that is none of its option's choices. Call it where this is overridden."""
        require_choices(self)

    def options(self) -> dict[str, Any]:
        """The options that decide what comes out, JSON-ready. Override where one names a file: its content counts."""
        return {option.name: getattr(self, option.name) for option in fields(self)}

    @cached_property
    def options_hash(self) -> str:
        """Hash of name, version and options: what provenance and `--resume` compare."""
        return xxhash.xxh3_64_hexdigest(encode([self.name, self.version, self.options()]))

    @property
    def random_seed(self) -> int | None:
        """The seed of all draws, None where nothing is drawn."""
        return self.options().get("seed")

    @property
    def stamp(self) -> dict[str, Any]:
        """This stage's entry in a record's provenance."""
        return {"stage": self.name, "version": self.version, "options_hash": self.options_hash}


@dataclass(frozen=True)
class Stage(StageOptions, ABC):
    """Base of all stages that work record by record.

    It pickles to any worker. What is expensive to build (a tokenizer, compiled schemas) is a `cached_property` made
    from the options where the stage runs.
    """

    @abstractmethod
    def process(self, batch: list[Conversation], outcome: Outcome) -> Iterator[Any]:
        """Yield one output row per conversation that is kept; report every other one to `outcome`.

        Rows are `Conversation` objects, or, where `schema` is set, dicts of that schema's columns.
        """

    @property
    def schema(self) -> pa.Schema | None:
        """Arrow schema of the rows where they are not conversations."""
        return None

    @property
    def draws(self) -> bool:
        """True where results depend on record ids, so that a duplicate id is an error."""
        return False

    def unique_ids(self, ids: list[str]) -> list[str]:
        """Those of the ids that come out which must not occur twice."""
        return ids if self.draws else []

    def facts(self) -> dict[str, Any]:
        """What the manifest is to hold beside the options: hashes of a tokenizer, of a template."""
        return {}

    def side_files(self) -> dict[str, str]:
        """The text files, by name, that lie beside the shards of this stage's rows."""
        return {}

    def each(
        self, batch: list[Conversation], outcome: Outcome, work: Callable[[Conversation], Conversation]
    ) -> Iterator[Conversation]:
        """Apply `work` to each conversation; a RecordError rejects that one; provenance is stamped on the rest."""
        for conversation in batch:
            try:
                result = work(conversation)
            except RecordError as error:
                outcome.fault(conversation, error)
                continue
            result.provenance.append(self.stamp)
            yield result
