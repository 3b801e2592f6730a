"""Checkpoints as people have them: read, or refused in one line with the way to one that is read."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from sft_toolkit.errors import ToolkitError
from sft_toolkit.souping.soup import soup
from sft_toolkit.souping.writing import OutputOptions, Recipe
from tests.sft_toolkit.souping.checkpoints import CONFIG, bfloat16, read_patterns, write_safetensors

WriteCheckpoint = Callable[..., Path]
CASES = Path(__file__).parents[2] / "cases" / "mixtures"
ONE = {"w": bfloat16(1)}


@pytest.fixture
def average(tmp_path: Path) -> Callable[..., Recipe]:
    def run(*paths: Path, dtype: str | None = None) -> Recipe:
        options = OutputOptions(dtype=dtype, force=True)
        return soup(paths, [Fraction(1)] * len(paths), tmp_path / "out", options)

    return run


@pytest.fixture
def refusal(average: Callable[..., Recipe]) -> Callable[..., ToolkitError]:
    def run(*paths: Path) -> ToolkitError:
        with pytest.raises(ToolkitError) as caught:
            average(*paths)
        assert "\n" not in caught.value.message + caught.value.hint
        return caught.value

    return run


def test_transformers_4_and_5_spell_one_architecture(average: Callable[..., Recipe]) -> None:
    folder = CASES / "v4_v5_config"
    recipe = average(folder / "base", folder / "s0", folder / "s1")
    assert recipe["side_files"]["differing"] == ["config.json"]
    assert recipe["side_files"]["from"] == {"config.json": str(folder / "base")}


SPELLINGS: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
    ("llama", {"rope_theta": 5e5}, {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}, True),
    ("llama", {"rope_theta": 5e5}, {"rope_parameters": {"rope_type": "default", "rope_theta": 6e5}}, False),
    ("llama", {}, {"rope_theta": 10000.0, "attention_bias": False, "mlp_bias": False}, True),
    ("llama", {}, {"attention_bias": True}, False),
    (
        "llama",
        {"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 2.0}},
        {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 5e5}},
        True,
    ),
    (
        "llama",
        {"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 2.0}},
        {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 5e5}},
        False,
    ),
    ("qwen3", {"use_sliding_window": False}, {"layer_types": ["full_attention", "full_attention"]}, True),
    ("qwen3", {"use_sliding_window": False}, {"layer_types": ["full_attention", "sliding_attention"]}, False),
    ("qwen2", {"torch_dtype": "float32"}, {"dtype": "bfloat16"}, True),
    ("qwen2", {"eos_token_id": 2}, {"eos_token_id": 7, "pad_token_id": 3}, True),
    ("qwen2", {}, {"head_dim": 32}, False),
    ("llama", {"pretraining_tp": 1}, {"unsloth_fixed": True}, True),
    ("of-no-library", {"rope_theta": 5e5}, {"rope_parameters": {"rope_theta": 5e5}}, False),
]


@pytest.mark.parametrize(("kind", "one", "two", "same"), SPELLINGS)
def test_fields_that_transformers_treats_as_equal_are_equal(
    kind: str,
    one: dict[str, Any],
    two: dict[str, Any],
    same: bool,
    write_checkpoint: WriteCheckpoint,
    average: Callable[..., Recipe],
    refusal: Callable[..., ToolkitError],
) -> None:
    sizes = {"model_type": kind, "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}
    paths = [write_checkpoint(name, ONE, config={**sizes, **change}) for name, change in (("a", one), ("b", two))]
    if same:
        average(*paths)
    else:
        assert " in " in refusal(*paths).message


@pytest.mark.parametrize("change", [None, "merges", "vocabulary"])
def test_merges_as_text_and_as_pairs_are_one_tokenizer(
    change: str | None,
    write_checkpoint: WriteCheckpoint,
    average: Callable[..., Recipe],
    refusal: Callable[..., ToolkitError],
) -> None:
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Whitespace()
    trained.train_from_iterator(["to be or not to be that is the"], trainers.BpeTrainer(vocab_size=30))
    pairs = json.loads(trained.to_str())
    texts = json.loads(trained.to_str())
    texts["model"]["merges"] = [" ".join(pair) for pair in pairs["model"]["merges"]]
    del texts["model"]["ignore_merges"]
    if change == "merges":
        texts["model"]["merges"].reverse()
    if change == "vocabulary":
        one, two = list(texts["model"]["vocab"])[-2:]
        ids = texts["model"]["vocab"]
        ids[one], ids[two] = ids[two], ids[one]
    paths = [
        write_checkpoint(name, ONE, files={"tokenizer.json": json.dumps(content)})
        for name, content in (("a", pairs), ("b", texts))
    ]
    if change is None:
        average(*paths)
    else:
        assert ("model.merges" if change == "merges" else "has id") in refusal(*paths).message


def test_lists_of_merges_are_compared_without_their_header(
    write_checkpoint: WriteCheckpoint, average: Callable[..., Recipe]
) -> None:
    files = [
        {"merges.txt": "#version: 0.2\na b\n", "vocab.json": '{"a": 0}'},
        {"merges.txt": "a b", "vocab.json": '{ "a":0 }'},
    ]
    average(*(write_checkpoint(name, ONE, files=held) for name, held in zip("ab", files, strict=True)))


def test_a_redundant_tied_head_is_left_out_with_an_account(average: Callable[..., Recipe], tmp_path: Path) -> None:
    recipe = average(CASES / "tied_head" / "a", CASES / "tied_head" / "b")
    entry = recipe["tensors"]["lm_head.weight"]
    assert entry["action"] == "left out" and "model.embed_tokens.weight" in entry["why"]
    assert entry["in"] == [str(CASES / "tied_head" / "a")]
    assert read_patterns(tmp_path / "out").keys() == {"model.embed_tokens.weight"}


@pytest.mark.parametrize("config", [{"tie_word_embeddings": True}, {"text_config": {"tie_word_embeddings": True}}])
def test_a_tied_head_that_is_not_the_embedding_is_refused(
    config: dict[str, Any], write_checkpoint: WriteCheckpoint, refusal: Callable[..., ToolkitError]
) -> None:
    whole = {"model.embed_tokens.weight": bfloat16(1, 2), "lm_head.weight": bfloat16(1, 3)}
    path = write_checkpoint("a", whole, config={**CONFIG, "tie_word_embeddings": None, **config})
    assert "lm_head.weight in " in refusal(path).message


def test_a_head_is_tied_by_default_where_transformers_says_so(
    write_checkpoint: WriteCheckpoint, average: Callable[..., Recipe]
) -> None:
    """Gemma's configs on the hub do not state it; Llama's class takes false."""
    tensors = {"model.embed_tokens.weight": bfloat16(1, 2), "lm_head.weight": bfloat16(1, 2)}
    gemma = average(write_checkpoint("gemma", tensors, config={"model_type": "gemma"}))
    assert gemma["tensors"]["lm_head.weight"]["action"] == "left out"
    llama = average(write_checkpoint("llama", tensors, config={"model_type": "llama"}))
    assert llama["tensors"]["lm_head.weight"]["action"] == "averaged"


def test_an_untied_head_is_averaged(write_checkpoint: WriteCheckpoint, average: Callable[..., Recipe]) -> None:
    tensors = {"model.embed_tokens.weight": bfloat16(1, 2), "lm_head.weight": bfloat16(1, 2)}
    assert average(write_checkpoint("a", tensors))["tensors"]["lm_head.weight"]["action"] == "averaged"


def test_files_of_torch_save_are_averaged_as_safetensors_are(
    write_checkpoint: WriteCheckpoint, average: Callable[..., Recipe], tmp_path: Path
) -> None:
    """Views, shared storage and several files included: the same bits come out."""
    generator = np.random.default_rng(1)
    values = [torch.from_numpy(generator.standard_normal((3, 5))).to(torch.bfloat16) for _ in range(2)]
    expected = average(
        *(
            write_checkpoint(name, {"w": ("BF16", v[1:].view(torch.uint16).numpy().copy())})
            for name, v in zip("ab", values, strict=True)
        )
    )
    bits = read_patterns(tmp_path / "out")["w"]
    for name in "cd":
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(CONFIG))
    torch.save({"w": values[0][1:]}, tmp_path / "c" / "pytorch_model.bin")
    torch.save({"w": values[1][1:]}, tmp_path / "d" / "pytorch_model-00001-of-00001.bin")
    index = {"weight_map": {"w": "pytorch_model-00001-of-00001.bin"}}
    (tmp_path / "d" / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    recipe = average(tmp_path / "c", tmp_path / "d")
    assert np.array_equal(read_patterns(tmp_path / "out")["w"], bits)
    digests = [[entry["xxh3_128"] for entry in found["inputs"]] for found in (recipe, expected)]
    assert digests[0] == digests[1]


class _Runs:
    def __reduce__(self) -> Any:
        return eval, ("[].append(1)",)


@pytest.mark.parametrize(
    ("content", "reported"),
    [
        ({"w": _Runs()}, "holds more than tensors"),
        ({"model": {"w": torch.ones(1)}}, "model is dict, not a tensor"),
        ({"w": torch.ones(2, 3).T}, "cannot be read in place"),
        ([torch.ones(1)], "no state dict"),
        ({"w": torch.ones(1, dtype=torch.complex64)}, "cannot be read in place"),
    ],
)
def test_a_file_of_torch_save_that_holds_more_than_tensors_is_refused(
    content: Any, reported: str, refusal: Callable[..., ToolkitError], tmp_path: Path
) -> None:
    torch.save(content, tmp_path / "model.pt")
    assert reported in refusal(tmp_path / "model.pt").message


def test_a_plain_pickle_is_not_run(refusal: Callable[..., ToolkitError], tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(pickle.dumps({"w": _Runs()}))
    assert "holds more than tensors" in refusal(tmp_path / "model.bin").message


@pytest.mark.parametrize("present", ["adapter_config.json", "adapter_model.safetensors", "adapter_model.bin"])
def test_an_adapter_is_never_ignored(
    present: str, write_checkpoint: WriteCheckpoint, refusal: Callable[..., ToolkitError], tmp_path: Path
) -> None:
    beside = write_checkpoint("full", ONE, files={present: "{}"})
    error = refusal(beside)
    assert "an adapter beside the full weights in model.safetensors" in error.message
    assert "merge_and_unload" in error.hint
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / present).write_text("{}")
    assert f"{tmp_path / 'alone'}: an adapter: " in refusal(tmp_path / "alone").message


def test_the_factors_of_an_adapter_are_refused_in_a_bare_file_too(
    refusal: Callable[..., ToolkitError], tmp_path: Path
) -> None:
    path = tmp_path / "factors.safetensors"
    write_safetensors(path, {"base_model.model.q_proj.lora_A.weight": bfloat16(1)})
    assert "is a factor of an adapter" in refusal(path).message


WAYS = [
    ("q4.gguf", "GGUF", "converted from"),
    ("model_index.json", "diffusers", "one component"),
    ("diffusion_pytorch_model.safetensors", "diffusers", "diffusion_pytorch_model.safetensors"),
    (".metadata", "DCP", "dcp_to_torch"),
    ("checkpoints/step-00000005/.metadata", "a run of train that has not ended", "resume=True"),
    ("checkpoint-500/trainer_state.json", "a run with checkpoints", "checkpoint-500"),
    ("pytorch_model_fsdp_0/.metadata", "FSDP", "accelerate merge-weights"),
    ("zero_to_fp32.py", "DeepSpeed", "zero_to_fp32.py"),
    ("tf_model.h5", "TensorFlow", "from PyTorch"),
    ("consolidated.safetensors", "other names", "consolidated.safetensors"),
    ("consolidated.00.pth", "another name", "consolidated.00.pth"),
    ("inner/config.json", "a folder of models", "inner"),
]


@pytest.mark.parametrize(("present", "named", "way"), WAYS)
def test_what_is_no_checkpoint_is_named_with_the_way_to_one(
    present: str, named: str, way: str, refusal: Callable[..., ToolkitError], tmp_path: Path
) -> None:
    (tmp_path / "x" / present).parent.mkdir(parents=True)
    (tmp_path / "x" / present).write_text("")
    error = refusal(tmp_path / "x")
    assert named in error.message and way in error.hint


def test_the_last_of_several_checkpoints_is_named(refusal: Callable[..., ToolkitError], tmp_path: Path) -> None:
    for step in (500, 1000, 50):
        (tmp_path / "run" / f"checkpoint-{step}").mkdir(parents=True)
        (tmp_path / "run" / f"checkpoint-{step}" / "trainer_state.json").write_text("{}")
    assert refusal(tmp_path / "run").hint.endswith("checkpoint-1000")


def test_checkpoint_n_of_a_trainer_is_read(write_checkpoint: WriteCheckpoint, average: Callable[..., Recipe]) -> None:
    files = {"optimizer.pt": "x", "rng_state.pth": "x", "training_args.bin": "x", "trainer_state.json": "{}"}
    recipe = average(write_checkpoint("run/checkpoint-500", ONE, files=files))
    assert recipe["side_files"]["copied"] == ["config.json"]


def test_a_finished_run_is_read_by_its_model(write_checkpoint: WriteCheckpoint, average: Callable[..., Recipe]) -> None:
    run = write_checkpoint("run/model", ONE).parent
    (run / "run.json").write_text("{}")
    assert average(run)["side_files"]["from"] == {"config.json": str(run / "model")}


def test_a_hub_cache_is_read_by_its_revision(
    write_checkpoint: WriteCheckpoint,
    average: Callable[..., Recipe],
    refusal: Callable[..., ToolkitError],
    tmp_path: Path,
) -> None:
    root = tmp_path / "models--o--n"
    write_checkpoint("models--o--n/snapshots/aaa", ONE)
    assert average(root)["side_files"]["from"]["config.json"].endswith("/aaa")
    write_checkpoint("models--o--n/snapshots/bbb", ONE)
    assert "aaa, bbb" in refusal(root).message
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text("bbb\n")
    assert average(root)["side_files"]["from"]["config.json"].endswith("/bbb")


@pytest.mark.parametrize("name", ["model.gguf", "model.safetensors.index.json"])
def test_a_file_that_holds_no_weights_to_average(
    name: str, refusal: Callable[..., ToolkitError], tmp_path: Path
) -> None:
    (tmp_path / name).write_text("{}")
    assert refusal(tmp_path / name).hint.startswith("name ")


def test_mixed_dtypes_pass_where_the_output_has_one(
    write_checkpoint: WriteCheckpoint,
    average: Callable[..., Recipe],
    refusal: Callable[..., ToolkitError],
    tmp_path: Path,
) -> None:
    """(1 + 2 + 1.00048828125) / 3 = 1.33349609375, exactly; float32 holds it but for its last bits."""
    paths = [
        write_checkpoint("a", {"w": bfloat16(1)}),
        write_checkpoint("b", {"w": ("F16", np.array([2], np.float16))}),
        write_checkpoint("c", {"w": ("F32", np.array([1.00048828125], np.float32))}),
    ]
    error = refusal(*paths)
    assert "has dtype BF16 in " in error.message and "`dtype`" in error.hint
    recipe = average(*paths, dtype="F32")
    assert recipe["tensors"]["w"]["from"] == "BF16 F16 F32" and recipe["tensors"]["w"]["to"] == "F32"
    assert read_patterns(tmp_path / "out")["w"].view(np.float32).tolist() == [np.float32(4.00048828125 / 3)]


def test_numbers_and_integers_are_not_mixed(write_checkpoint: WriteCheckpoint, average: Callable[..., Recipe]) -> None:
    paths = [write_checkpoint("a", {"w": bfloat16(1)}), write_checkpoint("b", {"w": ("I64", np.array([1]))})]
    with pytest.raises(ToolkitError, match="has dtype BF16"):
        average(*paths, dtype="F32")


@pytest.mark.parametrize("name", ["empty.safetensors", "empty2.safetensors"])
def test_a_file_without_tensors_is_refused(name: str, refusal: Callable[..., ToolkitError]) -> None:
    assert refusal(CASES / "no_tensor" / name).message.endswith("holds no tensors")
