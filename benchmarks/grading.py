"""Students of difficulty on reasoning-gym's graded tasks (pip install reasoning-gym).

Each task's curriculum gives prompts at five levels, the labels. Of the 102 curricula of version 0.1.25 only 30 have
five different levels; 51 repeat the fourth, 21 the third or second, so that no student can be exact on more than about
82%. Figures compare students, and data sets that were seen with such that were not. Tasks that take longer than a few
seconds of processor time, or that refuse a level of their own curriculum, are left out.

The students' settings were chosen on 58 of the tasks, with prompts of other seeds. docs/teachers.md has the figures,
also those on the 29 tasks that had no part in the choice.

    python benchmarks/grading.py --prompts 25
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LEVELS = 5
SECONDS_A_TASK = 12
SEED = 1_000_000
"""Prompt n of a level has the seed n above the level's: levels that lay closer would share prompts."""
SPLITS = ("random split", "data sets left out")
STUDENTS = ("linear", "ordinal", "fasttext")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompts", type=int, default=25, help="of each task and level")
    parser.add_argument("--keep", type=Path, help="file for the prompts; used as it is where it exists")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        prompts = options.keep or Path(folder, "prompts.jsonl")
        if not prompts.exists():
            write_prompts(prompts, options.prompts)
        rows = [json.loads(line) for line in prompts.read_text().splitlines()]
        print(f"{len(rows):,} prompts of {len({row['dataset'] for row in rows})} tasks, {LEVELS} levels")
        for student in STUDENTS:
            compare(student, prompts, Path(folder, student))


def compare(student: str, prompts: Path, model: Path) -> None:
    levels = ",".join(map(str, range(LEVELS)))
    begun = time.perf_counter()
    done = kolibri("grade", "fit", prompts, "--label-column", "level", "--levels", levels, "--json",
                   "--student", student, "-o", model)  # fmt: skip
    seconds = time.perf_counter() - begun
    report = json.loads(done.stdout)
    for split in SPLITS:
        found = report[split]
        print(
            f"{student:9} {split:19} exact {found['exact']:.3f}, within one {found['within_one']:.3f}, "
            f"kappa {found['kappa']:.3f}, majority {found['majority']:.3f}, confidence {found['confidence']:.3f}, "
            f"calibration error {found['calibration_error']:.3f}"
        )
    begun = time.perf_counter()
    kolibri("grade", "apply", prompts, "--model", model, "--anyway", "-o", model / "labelled.jsonl", "-q")
    applied = time.perf_counter() - begun
    size = sum(path.stat().st_size for path in model.glob("student.*")) / 2**20
    print(f"{student:9} fit and both checks {seconds:.1f} s, apply {applied:.1f} s, {size:.1f} MiB")


def kolibri(*arguments: Any) -> subprocess.CompletedProcess[bytes]:
    script = Path(sys.executable).with_name("kolibri-sft")
    return subprocess.run([script, *map(str, arguments)], check=True, capture_output=True)


def write_prompts(path: Path, count: int) -> None:
    from reasoning_gym.factory import CURRICULA

    rows: list[dict[str, Any]] = []
    for task in sorted(CURRICULA):
        try:
            with limited(SECONDS_A_TASK):
                rows += list(graded(task, count))
        except Exception as fault:  # each task fails in its own way
            print(f"left out: {task}: {type(fault).__name__} {str(fault).partition(chr(10))[0]}")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def graded(task: str, count: int) -> Iterator[dict[str, Any]]:
    """`count` prompts at each level of a task's curriculum."""
    from reasoning_gym.factory import create_curriculum, create_dataset

    curriculum = create_curriculum(task)
    for level in range(LEVELS):
        curriculum.set_global_level(level)
        settings = vars(curriculum.generate_configuration({"size": count}))
        data = create_dataset(task, **{**settings, "seed": SEED * (level + 1), "size": count})
        for number in range(count):
            messages = [{"role": "user", "content": data[number]["question"]}, {"role": "assistant", "content": "?"}]
            yield {"id": f"{task}-{level}-{number}", "dataset": task, "level": str(level), "messages": messages}


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raise TimeoutError in the block after so many seconds of processor time."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} s")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


if __name__ == "__main__":
    main()
