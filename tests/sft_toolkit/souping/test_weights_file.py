"""Weights by tensor: patterns and ranges of layers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from sft_toolkit.errors import UsageError
from sft_toolkit.souping.soup import soup
from sft_toolkit.souping.weights_file import read_weights
from sft_toolkit.souping.writing import OutputOptions, Recipe
from tests.sft_toolkit.souping.checkpoints import bfloat16, read_patterns

WriteCheckpoint = Callable[..., Path]
NAMES = ("embed.weight", *(f"model.layers.{n}.{part}.weight" for n in (0, 1, 10) for part in ("attn", "mlp")))


@pytest.fixture
def average(write_checkpoint: WriteCheckpoint, tmp_path: Path) -> Callable[[str], Recipe]:
    """Checkpoint b holds 1 everywhere, a holds 5: the given text says how they are mixed."""
    paths = [write_checkpoint(name, {one: bfloat16(value) for one in NAMES}) for name, value in (("b", 1), ("a", 5))]

    def run(text: str) -> Recipe:
        (tmp_path / "w.toml").write_text(text)
        weights = read_weights(tmp_path / "w.toml", paths)
        return soup(paths, weights.default, tmp_path / "out", OutputOptions(force=True), rules=weights.rules)

    return run


def values(folder: Path) -> dict[str, float]:
    found = read_patterns(folder)
    return {name: float((bits.astype("uint32") << 16).view("float32")[0]) for name, bits in found.items()}


def test_the_first_table_that_fits_a_tensor_gives_its_weights(average: Callable[[str], Recipe], tmp_path: Path) -> None:
    """a counts 5 and b 1: 3 where they are equal, 4 at 3 to 1, 2 at 1 to 3, 5 where a is alone."""
    recipe = average(
        "[default]\na = 0.3\nb = 0.1\n"
        '[[tensors]]\nmatch = "*.mlp.*"\nlayers = "1-10"\nweights = { a = 1 }\n'
        '[[tensors]]\nlayers = "0"\nweights = { a = 1, b = "3" }\n'
        '[[tensors]]\nmatch = "embed*"\nweights = { a = 1, b = 1 }\n'
    )
    assert values(tmp_path / "out") == {
        "embed.weight": 3,
        "model.layers.0.attn.weight": 2,
        "model.layers.0.mlp.weight": 2,
        "model.layers.1.attn.weight": 4,
        "model.layers.1.mlp.weight": 5,
        "model.layers.10.attn.weight": 4,
        "model.layers.10.mlp.weight": 5,
    }
    assert [entry["weight"] for entry in recipe["inputs"]] == ["3/10", "1/10"]
    assert recipe["weights_by_tensor"][1] == {"match": "*", "layers": (0, 0), "weights": ["1", "3"]}


def test_without_a_default_the_other_tensors_count_alike(average: Callable[[str], Recipe], tmp_path: Path) -> None:
    average('[[tensors]]\nmatch = "embed*"\nweights = { b = 1 }\n')
    found = values(tmp_path / "out")
    assert found.pop("embed.weight") == 1 and set(found.values()) == {3.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[tensors]]\nmatch = "lm_head*"\nweights = { a = 1 }', "match lm_head.*: no tensor is left"),
        ('[[tensors]]\nlayers = "2-9"\nweights = { a = 1 }', "no tensor is left"),
        ("[[tensors]]\nweights = { c = 1 }", "c is no checkpoint"),
        ("[[tensors]]\nweights = { a = 1, b = -1 }", "sum to zero"),
        ('[[tensors]]\nlayers = "9-2"\nweights = { a = 1 }', "is no range"),
        ("[[tensors]]\nweight = { a = 1 }", "weight"),
        ("[default]\na = 1", "tensors"),
        ("x", "not TOML"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(
    average: Callable[[str], Recipe], tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        average(text)
    assert not (tmp_path / "out").exists()


def test_weights_are_decimals_as_they_are_written(average: Callable[[str], Recipe], tmp_path: Path) -> None:
    (tmp_path / "w.toml").write_text("[[tensors]]\nweights = { a = 0.1, b = 1e-1 }")
    (rule,) = read_weights(tmp_path / "w.toml", [tmp_path / "a", tmp_path / "b"]).rules
    assert rule.weights == (Fraction(1, 10), Fraction(1, 10))
    with pytest.raises(UsageError, match="two checkpoints have one name"):
        read_weights(tmp_path / "w.toml", [tmp_path / "x" / "a", tmp_path / "a"])
