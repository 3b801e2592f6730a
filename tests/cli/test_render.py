"""`kolibri-sft render` as users run it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.conftest import RunCli


def write_records(path: Path, count: int = 30) -> Path:
    record = {"messages": [{"role": "user", "content": "Wie geht es?"}, {"role": "assistant", "content": "Gut. " * 5}]}
    path.write_text("".join(json.dumps({"id": f"r{number}", **record}) + "\n" for number in range(count)))
    return path


def shards(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.glob("part-*.arrow"))]


@pytest.fixture
def chatml_with(tmp_path: Path) -> Callable[[str], Path]:
    """A ChatML template file that begins with what is given."""

    def make(beginning: str) -> Path:
        path = tmp_path / "chatml.jinja"
        loop = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        path.write_text(beginning + loop + "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
        return path

    return make


@pytest.fixture
def tokenizer(sample_data: Path) -> Path:
    return sample_data / "tokenizer"


def test_shards_hold_one_row_a_record_and_the_manifest_names_tokenizer_and_template(
    run_cli: RunCli, tokenizer: Path, tmp_path: Path
) -> None:
    result = run_cli("render", write_records(tmp_path / "in.jsonl"), "--tokenizer", tokenizer, "-o", tmp_path / "out")
    assert result.returncode == 0, result.stderr.decode()
    with pa.memory_map(str(tmp_path / "out" / "part-00000.arrow")) as file:
        table = pa.ipc.open_file(file).read_all()
    assert table.num_rows == 30
    assert table["loss_tokens"].to_pylist() == [sum(mask) for mask in table["loss_mask"].to_pylist()]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["schema"] == "tokens" and manifest["tokenizer"] and manifest["chat_template"]


def test_shards_are_the_same_bytes_for_any_number_of_workers(run_cli: RunCli, tokenizer: Path, tmp_path: Path) -> None:
    records = write_records(tmp_path / "in.jsonl")
    for workers in ("1", "2"):
        options = ("--workers", workers, "--rows-per-shard", "10", "-q", "-o", tmp_path / workers)
        assert run_cli("render", records, "--tokenizer", tokenizer, *options).returncode == 0
    assert len(shards(tmp_path / "1")) == 3
    assert shards(tmp_path / "1") == shards(tmp_path / "2")


def test_a_pipe_of_records_renders_to_json_lines(run_cli: RunCli, tokenizer: Path, tmp_path: Path) -> None:
    records = write_records(tmp_path / "in.jsonl", 2).read_bytes()
    result = run_cli("render", "-", "--tokenizer", tokenizer, "-o", "-", stdin=records)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["id"] for row in rows] == ["r0", "r1"]
    assert len(rows[0]["input_ids"]) == len(rows[0]["loss_mask"]) == rows[0]["length"]


def one_line(result: Any, code: int) -> str:
    text = result.stderr.decode()
    assert result.returncode == code and text.startswith("error: ") and text.count("\n") == 1, text
    return text


def test_faults_of_tokenizer_and_template_are_one_line_each(run_cli: RunCli, tokenizer: Path, tmp_path: Path) -> None:
    records = write_records(tmp_path / "in.jsonl", 1)
    bare, broken, sound = tmp_path / "bare", tmp_path / "broken.jinja", tokenizer / "chat_template.jinja"
    bare.mkdir()
    shutil.copy(tokenizer / "tokenizer.json", bare)
    broken.write_text("{% for m in messages %}\n{% endif %}")
    mute = tmp_path / "mute.jinja"
    mute.write_text("{{ raise_exception('closed on Sundays') }}")

    def fault(*options: str | Path, code: int = 1) -> str:
        return one_line(run_cli("render", records, "-o", tmp_path / "out", *options), code)

    assert "no chat template; give one with --chat-template" in fault("--tokenizer", bare)
    assert "tokenizer.json: No such file" in fault("--tokenizer", tmp_path / "missing")
    assert "chat template (line 2)" in fault("--tokenizer", tokenizer, "--chat-template", broken)
    assert "closed on Sundays" in fault("--tokenizer", tokenizer, "--chat-template", mute)
    assert "--train: 'some' is not one of 'all', 'last'" in fault("--tokenizer", tokenizer, "--train", "some", code=2)
    assert "not a date" in fault("--tokenizer", tokenizer, "--date", "today", code=2)
    (bare / "tokenizer.json").write_text("{}")
    assert "tokenizer.json: not a tokenizer" in fault("--tokenizer", bare, "--chat-template", sound)
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_overlong_names_file_line_and_record(run_cli: RunCli, tokenizer: Path, tmp_path: Path) -> None:
    records = write_records(tmp_path / "in.jsonl", 2)
    command = ("render", records, "--tokenizer", tokenizer, "--max-tokens", "8", "-o", tmp_path / "out")
    text = one_line(run_cli(*command), 1)
    assert "in.jsonl:1: record r0:" in text and "more than 8; choose with --overlong drop or truncate" in text
    summary = json.loads(run_cli(*command, "--force", "--overlong", "drop", "--json").stdout)
    assert (summary["in"], summary["out"], summary["rejected"]) == (2, 0, {"overlong": 2})


def test_template_variables_are_pinned_and_in_the_manifest(
    run_cli: RunCli, tokenizer: Path, tmp_path: Path, chatml_with: Callable[[str], Path]
) -> None:
    records = write_records(tmp_path / "in.jsonl", 2)
    command = ("render", records, "--tokenizer", tokenizer, "--chat-template", chatml_with("{{ style }}"))
    assert run_cli(*command, "--template-variable", "style=a", "-o", tmp_path / "out").returncode == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["options"]["template_variables"] == {"value": {"style": "a"}, "from": "flag"}
    changed = run_cli(*command, "--template-variable", "style=b", "-o", tmp_path / "out", "--resume")
    assert changed.returncode != 0 and b"template_variable" in changed.stderr
    typo = run_cli(*command, "--template-variable", "stile=a", "-o", "-")
    assert typo.returncode == 2 and b"it reads style" in typo.stderr


@pytest.mark.parametrize("command", ["check", "render"])
def test_what_a_template_says_does_not_steer_a_terminal(
    command: str, run_cli: RunCli, tokenizer: Path, tmp_path: Path
) -> None:
    template = Path(__file__).parent.parent / "cases" / "hostile" / "template_escapes.jinja"
    records = write_records(tmp_path / "in.jsonl", 1)
    inputs = (tokenizer,) if command == "check" else (records, "--tokenizer", tokenizer, "-o", "-")
    done = run_cli(command, *inputs, "--chat-template", template)
    assert done.returncode == 1 and done.stderr.count(b"\n") == 1
    assert "␛]52;c;QUJD␇␛[2J" in done.stderr.decode() and b"\x1b" not in done.stderr


@pytest.mark.parametrize("name", ["parentheses", "nested_ifs", "nested_fors", "big_constant", "long_loop"])
def test_an_odd_template_is_one_clear_line(name: str, run_cli: RunCli, tokenizer: Path) -> None:
    template = Path(__file__).parent.parent / "cases" / "hostile" / f"template_{name}.jinja"
    done = run_cli("check", tokenizer, "--chat-template", template)
    assert done.returncode == 1 and done.stderr.count(b"\n") == 1
    assert done.stderr.startswith(b"error: ") and b"template" in done.stderr
