"""Run work over tasks on a Ray cluster, or on one that is started here. Results come back in the order of the tasks.

Tasks name files: every node must see the inputs and the output under the same paths. Ray itself runs a task again
elsewhere when it loses the task's worker or node; only after several losses does the run end.
"""

from __future__ import annotations

import os
import pickle
import socket
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import sft_toolkit
from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.running.drivers.window import AHEAD_PER_WORKER, in_order

RUNS_OF_A_TASK = 4
_SECONDS_TO_CONNECT = 5.0
_SECONDS_TO_ANSWER = 10.0
_SETTINGS = b"\x04"
_HTTP2_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0" + _SETTINGS + b"\0\0\0\0\0"
"""Preface and empty settings, which a gRPC server answers with its settings (RFC 9113, sections 3.4 and 6.5)."""
_GCS_PORT = 6379
_ONE_THREAD_EACH = ("RAYON_NUM_THREADS", "POLARS_MAX_THREADS", "OMP_NUM_THREADS")
_IN_THIS_PROCESS = ("auto", "local")

Task = TypeVar("Task")
Result = TypeVar("Result")


def run_ordered(
    tasks: Iterator[Task], work: Callable[[Task], Result], workers: int, address: str | None = None
) -> Iterator[Result]:
    """Yield `work(task)` for each task, in order; `workers` 0 are all processors of the cluster.

    Joins the cluster at `address`, else that of RAY_ADDRESS, where either is set. Raises UsageError where Ray is not
    installed, ToolkitError where the cluster cannot be reached or holds another version of this package, and where a
    task lost its worker RUNS_OF_A_TASK times; an error of a task is raised as it was.
    """
    ray = _import_ray()
    joined = ray.is_initialized()
    if not joined:
        _join(ray, address or os.environ.get("RAY_ADDRESS"), workers)
    try:
        yield from _run(ray, tasks, work, workers)
    finally:
        if not joined:
            ray.shutdown()


def _run(ray: Any, tasks: Iterator[Task], work: Callable[[Task], Result], workers: int) -> Iterator[Result]:
    run = ray.remote(num_cpus=1, max_retries=RUNS_OF_A_TASK - 1)(_run_task)
    # What Ray unpickles itself holds read-only arrays: work, tasks and results travel as bytes.
    prepared = ray.put(pickle.dumps(work))
    under_way: deque[Any] = deque()

    def submit(task: Task) -> tuple[Task, Any]:
        reference = run.remote(prepared, prepared.hex(), sft_toolkit.__version__, pickle.dumps(task))
        under_way.append(reference)
        return task, reference

    def result(pending: tuple[Task, Any]) -> Result:
        task, reference = pending
        done, data = _value(ray, task, reference)
        under_way.popleft()
        found = pickle.loads(data)
        if not done:
            raise found
        return found

    ahead = workers or AHEAD_PER_WORKER * max(1, int(ray.cluster_resources().get("CPU", 1)))
    try:
        yield from in_order(tasks, submit, result, ahead)
    finally:
        for reference in under_way:
            ray.cancel(reference, force=True)


def _value(ray: Any, task: Any, reference: Any) -> tuple[bool, bytes]:
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as fault:
        raise ToolkitError(
            f"a Ray worker cannot run this package: {_last_line(fault)}",
            f"install kolibri-sft {sft_toolkit.__version__} on every node",
        ) from fault
    except ray.exceptions.RayError as fault:
        index = getattr(task, "index", None)
        what = f"block {index}" if isinstance(index, int) else "a task of a pass over the input"
        raise ToolkitError(
            f"{what}: lost its Ray worker or node {RUNS_OF_A_TASK} times ({type(fault).__name__})",
            "out of memory? try smaller `rows_per_shard`; the same command with `resume=True` keeps what is finished",
        ) from fault


def _last_line(fault: Exception) -> str:
    return (str(fault).strip() or type(fault).__name__).splitlines()[-1]


# The work of the run that this Ray worker process serves, by the name of the object that holds it: what it builds and
# keeps (a tokenizer, compiled schemas) serves all tasks that come here. Ray reuses processes for tasks.
_work: dict[str, Callable[[Any], Any]] = {}


def _run_task(prepared: bytes, name: str, version: str, task: bytes) -> tuple[bool, bytes]:
    """The pickled result of a task, or its pickled error; runs in a worker."""
    try:
        if version != sft_toolkit.__version__:
            raise ToolkitError(
                f"node {socket.gethostname()} has kolibri-sft {sft_toolkit.__version__}, this is {version}",
                "install one version on every node",
            )
        if name not in _work:
            os.environ.update(dict.fromkeys(_ONE_THREAD_EACH, "1"))
            _work.clear()
            _work[name] = pickle.loads(prepared)
        return True, pickle.dumps(_work[name](pickle.loads(task)))
    except Exception as fault:
        return False, pickle.dumps(fault)


def _join(ray: Any, address: str | None, workers: int) -> None:
    """Join the cluster at `address`, or start one here. Ray must not be given a number of processors when it joins."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # Ray prints what it says of lost workers on stdout, where data may go; no option of its own turns that off.
    ray._private.worker.print_to_stdstream = lambda *lines, **how: None
    quiet = {"log_to_driver": False, "logging_level": "critical"}
    if not address or address == "local":
        ray.init(address="local", include_dashboard=False, num_cpus=workers or None, **quiet)
        return
    _require_answer(address)
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError, OSError) as fault:
        raise _unreachable(address, str(fault).splitlines()[0] if str(fault) else type(fault).__name__) from fault


def _require_answer(address: str) -> None:
    """Ray itself tries an unreachable cluster for minutes."""
    if address in _IN_THIS_PROCESS:
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(f"`ray_address` {address}: not HOST:PORT", f"the head node listens at HOST:{_GCS_PORT}")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _SECONDS_TO_CONNECT) as connection:
            connection.settimeout(_SECONDS_TO_ANSWER)
            connection.sendall(_HTTP2_GREETING)
            answer = connection.recv(9, socket.MSG_WAITALL)
    except TimeoutError as fault:
        raise _unreachable(address, "no answer") from fault
    except (OSError, OverflowError) as fault:
        raise _unreachable(address, str(getattr(fault, "strerror", None) or fault)) from fault
    if answer[3:4] != _SETTINGS:
        raise _unreachable(address, "what listens there does not answer as Ray does")


def _unreachable(address: str, reason: str) -> ToolkitError:
    return ToolkitError(
        f"no Ray cluster at {address}: {reason}", "is it started (`ray start --head`), and is `ray_address` right?"
    )


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as fault:
        raise UsageError("`driver=ray`: Ray is not installed", "pip install 'kolibri-sft[ray]'") from fault
    return ray
