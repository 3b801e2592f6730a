"""Whether the tokenizers of two checkpoints give a row of the embedding to the same token.

tokenizer.json is compared as the `tokenizers` library loads it: merges are written "a b" by older versions and
["a", "b"] by newer ones, and defaults are written out or not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sft_toolkit.errors import ToolkitError
from sft_toolkit.souping.config_meaning import read_object

TOKENIZER = "tokenizer.json"
VOCABULARIES = ("tokenizer.model", "spiece.model", "vocab.json", "vocab.txt", "merges.txt", "tekken.json")
_SETTINGS = frozenset({"truncation", "padding"})
"""Keys of tokenizer.json that the last caller left there."""


def require_same_tokenizer(one: Path, two: Path) -> None:
    """Raise ToolkitError, naming a token or a part, where two tokenizer.json are different tokenizers."""
    first, second = (_without_settings(read_object(path)) for path in (one, two))
    if first == second:
        return
    loaded, other = _as_loaded(one), _as_loaded(two)
    if loaded is not None and other is not None:
        first, second = loaded, other
        if first == second:
            return
    vocabularies = [_vocabulary(tokenizer) for tokenizer in (first, second)]
    for token in sorted(vocabularies[0].keys() | vocabularies[1].keys()):
        ids = [vocabulary.get(token) for vocabulary in vocabularies]
        if ids[0] != ids[1]:
            raise _differing(one, two, f"token {token!r} has id {ids[0]} and {ids[1]}")
    key = min(key for key in first.keys() | second.keys() if first.get(key) != second.get(key))
    raise _differing(one, two, _part(key, first.get(key), second.get(key)))


def require_same_vocabulary(one: Path, two: Path) -> None:
    """Raise ToolkitError where two files of one of the names in VOCABULARIES differ in what they list."""
    if one.read_bytes() != two.read_bytes() and _entries(one) != _entries(two):
        raise _differing(one, two, "their bytes" if isinstance(_entries(one), bytes) else "their entries")


def _entries(path: Path) -> Any:
    """What a file lists, whatever its white space and header; its bytes where its format is not known here."""
    if path.name == "vocab.json":
        return read_object(path)
    if path.name == "merges.txt":
        lines = path.read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line and not line.startswith("#version:")]
    return path.read_bytes()


def _as_loaded(path: Path) -> dict[str, Any] | None:
    """The tokenizer as the library writes it again; None where it cannot load it."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception:  # the library raises nothing narrower
        return None
    return _without_settings(json.loads(tokenizer.to_str()))


def _part(key: str, first: Any, second: Any) -> str:
    """The part that differs, one level deeper where it is a section: "model.merges"."""
    if not isinstance(first, dict) or not isinstance(second, dict):
        return key
    inner = min(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
    return f"{key}.{inner}"


def _vocabulary(tokenizer: Mapping[str, Any]) -> dict[str, Any]:
    model = tokenizer.get("model")
    entries = model.get("vocab", {}) if isinstance(model, dict) else {}
    if isinstance(entries, list):
        return {str(entry[0] if isinstance(entry, list) else entry): place for place, entry in enumerate(entries)}
    return dict(entries)


def _without_settings(content: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key not in _SETTINGS}


def _differing(one: Path, two: Path, where: str) -> ToolkitError:
    fault = f"vocabularies differ in {one} and {two}: {where}; the rows of embed_tokens.weight would not match"
    return ToolkitError(fault, "average checkpoints of one tokenizer")
