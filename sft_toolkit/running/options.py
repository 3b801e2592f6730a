"""What the commands share: the options of a run, and the summary of what it did."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from sft_toolkit.choices import Driver
from sft_toolkit.running.drivers import run_ordered
from sft_toolkit.running.roster import ArrayTask
from sft_toolkit.running.row_reader import RowReader
from sft_toolkit.shards.opening import STDIN
from sft_toolkit.stage import Counters, Progress

ROWS_PER_SHARD = 10_000

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True)
class RunOptions:
    """What every stage command shares: where it reads, writes and runs.

    None of it decides what rows hold. `copies`: of streams that an earlier pass has read. `part` (i, n) is every n-th
    block from i. With `array`, a task's share of blocks follows from the array that the first task pinned in the
    output, and a task that is alone there takes all. `checksums`: input shards are compared with their manifests.
    `origins` says of options of this class and of the stage's where their values came from, as far as the caller knows.
    """

    inputs: list[str] = field(default_factory=lambda: [STDIN])
    copies: Mapping[str, Path] = field(default_factory=dict)
    output: str = STDIN
    reader: RowReader = field(default_factory=RowReader)
    workers: int = 0
    rows_per_shard: int = ROWS_PER_SHARD
    part: tuple[int, int] = (0, 1)
    array: ArrayTask | None = None
    checksums: bool = True
    quarantine: bool = False
    quarantine_file: str | None = None
    force: bool = False
    resume: bool = False
    dry_run: bool = False
    driver: Driver = "local"
    ray_address: str | None = None
    summary_format: str = "text"
    origins: Mapping[str, str] = field(default_factory=dict)
    progress: Callable[[Progress], None] = lambda progress: None

    def drive(self, tasks: Iterator[Task], work: Callable[[Task], Result]) -> Iterator[Result]:
        """Yield `work(task)` for each task, in order, from the chosen driver."""
        return run_ordered(self.driver, tasks, work, self.workers, self.ray_address)

    @property
    def goes_on(self) -> bool:
        """True where a shard folder that was begun is resumed: by --resume, or by another part of an array job."""
        return self.resume or self.part[1] > 1 or self.array is not None

    @property
    def to_folder(self) -> bool:
        return self.output != STDIN and not self.output.endswith((".jsonl", ".jsonl.gz", ".jsonl.zst"))


@dataclass
class Summary:
    """What a run did, for a person (and, with `to_json`, for a program)."""

    stage: str
    output: str
    counters: Counters
    seconds: float
    tokens: int = 0
    shards: int = 0
    finished_before: bool = False
    complete: bool = True
    facts: dict[str, Any] = field(default_factory=dict)
    loss_tokens: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "output": self.output,
            **self.counters.to_json(),
            "tokens": self.tokens,
            "loss_tokens": self.loss_tokens,
            "shards": self.shards,
            "seconds": round(self.seconds, 3),
            "complete": self.complete,
            **self.facts,
        }
