"""The values of options that have a fixed choice: one list for type checkers, `--help` and errors.

It imports nothing expensive, so that help may list them. What implements a choice is a registry or a branch elsewhere;
a test compares the two.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from sft_toolkit.errors import UsageError

OnError = Literal["fail", "quarantine"]
ProgressMode = Literal["auto", "always", "never"]
Driver = Literal["local", "ray"]
SourceFormat = Literal["auto", "openai", "sharegpt", "alpaca"]
Duplicates = Literal["error", "drop", "number"]
Policy = Literal["note", "reject"]
Preference = Literal["shortest", "longest", "format", "random"]
DuplicateField = Literal["prompt", "prompt+answer", "answer"]
NumbersRule = Literal["keep", "ignore"]
Contaminated = Literal["record", "exchange", "prompt", "none"]
RepeatRule = Literal["default", "strict", "user-round"]
TrainedTurns = Literal["all", "last"]
Overlong = Literal["error", "drop", "truncate"]
EffortMismatch = Literal["split", "mask", "error"]
History = Literal["keep", "drop", "both"]
PackingMethod = Literal["nkf", "bfd"]
Prefill = Literal[
    "auto",
    "completions",
    "reasoning-field",
    "reasoning-prefix",
    "thinking-part",
    "opener-alone",
    "content",
    "prefix-flag",
    "none",
]
AnswerForm = Literal["tools", "json", "text"]
Mismatch = Literal["strip", "quarantine"]
ClassifierKind = Literal["linear", "ordinal", "fasttext"]
OrderName = Literal["auto", "window", "sorted-buffer", "within-step", "random"]
Schedule = Literal["cosine", "linear", "wsd"]
SurrogateKind = Literal["auto", "ridge", "lightgbm"]
Dtype = Literal["BF16", "F16", "F32", "F64"]
Shell = Literal["bash", "zsh", "fish"]
Report = Literal["tensorboard", "wandb"]


def require_choices(options: Any) -> None:
    """Raise UsageError, naming the field and its values, where a field of a dataclass holds none of its Literal.

    A type checker sees this before a program runs; values from elsewhere are seen here.
    """
    kind: type = type(options)
    for name, values in _choices_of(kind).items():
        require_choice(name, getattr(options, name), values)


def require_choice(name: str, value: Any, values: tuple[Any, ...]) -> None:
    """Raise UsageError that names the parameter and lists its values where `value` is none of them."""
    if value not in values:
        known = ", ".join(str(one) for one in values if one is not None)
        raise UsageError(f"`{name}` {value}: unknown", f"choose one of {known}")


@cache
def _choices_of(options: type) -> dict[str, tuple[Any, ...]]:
    """The values of each field that is a Literal, or a Literal or None."""
    found = {}
    for name, annotation in get_type_hints(options).items():
        kinds = get_args(annotation) if get_origin(annotation) is not Literal else (annotation,)
        literals = [kind for kind in kinds if get_origin(kind) is Literal]
        if literals:
            optional = (None,) if type(None) in kinds else ()
            found[name] = (*get_args(literals[0]), *optional)
    return found
