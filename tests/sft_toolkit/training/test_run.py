"""Whole runs in this process: what they learn, what they refuse, what is left when they fail."""

from __future__ import annotations

import io
import json
import math
import pickle
import resource
import shutil
import signal
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, DeepseekV3Config

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.mergemix.candidates import Candidate
from sft_toolkit.mergemix.merge import Sources, write_merges
from sft_toolkit.packers import FILLER, plan_for
from sft_toolkit.souping.writing import OutputOptions
from sft_toolkit.training.checkpoint_files import PlainValues, write_checksums
from sft_toolkit.training.options import ModelSource, Recipe, TrainOptions
from sft_toolkit.training.sequences import PackedFolder
from sft_toolkit.training.train import require_work_for_all, train
from sft_toolkit.training.training_folder import RunFolder
from tests.sft_toolkit.training.tiny import counting_documents, losses, rows, tiny_config, write_packed
from tests.token_shards import Document

pytestmark = pytest.mark.usefixtures("no_ranks_before_or_after")


def complete(options: TrainOptions) -> list[str]:
    return sorted(path.parent.name for path in options.output.glob("checkpoints/*/checksums.json"))


def test_epochs_read_every_sequence_and_figures_add_up(options: TrainOptions) -> None:
    options = replace(options, recipe=replace(options.recipe, steps=None, epochs=2))
    train(options)
    index = PackedFolder(options.packed).index
    per_epoch = math.ceil(len(index.cost) / 2)
    assert [row["step"] for row in rows(options)] == list(range(1, 2 * per_epoch + 1))
    for epoch in (rows(options)[:per_epoch], rows(options)[per_epoch:]):
        assert sum(row["tokens"] for row in epoch) == index.tokens.sum()
        assert sum(row["loss_tokens"] for row in epoch) == index.loss_tokens.sum()
    plan = plan_for("random", index.cost, 1, 2)
    assert rows(options)[per_epoch]["tokens"] == index.tokens[plan.step(1, 0)].sum()
    assert all(row["mfu"] is None and row["imbalance"] == 1 for row in rows(options))


def test_without_loss_weight_decay_shrinks_matrices_and_nothing_else(options: TrainOptions, tmp_path: Path) -> None:
    documents = [Document(str(loss), [7] * 128, [False] + [loss] * 127) for loss in (True, False)]
    packed = PackedFolder(write_packed(tmp_path, documents))
    silent = packed.index.loss_tokens.tolist().index(0)
    orders = [plan_for("random", packed.index.cost, 1, seed=seed).step(0, 0).item() for seed in range(9)]
    torch.manual_seed(0)
    tiny = AutoModelForCausalLM.from_config(tiny_config())
    tiny.save_pretrained(tmp_path / "before")
    recipe = Recipe(steps=1, learning_rate=0.5, weight_decay=0.1, schedule="wsd", warmup_ratio=0.0, order="random")
    source = ModelSource(checkpoint=tmp_path / "before")
    recipe = replace(recipe, seed=orders.index(silent))
    train(replace(options, packed=packed.path, source=source, recipe=recipe))
    after = AutoModelForCausalLM.from_pretrained(options.output / "model").state_dict()
    assert losses(options) == [0]
    for name, tensor in tiny.state_dict().items():
        torch.testing.assert_close(after[name], tensor * (0.95 if tensor.ndim >= 2 else 1))


def test_a_folder_without_a_loss_is_refused(options: TrainOptions, tmp_path: Path) -> None:
    silent = [Document(one.id, one.tokens, [False] * len(one.tokens)) for one in counting_documents(4)]
    with pytest.raises(UsageError, match="packed: no token has a loss"):
        train(replace(options, packed=write_packed(tmp_path, silent)))
    assert not (options.output / "run.json").exists()


def test_computing_activations_twice_changes_nothing(options: TrainOptions) -> None:
    train(options)
    again = replace(options, output=options.output.with_name("again"), activation_checkpointing=True)
    train(again)
    assert losses(again) == losses(options)


@pytest.mark.slow
def test_compiled_layers_learn_the_same(options: TrainOptions) -> None:
    train(options)
    compiled = replace(options, output=options.output.with_name("compiled"), compile=True)
    train(compiled)
    assert losses(compiled) == pytest.approx(losses(options), abs=1e-6)


def test_bfloat16_learns_about_the_same(options: TrainOptions) -> None:
    train(options)
    half = replace(options, output=options.output.with_name("half"), recipe=replace(options.recipe, bf16=True))
    train(half)
    assert losses(half) == pytest.approx(losses(options), rel=5e-3)
    assert losses(half) != losses(options)


