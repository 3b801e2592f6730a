"""What lies beside the weights: config, tokenizer, chat template, generation config. Compared, then copied."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sft_toolkit.shards.atomic import sync
from sft_toolkit.souping.checkpoint import Checkpoint
from sft_toolkit.souping.config_meaning import read_object, require_same_architecture
from sft_toolkit.souping.locating import CONFIG
from sft_toolkit.souping.vocabulary import TOKENIZER, VOCABULARIES, require_same_tokenizer, require_same_vocabulary

_COPIED = (
    CONFIG,
    TOKENIZER,
    *VOCABULARIES,
    "generation_config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.*",
    "additional_chat_templates/*",
    "*processor_config.json",
    "*.py",
)
_DTYPES = {"BF16": "bfloat16", "F16": "float16", "F32": "float32", "F64": "float64"}
_DTYPE_KEYS = ("torch_dtype", "dtype")


def require_same_meaning(checkpoints: Sequence[Checkpoint]) -> None:
    """Raise ToolkitError where configs or vocabularies differ: rows and heads would then mean different things."""
    folders = _folders(checkpoints)
    for one, two in _pairs(folders, CONFIG):
        require_same_architecture(one, two)
    for one, two in _pairs(folders, TOKENIZER):
        require_same_tokenizer(one, two)
    for name in VOCABULARIES:
        for one, two in _pairs(folders, name):
            require_same_vocabulary(one, two)


def copy_side_files(checkpoints: Sequence[Checkpoint], folder: Path, dtype: str | None) -> dict[str, Any]:
    """Copy each file from the first checkpoint that has it; `dtype` is what the config is to say of the weights.

    Returns the names `copied`, `from` which folder each of them, and those `differing` between checkpoints.
    """
    origins: dict[str, str] = {}
    differing = []
    folders = _folders(checkpoints)
    for name in sorted({found for source in folders for found in side_files(source)}):
        holders = [source for source in folders if (source / name).is_file()]
        version = holders[0] / name
        if any((holder / name).read_bytes() != version.read_bytes() for holder in holders[1:]):
            differing.append(name)
        target = folder / name
        target.parent.mkdir(exist_ok=True)
        if name == CONFIG and dtype is not None:
            target.write_text(_with_dtype(version, dtype), encoding="utf-8")
        else:
            shutil.copyfile(version, target)
        sync(target)
        origins[name] = str(holders[0])
    return {"copied": list(origins), "from": origins, "differing": differing}


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


def _with_dtype(config: Path, dtype: str) -> str:
    """The config's text with `dtype` wherever it states one, in parts such as text_config too."""
    content = _restated(read_object(config), _DTYPES[dtype])
    if not any(key in content for key in _DTYPE_KEYS):
        content["dtype"] = _DTYPES[dtype]
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _restated(content: dict[str, Any], dtype: str) -> dict[str, Any]:
    return {
        key: dtype if key in _DTYPE_KEYS else _restated(value, dtype) if isinstance(value, dict) else value
        for key, value in content.items()
    }
