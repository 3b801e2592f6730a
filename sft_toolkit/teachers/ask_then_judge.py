"""A run with a teacher: ask what the journal lacks, then make the output from the journal alone."""

from __future__ import annotations

import asyncio
import signal
import tempfile
import time
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

from sft_toolkit.errors import UsageError
from sft_toolkit.running.options import RunOptions, Summary
from sft_toolkit.running.passes import readable_twice
from sft_toolkit.running.runner import forget_output, require_output, run_stage
from sft_toolkit.shards.sources import Source
from sft_toolkit.stage import Counters
from sft_toolkit.teachers.asking import AskingState
from sft_toolkit.teachers.conductor import Conductor, TeacherOptions, conversations
from sft_toolkit.teachers.journal_config import read_config
from sft_toolkit.teachers.requests import Asking
from sft_toolkit.teachers.stage import TeacherStage


def run_with_teacher(stage: TeacherStage, run: RunOptions, options: TeacherOptions) -> Summary:
    """Ask, then judge. Raises TryAgain where the teacher went away: what it answered is in the journal.

    The output is made anew whenever the journal has grown, and resumed where it has not.
    """
    begun = time.monotonic()
    with readable_twice(run) as run:
        if run.dry_run:
            return _dry_run(stage, run)
        journal = Path(stage.journal)
        earlier = _require_config(journal) if options.rejudge else read_config(journal)
        require_output(run, known=earlier is not None)
        conductor = Conductor(stage, run, options)
        state = _run_until_terminated(conductor.conduct(earlier))
        if options.batch.target is not None:
            return _questions_written(stage, conductor, options.batch.target, time.monotonic() - begun)
        summary = run_stage(conductor.stage, _judging(conductor, run))
    summary.seconds = time.monotonic() - begun
    summary.facts["teacher"] = {**state.to_json(), "prefill": conductor.stage.asking.prefill}
    return summary


def kept_asking(journal: Path) -> Asking:
    """What the earlier run that filled the journal asked with. Raises UsageError or ToolkitError where none did."""
    config = _require_config(journal)
    left_out = tuple(config.get("left_out", ()))
    return Asking(config["model"], config["prefill"], config["parameters"], config["seed"], left_out)


def _require_config(journal: Path) -> dict[str, Any]:
    config = read_config(journal)
    if config is None:
        raise UsageError(f"{journal}: no journal", "`rejudge` reads the replies of an earlier run")
    return config


def _run_until_terminated(work: Coroutine[Any, Any, AskingState]) -> AskingState:
    """Run to the end, or to SIGTERM: the work is then cancelled in good order before the signal takes its course."""
    handler = signal.getsignal(signal.SIGTERM)
    terminated = False

    async def cancellable() -> AskingState:
        task = asyncio.current_task()

        def cancel() -> None:
            nonlocal terminated
            terminated = True
            if task is not None:
                task.cancel()

        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, cancel)
        return await work

    try:
        return asyncio.run(cancellable())
    except asyncio.CancelledError:
        if not terminated:
            raise
    finally:
        signal.signal(signal.SIGTERM, handler)
    signal.raise_signal(signal.SIGTERM)
    raise AssertionError("unreachable: the signal ends the run")


def default_journal(output: str) -> Path:
    """Where the journal lies unless the user says otherwise: beside the output."""
    if output == "-":
        raise UsageError(
            "output to stdout needs a place for the replies", "name it with `journal=DIR`, or give `output`"
        )
    return Path(output.rstrip("/") + ".journal")


def _judging(conductor: Conductor, run: RunOptions) -> RunOptions:
    """The run, to resume the checked output; what an earlier one made of a smaller journal is made anew."""
    if not run.to_folder:
        return run
    if not Source(run.inputs).repeatable:
        return replace(run, force=True)
    if conductor.state.answered > 0 or conductor.is_outgrown:
        forget_output(conductor.stage, run, every_part=conductor.is_outgrown)
    return replace(run, force=False, resume=True)


def _questions_written(stage: TeacherStage, conductor: Conductor, target: Path, seconds: float) -> Summary:
    """What is reported of a run that ends with a file of questions for others to answer."""
    counters = Counters()
    counters.notes["questions written"] = conductor.state.handed_over
    counters.notes["kept from before"] = conductor.state.kept
    return Summary(f"{stage.name} (batch file)", str(target), counters, seconds)


def _dry_run(stage: TeacherStage, run: RunOptions) -> Summary:
    """Count the questions of the input and ask none."""
    begun = time.monotonic()
    counters = Counters()
    with tempfile.TemporaryDirectory(prefix="kolibri-sft-") as spool:
        blocks = list(Source(run.inputs, run.copies).blocks(run.rows_per_shard, Path(spool)))
        for conversation in conversations(blocks, run):
            counters.records_in += 1
            counters.notes["questions"] += sum(1 for _ in stage.requests(conversation))
    return Summary(f"{stage.name} (dry run)", "nothing", counters, time.monotonic() - begun)