def test_a_finished_run_that_is_resumed_exports_again_and_trains_nothing(options: TrainOptions) -> None:
    train(options)
    before = (options.output / "metrics.jsonl").read_bytes()
    weights = (options.output / "model" / "model.safetensors").read_bytes()
    shutil.rmtree(options.output / "model")
    train(replace(options, resume=True))
    assert (options.output / "metrics.jsonl").read_bytes() == before
    assert (options.output / "model" / "model.safetensors").read_bytes() == weights


def test_a_model_that_cannot_be_written_leaves_nothing_and_is_written_later(options: TrainOptions) -> None:
    train(options)
    shutil.rmtree(options.output / "model")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(ToolkitError, match=r"model: cannot be written: .*File too large"):
            train(replace(options, resume=True))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert not list(options.output.glob("model*"))
    dist.destroy_process_group()
    train(replace(options, resume=True))
    assert (options.output / "model" / "model.safetensors").exists()


@pytest.mark.parametrize("file", [".metadata", "__0_0.distcp"])
def test_a_checkpoint_that_is_cut_is_named_with_the_way_out(file: str, options: TrainOptions) -> None:
    train(replace(options, checkpoint_every=3))
    last = options.output / "checkpoints" / "step-00000006"
    (last / file).write_bytes((last / file).read_bytes()[:1000])
    with pytest.raises(ToolkitError, match=r"step-00000006: cannot be read: .+$") as refused:
        train(replace(options, resume=True))
    assert refused.value.hint == "remove it to resume from the one before"
    dist.destroy_process_group()
    shutil.rmtree(last)
    train(replace(options, resume=True))
    assert complete(options) == ["step-00000003", "step-00000006"]


@pytest.mark.parametrize("file", [".metadata", "__0_0.distcp"])
def test_bytes_that_changed_in_a_checkpoint_are_named_and_not_trained_on(file: str, options: TrainOptions) -> None:
    train(options)
    path = options.output / "checkpoints" / "step-00000006" / file
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 4000] = bytes(byte ^ 0x41 for byte in data[middle : middle + 4000])
    path.write_bytes(data)
    with pytest.raises(ToolkitError, match=f"step-00000006: cannot be read: {file} does not match its checksum"):
        train(replace(options, resume=True))


class Runs:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return Path.touch, (Path("it-ran"),)


