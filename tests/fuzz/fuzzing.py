"""Damaged inputs for every reader, in processes of their own: what ends in a signal, a traceback or a hang is a fault.

    python -m tests.fuzz [--inputs 2000] [--seed 0] [--only TARGET ...] [--keep build/fuzz]

An input is made by (seed, target, number), so that any of them comes again. Prints a row per target; the inputs that
found a fault are written to the folder `keep`; exit code 1 where there was one.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import resource
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from tests.fuzz.targets import REFUSALS, TARGETS, Target

HANG_SECONDS = 10.0
SECONDS_TO_BEGIN = 60.0
START_METHOD = "spawn"
MEMORY = 6 << 30
INPUTS_OF_A_PROCESS = 2000  # Arrow keeps a megabyte of address space for each stream that turned out damaged
FAULTS_SHOWN = 20


@dataclass
class Found:
    """`faults`: by what was seen, the number of the first input that showed it."""

    inputs: int = 0
    refused: int = 0
    seconds: float = 0.0
    faults: dict[str, int] = field(default_factory=dict)


def made(name: str, target: Target, seeds: Sequence[bytes], seed: int, number: int) -> bytes:
    """Input number `number` of a target."""
    return target.mutate(random.Random(f"{seed}:{name}:{number}"), seeds)


def fuzz(name: str, inputs: int, seed: int, keep: Path) -> Found:
    """Run one target; a process that dies or hangs is replaced, and the next input is tried."""
    found, begun, start = Found(), time.monotonic(), 0
    context = multiprocessing.get_context(START_METHOD)
    while start < inputs:
        stop = min(inputs, start - start % INPUTS_OF_A_PROCESS + INPUTS_OF_A_PROCESS)
        ours, theirs = context.Pipe(duplex=False)
        at = context.Value("q", start - 1)  # nothing is tried before the seeds are made
        worker = context.Process(target=_work, args=(name, start, stop, seed, at, theirs))
        worker.start()
        theirs.close()
        how = _watch(worker, at, start, ours, found)
        if how:
            found.faults.setdefault(how, max(int(at.value), start))
        start = max(int(at.value), start) + 1 if how else stop
    found.inputs, found.seconds = inputs, time.monotonic() - begun
    _keep(name, found, seed, keep)
    return found


def _watch(worker: multiprocessing.Process, at: object, start: int, ours: Connection, found: Found) -> str:
    """Wait for a process; returns how it died, empty where it came to its end."""
    seen, since = start - 1, time.monotonic()
    while worker.is_alive() or ours.poll():
        if ours.poll(0.2):
            try:
                what, value = ours.recv()
            except EOFError:
                break
            if what == "fault":
                found.faults.setdefault(*value)
            else:
                found.refused += value
        number = at.value  # type: ignore[attr-defined]
        if number != seen:
            seen, since = number, time.monotonic()
        elif (
            time.monotonic() - since > HANG_SECONDS + (SECONDS_TO_BEGIN if number < start else 0) and worker.is_alive()
        ):
            worker.kill()
            worker.join()
            return f"hangs for {HANG_SECONDS:g} s"
    worker.join()
    return f"exit code {worker.exitcode}" if worker.exitcode else ""


def _work(name: str, start: int, stop: int, seed: int, at: object, results: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    target = TARGETS[name]
    with tempfile.TemporaryDirectory(prefix="fuzz-") as made_in, tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        seeds = target.seeds(Path(made_in))
        refused = 0
        for number in range(start, stop):
            at.value = number  # type: ignore[attr-defined]
            refused_now, fault = tried(target, made(name, target, seeds, seed, number), Path(folder))
            refused += refused_now
            if fault:
                results.send(("fault", (fault, number)))
            if number % 256 == 255:
                results.send(("refused", refused))
                refused = 0
        results.send(("refused", refused))


def tried(target: Target, data: bytes, folder: Path) -> tuple[bool, str]:
    """Read one input: whether it was refused, and the fault that it found, if any."""
    try:
        target.run(data, folder)
    except REFUSALS as refusal:
        said = str(refusal)
        return True, "" if said and "Traceback" not in said else "a refusal that says nothing"
    except Exception as fault:
        place = traceback.extract_tb(fault.__traceback__)[-1]
        own = [frame for frame in traceback.extract_tb(fault.__traceback__) if "sft_toolkit" in frame.filename]
        where = own[-1] if own else place
        return False, f"{type(fault).__name__} at {Path(where.filename).name}:{where.lineno}"
    return False, ""


def _keep(name: str, found: Found, seed: int, keep: Path) -> None:
    if not found.faults:
        return
    keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        seeds = TARGETS[name].seeds(Path(folder))
        for number in list(found.faults.values())[:FAULTS_SHOWN]:
            path = keep / f"{name.replace(' ', '_')}-{seed}-{number}"
            path.write_bytes(made(name, TARGETS[name], seeds, seed, number))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--inputs", type=int, default=2000, help="of each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", choices=sorted(TARGETS), default=sorted(TARGETS))
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"))
    given = parser.parse_args()
    total = Found()
    print(f"{'target':<18}{'inputs':>10}{'refused':>10}{'faults':>8}{'seconds':>9}", flush=True)
    for name in given.only:
        found = fuzz(name, given.inputs, given.seed, given.keep)
        print(
            f"{name:<18}{found.inputs:>10,}{found.refused:>10,}{len(found.faults):>8}{found.seconds:>9.1f}", flush=True
        )
        for how, number in list(found.faults.items())[:FAULTS_SHOWN]:
            print(f"    input {number}: {how}", flush=True)
        total.inputs += found.inputs
        total.faults |= found.faults
    print(f"{total.inputs:,} inputs, {len(total.faults)} faults", flush=True)
    return int(bool(total.faults))
