"""The journal of a run's replies: appended as they come, so that nothing that was paid for is ever lost.

A folder, for its owner alone to read, holds `config.json` (what the questions share) and one file of lines per part of
an array job: `{"key":"<32 hex digits>","status":200,"reply":<the body as it came>}`. A body that is not quite the JSON
that it should be stands there as `"raw":"<base64>"`; what is no reply, though it came with status 200, stands after a
`fault` and answers nothing. Lines are only ever appended; a last line that a crash has torn is cut off when its writer
comes back.
"""

from __future__ import annotations

import base64
import fcntl
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sft_toolkit.errors import ToolkitError
from sft_toolkit.json_text import decode, encode, encode_text
from sft_toolkit.shards.atomic import explained
from sft_toolkit.shards.jsonl import whole_lines
from sft_toolkit.teachers.journal_config import PRIVATE_FILE, write_private
from sft_toolkit.teachers.key_index import KeyIndex, parts_of, place
from sft_toolkit.teachers.replies import read_reply
from sft_toolkit.teachers.requests import Asking, Request
from sft_toolkit.teachers.teacher import RawReply

_FILES = "replies-*.jsonl"
_KEY = slice(8, 40)
_HEAD = b'{"key":"'
_LINE = re.compile(rb'\{"key":"[0-9a-f]{32}","status":\d+,"(?:reply|raw)":.*\}\n', re.DOTALL)
_SYNC_SECONDS = 1.0


class Replies:
    """What a journal held when it was opened, for reading."""

    def __init__(self, paths: list[Path], index: KeyIndex) -> None:
        self.paths = paths
        self.index = index
        self._open: dict[int, Any] = {}

    @classmethod
    def scan(cls, folder: Path) -> Replies:
        """Read through all files of the journal."""
        replies = cls(sorted(folder.glob(_FILES)), KeyIndex())
        for number, path in enumerate(replies.paths):
            for key, offset in _keys(path):
                replies.index.add(key, place(number, offset))
        return replies

    @classmethod
    def load(cls, folder: Path, part: tuple[int, int]) -> Replies:
        """As `save` left it: the index is mapped, not read."""
        index, names = _index_paths(folder, part)
        return cls([folder / name for name in decode(names.read_bytes())], KeyIndex.load(index))

    def save(self, folder: Path, part: tuple[int, int]) -> None:
        """Keep the index beside the journal, for the processes that judge one part of a job."""
        index, names = _index_paths(folder, part)
        write_private(names, encode_text([path.name for path in self.paths]))
        self.index.save(index)

    def __len__(self) -> int:
        return len(self.index)

    def __contains__(self, key: str) -> bool:
        return self.index.find(key) is not None

    def get(self, key: str) -> RawReply | None:
        """The reply, None where the question has not been answered. Raises ToolkitError where its line is damaged."""
        found = self.index.find(key)
        if found is None:
            return None
        number, offset = parts_of(found)
        file = self._open.get(number) or self._open.setdefault(number, self.paths[number].open("rb"))
        file.seek(offset)
        try:
            entry = decode(file.readline())
        except ValueError as fault:
            place = f"{self.paths[number]}: the line at byte {offset} is damaged"
            raise ToolkitError(f"{place}: {fault}", "delete it, and its question is asked again") from fault
        if entry["key"] != key:
            return None
        body = base64.b64decode(entry["raw"]) if "raw" in entry else encode(entry["reply"])
        return RawReply(entry["status"], body)

    def answer(self, asking: Asking, request: Request, *, even_cut: bool) -> RawReply | None:
        """The reply to a question: today's, or one that came under a lower limit of length and ended within it.

        With `even_cut` one that did not end within it is better than none.
        """
        found = self.get(asking.key(request))
        cut = None
        for key in asking.earlier_keys(request) if found is None else ():
            earlier = self.get(key)
            if earlier is not None and not read_reply(earlier).is_cut:
                return earlier
            cut = cut or earlier
        return found or (cut if even_cut else None)


class Journal:
    """The writer of one part's file. Raises ToolkitError where another process is writing it.

    `is_broken` once a line could not be written.
    """

    def __init__(self, folder: Path, part: tuple[int, int] = (0, 1)) -> None:
        self._folder, self._part = folder, part
        self.is_broken = False
        self._path = path = folder / f"replies-{part[0]:05d}-of-{part[1]:05d}.jsonl"
        self._file = os.fdopen(os.open(path, os.O_APPEND | os.O_CREAT | os.O_RDWR, PRIVATE_FILE), "ab")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as fault:
            self._file.close()
            raise ToolkitError(
                f"{path}: another run is writing it", "wait for it, or name another `journal`"
            ) from fault
        os.truncate(path, whole_lines(path))
        self.replies = Replies.scan(folder)
        self._number = self.replies.paths.index(path)
        self._end = path.stat().st_size
        self._synced = time.monotonic()

    def append(self, key: str, reply: RawReply) -> None:
        """Write a reply, so that it outlives this process at once, and the machine within a second."""
        line = b'%s%s","status":%d,%s}\n' % (_HEAD, key.encode(), reply.status, _held(reply.body))
        self._write(line)
        self.replies.index.add(key, place(self._number, self._end))
        self._end += len(line)

    def note_fault(self, key: str, detail: str, body: bytes) -> None:
        """Write what came with status 200 and is no reply: it may have been paid for, and answers nothing."""
        line = b'%s%s","status":200,"fault":%s,%s}\n' % (_HEAD, key.encode(), encode(detail), _raw(body))
        self._write(line)
        self._end += len(line)

    def close(self) -> None:
        """Save the index, for readers, and let go of the file."""
        self._sync()
        self.replies.save(self._folder, self._part)
        self._file.close()

    def _write(self, line: bytes) -> None:
        try:
            self._file.write(line)
            self._file.flush()
            if time.monotonic() - self._synced > _SYNC_SECONDS:
                self._sync()
        except OSError as fault:
            self.is_broken = True
            raise explained(fault, self._path) from fault

    def _sync(self) -> None:
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()


def _held(body: bytes) -> bytes:
    """The body as it came where it is JSON on one line, or can be brought to one without loss."""
    try:
        value = decode(body)
    except ValueError:
        return _raw(body)
    return b'"reply":' + (encode(value) if b"\n" in body or b"\r" in body else body)


def _raw(body: bytes) -> bytes:
    return b'"raw":"%s"' % base64.b64encode(body)


def _index_paths(folder: Path, part: tuple[int, int]) -> tuple[Path, Path]:
    stem = f"index-{part[0]:05d}-of-{part[1]:05d}"
    return folder / f"{stem}.npy", folder / f"{stem}.json"


def _keys(path: Path) -> Iterator[tuple[str, int]]:
    """Key and offset of each whole line; what is none is passed over."""
    offset = 0
    with path.open("rb") as file:
        for line in file:
            if _LINE.fullmatch(line):
                yield line[_KEY].decode(), offset
            offset += len(line)
