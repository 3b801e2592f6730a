"""What a run is pinned to: whether another run is the same, and, for a person, in what it differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import xxhash

from sft_toolkit.json_text import decode, encode

_BYTES_PER_READ = 8 << 20
_LONGEST_SHOWN = 60
_OF_THE_PLACE = ("name", "modified_ns")
"""What says where an input lies and since when: no part of what it holds."""


def file_pin(path: Path, known: Iterable[Mapping[str, Any]] = (), content: str | None = None) -> dict[str, Any]:
    """What identifies the content of an input file: its size and a hash of all its bytes.

    `known` are pins of an earlier run: a file of the same name, size and time of change is not read again. `content`
    is a hash that stands for the bytes already: a shard's checksum.
    """
    status = path.stat()
    place = {"name": path.name, "bytes": status.st_size, "modified_ns": status.st_mtime_ns}
    for pin in known:
        if pin.get("content") and all(pin.get(key) == value for key, value in place.items()):
            return dict(pin)
    return {**place, "content": content or content_hash(path)}


def content_hash(path: Path) -> str:
    """xxh3-128 of a file's bytes, as hex: against damage and change, not against tampering."""
    digest = xxhash.xxh3_128()
    with path.open("rb") as file:
        while data := file.read(_BYTES_PER_READ):
            digest.update(data)
    return digest.hexdigest()


def pinned_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options short enough to be shown when they differ; a hash stands for what is longer."""
    return {name: _short(value) for name, value in options.items()}


def _short(value: Any) -> Any:
    text = encode(value)
    return value if len(text) <= _LONGEST_SHOWN else {"hash": xxhash.xxh3_64_hexdigest(text)}


def comparable(pins: Mapping[str, Any]) -> dict[str, Any]:
    """Pins as they look after a round through JSON, without where inputs lie and what is there to be shown alone."""
    held = decode(encode(pins))
    held.pop("options", None)
    if isinstance(held.get("inputs"), list):
        held["inputs"] = [_of_content(pin) for pin in held["inputs"]]
    return dict(held)


def _of_content(pin: Any) -> Any:
    if not isinstance(pin, dict) or "content" not in pin:
        return pin
    return {key: value for key, value in pin.items() if key not in _OF_THE_PLACE}


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The first thing in which two runs differ, old and new, with options as parameters in backticks.

    "" where nothing can be named.
    """
    if before.get("stage") != now.get("stage"):
        return f"it holds the output of {before.get('stage')}, not of {now.get('stage')}"
    return _inputs_differ(before.get("inputs"), now.get("inputs")) or _options_differ(before, now)


def _options_differ(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """An option of the stage first, then one of the run."""
    own = (before.get("options") or {}, now.get("options") or {})
    of_run = tuple({key: value for key, value in pins.items() if key not in _NO_OPTIONS} for pins in (before, now))
    for old, new in (own, of_run):
        for name in sorted(old.keys() | new.keys()):
            if encode(old.get(name)) != encode(new.get(name)):
                return _changed(name, old.get(name), new.get(name))
    if before.get("options_hash") != now.get("options_hash"):
        return "the version of the stage, or a file that an option names, changed"
    return ""


_NO_OPTIONS = ("stage", "options", "options_hash", "inputs")


def _changed(name: str, old: Any, new: Any) -> str:
    if isinstance(old, dict) or isinstance(new, dict):
        return f"what `{name}` names changed"
    return f"`{name}` was {_shown(old)}, is {_shown(new)} now"


def _shown(value: Any) -> str:
    return "not set" if value is None else value if isinstance(value, str) else encode(value).decode()


def _inputs_differ(before: Any, now: Any) -> str:
    if not isinstance(before, list) or not isinstance(now, list):
        return ""
    if len(before) != len(now):
        return f"it was begun with {len(before):,} input files, these are {len(now):,}"
    for number, (old, new) in enumerate(zip(before, now, strict=True), 1):
        if encode(_of_content(old)) != encode(_of_content(new)):
            return f"input {new.get('name', number)} has other content: {_sizes(old, new)}"
    return ""


def _sizes(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    unit = "bytes" if "bytes" in new else "rows"
    was, now = old.get(unit), new.get(unit)
    if was == now or was is None or now is None:
        return "the size is the same"
    return (
        f"it had {was:,} {unit} (as {old['name']}), has {now:,} now"
        if _renamed(old, new)
        else (f"it had {was:,} {unit}, has {now:,} now")
    )


def _renamed(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return old.get("name") is not None and old.get("name") != new.get("name")
