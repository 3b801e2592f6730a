"""`kolibri-sft effort` as a person runs it: in processes of its own, on files and pipes."""

import json
import os
import subprocess
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from tests.conftest import ROOT, cli_command

CASES = ROOT / "tests" / "cases"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """words/ (a tokenizer that counts words) and in.jsonl: 900 records, 1 to 3 exchanges each, a tenth unreasoned."""
    folder = tmp_path_factory.mktemp("effort")
    words = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    (folder / "words").mkdir()
    words.save(str(folder / "words" / "tokenizer.json"))
    write(folder / "in.jsonl", records(900))
    return folder


def records(count):
    rng = np.random.default_rng(3)
    for index in range(count):
        exchanges = int(rng.integers(1, 4))
        lengths = np.where(rng.random(exchanges) < 0.1, 0, np.exp(rng.normal(4, 0.8, exchanges)).astype(int) + 1)
        yield record(f"r{index}", lengths.tolist(), dataset=("maths", "tools")[index % 2], difficulty="easy")


def record(name, lengths, **fields):
    messages = []
    for length in lengths:
        messages.append({"role": "user", "content": "Frage"})
        thought = {"reasoning": " ".join(["wort"] * length)} if length else {}
        messages.append({"role": "assistant", **thought, "content": "Antwort"})
    return {"id": name, **fields, "messages": messages, "lengths": lengths}


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def lines(data):
    return [json.loads(line) for line in data.splitlines()]


def test_label_is_fit_then_apply_and_a_pipe_is_as_good_as_a_file(folder, run_cli, tmp_path):
    words = ("--tokenizer", folder / "words")
    fitted = run_cli("effort", "fit", folder / "in.jsonl", "-o", tmp_path / "edges.json", *words)
    assert fitted.returncode == 0, fitted.stderr
    applied = run_cli("effort", "apply", folder / "in.jsonl", "--edges", tmp_path / "edges.json", *words)
    labelled = run_cli("effort", "label", folder / "in.jsonl", *words)
    piped = run_cli("effort", "label", *words, stdin=(folder / "in.jsonl").read_bytes())
    assert applied.returncode == labelled.returncode == piped.returncode == 0
    assert len(lines(labelled.stdout)) == 900
    assert applied.stdout == labelled.stdout == piped.stdout


def test_a_column_of_the_same_lengths_gives_the_same_labels(folder, run_cli):
    counted = run_cli("effort", "label", folder / "in.jsonl", "--tokenizer", folder / "words")
    given = run_cli("effort", "label", folder / "in.jsonl", "--length-column", "lengths")
    labels = [[row["effort"], [message.get("effort") for message in row["messages"]]] for row in lines(counted.stdout)]
    assert [
        [row["effort"], [message.get("effort") for message in row["messages"]]] for row in lines(given.stdout)
    ] == labels


