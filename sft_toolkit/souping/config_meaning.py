"""Whether two config.json describe one architecture, in whatever spelling a version of transformers wrote it.

transformers 4 wrote rope_theta and rope_scaling, 5 writes rope_parameters and layer_types; either leaves out what is
its default. Configs that differ as text are therefore read by transformers, which knows all of it, and compared as it
understands them. Configs that are equal as text need no transformers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sft_toolkit.errors import ToolkitError

Config = dict[str, Any]

_HISTORY = frozenset(
    {
        "_name_or_path",
        "transformers_version",
        "torch_dtype",
        "dtype",
        "use_cache",
        "attn_implementation",
        "_attn_implementation",
        "_attn_implementation_autoset",
        "_flash_attn_2_enabled",
        "pretraining_tp",
        "unsloth_fixed",
        "unsloth_version",
    }
)
"""Keys that tell how a checkpoint was saved or is run, not what its weights mean."""
_CONTROL_TOKENS = frozenset({"bos_token_id", "eos_token_id", "pad_token_id"})
"""Fine-tuning sets them to those of its chat template. No weight means anything else for it."""


def read_object(path: Path) -> Config:
    """A file's JSON object. Raises ToolkitError."""
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ToolkitError(f"{path}: not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ToolkitError(f"{path}: not a JSON object")
    return content


def require_same_architecture(one: Path, two: Path) -> None:
    """Raise ToolkitError that names the first field on which two config.json differ."""
    first, second = read_object(one), read_object(two)
    if _stated(first) == _stated(second):
        return
    understood = _understood(first), _understood(second)
    if understood[0] is None or understood[1] is None:
        hint = "average checkpoints of one model"
        if find_spec("transformers") is None:
            hint += "; with transformers installed, other spellings of one architecture are understood too"
        _require_equal(_stated(first), _stated(second), one, two, hint)
        return
    _require_equal(understood[0], understood[1], one, two, "average checkpoints of one model")


def ties_embeddings(config: Mapping[str, Any]) -> bool:
    """Whether the output head is the embedding, by the config or by what transformers takes where it does not say."""
    for part in (config, config.get("text_config")):
        if isinstance(part, dict) and isinstance(part.get("tie_word_embeddings"), bool):
            return bool(part["tie_word_embeddings"])
    understood = _understood(config)
    return understood is not None and understood.get("tie_word_embeddings") is True


def _require_equal(first: Config, second: Config, one: Path, two: Path, hint: str) -> None:
    for key in sorted(first.keys() | second.keys()):
        if first.get(key) != second.get(key):
            what = f"{key} is {_shown(first.get(key))} in {one} and {_shown(second.get(key))} in {two}"
            if key.endswith("tie_word_embeddings"):
                what += ": lm_head.weight is the embedding in one of them only"
            if key.endswith("vocab_size"):
                what += ": the rows of embed_tokens.weight and lm_head.weight stand for different tokens"
            raise ToolkitError(what, hint)


def _stated(config: Mapping[str, Any]) -> Config:
    """Every field as it is written, those of nested objects as outer.inner, without what means nothing for weights.

    A field that is null counts as one that is not there.
    """
    found: Config = {}
    for key, value in config.items():
        if key in _HISTORY or key in _CONTROL_TOKENS or value is None:
            continue
        if isinstance(value, dict) and value:
            found |= {f"{key}.{inner}": entry for inner, entry in _stated(value).items()}
        else:
            found[key] = value
    return found


def _understood(config: Mapping[str, Any]) -> Config | None:
    """The fields that transformers gives this model type, by its own names; None where it does not know the type.

    Keys that its class does not have stay: a model may read them all the same, as Qwen2 does `head_dim`.
    """
    kind = config.get("model_type")
    if find_spec("transformers") is None or not isinstance(kind, str):
        return None
    from transformers import CONFIG_MAPPING

    if kind not in CONFIG_MAPPING:
        return None
    try:
        with _silence():
            content = CONFIG_MAPPING[kind].from_dict(json.loads(json.dumps(config))).to_dict()
    except Exception:  # whatever a class raises for values that it does not take: then the text is compared
        return None
    found = _stated(content)
    return {key: value for key, value in found.items() if not _is_old_rope_type(key, found)}


def _is_old_rope_type(key: str, config: Config) -> bool:
    """Whether a field is the `type` that transformers 4 wrote and 5 keeps beside the `rope_type` made from it."""
    return key.endswith(".type") and f"{key.removesuffix('type')}rope_type" in config


@contextmanager
def _silence() -> Iterator[None]:
    """What transformers says of keys that it reads under another name is no news to a user who compares them."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity(logging.CRITICAL)
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
