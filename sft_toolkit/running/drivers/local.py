"""Run work over tasks in local processes. Results come back in the order of the tasks, however many workers."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from types import FrameType
from typing import Any, TypeVar

from sft_toolkit.errors import ToolkitError
from sft_toolkit.running.drivers.window import AHEAD_PER_WORKER, in_order

_SECONDS_TO_END = 1.0

Task = TypeVar("Task")
Result = TypeVar("Result")


def available_workers() -> int:
    """Number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


def run_ordered(tasks: Iterator[Task], work: Callable[[Task], Result], workers: int) -> Iterator[Result]:
    """Yield `work(task)` for each task, in order; at most a few tasks per worker are taken ahead of their turn.

    With one worker, or a single task, everything runs in this process. Else each worker is sent `work` once, so that
    what it builds and keeps (a tokenizer, compiled schemas) serves all of that worker's tasks. The first error, in
    task order, ends the run and the tasks already begun. Raises ToolkitError when a worker process dies.
    """
    # Two tasks are looked at before any process is made: many inputs are one block, for which a pool would not pay.
    first = list(itertools.islice(tasks, 2))
    tasks = itertools.chain(first, tasks)
    if workers <= 1 or len(first) < 2:
        yield from map(work, tasks)
        return
    # Not fork: this process has threads (polars, pyarrow), and a forked child may inherit a lock that one of them held.
    # The fork server is one clean interpreter that workers are forked from, where spawn would start one for each.
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("forkserver")
    stopping = context.Event()
    pool = ProcessPoolExecutor(workers, context, initializer=_start_worker, initargs=(work, stopping))
    try:
        yield from in_order(tasks, lambda task: pool.submit(_run_task, task), Future.result, workers * AHEAD_PER_WORKER)
        pool.shutdown()
    except BaseException as end:
        # Also for Ctrl-C, SIGTERM and a consumer that stops early (GeneratorExit). The event is set first: a worker
        # that is between two tasks when the signal comes has nothing to interrupt, and would begin the next one.
        stopping.set()
        workers_of_pool = set(multiprocessing.active_children()) - others
        for worker in workers_of_pool:
            worker.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        _kill_unless_ended(workers_of_pool)
        pool.shutdown()
        if isinstance(end, BrokenProcessPool):
            raise ToolkitError(
                "a worker process died",
                "out of memory? try fewer `workers` or smaller `rows_per_shard`; `resume=True` keeps finished shards",
            ) from end
        raise


def _kill_unless_ended(workers: set[BaseProcess]) -> None:
    """Native code does not look at signals: a worker that stays in it is killed, since its result is lost anyway."""
    until = time.monotonic() + _SECONDS_TO_END
    for worker in workers:
        worker.join(max(0.0, until - time.monotonic()))
        if worker.is_alive():
            worker.kill()


# What this worker process was started with. A global, because a pool hands its tasks to a plain function.
_worker: dict[str, Any] = {}


class _Stopped(BaseException):
    """Ends a task whose result nobody waits for."""


def _run_task(task: Any) -> Any:
    if _worker["stopping"].is_set():
        return None
    try:
        _worker["busy"] = True
        return _worker["work"](task)
    finally:
        _worker["busy"] = False


def _stop(number: int, frame: FrameType | None) -> None:
    """End the task, never the process: killed while it sends a result, it would leave the pool waiting for the rest."""
    if _worker["busy"]:
        raise _Stopped


def _start_worker(work: Callable[[Any], Any], stopping: Event) -> None:
    """Workers leave Ctrl-C to the parent, end when it does, and do not multiply threads on top of processes."""
    _worker.update(work=work, stopping=stopping, busy=False)
    # A terminal sends Ctrl-C to all processes of the group. If workers died of it, the parent would see a broken pool
    # rather than the interrupt, and report that a worker was killed.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # One thread each: every worker already has a processor of its own. Set before `work` imports what reads these.
    for name in ("RAYON_NUM_THREADS", "POLARS_MAX_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = "1"
    with contextlib.suppress(ImportError):
        import pyarrow as pa

        pa.set_cpu_count(1)


def _end_with_parent() -> None:
    # After a SIGKILL of the parent nobody sends these workers anything, and they would wait on their pipe for ever.
    # os._exit, since sys.exit in a thread ends the thread alone.
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
