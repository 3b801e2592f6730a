"""`kolibri-sft mix` as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import RunCli
from tests.token_shards import random_documents, write_token_folder

MIXTURE = """
[datasets.maths]
tokens = 2_000
[datasets.tools]
tokens = 900_000
max_epochs = 2
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """T/ (900 documents in three shards), mix.toml and weights.toml."""
    folder = tmp_path_factory.mktemp("mix")
    write_token_folder(folder / "T", random_documents(900, longest=200), shards=3)
    (folder / "mix.toml").write_text(MIXTURE)
    (folder / "weights.toml").write_text("[datasets.maths]\nweight = 1\n[datasets.tools]\nweight = 3\n")
    return folder


def lines(data: bytes) -> list[dict]:
    return [json.loads(line) for line in data.splitlines()]


def test_the_summary_says_what_was_asked_what_came_and_why_not_more(
    run_cli: RunCli, folder: Path, tmp_path: Path
) -> None:
    done = run_cli("mix", folder / "T", "--mixture", folder / "mix.toml", "-o", tmp_path / "M")
    assert (done.returncode, done.stdout) == (0, b""), done.stderr
    reported = done.stderr.decode()
    rows = {cells[0]: cells for cells in (line.split() for line in reported.splitlines()) if cells}
    assert rows["maths"][3] == "2,000" and rows["maths"][-2:] == ["as", "asked"]
    asked, got = (int(rows["tools"][column].replace(",", "")) for column in (3, 4))
    assert (asked, rows["tools"][-1], rows["tools"][7]) == (900_000, "max_epochs", "2.000")
    assert f"warning: tools: {asked - got:,} tokens short, max_epochs ends it" in reported
    assert "rejected: not_in_mixture" in reported


def test_a_mixture_packs_and_its_list_names_the_same_records(run_cli: RunCli, folder: Path, tmp_path: Path) -> None:
    for workers, name in ((1, "A"), (2, "B")):
        options = ("--workers", workers, "--rows-per-shard", 100, "-o", tmp_path / name)
        assert run_cli("mix", folder / "T", "--mixture", folder / "mix.toml", *options).returncode == 0
    parts = [sorted((tmp_path / name).glob("part-*.arrow")) for name in ("A", "B")]
    assert len(parts[0]) > 3
    assert [part.read_bytes() for part in parts[0]] == [part.read_bytes() for part in parts[1]]
    packed = run_cli("pack", tmp_path / "A", "-o", tmp_path / "P", "--capacity", 1024, "--json")
    assert packed.returncode == 0, packed.stderr
    listed = run_cli("mix", folder / "T", "--mixture", folder / "mix.toml", "--list", "--json")
    entries, summary = lines(listed.stdout), json.loads(listed.stderr)
    assert len(entries) == summary["out"] == json.loads(packed.stdout)["in"]
    assert sum(entry["length"] for entry in entries) == summary["tokens"]
    assert sum(account["got"] for account in summary["mixture"]) == summary["tokens"]
    assert entries[0].keys() == {"id", "dataset", "length", "origin"}


def test_a_dry_run_reports_the_account_and_writes_nothing(run_cli: RunCli, folder: Path, tmp_path: Path) -> None:
    done = run_cli("mix", folder / "T", "--mixture", folder / "mix.toml", "-n", "-o", tmp_path / "M")
    assert done.returncode == 0 and b"max_epochs" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_candidates_are_mixtures_that_mix_takes_by_name(run_cli: RunCli, folder: Path, tmp_path: Path) -> None:
    options = ("--mixture", folder / "weights.toml", "--candidates", 12, "--seed", 3)
    drawn = run_cli("mix", *options, "-o", tmp_path / "candidates.jsonl")
    assert drawn.returncode == 0, drawn.stderr
    candidates = lines((tmp_path / "candidates.jsonl").read_bytes())
    assert candidates == lines(run_cli("mix", *options).stdout)
    assert len({json.dumps(candidate["weights"]) for candidate in candidates}) == 12
    assert all(sum(candidate["weights"].values()) == pytest.approx(1) for candidate in candidates)
    near = lines(run_cli("mix", *options, "--concentration", 1000).stdout)
    assert all(candidate["weights"]["tools"] == pytest.approx(0.75, abs=0.05) for candidate in near)
    chosen = f"{tmp_path / 'candidates.jsonl'}#{candidates[4]['id']}"
    done = run_cli(
        "mix", folder / "T", "--mixture", folder / "weights.toml", "--weights", chosen, "-n", "--json"
    )  # fmt: skip
    got = {account["name"]: account["got"] for account in json.loads(done.stdout)["mixture"]}
    assert got["maths"] / sum(got.values()) == pytest.approx(candidates[4]["weights"]["maths"], abs=0.02)


