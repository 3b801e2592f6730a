"""What a file or a stream is by its first bytes, whatever its name says: compressed, UTF-16, or no lines at all."""

from __future__ import annotations

import bz2
import codecs
import io
import lzma
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from sft_toolkit.errors import ToolkitError

STDIN = "-"
COMPRESSED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".xz": "xz"}
_SAME_AS_STDIN = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
_DESCRIPTORS = ("/dev/fd/", "/proc/self/fd/")
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz"}
# Those of four bytes first: the mark of UTF-16 begins that of UTF-32. JSON begins with ASCII, so that a null byte
# beside it shows UTF-16 without a mark.
_WIDE = {
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
    b"{\0": "utf-16-le",
    b"\0{": "utf-16-be",
}
_NO_LINES = {b"PAR1": "a Parquet file", b"ARROW1": "an Arrow file", b"PK\x03\x04": "a zip archive"}
_LONGEST = 6
_TEXT_BEGINS = b"{[ \t\r\n\xef"
_READ_BYTES = 1 << 20
_FAULTS = (OSError, EOFError, lzma.LZMAError)


def is_stream(name: str) -> bool:
    """True for an input that can be read once only: standard input, a pipe, a device, a descriptor of the shell."""
    if name == STDIN or name.startswith(_DESCRIPTORS):
        return True
    try:
        mode = os.stat(name).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def plain_name(given: str) -> str:
    """`-` for every name of standard input."""
    return STDIN if given in _SAME_AS_STDIN else given


def content_of(path: Path) -> str | None:
    """How the lines of a file are wrapped: a compression, a wide encoding, None for neither.

    Raises ToolkitError for what holds no lines.
    """
    with path.open("rb") as file:
        head = file.read(_LONGEST)
    found = _kind(head, str(path))
    named = COMPRESSED.get(path.suffix.lower())
    # A name that promises compression and bytes that are neither that nor text: damage, which decompressing names.
    return named if found is None and head and head[0] not in _TEXT_BEGINS else found


class FileChunks(Iterator[bytes]):
    """The lines of a file of some kind of `content_of`, in chunks, unwrapped; `position`: bytes of the file so far."""

    def __init__(self, path: Path, kind: str) -> None:
        self.position = 0
        self._chunks = self._read(path, kind)

    def __next__(self) -> bytes:
        return next(self._chunks)

    def _read(self, path: Path, kind: str) -> Iterator[bytes]:
        with path.open("rb") as file:
            for chunk in _unwrapped(file, kind, str(path)):
                self.position = file.tell()
                yield chunk


def stream_chunks(name: str, shown_as: str) -> Iterator[bytes]:
    """The lines of a stream in chunks as they come, unwrapped where they are compressed or wide.

    Raises ToolkitError for what holds no lines.
    """
    with open(sys.stdin.fileno() if name == STDIN else name, "rb", closefd=name != STDIN) as file:
        yield from line_chunks(file, shown_as)


def line_chunks(file: io.BufferedReader, shown_as: str) -> Iterator[bytes]:
    """As `stream_chunks`, of an open file that is at its beginning."""
    head = file.read(_LONGEST)
    kind = _kind(head, shown_as)
    if kind is not None:
        yield from _unwrapped(io.BufferedReader(_Rejoined(head, file)), kind, shown_as)
        return
    if head:
        yield head
    while chunk := file.read1(_READ_BYTES):
        yield chunk


def _kind(head: bytes, shown_as: str) -> str | None:
    for magic, what in _NO_LINES.items():
        if head.startswith(magic):
            raise ToolkitError(f"{shown_as}: is {what}, not lines of JSON", "name the file as what it is, or unpack it")
    return next((kind for magic, kind in {**_MAGIC, **_WIDE}.items() if head.startswith(magic)), None)


def _unwrapped(file: IO[bytes], kind: str, shown_as: str) -> Iterator[bytes]:
    return _recoded(file, kind, shown_as) if kind in _WIDE.values() else _decompressed(file, kind, shown_as)


def _decompressed(file: IO[bytes], kind: str, shown_as: str) -> Iterator[bytes]:
    lines = 0
    try:
        packed = _open(file, kind)
        while chunk := packed.read(_READ_BYTES):
            lines += chunk.count(b"\n")
            yield chunk
    except _FAULTS as fault:
        raise ToolkitError(
            f"{shown_as}: compressed data is damaged or ends early after line {lines}: {fault}",
            "fetch the file again; it is not whole",
        ) from fault


def _open(file: IO[bytes], kind: str) -> Any:
    match kind:
        case "xz":
            return lzma.open(file)
        case "bz2":
            return bz2.open(file)
    return pa.CompressedInputStream(pa.PythonFile(file), kind)


def _recoded(file: IO[bytes], encoding: str, shown_as: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        more = True
        while more:
            chunk = file.read(_READ_BYTES)
            more = bool(chunk)
            if text := decoder.decode(chunk, final=not more):
                yield text.encode()
    except UnicodeError as fault:
        raise ToolkitError(f"{shown_as}: begins as {encoding.upper()}, but is none: {fault}") from fault


class _Rejoined(io.RawIOBase):
    """A stream whose first bytes were taken off to look at them."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        taken = self._head[: len(buffer)] or self._rest.read1(len(buffer))
        self._head = self._head[len(taken) :]
        buffer[: len(taken)] = taken
        return len(taken)
