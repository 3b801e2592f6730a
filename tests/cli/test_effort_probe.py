"""`effort probe`: each level asked of a real server that obeys, and of a tiny model on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.stages.effort.probe_report import read_replies
from tests.conftest import RunCli
from tests.teacher_fixtures import Running
from tests.teacher_fixtures import serve as serve

LEVELS = ("none", "low", "medium", "high")


@pytest.fixture
def held_out(tmp_path: Path) -> Path:
    """Eight questions of two data sets, with the answers that a data set has for them."""
    lines = []
    for number in range(8):
        messages: list[dict[str, Any]] = [{"role": "system", "content": "Sei nett."}] if number % 2 else []
        messages += [{"role": "user", "content": "Frage" + "?" * number}, {"role": "assistant", "content": "Ja."}]
        lines.append({"id": f"p{number}", "dataset": "ab"[number % 2], "effort": "low", "messages": messages})
    path = tmp_path / "heldout.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_server_that_obeys_is_reported_to_obey(
    serve: Callable[..., Running], held_out: Path, run_cli: RunCli, tmp_path: Path
) -> None:
    server = serve(efforts={"none": 0, "low": 10, "medium": 20, "high": 35})
    sentences = tmp_path / "efforts.toml"
    sentences.write_text("[low]\nsentence = 'Denke kurz.'\nvariables = { reasoning_effort = 'low' }\n")
    probe = ("effort", "probe", server.url, held_out, "--model", "m", "--effort-sentences", sentences)
    done = run_cli(*probe, "-o", tmp_path / "out.jsonl", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["obedience"]
    assert found["unit"] == "characters"
    everything = found["datasets"]["all data sets"]
    assert (everything["prompts"], everything["ordered"]) == (8, 8)
    assert everything["levels"]["none"]["think"] == 0 and everything["levels"]["high"]["think"] == 8
    lengths = [10 + len("Frage" + "?" * number) % 3 for number in range(8)]
    low = everything["levels"]["low"]
    assert low["median"] == 3 * sorted(lengths)[4] - 1 and low["median_interval"] == [29, 35]
    assert set(found["datasets"]) == {"a", "b", "all data sets"}

    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows[:4]] == [f"p0:{level}:0" for level in LEVELS]
    assert [row["effort"] for row in rows[4:8]] == list(LEVELS)
    assert rows[4]["messages"][:2] == [
        {"role": "system", "content": "Sei nett."},
        {"role": "user", "content": "Frage?", "effort": "none"},
    ]
    bodies = [entry["body"] for entry in server.requests()]
    stated = [body for body in bodies if body["chat_template_kwargs"]["effort"] == "low"]
    assert all(body["reasoning_effort"] == "low" for body in stated) and len(stated) == 8
    assert {body["messages"][0]["content"] for body in stated} == {"Denke kurz.", "Sei nett.\n\nDenke kurz."}

    text = run_cli(*probe, "-o", tmp_path / "out.jsonl", "--force").stderr.decode()
    assert len(server.requests()) == len(bodies), "the journal answers a second run"
    last = text.splitlines()[-1].split()
    assert last[:5] == ["all", "data", "sets", "8", "8"] and last[-4].endswith("x")


def test_a_model_on_this_machine_is_asked_with_its_own_template(
    sample_data: Path, held_out: Path, run_cli: RunCli, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(sample_data / "tokenizer")
    tokenizer.save_pretrained(tmp_path / "tiny")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path / "tiny")
    probe = ("effort", "probe", tmp_path / "tiny", held_out, "--max-tokens", "6")
    done = run_cli(*probe, "-o", tmp_path / "out.jsonl", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["obedience"]
    assert found["unit"] == "tokens"
    levels = found["datasets"]["all data sets"]["levels"]
    assert [levels[level]["cut"] for level in LEVELS] == [8] * 4, "an untrained model does not stop"


def test_output_to_stdout_is_refused(run_cli: RunCli, held_out: Path) -> None:
    refused = run_cli("effort", "probe", "http://127.0.0.1:9/v1", held_out, "--model", "m")
    assert refused.returncode == 2 and b"name a folder or FILE.jsonl" in refused.stderr


def test_a_reply_that_closes_its_thinking_twice_is_counted_as_it_was_read(tmp_path: Path) -> None:
    """As small models write them; read as a record, it would hold reasoning in two places."""
    probe = {"prompt": "p", "level": "high", "sample": 0, "cut": False}
    reply = {"role": "assistant", "reasoning": "Hm, zwölf.", "content": "12.\n</think>\n\n12"}
    row = {
        "id": "p:high:0",
        "dataset": "a",
        "messages": [{"role": "user", "content": "?"}, reply],
        "effort_probe": probe,
    }
    (tmp_path / "replies.jsonl").write_text(json.dumps(row) + "\n")
    found = read_replies(str(tmp_path / "replies.jsonl"), None)
    assert found["a"].lengths["high"]["p"] == [len("Hm, zwölf.")]
