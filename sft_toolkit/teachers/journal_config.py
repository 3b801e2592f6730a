"""What the questions of a journal share, noted beside the replies: a journal is for one such configuration.

Only the limit of length may be raised without further ado: replies that ended within a lower one stay good.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.json_text import decode, encode, encode_text
from sft_toolkit.shards.atomic import atomic_path, explained
from sft_toolkit.teachers.requests import LIMITS, limit_of

PRIVATE_FILE = 0o600
_PRIVATE_FOLDER = 0o700
_CONFIG = "config.json"
_SCHEMA = 2
_EARLIER = "earlier_limits"


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
        raise ToolkitError(f"{path}: not what a journal holds", "`journal` names the folder of a run's replies")
    return config


def claim(folder: Path, config: dict[str, Any], *, force: bool) -> tuple[dict[str, Any], ...]:
    """Note what the run's questions share; returns the lower limits of length with which the journal was filled before.

    Raises UsageError where earlier questions differ in anything but a lower limit, unless `force` is given. Earlier
    replies stay: they are found again when the earlier configuration is.
    """
    earlier = read_config(folder)
    wanted = decode(encode({"schema": _SCHEMA, **config}))
    changed = [] if earlier is None else _changed(earlier, wanted)
    if changed and not force:
        raise UsageError(
            f"{folder}: was begun with another {', '.join(changed)}",
            "restore it, name another `journal`, or use `force=True` to ask with the new one (replies so far are kept)",
        )
    try:
        folder.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
    except OSError as fault:
        raise explained(fault, folder) from fault
    limits = () if earlier is None else _lower_limits(earlier, wanted)
    noted = {**wanted, _EARLIER: limits} if limits else wanted
    if earlier != decode(encode(noted)):
        write_private(folder / _CONFIG, encode_text(noted))
    return limits


def _changed(earlier: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """Names of what differs; a limit of length that was raised does not count."""
    compared = {**earlier, "parameters": earlier["parameters"]}
    compared.pop(_EARLIER, None)
    if _height(limit_of(earlier["parameters"])) <= _height(limit_of(wanted["parameters"])):
        compared["parameters"] = _with_limit(earlier["parameters"], limit_of(wanted["parameters"]))
    return sorted(key for key in compared.keys() | wanted.keys() if compared.get(key) != wanted.get(key))


def _lower_limits(earlier: dict[str, Any], wanted: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Each limit that replies of the same questions may be kept under, lowest first."""
    today = limit_of(wanted["parameters"])
    known = [*earlier.get(_EARLIER, ()), limit_of(earlier["parameters"])]
    lower = [limit for limit in known if limit != today and _height(limit) <= _height(today)]
    return tuple(sorted(lower, key=_height))


def _height(limit: Mapping[str, Any]) -> float:
    return min(map(float, limit.values()), default=float("inf"))


def _with_limit(parameters: dict[str, Any], limit: dict[str, Any]) -> dict[str, Any]:
    return {**{name: value for name, value in parameters.items() if name not in LIMITS}, **limit}


def write_private(path: Path, text: str) -> None:
    with atomic_path(path) as temporary:
        temporary.touch(PRIVATE_FILE)
        temporary.write_text(text, encoding="utf-8")
