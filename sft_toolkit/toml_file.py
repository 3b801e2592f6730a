"""TOML files of the user's, read into the shape that they must have."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from sft_toolkit.errors import ToolkitError, UsageError

Shape = TypeVar("Shape", bound=msgspec.Struct)


def read_toml(path: Path, shape: type[Shape], parse_float: Callable[[str], Any] = float) -> Shape:
    """Read a file as `shape`; `parse_float` makes a value of the digits of a number with a fraction.

    Raises ToolkitError where the file cannot be read, UsageError where it is no TOML or of another shape.
    """
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8"), parse_float=parse_float), shape)
    except OSError as fault:
        raise ToolkitError(f"{path}: {fault.strerror}") from fault
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise UsageError(f"{path}: not TOML: {fault}") from fault
    except msgspec.ValidationError as fault:
        raise UsageError(f"{path}: {fault}") from fault
