"""The files of a checkpoint: read only as they were written, and without running what a stranger may have put there.

torch keeps the index of a checkpoint, and its single values, as pickles, which can call anything. Here an index may
name the classes of torch's own indexes and nothing else, and values are numbers, strings and tensors.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint import DefaultLoadPlanner, FileSystemReader
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta
from torch.distributed.checkpoint.planner import ReadItem

from sft_toolkit.errors import ToolkitError
from sft_toolkit.json_text import decode, encode_text
from sft_toolkit.shards.atomic import write_text
from sft_toolkit.shards.pins import content_hash

CHECKSUMS, INDEX = "checksums.json", ".metadata"
_METADATA = "torch.distributed.checkpoint.metadata"
_CLASSES = frozenset(
    {
        *(
            (_METADATA, name)
            for name in (
                "BytesStorageMetadata",
                "ChunkStorageMetadata",
                "Metadata",
                "MetadataIndex",
                "StorageMeta",
                "TensorProperties",
                "TensorStorageMetadata",
                "_MEM_FORMAT_ENCODING",
            )
        ),
        ("torch.distributed.checkpoint.filesystem", "_StorageInfo"),
        ("torch", "Size"),
        ("torch.serialization", "_get_layout"),
        ("pathlib", "PosixPath"),
        ("pathlib._local", "PosixPath"),
        ("collections", "OrderedDict"),
    }
)
"""What torch 2.13 writes into an index, whose data types are let through beside them."""
_HINT = "remove it to resume from the one before"


def write_checksums(place: Path) -> None:
    """Write down what the files of a checkpoint hold. It is complete from then on."""
    write_text(place / CHECKSUMS, encode_text({name: content_hash(place / name) for name in _files(place)}) + "\n")


def verify_checksums(place: Path, rank: int, ranks: int) -> None:
    """Raise ToolkitError where this rank's share of the files is not what was written."""
    try:
        written = decode((place / CHECKSUMS).read_bytes())
        if set(written) != set(_files(place)):
            raise ToolkitError(f"{place}: cannot be read: files were added to it or are missing", _HINT)
        for name in sorted(written)[rank::ranks]:
            if content_hash(place / name) != written[name]:
                raise ToolkitError(f"{place}: cannot be read: {name} does not match its checksum", _HINT)
    except (OSError, ValueError, TypeError) as fault:
        raise ToolkitError(f"{place}: cannot be read: {CHECKSUMS}: {fault}", _HINT) from fault


class IndexReader(FileSystemReader):
    """torch's reader, with an index that can only hold what an index holds."""

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Raises UnpicklingError for an index of anything else, or that leads out of the checkpoint."""
        with (Path(self.path) / INDEX).open("rb") as file:
            metadata = _IndexUnpickler(file).load()
        if not isinstance(metadata, Metadata):
            raise pickle.UnpicklingError(f"{INDEX} is not an index of a checkpoint")
        for stored in (metadata.storage_data or {}).values():
            if Path(stored.relative_path).name != stored.relative_path:
                raise pickle.UnpicklingError(f"{INDEX} names a file outside the checkpoint")
        metadata.storage_meta = metadata.storage_meta or StorageMeta()
        metadata.storage_meta.load_id = self.load_id
        return metadata


class PlainValues(DefaultLoadPlanner):
    """torch's planner, which unpickles no object but numbers, strings, collections and tensors."""

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Raises UnpicklingError for any other object."""
        torch.load(value, weights_only=True)
        value.seek(0)
        super().load_bytes(read_item, value)


class _IndexUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        is_type = module == "torch" and isinstance(getattr(torch, name, None), torch.dtype)
        if not is_type and (module, name) not in _CLASSES:
            raise pickle.UnpicklingError(f"{INDEX} would run {module}.{name}, which no index of torch does")
        return super().find_class(module, name)


def _files(place: Path) -> Iterable[str]:
    return sorted(path.name for path in place.iterdir() if path.name == INDEX or path.suffix == ".distcp")
