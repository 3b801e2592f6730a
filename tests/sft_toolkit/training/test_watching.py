"""What a run reports of its data sets, its memory and its time."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sft_toolkit.cli.train import _validation_sets
from sft_toolkit.errors import UsageError
from sft_toolkit.training.options import Recipe, TrainOptions
from sft_toolkit.training.train import train
from tests.sft_toolkit.training.tiny import rows, write_packed
from tests.token_shards import Document

pytestmark = pytest.mark.usefixtures("no_ranks_before_or_after")


def documents(dataset: str, token: int, count: int, trained: int) -> list[Document]:
    """Documents that fill a sequence each."""
    mask = [False] * (128 - trained) + [True] * trained
    return [Document(f"{dataset}-{number}", [token + number] * 128, mask, dataset) for number in range(count)]


def test_losses_and_tokens_of_each_data_set_are_reported_in_training_and_validation(
    options: TrainOptions, tmp_path: Path
) -> None:
    sets = {"maths": documents("maths", 3, 2, 100), "code": documents("code", 90, 4, 30)}
    validation = {name: write_packed(tmp_path / name, given) for name, given in sets.items()}
    packed = write_packed(tmp_path / "all", [one for given in sets.values() for one in given])
    recipe = Recipe(steps=2, microbatches=6, order="random", learning_rate=1e-12)
    train(replace(options, packed=packed, recipe=recipe, validation=validation, profile=1))
    first, last, evaluated = rows(options)
    assert (first["tokens/maths"], first["tokens/code"]) == (2 * 128, 4 * 128)
    for row in (first, last):
        assert row["loss"] == pytest.approx((200 * row["loss/maths"] + 120 * row["loss/code"]) / 320, rel=1e-12)
        assert row["peak_memory_gib"] > 0.05
        for name in sets:
            assert row[f"loss/{name}"] == pytest.approx(evaluated[f"eval_loss/{name}"], rel=1e-6)
    assert evaluated["eval_loss"] == pytest.approx(first["loss"], rel=1e-6)
    trace = json.loads((options.output / "profile" / "rank-0.json").read_text())
    assert any("aten::mm" in event.get("name", "") for event in trace["traceEvents"])


def test_several_validation_sets_need_names_and_one_does_not(tmp_path: Path) -> None:
    assert _validation_sets([]) == {}
    assert _validation_sets(["held-out"]) == {"": Path("held-out")}
    assert _validation_sets(["math=a/b", "code=c"]) == {"math": Path("a/b"), "code": Path("c")}
    (tmp_path / "odd=name").mkdir()
    assert _validation_sets([str(tmp_path / "odd=name")]) == {"": tmp_path / "odd=name"}
    for given in (["a", "b"], ["x=a", "x=b"], ["x=a", "b"]):
        with pytest.raises(UsageError, match="several need a name each"):
            _validation_sets(given)
