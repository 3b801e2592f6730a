"""The chat templates of a tokenizer folder, found where transformers finds them, and which of them renders a record."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import xxhash

from sft_toolkit.errors import ToolkitError
from sft_toolkit.json_text import decode, encode

DEFAULT, TOOL_USE = "default", "tool_use"
_ADDITIONAL = "additional_chat_templates"
_LEGACY = "chat_template.json"

Templates = dict[str, str]
"""Jinja sources by name; a template that has no name is the default one."""


def read_templates(folder: Path, configured: Any) -> Templates:
    """The templates of a folder; `configured` is the chat_template of its tokenizer_config.json.

    Files win over the configuration: chat_template.jinja, and one file a name in additional_chat_templates. The
    configuration holds one source, an object of sources by name, or a list of {"name", "template"}. Last of all comes
    the chat_template.json of older processors. Raises ToolkitError where one of them is not what it should be.
    """
    templates = _from_files(folder)
    if not templates:
        templates = _named(folder / "tokenizer_config.json", configured)
    legacy = folder / _LEGACY
    if not templates and legacy.exists():
        templates = _named(legacy, read_object(legacy).get("chat_template"))
    return templates


def choose(templates: Collection[str], has_tools: bool) -> str | None:
    """Of templates by name, the one that renders a record, as transformers has it; None where there is none for it."""
    if has_tools and TOOL_USE in templates:
        return TOOL_USE
    return DEFAULT if DEFAULT in templates else None


def template_digest(source: str) -> str:
    return xxhash.xxh3_128_hexdigest(source.encode())


def templates_digest(templates: Mapping[str, str]) -> str:
    """Hash of all templates; of one that stands alone, the hash of its source."""
    if templates.keys() == {DEFAULT}:
        return template_digest(templates[DEFAULT])
    return xxhash.xxh3_128_hexdigest(encode(sorted(templates.items())))


def read_template(path: Path) -> str:
    """A chat template from a file of its own. Raises ToolkitError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as fault:
        raise ToolkitError(f"{path}: {fault.strerror}", "`chat_template` takes a Jinja file") from fault
    except UnicodeDecodeError as fault:
        raise ToolkitError(f"{path}: not UTF-8 text: {fault}", "`chat_template` takes a Jinja file") from fault


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file, empty where there is no such file. Raises ToolkitError for anything else."""
    try:
        value = decode(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as fault:
        raise ToolkitError(f"{path}: {fault}", "it should hold one JSON object") from fault
    if not isinstance(value, dict):
        raise ToolkitError(f"{path}: not a JSON object")
    return value


def _from_files(folder: Path) -> Templates:
    paths = {path.name.removesuffix(".jinja"): path for path in sorted((folder / _ADDITIONAL).glob("*.jinja"))}
    single = folder / "chat_template.jinja"
    if single.exists():
        paths.setdefault(DEFAULT, single)
    return {name: read_template(path) for name, path in paths.items()}


def _named(path: Path, configured: Any) -> Templates:
    if configured is None:
        return {}
    if isinstance(configured, str):
        return {DEFAULT: configured}
    pairs = list(configured.items()) if isinstance(configured, dict) else _pairs(configured)
    if not pairs or not all(isinstance(name, str) and isinstance(source, str) for name, source in pairs):
        raise ToolkitError(
            f"{path}: chat_template is neither a template nor templates by name",
            'named templates are written [{"name": "default", "template": "…"}]',
        )
    return dict(pairs)


def _pairs(configured: Any) -> list[tuple[Any, Any]]:
    entries = configured if isinstance(configured, list) else [None]
    return [
        (entry.get("name"), entry.get("template")) if isinstance(entry, dict) else (None, None) for entry in entries
    ]
