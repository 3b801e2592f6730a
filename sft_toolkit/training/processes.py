"""The processes of a run: how they find one another, and who speaks when one of them fails."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from sft_toolkit.errors import ToolkitError, UsageError

_FAULTS = "kolibri_sft_faults"
_SIBLINGS = ("WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Ranks:
    """All ranks of a run as one of them sees them.

    background: a group for collectives of threads; those of gloo, for what the CPU holds
    sharing: the ranks that share this one's sequences, neighbours by number; None where each has its own
    """

    mesh: DeviceMesh
    device: torch.device
    background: dist.ProcessGroup
    sharing: dist.ProcessGroup | None = None

    @property
    def rank(self) -> int:
        return self.mesh.get_rank()

    @property
    def count(self) -> int:
        return self.mesh.size()

    @property
    def context(self) -> int:
        """Ranks that share a sequence."""
        return dist.get_world_size(self.sharing) if self.sharing else 1

    @property
    def readers(self) -> int:
        """How many sequences are read at a time, each by `context` ranks."""
        return self.count // self.context

    @property
    def reader(self) -> int:
        return self.rank // self.context

    @property
    def leads(self) -> bool:
        return self.rank == 0


@contextmanager
def joined_ranks(context: int = 1, replicas: int = 1) -> Iterator[Ranks]:
    """Join the other processes that a launcher started (RANK and its siblings), or be the only one.

    context: ranks that share a sequence; replicas: how many times the model's states are there, each time sharded over
    neighbouring ranks. Raises UsageError where one of them does not divide their number.

    Where ranks fail, the first one's error is the one that is reported: the others' are the same, or follow from it.
    """
    store, rank, count = _rendezvous()
    for name, parts in (("context", context), ("replicas", replicas)):
        if count % parts:
            raise UsageError(f"`{name}` {parts}: does not divide {count} ranks")
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    backend = "cpu:gloo,cuda:nccl" if cuda else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=count)
    try:
        sharing = dist.new_subgroups(context)[0] if context > 1 else None
        shape = (replicas, count // replicas) if replicas > 1 else (count,)
        names = ("replicate", "shard")[-len(shape) :]
        mesh = init_device_mesh(device.type, shape, mesh_dim_names=names)
        yield Ranks(mesh, device, dist.new_group(backend="gloo"), sharing)
    except ToolkitError as error:
        if store.add(_FAULTS, 1) > 1:
            raise SystemExit(error.exit_code) from error
        raise
    except RuntimeError as fault:
        lost = "gloo" in str(fault)  # what NCCL says may have other causes, and is reported as it is
        if store.add(_FAULTS, int(lost)) > int(lost):
            raise SystemExit(1) from fault
        if lost:
            message = "another rank is gone or does not answer: was it killed?"
            raise ToolkitError(message, "continue with `resume=True`") from fault
        raise
    dist.destroy_process_group()


def _rendezvous() -> tuple[dist.Store, int, int]:
    if "RANK" not in os.environ:
        return dist.HashStore(), 0, 1
    if lacking := [name for name in _SIBLINGS if name not in os.environ]:
        raise UsageError(f"RANK is set and {lacking[0]} is not", "start ranks with `nproc` or torchrun, or unset RANK")
    _end_with_launcher()
    return next(dist.rendezvous("env://"))


def _end_with_launcher() -> None:
    """Have SIGTERM sent here when the launcher is gone, even by SIGKILL: else its ranks would train on unwatched."""
    if sys.platform == "linux" and "TORCHELASTIC_RUN_ID" in os.environ:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
