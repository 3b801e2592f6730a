"""The journal of a run's replies: appended as they come, so that nothing that was paid for is ever lost.

A folder holds `config.json` (what the questions share) and one file of lines per part of an array job:
`{"key":"<32 hex digits>","status":200,"reply":<the body as it came>}`. Lines are only ever appended; a last line that
a crash has torn is cut off when its writer comes back.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.json_text import decode, encode, encode_text
from sft_toolkit.shards.atomic import explained, write_text
from sft_toolkit.shards.jsonl import whole_lines
from sft_toolkit.teachers.key_index import KeyIndex, parts_of, place
from sft_toolkit.teachers.teacher import RawReply

_CONFIG = "config.json"
_FILES = "replies-*.jsonl"
_KEY = slice(8, 40)
_HEAD = b'{"key":"'
_LINE = re.compile(rb'\{"key":"[0-9a-f]{32}","status":\d+,"reply":.*\}\n', re.DOTALL)
_SYNC_SECONDS = 1.0


def read_config(folder: Path) -> dict[str, Any] | None:
    """What an earlier run noted of its questions, None where there was none."""
    path = folder / _CONFIG
    try:
        config = decode(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as fault:
        raise explained(fault, path) from fault
    except ValueError as fault:
        raise ToolkitError(f"{path}: not JSON: {fault}", "is this the journal of a run?") from fault
    if not (isinstance(config, dict) and {"stage", "model", "prefill", "parameters", "seed"} <= config.keys()):
        raise ToolkitError(f"{path}: not what a journal holds", "--journal names the folder of a run's replies")
    return config


def claim(folder: Path, config: dict[str, Any], *, force: bool) -> None:
    """Note what the run's questions share. Raises UsageError where earlier ones differ, unless `force` is given.

    Earlier replies stay: they are found again when the earlier configuration is.
    """
    earlier = read_config(folder)
    wanted = decode(encode(config))
    if earlier is not None and earlier != wanted and not force:
        changed = sorted(key for key in earlier.keys() | wanted.keys() if earlier.get(key) != wanted.get(key))
        raise UsageError(
            f"{folder}: was begun with another {', '.join(changed)}",
            "restore it, name another --journal, or use --force to ask with the new one (replies so far are kept)",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise explained(fault, folder) from fault
    if earlier is None or force:
        write_text(folder / _CONFIG, encode_text(config))


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
        write_text(names, encode_text([path.name for path in self.paths]))
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
        return RawReply(entry["status"], encode(entry["reply"])) if entry["key"] == key else None


class Journal:
    """The writer of one part's file. Raises ToolkitError where another process is writing it.

    `is_broken` once a line could not be written.
    """

    def __init__(self, folder: Path, part: tuple[int, int] = (0, 1)) -> None:
        self._folder, self._part = folder, part
        self.is_broken = False
        path = folder / f"replies-{part[0]:05d}-of-{part[1]:05d}.jsonl"
        self._file = path.open("ab")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as fault:
            self._file.close()
            raise ToolkitError(
                f"{path}: another run is writing it", "wait for it, or name another --journal"
            ) from fault
        os.truncate(path, whole_lines(path))
        self.replies = Replies.scan(folder)
        self._number = self.replies.paths.index(path)
        self._end = path.stat().st_size
        self._synced = time.monotonic()

    def append(self, key: str, reply: RawReply) -> None:
        """Write a reply, so that it outlives this process at once, and the machine within a second."""
        body = reply.body if b"\n" not in reply.body and b"\r" not in reply.body else encode(decode(reply.body))
        line = b'%s%s","status":%d,"reply":%s}\n' % (_HEAD, key.encode(), reply.status, body)
        try:
            self._file.write(line)
            self._file.flush()
            if time.monotonic() - self._synced > _SYNC_SECONDS:
                self._sync()
        except OSError as fault:
            self.is_broken = True
            raise explained(fault, Path(self._file.name)) from fault
        self.replies.index.add(key, place(self._number, self._end))
        self._end += len(line)

    def close(self) -> None:
        """Save the index, for readers, and let go of the file."""
        self._sync()
        self.replies.save(self._folder, self._part)
        self._file.close()

    def _sync(self) -> None:
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()


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