def test_shards_are_the_same_bytes_for_any_workers_and_for_one_file_or_three(folder, run_cli, tmp_path):
    rows = (folder / "in.jsonl").read_text().splitlines(keepends=True)
    parts = [tmp_path / f"part{index}.jsonl" for index in range(3)]
    for index, part in enumerate(parts):
        part.write_text("".join(rows[index * 300 : index * 300 + 300]))
    shards = []
    for name, inputs, workers in (("a", [folder / "in.jsonl"], 1), ("b", [folder / "in.jsonl"], 2), ("c", parts, 2)):
        done = run_cli(
            "effort", "label", *inputs, "--tokenizer", folder / "words", "--workers", workers, "--rows-per-shard", 250,
            "-o", tmp_path / name,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        shards.append({path.name: path.read_bytes() for path in sorted((tmp_path / name).glob("*.arrow"))})
    assert len(shards[0]) == 4
    assert shards[0] == shards[1] == shards[2]


def test_parquet_with_a_list_of_lengths_is_labelled(run_cli, tmp_path):
    messages = [{"role": "user", "content": "Frage"}, {"role": "assistant", "content": "Antwort"}] * 2
    table = {"id": ["a", "b"], "messages": [json.dumps(messages)] * 2, "n": [[0, 7], [7, 0]]}
    pq.write_table(pa.table(table), tmp_path / "in.parquet")
    done = run_cli("effort", "label", tmp_path / "in.parquet", "--length-column", "n")
    assert [row["effort"] for row in lines(done.stdout)] == ["medium", "none"]


def test_the_summary_holds_the_split_for_people_and_for_programs(folder, run_cli, tmp_path):
    write(tmp_path / "in.jsonl", (record(f"d{index}", [9], dataset="d", difficulty="hard") for index in range(120)))
    reported = run_cli("effort", "label", tmp_path / "in.jsonl", folder / "in.jsonl", "--tokenizer", folder / "words")
    rows = {
        line.split("  ")[1]: line.split() for line in reported.stderr.decode().splitlines() if line.startswith("  ")
    }
    assert rows["d / hard"][3:] == ["120", "0.000", "0.000", "1.000", "0.000", "group,", "l30", "=", "l70"]
    maths = [length for row in records(900) if row["dataset"] == "maths" for length in row["lengths"]]
    assert rows["maths / easy"][3:5] == [str(len(maths)), f"{maths.count(0) / len(maths):.3f}"]
    assert [float(share) for share in rows["maths / easy"][5:8]] == pytest.approx([0.3, 0.4, 0.3], abs=0.05)

    counted = run_cli("effort", "label", tmp_path / "in.jsonl", "--tokenizer", folder / "words", "--json")
    summary = json.loads(counted.stderr)
    assert summary["splits"] == {"d / hard": {"medium": 120}}
    assert summary["degenerate_groups"] == summary["lopsided_groups"] == ["d / hard"]
    assert summary["notes"]["edges_of_group"] == 120


def test_edges_that_do_not_fit_are_warned_of_by_group_and_named_for_programs(run_cli):
    apply = ("effort", "apply", "drift.jsonl", "--edges", "e.json", "--length-column", "L")
    applied = run_cli(*apply, cwd=CASES / "mixtures" / "drift")
    warnings = [line for line in applied.stderr.decode().splitlines() if line.startswith("warning: ")]
    assert applied.returncode == 0
    assert warnings[0].startswith("warning: a / easy: 0% low, 0% medium, 100% high of 300 exchanges with reasoning")
    assert warnings[1].startswith("warning: neu / easy: 100% low")
    assert all("fit on them, or effort label them" in line for line in warnings)
    counted = run_cli(*apply, "--json", cwd=CASES / "mixtures" / "drift")
    assert json.loads(counted.stderr)["lopsided_groups"] == ["a / easy", "neu / easy"]


def test_a_fit_on_the_records_themselves_is_not_warned_of(run_cli):
    labelled = run_cli("effort", "label", "drift.jsonl", "--length-column", "L", cwd=CASES / "mixtures" / "drift")
    assert b"warning" not in labelled.stderr


def test_another_seed_draws_other_labels_of_the_same_split(folder, run_cli):
    labels = [
        [row["effort"] for row in lines(run_cli(
            "effort", "label", folder / "in.jsonl", "--length-column", "lengths", "--seed", seed
        ).stdout)]
        for seed in (0, 1)
    ]  # fmt: skip
    assert labels[0] != labels[1]
    counts = [Counter(run) for run in labels]
    assert all(abs(counts[0][level] - counts[1][level]) < 60 for level in ("none", "low", "medium", "high"))


def test_without_any_reasoning_all_labels_are_none_and_a_fit_is_refused(run_cli, tmp_path):
    write(tmp_path / "in.jsonl", [record("a", [0]), record("b", [0, 0])])
    labelled = run_cli("effort", "label", tmp_path / "in.jsonl", "--length-column", "lengths")
    assert [row["effort"] for row in lines(labelled.stdout)] == ["none", "none"]
    refused = run_cli("effort", "fit", tmp_path / "in.jsonl", "--length-column", "lengths", "-o", tmp_path / "e.json")
    assert refused.returncode == 1
    assert refused.stderr.startswith(b"error: no exchange holds reasoning")
    assert not (tmp_path / "e.json").exists()


def test_edges_are_not_written_over_the_records_that_they_are_of(run_cli, tmp_path):
    path = write(tmp_path / "in.jsonl", [record("a", [5])])
    before = path.read_bytes()
    refused = run_cli("effort", "fit", path, "--length-column", "lengths", "-o", path, "--force")
    assert refused.returncode == 2
    assert b"is input and output" in refused.stderr
    assert path.read_bytes() == before


def test_faults_of_records_name_their_place_or_are_rejected(run_cli, tmp_path):
    path = write(tmp_path / "in.jsonl", [record("a", [5]), {**record("b", [5]), "lengths": [-5]}, record("c", [0])])
    options = ("--length-column", "lengths")
    for command in (("label",), ("fit", "-o", tmp_path / "edges.json")):
        failed = run_cli("effort", *command, path, *options)
        assert (failed.returncode, failed.stdout) == (1, b"")
        assert failed.stderr.decode().count("\n") == 1
        assert f"{path}:2" in failed.stderr.decode()
        assert "lengths is -5, not a whole number of tokens" in failed.stderr.decode()
    rejected = ("--on-error", "quarantine", "--quarantine", tmp_path / "rejected.jsonl")
    assert [row["id"] for row in lines(run_cli("effort", "label", path, *options, *rejected).stdout)] == ["a", "c"]
    assert [row["reason"] for row in lines((tmp_path / "rejected.jsonl").read_bytes())] == ["bad_length"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "give either --tokenizer or --length-column"),
        (["--tokenizer", "words", "--length-column", "lengths"], 2, "give either"),
        (["--tokenizer", "nowhere"], 1, "nowhere/tokenizer.json: No such file"),
    ],
)
def test_lengths_from_nowhere_are_one_line_and_an_exit_code(folder, run_cli, arguments, code, message):
    failed = run_cli("effort", "label", "in.jsonl", *arguments, cwd=folder)
    assert failed.returncode == code
    assert message in failed.stderr.decode()
    assert failed.stderr.decode().count("\n") == 1


