"""Checkpoints from which a run resumes as if it had not stopped: complete or invisible, written beside training.

A checkpoint is a folder `step-00000120` of torch.distributed.checkpoint. Its `checksums.json` is written last and
removed first, so that a folder with one is whole; files are compared with it before anything is loaded. States are
stored whole, whatever the ranks that wrote them: another number of ranks reads what it needs.
"""

from __future__ import annotations

import shutil
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from pickle import UnpicklingError
from types import TracebackType
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_model_state_dict, set_state_dict
from torch.optim import Optimizer

from sft_toolkit.errors import ToolkitError
from sft_toolkit.training.checkpoint_files import (
    CHECKSUMS,
    IndexReader,
    PlainValues,
    verify_checksums,
    write_checksums,
)
from sft_toolkit.training.processes import Ranks


class Checkpoints:
    """The checkpoints of one run; all methods are collective. Leaving it waits for the last to be written."""

    def __init__(self, folder: Path, ranks: Ranks, keep: int) -> None:
        self._folder = folder
        self._ranks = ranks
        self._keep = keep
        self._saving: Future[None] | None = None
        self._finisher = ThreadPoolExecutor(1)

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.wait()
        finally:
            self._finisher.shutdown()

    def save(self, step: int, model: nn.Module, optimizer: Optimizer) -> None:
        """Copy the state after `step` steps and write it in the background, once the one before is written."""
        self.wait()
        place = self._place(step)
        if self._ranks.leads:
            _remove(place)
        dist.barrier(self._ranks.background)
        state = {**_state(model, optimizer), **_random_state(self._ranks)}
        written = dcp.async_save(state, checkpoint_id=place, process_group=self._ranks.background)
        self._saving = self._finisher.submit(self._finish, written, place)

    def wait(self) -> None:
        """Wait until the last checkpoint is on the disk, then remove older ones and what others left unfinished."""
        if self._saving is None:
            return
        saving, self._saving = self._saving, None
        try:
            saving.result()
        except (OSError, RuntimeError, dcp.CheckpointException) as fault:
            message = f"{self._folder}: a checkpoint could not be written: {_reason(fault)}"
            raise ToolkitError(message, "is the disk full?") from fault
        if self._ranks.leads:
            kept = [self._place(step) for step in complete_steps(self._folder)[-self._keep :]]
            for place in set(self._folder.glob("step-*")).difference(kept):
                _remove(place)

    def _finish(self, written: Future[Any], place: Path) -> None:
        written.result()
        if self._ranks.leads:
            write_checksums(place)

    def load(self, step: int, model: nn.Module, optimizer: Optimizer, *, weights_only: bool = False) -> None:
        """Restore what `save` saw. A rank that did not exist then keeps its random state.

        weights_only: leave the optimizer and random states as they are
        """
        place = self._place(step)
        try:
            verify_checksums(place, self._ranks.rank, self._ranks.count)
            dist.barrier(self._ranks.background)  # nothing is unpickled before all ranks found their share intact
            reader = IndexReader(place)
            saved = reader.read_metadata().state_dict_metadata
            random = {name: value for name, value in _random_state(self._ranks).items() if name in saved}
            state = {**_state(model, optimizer), **random}
            if weights_only:
                state = {"model": state["model"]}
            dcp.load(state, storage_reader=reader, planner=PlainValues(), process_group=self._ranks.background)
        except (OSError, EOFError, UnpicklingError, dcp.CheckpointException) as fault:
            message = f"{place}: cannot be read: {_reason(fault)}"
            raise ToolkitError(message, "remove it to resume from the one before") from fault
        if weights_only:
            set_model_state_dict(model, state["model"])
            return
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        _set_random_state({name: state[name] for name in random}, self._ranks.device)

    def _place(self, step: int) -> Path:
        return self._folder / f"step-{step:08d}"


def complete_steps(folder: Path) -> list[int]:
    """Steps that a complete checkpoint in `folder` exists of, in order."""
    return sorted(int(path.parent.name.removeprefix("step-")) for path in folder.glob(f"step-*/{CHECKSUMS}"))


def _state(model: nn.Module, optimizer: Optimizer) -> dict[str, Any]:
    model_state, optimizer_state = get_state_dict(model, optimizer)
    return {"model": model_state, "optimizer": optimizer_state}


def _random_state(ranks: Ranks) -> dict[str, Tensor]:
    """Named by rank, because equal names are taken for equal values and saved once."""
    states = {f"random.{ranks.rank}.cpu": torch.get_rng_state()}
    if ranks.device.type == "cuda":
        states[f"random.{ranks.rank}.cuda"] = torch.cuda.get_rng_state(ranks.device)
    return states


def _set_random_state(states: dict[str, Tensor], device: torch.device) -> None:
    for name, state in states.items():
        if name.endswith("cpu"):
            torch.set_rng_state(state)
        else:
            torch.cuda.set_rng_state(state, device)


def _reason(fault: BaseException) -> str:
    """One line of why; torch's own account holds the stack of every rank."""
    if isinstance(fault, dcp.CheckpointException):
        fault = next(iter(fault.failures.values()))[0]
    return next(iter(str(fault).splitlines()), type(fault).__name__)


def _remove(place: Path) -> None:
    (place / CHECKSUMS).unlink(missing_ok=True)
    shutil.rmtree(place, ignore_errors=True)
