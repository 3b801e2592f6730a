"""JSONL out: to stdout as it comes, to a file that appears whole or not at all, or to a journal that grows by lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sft_toolkit.conversation import Conversation
from sft_toolkit.json_text import encode
from sft_toolkit.shards.atomic import atomic_path, explained

Write = Callable[[bytes], Any]
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_STDOUT = Path("standard output")
_BYTES_PER_READ = 1 << 16


def encode_row(row: Conversation | dict[str, Any]) -> bytes:
    """One JSON line for a conversation or for a row of a shard schema."""
    if isinstance(row, Conversation):
        return encode(row.to_record()) + b"\n"
    plain = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in row.items()}
    return encode(plain) + b"\n"


class ReaderGone(Exception):
    """Whoever read stdout has stopped reading."""


def write_stdout(data: bytes) -> None:
    """Raises ReaderGone for a broken pipe, so that it cannot be taken for a fault of a socket."""
    try:
        sys.stdout.buffer.write(data)
    except BrokenPipeError as fault:
        raise ReaderGone from fault
    except OSError as fault:
        raise explained(fault, _STDOUT) from fault


def flush_stdout() -> None:
    try:
        sys.stdout.buffer.flush()
    except BrokenPipeError as fault:
        raise ReaderGone from fault
    except OSError as fault:
        raise explained(fault, _STDOUT) from fault


@contextmanager
def open_sink(output: str) -> Iterator[Write]:
    """A function that writes bytes to `-` (stdout) or to a .jsonl, .jsonl.gz or .jsonl.zst file."""
    if output == "-":
        yield write_stdout
        flush_stdout()
        return
    with atomic_path(Path(output)) as temporary, temporary.open("wb") as file:
        compression = _COMPRESSIONS.get(Path(output).suffix)
        if compression is None:
            yield file.write
            return
        with pa.CompressedOutputStream(file, compression) as packed:
            yield packed.write


def whole_lines(journal: Path) -> int:
    """Bytes of a file up to and with the last line that ends: what follows was torn by a crash while it was written.

    Reads from the end, so that a long journal costs no more than a short one.
    """
    end = journal.stat().st_size
    with journal.open("rb") as file:
        while end:
            start = max(0, end - _BYTES_PER_READ)
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            end = start
    return 0
