"""A tokenizer folder in Hugging Face layout: tokenizer.json, its special tokens, its chat template."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import xxhash

from sft_toolkit.chat.template_files import DEFAULT, Templates, read_object, read_template, read_templates
from sft_toolkit.errors import ToolkitError
from sft_toolkit.json_text import encode

_SPECIAL = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class TokenizerFolder:
    """What the folder holds. `adds_bos` is what its configuration says of BOS, None where it says nothing."""

    path: Path
    tokenizer_json: bytes
    special_tokens: dict[str, str]
    chat_templates: Templates
    adds_bos: bool | None

    @classmethod
    def read(cls, path: Path) -> TokenizerFolder:
        """Raises ToolkitError where there is no tokenizer.json, or a file is not what it should be."""
        _require_folder(path)
        config = {**read_object(path / "special_tokens_map.json"), **read_object(path / "tokenizer_config.json")}
        adds_bos = config.get("add_bos_token")
        return cls(
            path=path,
            tokenizer_json=_read_tokenizer(path / "tokenizer.json"),
            special_tokens={name: text for name in _SPECIAL if (text := _token_text(config.get(name)))},
            chat_templates=read_templates(path, config.get("chat_template")),
            adds_bos=adds_bos if isinstance(adds_bos, bool) else None,
        )

    @cached_property
    def digest(self) -> str:
        """Hash of all that decides how a text becomes ids."""
        configured = encode([self.special_tokens, self.adds_bos])
        return xxhash.xxh3_128_hexdigest(self.tokenizer_json + configured)

    def require_templates(self) -> Templates:
        """Raises ToolkitError where the folder holds no chat template."""
        if not self.chat_templates:
            raise ToolkitError(f"{self.path}: no chat template", "give one with `chat_template`")
        return self.chat_templates

    def templates_from(self, choice: str | Path | None) -> Templates:
        """The folder's templates, or only the one that `choice` names: by the name it has here, or by its file.

        Raises ToolkitError where there is none.
        """
        if choice is None:
            return self.require_templates()
        source = self.chat_templates.get(str(choice))
        return {DEFAULT: read_template(Path(choice)) if source is None else source}


def _require_folder(path: Path) -> None:
    """Raise ToolkitError for the file instead of its folder, and for a hub's name of what is not on the disk."""
    if path.is_file():
        raise ToolkitError(f"{path}: is a file", f"`tokenizer` takes its folder: {path.parent}")
    if not path.exists() and _HUB_NAME.fullmatch(str(path)):
        hint = f"if it is a name on the hub, get it first: hf download {path} prints the folder to name"
        raise ToolkitError(f"{path}: no such folder", hint)


def _read_tokenizer(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as fault:
        hint = "`tokenizer` takes a folder in Hugging Face layout, with a tokenizer.json"
        raise ToolkitError(f"{path}: {fault.strerror}", hint) from fault


def _token_text(given: Any) -> str | None:
    if isinstance(given, dict):
        given = given.get("content")
    return given if isinstance(given, str) else None