def test_records_from_a_pipe_are_mixed_by_their_lengths(run_cli: RunCli, tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text("[datasets.d]\nepochs = 1\nwhere = { n = { min = 3 } }\n")
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    rows = [{"id": f"r{n}", "dataset": "d", "messages": messages, "n": n} for n in range(1, 6)]
    stdin = "".join(json.dumps(row) + "\n" for row in rows).encode()
    done = run_cli("mix", "--mixture", tmp_path / "m.toml", "--length-column", "n", stdin=stdin)
    assert done.returncode == 0, done.stderr
    assert [row["id"] for row in lines(done.stdout)] == ["r3", "r4", "r5"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["T", "--mixture", "none.toml"], 1, "none.toml: No such file"),
        (["T", "--mixture", "mix.toml", "--length-column", "n"], 2, "token shards have lengths of their own"),
        (["in.jsonl", "--mixture", "mix.toml"], 2, "give --tokenizer or --length-column, or mix token shards"),
        (["T", "in.jsonl", "--mixture", "mix.toml"], 2, "mix one or the other"),
        (["T", "--mixture", "mix.toml", "--list", "-o", "folder"], 2, "--list writes JSONL"),
        (["--mixture", "mix.toml", "--candidates", "3"], 2, "maths: has no weight"),
        (["T", "--mixture", "weights.toml", "--weights", "x"], 2, "--weights x: not FILE#ID"),
    ],
)
def test_wrong_use_is_one_line_and_an_exit_code(
    run_cli: RunCli, folder: Path, arguments: list[str], code: int, message: str
) -> None:
    (folder / "in.jsonl").write_text('{"id": "a", "messages": []}\n')
    done = run_cli("mix", *arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (code, b"")
    assert message in done.stderr.decode()
    assert done.stderr.decode().count("\n") == 1


def test_tokens_of_records_are_those_that_render_makes_of_the_mixture(
    run_cli: RunCli, sample_data: Path, tmp_path: Path
) -> None:
    records, tokenizer = sample_data / "bakery_tools.jsonl", sample_data / "tokenizer"
    (tmp_path / "m.toml").write_text("[datasets.bakery_tools]\nepochs = 1.5\n")
    options = ("--mixture", tmp_path / "m.toml", "--tokenizer", tokenizer, "--json")
    mixed = run_cli("mix", records, *options, "-o", tmp_path / "mixed.jsonl")
    assert mixed.returncode == 0, mixed.stderr
    rendered = run_cli("render", tmp_path / "mixed.jsonl", "--tokenizer", tokenizer, "-o", tmp_path / "T", "--json")
    assert rendered.returncode == 0, rendered.stderr
    summary, made = json.loads(mixed.stdout), json.loads(rendered.stdout)
    assert (made["tokens"], made["out"]) == (summary["tokens"], summary["out"])
    assert summary["notes"]["copies"] > 0


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("math", "math: no record is of data set math; near it: maths; there are "),
        ("x", "x: no record is of data set x; there are "),
    ],
)
def test_a_data_set_that_is_not_there_is_told_with_those_that_are(
    table: str, says: str, run_cli: RunCli, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "mix.toml").write_text(f"[datasets.maths]\nweight = 1\n[datasets.{table}]\nweight = 1\n")
    refused = run_cli("mix", folder / "T", "--mixture", tmp_path / "mix.toml", "-o", tmp_path / "M")
    assert refused.returncode == 1
    assert f"error: {says}" in refused.stderr.decode()
    listed = refused.stderr.decode().strip().rpartition("there are ")[2].split(", ")
    assert listed == sorted(listed) and {"maths", "tools"} <= set(listed)


def test_records_that_name_no_data_set_are_told_to_be_so(run_cli: RunCli, folder: Path, tmp_path: Path) -> None:
    record = {"id": "a", "messages": [{"role": "user", "content": "Ja?"}], "n": 5}
    arguments = ["mix", "-", "--mixture", folder / "mix.toml", "--length-column", "n"]
    refused = run_cli(*arguments, stdin=json.dumps(record).encode())
    assert refused.returncode == 1
    assert b"maths: no record is of data set maths; the records name no data set" in refused.stderr
