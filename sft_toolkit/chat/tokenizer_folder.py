"""A tokenizer folder in Hugging Face layout: tokenizer.json, its special tokens, its chat template."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import xxhash

from sft_toolkit.errors import ToolkitError
from sft_toolkit.json_text import decode, encode

_SPECIAL = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


@dataclass(frozen=True)
class TokenizerFolder:
    """What the folder holds. `adds_bos` is what its configuration says of BOS, None where it says nothing."""

    path: Path
    tokenizer_json: bytes
    special_tokens: dict[str, str]
    chat_template: str | None
    adds_bos: bool | None

    @classmethod
    def read(cls, path: Path) -> TokenizerFolder:
        """Raises ToolkitError where there is no tokenizer.json, or a file is not what it should be."""
        config = {**_read_object(path / "special_tokens_map.json"), **_read_object(path / "tokenizer_config.json")}
        adds_bos = config.get("add_bos_token")
        return cls(
            path=path,
            tokenizer_json=_read_tokenizer(path / "tokenizer.json"),
            special_tokens={name: text for name in _SPECIAL if (text := _token_text(config.get(name)))},
            chat_template=_chat_template(path, config.get("chat_template")),
            adds_bos=adds_bos if isinstance(adds_bos, bool) else None,
        )

    @cached_property
    def digest(self) -> str:
        """Hash of all that decides how a text becomes ids."""
        configured = encode([self.special_tokens, self.adds_bos])
        return xxhash.xxh3_128_hexdigest(self.tokenizer_json + configured)

    def require_template(self) -> str:
        if self.chat_template is None:
            raise ToolkitError(f"{self.path}: no chat template", "give one with --chat-template FILE")
        return self.chat_template


def template_digest(source: str) -> str:
    return xxhash.xxh3_128_hexdigest(source.encode())


def read_template(path: Path) -> str:
    """A chat template from a file of its own. Raises ToolkitError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as fault:
        raise ToolkitError(f"{path}: {fault.strerror}", "--chat-template takes a Jinja file") from fault
    except UnicodeDecodeError as fault:
        raise ToolkitError(f"{path}: not UTF-8 text: {fault}", "--chat-template takes a Jinja file") from fault


def _read_tokenizer(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as fault:
        hint = "--tokenizer takes a folder in Hugging Face layout, with a tokenizer.json"
        raise ToolkitError(f"{path}: {fault.strerror}", hint) from fault


def _read_object(path: Path) -> dict[str, Any]:
    try:
        value = decode(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as fault:
        raise ToolkitError(f"{path}: {fault}", "it should hold one JSON object") from fault
    if not isinstance(value, dict):
        raise ToolkitError(f"{path}: not a JSON object")
    return value


def _token_text(given: Any) -> str | None:
    if isinstance(given, dict):
        given = given.get("content")
    return given if isinstance(given, str) else None


def _chat_template(path: Path, configured: Any) -> str | None:
    """The file wins over the configuration, as in transformers; of several named templates, `default` is taken."""
    file = path / "chat_template.jinja"
    if file.exists():
        return read_template(file)
    if isinstance(configured, list):
        named = {entry.get("name"): entry.get("template") for entry in configured if isinstance(entry, dict)}
        configured = named.get("default")
    return configured if isinstance(configured, str) else None
