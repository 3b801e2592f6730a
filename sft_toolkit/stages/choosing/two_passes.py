"""The frame of the choosing commands: look at all records, decide, then apply the decisions as a stage."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sft_toolkit.running.options import RunOptions, Summary
from sft_toolkit.running.passes import DRY_RUN_ROWS, readable_twice
from sft_toolkit.running.runner import require_output, run_stage
from sft_toolkit.stage import Stage

Decide = Callable[[RunOptions, Path], tuple[Stage, dict[str, Any]]]
"""Makes the stage of the second pass, and facts for the summary; what it needs lies in the folder."""


def look_then_apply(decide: Decide, run: RunOptions) -> Summary:
    """Run `decide` on the inputs, and the stage that it makes on the same inputs. Raises as `run_stage` does.

    A dry run looks at the first records alone.
    """
    if not run.dry_run:
        require_output(run, known=run.goes_on)
    with (
        readable_twice(run, *([DRY_RUN_ROWS] if run.dry_run else [])) as kept,
        tempfile.TemporaryDirectory(prefix="kolibri-sft-") as folder,
    ):
        stage, facts = decide(kept, Path(folder))
        summary = run_stage(stage, kept)
    summary.facts.update(facts)
    return summary
