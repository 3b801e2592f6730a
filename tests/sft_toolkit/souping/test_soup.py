"""Soups as files: bits, order, layout, account."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from math import gcd
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sft_toolkit.souping.soup import soup
from sft_toolkit.souping.streaming import BLOCK, CHUNK
from sft_toolkit.souping.writing import OutputOptions, open_inputs, parse_size
from tests.sft_toolkit.souping import reference
from tests.sft_toolkit.souping.checkpoints import bfloat16, read_patterns, write_safetensors

WriteCheckpoint = Callable[..., Path]
OPTIONS = OutputOptions(threads=2)


def ones(count: int) -> list[Fraction]:
    return [Fraction(1)] * count


def trained(dtype: str, count: int, seed: int) -> np.ndarray:
    """Patterns of parameters as training leaves them: a common base and small differences."""
    base, own = np.random.default_rng(0), np.random.default_rng(seed + 1)
    values = base.normal(0, 0.02, count) + own.normal(0, 1e-3, count)
    if dtype == "BF16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype({"F16": np.float16, "F32": np.float32, "F64": np.float64}[dtype])


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("dtype", ["BF16", "F16", "F32"])
@pytest.mark.parametrize("weights", ["1,1", "1,2", "1,1,1", "0.1,0.9", "0.2,0.3,0.5", "3,-1", "1,0,2"])
def test_every_element_is_the_exact_mean_rounded_once(
    write_checkpoint: WriteCheckpoint, tmp_path: Path, dtype: str, weights: str
) -> None:
    exact = [Fraction(weight) for weight in weights.split(",")]
    inputs = [trained(dtype, 2000, seed) for seed in range(len(exact))]
    paths = [write_checkpoint(f"run{place}", {"w": (dtype, values)}) for place, values in enumerate(inputs)]
    soup(paths, exact, tmp_path / "out", OPTIONS)
    form = reference.FORMATS[dtype]
    patterns = [values.view(reference.storage_of(dtype)) for values in inputs]
    for place, got in enumerate(read_patterns(tmp_path / "out")["w"]):
        numbers = [reference.value_of(int(column[place]), form) for column in patterns]
        mean = sum(weight * number for weight, number in zip(exact, numbers, strict=True)) / sum(exact)
        assert reference.value_of(int(got), form) == reference.nearest(mean, form)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workshop")


@pytest.mark.parametrize("dtype", list(reference.FORMATS))
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_any_finite_patterns_are_averaged_as_decided(workshop: Path, dtype: str, data: st.DataObject) -> None:
    """Subnormals, both zeros and the largest numbers, halved so that the sum of no format overflows."""
    form = reference.FORMATS[dtype]
    limit = (1 << (form.width - 1)) - (1 << (form.precision + 4))
    element = st.integers(0, limit).flatmap(lambda bits: st.sampled_from([bits, bits | 1 << (form.width - 1)]))
    weights = data.draw(st.lists(st.integers(0, 9), min_size=2, max_size=4).filter(any))
    rows = data.draw(st.lists(st.tuples(*[element] * len(weights)), min_size=1, max_size=20))
    paths = []
    for place, column in enumerate(zip(*rows, strict=True)):
        paths.append(workshop / f"run{place}.safetensors")
        write_safetensors(paths[-1], {"w": (dtype, np.array(column, reference.storage_of(dtype)))})
    soup(paths, [Fraction(weight) for weight in weights], workshop / "out", OutputOptions(force=True, threads=1))
    coprime = [weight // gcd(*weights) for weight in weights]  # as weights.py has them: 5 * x / 5 may not be x
    for row, got in zip(rows, read_patterns(workshop / "out")["w"], strict=True):
        mean = reference.mean_in_float64([reference.to_float(bits, form) for bits in row], coprime)
        assert reference.value_of(int(got), form) == reference.nearest(Fraction(mean), form)
        assert got >> (form.width - 1) == np.signbit(mean)


def test_a_wider_output_is_rounded_from_the_exact_mean(write_checkpoint: WriteCheckpoint, tmp_path: Path) -> None:
    paths = [write_checkpoint("a", {"w": bfloat16(1.0)}), write_checkpoint("b", {"w": bfloat16(1.0078125)})]
    soup(paths, ones(2), tmp_path / "out", OutputOptions(dtype="F32"))
    assert read_patterns(tmp_path / "out")["w"].view(np.float32).tolist() == [1.00390625]
    assert json.loads((tmp_path / "out" / "config.json").read_text())["dtype"] == "float32"


def test_input_order_does_not_matter_for_a_single_byte(write_checkpoint: WriteCheckpoint, tmp_path: Path) -> None:
    """Weights as these do not add up exactly, so that another order of addition shows in float64's last bit."""
    paths = [write_checkpoint(f"run{seed}", {"w": ("F64", trained("F64", 5000, seed))}) for seed in range(4)]
    weights = [Fraction(1), Fraction("0.7"), Fraction("1/3"), Fraction(2)]
    soup(paths, weights, tmp_path / "one", OPTIONS)
    soup(paths[::-1], weights[::-1], tmp_path / "two", OPTIONS)
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_threads_and_shards_do_not_change_a_bit(write_checkpoint: WriteCheckpoint, tmp_path: Path) -> None:
    """One tensor longer than a thread's turn, with an odd end, and ones that share a shard or do not."""
    sizes = {"a": BLOCK + CHUNK + 7, "b": 1000, "c": 1000, "d": 10}
    tensors = {seed: {name: ("BF16", trained("BF16", size, seed)) for name, size in sizes.items()} for seed in range(2)}
    paths = [write_checkpoint(f"run{seed}", tensors[seed]) for seed in tensors]
    soup(paths, ones(2), tmp_path / "one", OutputOptions(threads=1))
    soup(paths, ones(2), tmp_path / "many", OutputOptions(threads=4, max_shard_size=2020))
    single, sharded = (read_patterns(tmp_path / name) for name in ("one", "many"))
    assert {name: values.tobytes() for name, values in single.items()} == {
        name: values.tobytes() for name, values in sharded.items()
    }
    index = json.loads((tmp_path / "many" / "model.safetensors.index.json").read_text())
    assert index["weight_map"] == {
        "a": "model-00001-of-00003.safetensors",
        "b": "model-00002-of-00003.safetensors",
        "c": "model-00003-of-00003.safetensors",
        "d": "model-00003-of-00003.safetensors",
    }
    assert index["metadata"]["total_size"] == 2 * sum(sizes.values())


