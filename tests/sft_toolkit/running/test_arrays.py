"""Array jobs whose tasks run at the same time, fail and are submitted again: no block is lost, bytes are the same."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.errors import UsageError
from sft_toolkit.running.folder_status import folder_status, ranges
from sft_toolkit.running.options import RunOptions, Summary
from sft_toolkit.running.roster import ArrayTask
from sft_toolkit.running.runner import run_stage
from sft_toolkit.stages.convert import ConvertStage

Job = Callable[..., Summary]


class Killed(Exception):
    """The end of a task in its middle."""


@pytest.fixture
def convert(tmp_path: Path) -> Job:
    """Converts 23 blocks of one record."""
    source = tmp_path / "in.jsonl"
    records = ({"id": f"r{n}", "messages": [{"role": "user", "content": "x" * n}]} for n in range(23))
    source.write_text("".join(json.dumps(record) + "\n" for record in records))

    def job(output: Path, **more: Any) -> Summary:
        run = RunOptions([str(source)], output=str(output), rows_per_shard=1, workers=1, **more)
        return run_stage(ConvertStage(), run)

    return job


def contents(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("part-*")}


def task(number: int, numbers: list[int]) -> ArrayTask:
    return ArrayTask(number, min(numbers), 1, max(numbers) - min(numbers) + 1)


def once(then: Callable[[], object]) -> Callable[[Any], None]:
    """What to give a run as its `progress`: calls `then` after the first block."""
    left = [then]

    def progress(_: Any) -> None:
        if left:
            left.pop()()

    return progress


def die() -> None:
    raise Killed


def run_array(job: Job, output: Path, numbers: list[int], killed: list[int], order: list[int]) -> None:
    """Tasks in this order, each begun while the first one runs; those `killed` end after their first block."""

    def others() -> None:
        for number in order[1:]:
            run_task(job, output, task(number, numbers), number in killed)

    first = task(order[0], numbers)
    with suppress(Killed):
        job(output, array=first, progress=once(lambda: (others(), order[0] in killed and die())))


def run_task(job: Job, output: Path, array: ArrayTask, dies: bool) -> None:
    try:
        job(output, array=array, progress=once(die) if dies else lambda _: None)
    except Killed:
        assert dies


@pytest.mark.parametrize("tasks", [3, 5, 7])
@pytest.mark.parametrize("seed", range(4))
def test_killed_tasks_are_submitted_again_by_their_list_and_the_bytes_are_those_of_one_run(
    tasks: int, seed: int, convert: Job, tmp_path: Path
) -> None:
    convert(tmp_path / "one")
    numbers, target = list(range(1, tasks + 1)), tmp_path / "many"
    order = random.Random(seed).sample(numbers, tasks)
    killed = sorted(random.Random(seed + 100).sample(numbers, 2))
    run_array(convert, target, numbers, killed, order)
    status = folder_status(target)
    assert not status.whole and status.again == killed
    for number in killed:
        convert(target, array=task(number, killed))
    assert folder_status(target).whole
    assert contents(target) == contents(tmp_path / "one")


def test_a_task_alone_in_its_output_does_every_block_and_finishes_what_it_began(convert: Job, tmp_path: Path) -> None:
    array = ArrayTask(3, 0, 1, 8)
    with pytest.raises(Killed):
        convert(tmp_path / "mine", array=array, progress=once(die))
    assert folder_status(tmp_path / "mine").again == [3]
    assert convert(tmp_path / "mine", array=ArrayTask(3, 3, 1, 1)).complete
    assert len(contents(tmp_path / "mine")) == 23


def test_a_task_that_no_share_is_of_is_refused_where_others_work_not_left_without_any(
    convert: Job, tmp_path: Path
) -> None:
    refused = []

    def stranger() -> None:
        with pytest.raises(UsageError, match="array tasks 0 to 2, by 1; task 7 is none of them") as caught:
            convert(tmp_path / "o", array=ArrayTask(7, 7, 1, 1))
        refused.append(caught.value)

    convert(tmp_path / "o", array=task(0, [0, 1, 2]), progress=once(stranger))
    assert refused


def test_a_gap_in_the_list_is_named_by_status(convert: Job, tmp_path: Path) -> None:
    run_array(convert, tmp_path / "o", [2, 4], [], [4, 2])
    status = folder_status(tmp_path / "o")
    assert status.again == [3] and all(block % 3 == 1 for block in status.missing)
    convert(tmp_path / "o", array=ArrayTask(3, 3, 1, 1))
    assert folder_status(tmp_path / "o").whole


def test_status_says_who_failed_and_why_and_who_was_lost(convert: Job, tmp_path: Path) -> None:
    output = tmp_path / "o"
    run_array(convert, output, [0, 1, 2], [1], [0, 1, 2])
    lost = output / ".progress/tasks/task-2.json"
    lost.write_text(json.dumps({**json.loads(lost.read_text()), "state": "running", "pid": 2**22 - 1}))
    states = {one.task: (one.state, one.error) for one in folder_status(output).tasks}
    assert states == {0: ("ended", ""), 1: ("failed", ""), 2: ("lost", "")}
    running = {**json.loads(lost.read_text()), "pid": os.getpid()}
    lost.write_text(json.dumps(running))
    assert {one.task: one.state for one in folder_status(output).tasks}[2] == "running"


def test_the_list_is_in_the_form_of_an_array() -> None:
    assert ranges([]) == "" and ranges([1, 4, 5, 6, 9, 10]) == "1,4-6,9-10"


def test_a_copied_or_touched_input_of_equal_content_is_resumed_and_what_differs_is_named(tmp_path: Path) -> None:
    source, target = tmp_path / "a.jsonl", tmp_path / "o"
    lines = [json.dumps({"id": f"r{n}", "messages": [{"role": "user", "content": "x"}]}) for n in range(8)]
    source.write_text("\n".join(lines))

    def convert(given: list[Path], **more: Any) -> Summary:
        options = {"rows_per_shard": 2, "workers": 1, **more}
        return run_stage(ConvertStage(), RunOptions(list(map(str, given)), output=str(target), **options))

    with pytest.raises(Killed):
        convert([source], progress=once(die))
    os.utime(source, ns=(1, 1))
    with pytest.raises(UsageError, match="`rows_per_shard` was 2, is 3 now"):
        convert([source], rows_per_shard=3, resume=True)
    with pytest.raises(UsageError, match="begun with 1 input files, these are 2"):
        convert([source, source], resume=True)
    edited = tmp_path / "edited.jsonl"
    edited.write_text("\n".join(lines).replace('"x"', '"y"', 1))
    with pytest.raises(UsageError, match=r"input edited\.jsonl has other content: the size is the same"):
        convert([edited], resume=True)
    edited.write_text("\n".join(lines[1:]))
    with pytest.raises(UsageError, match=r"it had \d+ bytes \(as a\.jsonl\), has \d+ now"):
        convert([edited], resume=True)
    copied = Path(shutil.copy(source, tmp_path / "copied.jsonl"))
    assert convert([copied], resume=True).complete
