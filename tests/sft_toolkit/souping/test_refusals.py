"""What is not averaged: refused with the tensor's or the key's name, and nothing written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.souping.soup import require_distinct, soup
from sft_toolkit.souping.writing import OutputOptions, parse_size
from tests.sft_toolkit.souping.checkpoints import CONFIG, bfloat16, read_patterns

WriteCheckpoint = Callable[..., Path]


@pytest.fixture
def refusal(write_checkpoint: WriteCheckpoint, tmp_path: Path) -> Callable[..., str]:
    """The message for averaging checkpoints `a` and `b` with these tensors."""

    def refuse(
        one: Any, two: Any, options: OutputOptions = OutputOptions(), weights: tuple[int, int] = (1, 1), **more: Any
    ) -> str:
        paths = [write_checkpoint("a", one, **more.get("a", {})), write_checkpoint("b", two, **more.get("b", {}))]
        with pytest.raises(ToolkitError) as caught:
            soup(paths, list(map(Fraction, weights)), tmp_path / "out", options)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
        assert "\n" not in caught.value.message
        return caught.value.message

    return refuse


def test_a_tensor_that_one_lacks(refusal: Callable[..., str]) -> None:
    message = refusal({"v": bfloat16(1), "w": bfloat16(1)}, {"w": bfloat16(1)})
    assert message.startswith("tensor v is in ") and message.split(" but not in ")[1].endswith("/b")


def test_a_tensor_that_one_has_beyond_the_others(refusal: Callable[..., str]) -> None:
    message = refusal({"w": bfloat16(1)}, {"w": bfloat16(1), "extra": bfloat16(1)})
    assert message.startswith("tensor extra is in ") and message.endswith("/a")


def test_another_shape(refusal: Callable[..., str]) -> None:
    assert "tensor w has shape (2,) in " in refusal({"w": bfloat16(1, 2)}, {"w": bfloat16(1, 2, 3)})


def test_another_dtype(refusal: Callable[..., str]) -> None:
    assert "tensor w has dtype BF16 in " in refusal({"w": bfloat16(1)}, {"w": ("F16", np.ones(1, np.float16))})


@pytest.mark.parametrize(("bits", "place"), [(0x7FC0, 0), (0x7F81, 70_000), (0x7F80, 70_000), (0xFF80, 3)])
@pytest.mark.parametrize("weight", [0, 1])
def test_nan_and_infinity_even_in_an_input_that_does_not_count(
    refusal: Callable[..., str], bits: int, place: int, weight: int
) -> None:
    spoiled = np.full(100_000, 0x3F80, np.uint16)
    spoiled[place] = bits
    message = refusal({"w": bfloat16(*[1] * 100_000)}, {"w": ("BF16", spoiled)}, weights=(1, weight))
    assert message.startswith("tensor w in ") and message.endswith("/b/model.safetensors holds NaN or infinity")


@pytest.mark.parametrize("dtype", ["F16", "F32", "F64"])
def test_infinities_that_cancel_in_native_formats(refusal: Callable[..., str], dtype: str) -> None:
    kind = {"F16": np.float16, "F32": np.float32, "F64": np.float64}[dtype]
    one, two = (np.array([1, infinity], kind) for infinity in (np.inf, -np.inf))
    assert "/a/model.safetensors holds NaN or infinity" in refusal({"w": (dtype, one)}, {"w": (dtype, two)})


def test_a_mean_that_does_not_fit_the_output(refusal: Callable[..., str]) -> None:
    message = refusal({"w": bfloat16(2.0**17)}, {"w": bfloat16(2.0**17)}, OutputOptions(dtype="F16"))
    assert message == "tensor w does not fit F16: the average overflows"


def test_integers_that_differ(refusal: Callable[..., str]) -> None:
    message = refusal({"n": ("I64", np.array([1, 2]))}, {"n": ("I64", np.array([1, 3]))})
    assert message.startswith("tensor n holds I64 that differ in ")


def test_eight_bit_floats_without_scales(refusal: Callable[..., str]) -> None:
    codes = {"w": ("F8_E4M3", np.ones(2, np.uint8))}
    assert "holds F8_E4M3 codes without their scales" in refusal(codes, codes)


def test_eight_bit_floats_with_scales(refusal: Callable[..., str]) -> None:
    codes = {"w.weight": ("F8_E4M3", np.ones(2, np.uint8)), "w.weight_scale_inv": ("F32", np.ones(1, np.float32))}
    message = refusal(codes, codes)
    assert message.startswith("tensor w.weight in ") and "codes scaled by w.weight_scale_inv" in message


def test_a_weight_sum_of_zero(refusal: Callable[..., str]) -> None:
    message = refusal({"w": bfloat16(1)}, {"w": bfloat16(1)}, weights=(1, -1))
    assert message == "the weights 1, -1 sum to zero"


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        ({"tie_word_embeddings": True}, "lm_head.weight is the embedding in one of them only"),
        ({"vocab_size": 9}, "the rows of embed_tokens.weight and lm_head.weight stand for different tokens"),
        ({"rope_theta": 1e6}, "rope_theta is null in "),
    ],
)
def test_configs_of_different_models(refusal: Callable[..., str], change: dict[str, Any], reported: str) -> None:
    tensors = {"w": bfloat16(1)}
    message = refusal(tensors, tensors, b={"config": {**CONFIG, **change}})
    assert reported in message


def test_configs_may_differ_in_how_they_were_saved(write_checkpoint: WriteCheckpoint, tmp_path: Path) -> None:
    saved = {"transformers_version": "5.0", "_name_or_path": "x", "use_cache": False, "torch_dtype": "float32"}
    paths = [
        write_checkpoint("a", {"w": bfloat16(1)}),
        write_checkpoint("b", {"w": bfloat16(1)}, config={**CONFIG, **saved}),
    ]
    recipe = soup(paths, [Fraction(1)] * 2, tmp_path / "out", OutputOptions())
    assert recipe["side_files"] == {
        "copied": ["config.json"],
        "from": {"config.json": str(paths[0])},
        "differing": ["config.json"],
    }


def tokenizer(vocabulary: Any, **more: Any) -> dict[str, Any]:
    return {"files": {"tokenizer.json": json.dumps({"model": {"type": "BPE", "vocab": vocabulary}, **more})}}


@pytest.mark.parametrize(
    ("one", "two", "reported"),
    [
        (tokenizer({"x": 0, "y": 1}), tokenizer({"x": 0, "y": 2}), "token 'y' has id 1 and 2"),
        (tokenizer({"x": 0, "y": 1}), tokenizer({"x": 0}), "token 'y' has id 1 and None"),
        (tokenizer([["x", -1.0], ["y", -2.0]]), tokenizer([["y", -1.0], ["x", -2.0]]), "token 'x' has id 0 and 1"),
        (tokenizer({"x": 0}, added_tokens=[{"id": 1}]), tokenizer({"x": 0}, added_tokens=[]), ": added_tokens;"),
        ({"files": {"tokenizer.model": "x"}}, {"files": {"tokenizer.model": "y"}}, "their bytes"),
    ],
)
def test_vocabularies_that_differ(refusal: Callable[..., str], one: Any, two: Any, reported: str) -> None:
    message = refusal({"w": bfloat16(1)}, {"w": bfloat16(1)}, a=one, b=two)
    assert message.startswith("vocabularies differ in ") and reported in message


def test_tokenizers_may_differ_in_what_the_last_caller_set(write_checkpoint: WriteCheckpoint, tmp_path: Path) -> None:
    paths = [
        write_checkpoint("a", {"w": bfloat16(1)}, **tokenizer({"x": 0})),
        write_checkpoint("b", {"w": bfloat16(1)}, **tokenizer({"x": 0}, truncation={"max_length": 5})),
    ]
    assert soup(paths, [Fraction(1)] * 2, tmp_path / "out", OutputOptions())["side_files"]["differing"]


def test_a_chat_template_that_differs_is_copied_from_the_first_and_told(
    write_checkpoint: WriteCheckpoint, tmp_path: Path
) -> None:
    files = {"generation_config.json": "{}", "unrelated.md": "x"}
    paths = [
        write_checkpoint(name, {"w": bfloat16(1)}, files={"chat_template.jinja": name, **files}) for name in ("a", "b")
    ]
    recipe = soup(paths[::-1], [Fraction(1)] * 2, tmp_path / "out", OutputOptions())
    assert recipe["side_files"]["copied"] == ["chat_template.jinja", "config.json", "generation_config.json"]
    assert recipe["side_files"]["differing"] == ["chat_template.jinja"]
    assert (tmp_path / "out" / "chat_template.jinja").read_text() == "a"
    assert not (tmp_path / "out" / "unrelated.md").exists()


def test_a_checkpoint_given_twice(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(ToolkitError, match="given twice"):
        require_distinct([tmp_path / "a", tmp_path / "link"])


def test_an_output_that_exists_or_holds_an_input(write_checkpoint: WriteCheckpoint, tmp_path: Path) -> None:
    path = write_checkpoint("models/a", {"w": bfloat16(1)})
    with pytest.raises(ToolkitError, match=r"models: is not empty and holds no recipe.json"):
        soup([path], [Fraction(1)], tmp_path / "models", OutputOptions(force=True))
    soup([path], [Fraction(1)], tmp_path / "out", OutputOptions())
    with pytest.raises(ToolkitError, match="exists already"):
        soup([path], [Fraction(1)], tmp_path / "out", OutputOptions())
    with pytest.raises(ToolkitError, match="holds the input"):
        soup([tmp_path / "out"], [Fraction(1)], tmp_path / "out", OutputOptions(force=True))
    assert path.is_dir()


def test_an_old_output_is_replaced_only_with_force(write_checkpoint: WriteCheckpoint, tmp_path: Path) -> None:
    path = write_checkpoint("a", {"w": bfloat16(1)})
    soup([path], [Fraction(1)], tmp_path / "out", OutputOptions())
    (tmp_path / "out" / "old").write_text("")
    soup([path], [Fraction(1)], tmp_path / "out", OutputOptions(force=True))
    assert not (tmp_path / "out" / "old").exists()
    assert sorted(child.name for child in tmp_path.iterdir()) == ["a", "out"]


def test_a_link_as_an_old_output_is_replaced_and_what_it_leads_to_kept(
    write_checkpoint: WriteCheckpoint, tmp_path: Path
) -> None:
    path = write_checkpoint("a", {"w": bfloat16(1)})
    elsewhere = write_checkpoint("elsewhere", {"w": bfloat16(2)})
    (tmp_path / "out").symlink_to(elsewhere)
    soup([path], [Fraction(1)], tmp_path / "out", OutputOptions(force=True))
    assert not (tmp_path / "out").is_symlink() and (tmp_path / "out" / "recipe.json").is_file()
    assert (elsewhere / "model.safetensors").is_file()


def test_of_two_soups_at_once_one_wins_whole_and_the_other_is_refused(
    write_checkpoint: WriteCheckpoint, tmp_path: Path
) -> None:
    """The second begins and ends while the first one writes, beside what a killed pod has left."""
    path, other = (write_checkpoint(name, {"w": bfloat16(number)}) for name, number in (("a", 1), ("b", 2)))
    (tmp_path / f".out.{os.getpid()}.tmp").mkdir()

    def meanwhile(elements: int) -> None:
        soup([other], [Fraction(1)], tmp_path / "out", OutputOptions())

    with pytest.raises(UsageError, match="out: another run has written it meanwhile"):
        soup([path], [Fraction(1)], tmp_path / "out", OutputOptions(), meanwhile)
    assert read_patterns(tmp_path / "out")["w"].tolist() == bfloat16(2)[1].tolist()
    assert sorted(child.name for child in tmp_path.iterdir()) == [f".out.{os.getpid()}.tmp", "a", "b", "out"]


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "0", "5 apples", "1e3"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(ToolkitError, match="is not a file size"):
        parse_size(text)


def test_an_unknown_output_dtype() -> None:
    with pytest.raises(ToolkitError, match="`dtype` INT4: unknown"):
        OutputOptions(dtype="INT4")