def test_a_soup_can_be_souped_again_from_its_shards(write_checkpoint: WriteCheckpoint, tmp_path: Path) -> None:
    paths = [
        write_checkpoint(name, {"v": bfloat16(value), "w": bfloat16(value)}) for name, value in (("a", 1), ("b", 3))
    ]
    soup(paths, ones(2), tmp_path / "soup", OutputOptions(max_shard_size=2))
    soup([tmp_path / "soup"], ones(1), tmp_path / "again", OPTIONS)
    assert read_patterns(tmp_path / "again")["v"].tolist() == bfloat16(2)[1].tolist()


def test_equal_integers_are_copied_and_accounted_for(write_checkpoint: WriteCheckpoint, tmp_path: Path) -> None:
    positions = ("I64", np.arange(5, dtype=np.int64))
    mask = ("BOOL", np.array([True, False]))
    paths = [
        write_checkpoint(name, {"w": bfloat16(value), "positions": positions, "mask": mask, "empty": bfloat16()})
        for name, value in (("a", 1), ("b", 3))
    ]
    recipe = soup(paths, ones(2), tmp_path / "out", OPTIONS)
    tensors = read_patterns(tmp_path / "out")
    assert tensors["positions"].tolist() == [0, 1, 2, 3, 4] and tensors["mask"].tolist() == [1, 0]
    assert {name: account["action"] for name, account in recipe["tensors"].items()} == {
        "empty": "averaged",
        "mask": "copied",
        "positions": "copied",
        "w": "averaged",
    }
    assert json.loads((tmp_path / "out" / "recipe.json").read_text())["tensors"]["w"] == {
        "action": "averaged",
        "from": "BF16",
        "to": "BF16",
        "shape": [1],
    }


def test_the_recipe_names_inputs_weights_and_what_they_held(write_checkpoint: WriteCheckpoint, tmp_path: Path) -> None:
    paths = [write_checkpoint(name, {"w": bfloat16(1)}) for name in ("a", "b")]
    paths.append(write_checkpoint("c", {"w": bfloat16(2)}))
    recipe = soup(paths, [Fraction(1), Fraction("0.5"), Fraction(1, 3)], tmp_path / "out", OPTIONS)
    assert [entry["weight"] for entry in recipe["inputs"]] == ["1", "1/2", "1/3"]
    assert [entry["path"] for entry in recipe["inputs"]] == list(map(str, paths))
    digests = [entry["xxh3_128"] for entry in recipe["inputs"]]
    assert digests[0] == digests[1] != digests[2]


def test_an_input_is_recognised_however_it_is_sharded(write_checkpoint: WriteCheckpoint, tmp_path: Path) -> None:
    path = write_checkpoint("a", {"v": bfloat16(1, 2), "w": bfloat16(3)})
    first = soup([path], ones(1), tmp_path / "resharded", OutputOptions(max_shard_size=2))
    second = soup([tmp_path / "resharded"], ones(1), tmp_path / "out", OPTIONS)
    assert first["inputs"][0]["xxh3_128"] == second["inputs"][0]["xxh3_128"]


def test_what_transformers_saved_is_what_it_loads_again(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=32,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        tie_word_embeddings=True,
    )
    models = []
    for seed in range(3):
        torch.manual_seed(seed)
        models.append(LlamaForCausalLM(config).to(torch.bfloat16))
        models[-1].save_pretrained(tmp_path / f"run{seed}", max_shard_size="4KB")
    soup([tmp_path / f"run{seed}" for seed in range(3)], ones(3), tmp_path / "soup", OPTIONS)
    loaded, report = AutoModelForCausalLM.from_pretrained(
        tmp_path / "soup", dtype=torch.bfloat16, output_loading_info=True
    )
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    for name, parameter in loaded.named_parameters():
        mean = torch.stack([dict(model.named_parameters())[name].double() for model in models]).mean(0)
        unit_roundoff = 2**-8
        assert ((parameter.double() - mean).abs() <= mean.abs() * unit_roundoff).all()


@pytest.mark.parametrize(("text", "size"), [("5GB", 5 * 10**9), ("1.5 MB", 1_500_000), ("2GiB", 2 << 30), ("7", 7)])
def test_sizes_are_decimal_unless_they_say_otherwise(text: str, size: int) -> None:
    assert parse_size(text) == size


def test_inputs_know_their_parameters(write_checkpoint: WriteCheckpoint) -> None:
    inputs = open_inputs([write_checkpoint("a", {"v": bfloat16(1, 2), "w": bfloat16(3)})], "F32")
    assert (inputs.elements, inputs.output_size) == (3, 12)