def test_no_code_in_a_checkpoint_runs_though_its_checksums_are_right(
    options: TrainOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    train(options)
    place = options.output / "checkpoints" / "step-00000006"
    (place / ".metadata").write_bytes(pickle.dumps(Runs()))
    write_checksums(place)
    with pytest.raises(ToolkitError, match=r"step-00000006: cannot be read: \.metadata would run "):
        train(replace(options, resume=True))
    value = io.BytesIO()
    torch.save(Runs(), value)
    value.seek(0)
    with pytest.raises(pickle.UnpicklingError):
        PlainValues().load_bytes(None, value)
    assert not (tmp_path / "it-ran").exists()


def test_a_model_with_code_of_its_own_is_refused_in_one_line(options: TrainOptions) -> None:
    path = options.source.path / "config.json"
    own = {
        "model_type": "of-a-stranger",
        "auto_map": {"AutoConfig": "code.Config", "AutoModelForCausalLM": "code.Model"},
    }
    path.write_text(json.dumps(own))
    (path.parent / "code.py").write_text("raise SystemExit('it ran')")
    with pytest.raises(ToolkitError, match="defined by Python files of its own, which are never run"):
        train(options)


def test_generation_settings_of_the_checkpoint_survive_another_tokenizer(options: TrainOptions, tmp_path: Path) -> None:
    AutoModelForCausalLM.from_config(tiny_config()).save_pretrained(tmp_path / "base")
    settings = json.dumps({"eos_token_id": [2, 5], "temperature": 0.6, "do_sample": True})
    (tmp_path / "base" / "generation_config.json").write_text(settings)
    (tmp_path / "tokenizer").mkdir()
    (tmp_path / "tokenizer" / "generation_config.json").write_text("{}")
    source = ModelSource(checkpoint=tmp_path / "base", tokenizer=tmp_path / "tokenizer")
    train(replace(options, source=source, recipe=replace(options.recipe, steps=1)))
    assert (options.output / "model" / "generation_config.json").read_text() == settings


def test_a_run_is_neither_written_over_nor_resumed_as_another(options: TrainOptions, tmp_path: Path) -> None:
    train(options)
    with pytest.raises(UsageError, match="holds a run"):
        train(options)
    dist.destroy_process_group()
    faster = replace(options, resume=True, recipe=replace(options.recipe, learning_rate=1e-2))
    with pytest.raises(UsageError, match=r"was begun with `learning_rate` 0\.001, not 0\.01"):
        train(faster)
    dist.destroy_process_group()
    other_data = write_packed(tmp_path, counting_documents(30, seed=1))
    with pytest.raises(UsageError, match="was begun on other sequences"):
        train(replace(options, resume=True, packed=other_data))
    dist.destroy_process_group()
    tiny_config("llama").save_pretrained(tmp_path / "config")
    with pytest.raises(UsageError, match="was begun with another model"):
        train(replace(options, resume=True))


def test_two_processes_do_not_train_in_one_folder(options: TrainOptions) -> None:
    with RunFolder(options.output, {}).lock(), pytest.raises(ToolkitError, match="another process trains here"):
        train(options)


def test_a_corrupt_shard_stops_the_run_before_it_begins(options: TrainOptions, tmp_path: Path) -> None:
    packed = Path(shutil.copytree(options.packed, tmp_path / "copy"))
    shard = packed / "part-00001.arrow"
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    with pytest.raises(ToolkitError, match="do not match the checksum"):
        train(replace(options, packed=packed))
    assert not (options.output / "run.json").exists()


def test_fewer_sequences_than_ranks_are_refused(packed: Path) -> None:
    folder = PackedFolder(packed)
    require_work_for_all(folder, len(folder))
    with pytest.raises(UsageError, match="sequences for 99 ranks"):
        require_work_for_all(folder, 99)


def test_a_loss_that_is_not_a_number_names_step_and_documents_and_keeps_the_last_state(
    options: TrainOptions, tmp_path: Path
) -> None:
    documents = [
        Document(f"{name}-{number}", [token] * 128, [False] + [True] * 127)
        for name, token, count in (("good", 3, 11), ("bad", 201, 1))
        for number in range(count)
    ]
    packed = write_packed(tmp_path, documents)
    model = AutoModelForCausalLM.from_config(tiny_config())
    with torch.no_grad():
        model.get_input_embeddings().weight[201] = float("nan")
    model.save_pretrained(tmp_path / "poisoned")
    recipe = replace(options.recipe, microbatches=1, steps=12, seed=1)
    options = replace(options, packed=packed, source=ModelSource(checkpoint=tmp_path / "poisoned"), recipe=recipe)
    folder = PackedFolder(packed)
    bad = next(number for number in range(12) if folder.sequence(number).ids == ["bad-0"])
    place = {
        seed: plan_for("random", folder.index.cost, 1, 1, seed=seed).epoch(0).ravel().tolist() for seed in range(9)
    }
    seed, step = next((seed, places.index(bad) + 1) for seed, places in place.items() if places.index(bad) > 2)
    options = replace(options, recipe=replace(recipe, seed=seed))
    with pytest.raises(ToolkitError, match=f"step {step}: loss or gradient is not finite; documents: bad-0$"):
        train(replace(options, checkpoint_every=1))
    assert np.isfinite(losses(options)).all()
    assert len(losses(options)) == step - 1
    assert complete(options)[-1] == f"step-{step - 1:08d}"
    assert not (options.output / "model").exists()


def test_the_documents_that_are_named_are_the_right_ones_behind_filler_too(
    options: TrainOptions, tmp_path: Path
) -> None:
    documents = [Document(str(token), [token] * 128, [False] + [True] * 127) for token in (3, 201, 5)]
    packed = write_packed(tmp_path, documents)
    model = AutoModelForCausalLM.from_config(tiny_config())
    with torch.no_grad():
        model.get_input_embeddings().weight[201] = float("nan")
    model.save_pretrained(tmp_path / "poisoned")
    folder = PackedFolder(packed)
    bad = next(number for number in range(3) if folder.sequence(number).ids == ["201"])

    def own(seed: int) -> list[int]:
        return plan_for("window", folder.index.cost, 1, 4, seed=seed).epoch(0).ravel().tolist()

    seed = next(seed for seed in range(99) if own(seed)[0] == FILLER and own(seed)[1] == bad)
    recipe = Recipe(steps=1, microbatches=4, seed=seed)
    with pytest.raises(ToolkitError, match=r"documents: 201$"):
        train(replace(options, packed=packed, source=ModelSource(checkpoint=tmp_path / "poisoned"), recipe=recipe))


@pytest.mark.parametrize("tied", [False, True])
def test_a_bfloat16_checkpoint_is_trained_in_float32_and_saved_as_it_was(
    tied: bool, options: TrainOptions, tmp_path: Path
) -> None:
    tiny = AutoModelForCausalLM.from_config(tiny_config(tied=tied), dtype=torch.bfloat16)
    tiny.save_pretrained(tmp_path / "half")
    (tmp_path / "half" / "chat_template.jinja").write_text("{{ messages }}")
    train(replace(options, source=ModelSource(checkpoint=tmp_path / "half")))
    saved = AutoModelForCausalLM.from_pretrained(options.output / "model", dtype="auto")
    assert saved.dtype == torch.bfloat16
    assert saved.config.tie_word_embeddings is tied
    assert any(not torch.equal(saved.state_dict()[name], tensor) for name, tensor in tiny.state_dict().items())
    assert (options.output / "model" / "chat_template.jinja").read_text() == "{{ messages }}"


def test_what_a_bfloat16_checkpoint_has_in_float32_stays_in_float32(options: TrainOptions, tmp_path: Path) -> None:
    shape = {"q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16}
    experts = {"n_routed_experts": 8, "moe_intermediate_size": 32, "n_group": 2, "topk_group": 1}
    common = tiny_config().to_dict()
    sizes = {name: common[name] for name in ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers")}
    config = DeepseekV3Config(
        **sizes, **shape, **experts, num_attention_heads=4, num_key_value_heads=4, first_k_dense_replace=1
    )
    mixed = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    bias = mixed.get_buffer(name := "model.layers.1.mlp.gate.e_score_correction_bias")
    bias.fill_(1 / 3)
    mixed.save_pretrained(tmp_path / "mixed")
    train(replace(options, source=ModelSource(checkpoint=tmp_path / "mixed"), recipe=Recipe(steps=1)))
    before, after = (
        load_file(folder / "model.safetensors") for folder in (tmp_path / "mixed", options.output / "model")
    )
    assert {key: one.dtype for key, one in before.items()} == {key: one.dtype for key, one in after.items()}
    assert torch.equal(after[name], before[name])


def test_specialists_merge_with_a_base_whose_configuration_was_written_long_ago(
    options: TrainOptions, tmp_path: Path
) -> None:
    base = tmp_path / "base"
    AutoModelForCausalLM.from_config(tiny_config("llama"), dtype=torch.bfloat16).save_pretrained(base)
    names = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
    more = ("num_key_value_heads", "max_position_embeddings", "model_type", "architectures")
    config = json.loads((base / "config.json").read_text())
    old = {name: config[name] for name in (*names, *more)}
    old |= {"rope_theta": 500_000.0, "rope_scaling": None, "torch_dtype": "bfloat16", "transformers_version": "4.45.0"}
    (base / "config.json").write_text(json.dumps(old))
    train(replace(options, source=ModelSource(checkpoint=base), recipe=Recipe(steps=1)))
    specialist = options.output / "model"
    assert json.loads((specialist / "config.json").read_text()) == old
    mixture = Candidate("half", {"one": Fraction(1, 2), "two": Fraction(1, 2)})
    other = Path(shutil.copytree(specialist, tmp_path / "two"))
    sources = Sources(base, {"one": specialist, "two": other})
    write_merges(sources, [mixture], tmp_path / "merges", OutputOptions())
    merged = AutoModelForCausalLM.from_pretrained(tmp_path / "merges" / "half")
    assert merged.config.rope_parameters["rope_theta"] == 500_000


def test_a_checkpoint_that_lacks_a_tensor_is_refused(options: TrainOptions, tmp_path: Path) -> None:
    tiny = AutoModelForCausalLM.from_config(tiny_config())
    weights = {name: tensor for name, tensor in tiny.state_dict().items() if name != "model.norm.weight"}
    tiny.save_pretrained(tmp_path / "torn", state_dict=weights)
    with pytest.raises(ToolkitError, match=r"torn: has no weights for model\.norm\.weight"):
        train(replace(options, source=ModelSource(checkpoint=tmp_path / "torn")))


def test_a_folder_without_a_model_is_refused(options: TrainOptions, tmp_path: Path) -> None:
    with pytest.raises(ToolkitError, match="transformers cannot load it"):
        train(replace(options, source=ModelSource(checkpoint=tmp_path)))


@pytest.mark.parametrize("family", ["llama", "qwen3_moe"])
def test_every_family_learns_and_is_saved_as_transformers_saves_it(
    family: str, options: TrainOptions, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    plain = AutoModelForCausalLM.from_config(tiny_config(family))
    plain.save_pretrained(tmp_path / "plain")
    recipe = replace(options.recipe, learning_rate=1e-2)
    train(replace(options, source=ModelSource(checkpoint=tmp_path / "plain"), recipe=recipe))
    assert losses(options)[-1] < losses(options)[0] - 0.3
    shapes = [
        {name: tensor.shape for name, tensor in load_file(folder / "model.safetensors").items()}
        for folder in (tmp_path / "plain", options.output / "model")
    ]
    assert shapes[0] == shapes[1]
