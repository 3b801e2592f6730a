"""What lies beside the weights: config, tokenizer, chat template, generation config. Compared, then copied."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sft_toolkit.errors import ToolkitError
from sft_toolkit.shards.atomic import sync
from sft_toolkit.souping.checkpoint import Checkpoint

CONFIG = "config.json"
TOKENIZER = "tokenizer.json"
_VOCABULARIES = ("tokenizer.model", "spiece.model", "vocab.json", "vocab.txt", "merges.txt", "tekken.json")
_COPIED = (
    CONFIG,
    TOKENIZER,
    *_VOCABULARIES,
    "generation_config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.*",
    "additional_chat_templates/*",
    "*processor_config.json",
    "*.py",
)
_HISTORY = frozenset({"_name_or_path", "transformers_version", "torch_dtype", "dtype", "use_cache"})
"""Keys of a config that tell how a checkpoint was saved or is run, not what its weights mean."""
_SETTINGS = frozenset({"truncation", "padding"})
"""Keys of tokenizer.json that the last caller left there."""
_DTYPES = {"BF16": "bfloat16", "F16": "float16", "F32": "float32", "F64": "float64"}


def require_same_meaning(checkpoints: Sequence[Checkpoint]) -> None:
    """Raise ToolkitError where configs or vocabularies differ: rows and heads would then mean different things."""
    folders = _folders(checkpoints)
    for one, two in _pairs(folders, CONFIG):
        _compare_configs(one, two)
    for one, two in _pairs(folders, TOKENIZER):
        _compare_tokenizers(one, two)
    for name in _VOCABULARIES:
        for one, two in _pairs(folders, name):
            if one.read_bytes() != two.read_bytes():
                raise _differing_vocabularies(one, two, "their bytes")


def copy_side_files(checkpoints: Sequence[Checkpoint], folder: Path, dtype: str | None) -> tuple[list[str], list[str]]:
    """Copy each file from the first checkpoint that has it; `dtype` is what the config is to say of the weights.

    Returns the names copied, and those of which the checkpoints hold different versions.
    """
    copied, differing = [], []
    folders = _folders(checkpoints)
    for name in sorted({found for source in folders for found in side_files(source)}):
        versions = [source / name for source in folders if (source / name).is_file()]
        if any(version.read_bytes() != versions[0].read_bytes() for version in versions[1:]):
            differing.append(name)
        target = folder / name
        target.parent.mkdir(exist_ok=True)
        if name == CONFIG and dtype is not None:
            target.write_text(_with_dtype(versions[0], dtype), encoding="utf-8")
        else:
            shutil.copyfile(versions[0], target)
        sync(target)
        copied.append(name)
    return copied, differing


def _folders(checkpoints: Sequence[Checkpoint]) -> list[Path]:
    return [checkpoint.folder for checkpoint in checkpoints if checkpoint.folder is not None]


def side_files(folder: Path) -> Iterator[str]:
    """Names of what lies beside the weights of a checkpoint."""
    for pattern in _COPIED:
        yield from (str(path.relative_to(folder)) for path in folder.glob(pattern) if path.is_file())


def _pairs(folders: Sequence[Path], name: str) -> Iterator[tuple[Path, Path]]:
    """The first folder's file with each of the others'."""
    holders = [folder / name for folder in folders if (folder / name).is_file()]
    return ((holders[0], other) for other in holders[1:])


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ToolkitError(f"{path}: not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ToolkitError(f"{path}: not a JSON object")
    return content


def _compare_configs(one: Path, two: Path) -> None:
    first, second = (_without(_read(path), _HISTORY) for path in (one, two))
    for key in sorted(first.keys() | second.keys()):
        if first.get(key) != second.get(key):
            what = f"{key} is {_shown(first.get(key))} in {one} and {_shown(second.get(key))} in {two}"
            if key == "tie_word_embeddings":
                what += ": lm_head.weight is the embedding in one of them only"
            if key == "vocab_size":
                what += ": the rows of embed_tokens.weight and lm_head.weight stand for different tokens"
            raise ToolkitError(what, "average checkpoints of one model")


def _compare_tokenizers(one: Path, two: Path) -> None:
    first, second = (_without(_read(path), _SETTINGS) for path in (one, two))
    if first == second:
        return
    vocabularies = [_vocabulary(tokenizer) for tokenizer in (first, second)]
    for token in sorted(vocabularies[0].keys() | vocabularies[1].keys()):
        ids = [vocabulary.get(token) for vocabulary in vocabularies]
        if ids[0] != ids[1]:
            raise _differing_vocabularies(one, two, f"token {token!r} has id {ids[0]} and {ids[1]}")
    key = min(key for key in first.keys() | second.keys() if first.get(key) != second.get(key))
    raise _differing_vocabularies(one, two, key)


def _vocabulary(tokenizer: Mapping[str, Any]) -> dict[str, Any]:
    model = tokenizer.get("model")
    entries = model.get("vocab", {}) if isinstance(model, dict) else {}
    if isinstance(entries, list):
        return {str(entry[0] if isinstance(entry, list) else entry): place for place, entry in enumerate(entries)}
    return dict(entries)


def _differing_vocabularies(one: Path, two: Path, where: str) -> ToolkitError:
    fault = f"vocabularies differ in {one} and {two}: {where}; the rows of embed_tokens.weight would not match"
    return ToolkitError(fault, "average checkpoints of one tokenizer")


def _with_dtype(config: Path, dtype: str) -> str:
    content = _read(config)
    key = "torch_dtype" if "torch_dtype" in content else "dtype"
    return json.dumps({**content, key: _DTYPES[dtype]}, indent=2, ensure_ascii=False) + "\n"


def _without(content: Mapping[str, Any], keys: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key not in keys}


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