def test_duplicate_ids_stop_a_labelling_and_not_a_fit(run_cli, tmp_path):
    write(tmp_path / "in.jsonl", [record("same", [5]), record("same", [6])])
    options = (tmp_path / "in.jsonl", "--length-column", "lengths")
    labelled = run_cli("effort", "label", *options)
    assert labelled.returncode == 1
    assert b"'same' occurs more than once" in labelled.stderr
    assert run_cli("effort", "fit", *options, "-o", tmp_path / "edges.json").returncode == 0


def test_edges_of_another_tokenizer_and_files_that_are_none_are_refused(folder, run_cli, tmp_path):
    edges, words = tmp_path / "edges.json", ("--tokenizer", folder / "words")
    run_cli("effort", "fit", folder / "in.jsonl", "-o", edges, *words)
    edges.write_text(edges.read_text().replace('"tokenizer":"', '"tokenizer":"0'))
    other = run_cli("effort", "apply", folder / "in.jsonl", "--edges", edges, *words)
    edges.write_text("{}")
    malformed = run_cli("effort", "apply", folder / "in.jsonl", "--edges", edges, *words)
    missing = run_cli("effort", "apply", folder / "in.jsonl", "--edges", tmp_path / "none.json", *words)
    for failed, message in (
        (other, "fitted with tokenizer"),
        (malformed, "edges.json: not a file of edges: "),
        (missing, "none.json: No such file"),
    ):
        assert (failed.returncode, failed.stdout) == (1, b"")
        assert message in failed.stderr.decode()


def test_fit_replaces_a_file_only_when_forced_and_leaves_no_half_of_one(folder, run_cli, tmp_path):
    edges = tmp_path / "edges.json"
    fit = ("effort", "fit", folder / "in.jsonl", "--length-column", "lengths", "-o", edges)
    assert run_cli(*fit).returncode == 0
    again = run_cli(*fit)
    assert again.returncode == 2
    assert b"use --force" in again.stderr
    assert run_cli(*fit, "--force").returncode == 0
    assert os.listdir(tmp_path) == ["edges.json"]


def test_an_empty_input_is_an_error(run_cli, tmp_path):
    (tmp_path / "in.jsonl").write_bytes(b"")
    for source, stdin in ((tmp_path / "in.jsonl", None), ("-", b"")):
        failed = run_cli("effort", "label", source, "--length-column", "n", stdin=stdin)
        assert (failed.returncode, failed.stdout) == (1, b"")
        assert b"no records" in failed.stderr


def test_label_leaves_no_copy_of_a_pipe_behind(folder, tmp_path):
    command = cli_command("effort", "label", "--length-column", "lengths")
    with (folder / "in.jsonl").open("rb") as pipe:
        subprocess.run(
            command, stdin=pipe, capture_output=True, check=True, env={**os.environ, "TMPDIR": str(tmp_path)}
        )
    assert list(tmp_path.iterdir()) == []
