"""Local ranks through torch.distributed's launcher: every one runs the command line that was given here."""

from __future__ import annotations

import logging
import os
import sys

import torch
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from sft_toolkit.errors import UsageError

_SECONDS_TO_SAVE = 3600
"""How long ranks that were asked to stop may take to save before they are killed."""


def launch(count: int) -> int:
    """Run this command line in `count` processes and return the exit code of the first that fails, else 0.

    SIGTERM and SIGINT reach the ranks, which save and end; the code is then 128 and the signal's number. Raises
    UsageError where the machine has GPUs, but fewer than ranks.
    """
    if 0 < (devices := torch.cuda.device_count()) < count:
        raise UsageError(f"`nproc` {count}: a rank needs a GPU of its own, here are {devices}")
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // count)))
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=count,
        run_id="kolibri-sft",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
        shutdown_timeout=_SECONDS_TO_SAVE,
    )
    try:
        elastic_launch(config, sys.executable)(*sys.argv)
    except SignalException as stopped:
        return 128 + stopped.sigval
    except ChildFailedError as failed:
        code = failed.get_first_failure()[1].exitcode
        return code if code > 0 else 128 - code
    return 0


def launched() -> bool:
    """True in a process that a launcher started as one rank."""
    return "RANK" in os.environ
