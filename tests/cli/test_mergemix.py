"""`kolibri-sft mergemix` as a process, from specialists to a verdict."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sft_toolkit.souping.checkpoints import bfloat16, write_safetensors

RunCli = Callable[..., subprocess.CompletedProcess[bytes]]

SCORE = """\
import sys, numpy
from safetensors import deserialize
((_, entry),) = deserialize(open(sys.argv[1] + "/model.safetensors", "rb").read())
code, math = (numpy.frombuffer(bytes(entry["data"]), "u2").astype("u4") << 16).view("f4").tolist()
print("scoring", sys.argv[1])
print('{"quality": %r, "loss": %r}' % (1 - (code - 0.75) ** 2, (code - 0.75) ** 2))
"""


@pytest.fixture
def models(tmp_path: Path) -> list[str]:
    """A base at the origin and specialists one step from it, each along an axis of its own."""
    for name, values in {"base": (0, 0), "code": (1, 0), "math": (0, 1)}.items():
        (tmp_path / name).mkdir()
        write_safetensors(tmp_path / name / "model.safetensors", {"w": bfloat16(*values)})
    options = ["--base", tmp_path / "base"]
    for name in ("code", "math"):
        options += ["--specialist", f"{name}={tmp_path / name}"]
    return list(map(str, options))


@pytest.fixture
def score_command(tmp_path: Path) -> str:
    (tmp_path / "score.py").write_text(SCORE)
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(tmp_path / 'score.py'))} {{model}}"


@pytest.fixture
def scored(run_cli: RunCli, models: list[str], score_command: str, tmp_path: Path) -> Path:
    merges = tmp_path / "merges"
    assert run_cli("mergemix", "merge", *models, "-o", merges, "--candidates", "8", "-q").returncode == 0
    assert run_cli("mergemix", "score", merges, "--score-command", score_command, "-q").returncode == 0
    return merges


def test_merging_and_scoring_find_the_mixture_that_is_best(run_cli: RunCli, scored: Path) -> None:
    done = run_cli("mergemix", "rank", scored, "--metric", "quality", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    weights = {line["id"]: line["weights"] for line in map(json.loads, (scored / "mixtures.jsonl").open())}
    by_distance = sorted(weights, key=lambda name: abs(weights[name]["code"] - 0.75))
    assert [candidate["id"] for candidate in report["candidates"]][:3] == by_distance[:3]
    assert report["proposals"][0]["weights"]["code"] == pytest.approx(0.75, abs=0.03)
    assert report["verdict"] == "unchecked: no mixture was trained"
    assert report["check"] is None


def test_a_loss_is_ranked_from_below_and_a_person_gets_tables(run_cli: RunCli, scored: Path) -> None:
    """The second metric orders the mixtures as the first does."""
    first = json.loads(run_cli("mergemix", "rank", scored, "--metric", "quality", "--json").stdout)["candidates"]
    done = run_cli("mergemix", "rank", scored, "--metric", "loss", "--lower-is-better")
    lines = done.stdout.decode().splitlines()
    assert [line.split()[0] for line in lines[2:10]] == [candidate["id"] for candidate in first]
    assert "merged against trained: unchecked: no mixture was trained" in lines


def test_trained_models_decide_what_merged_scores_are_worth(
    run_cli: RunCli, scored: Path, score_command: str, tmp_path: Path
) -> None:
    """The "trained" models are the merges themselves, so that the ranks agree."""
    done = run_cli("mergemix", "score", scored, "--trained", scored, "--score-command", score_command)
    assert done.stderr.decode().splitlines()[-1] == f"8 evaluations -> {scored / 'trained.jsonl'}"
    report = json.loads(run_cli("mergemix", "rank", scored, "--metric", "quality", "--json").stdout)
    assert report["verdict"] == "ranks mixtures as training does"
    assert report["check"]["n"] == 8 and report["check"]["rho"] == pytest.approx(1)
    text = run_cli("mergemix", "rank", scored, "--metric", "quality", "--noise", "0.01").stdout.decode()
    assert "rho 1.00" in text and "a perfect proxy would reach" in text


def test_mixtures_are_compared_with_the_one_set_by_hand(run_cli: RunCli, scored: Path) -> None:
    rank = ("mergemix", "rank", scored, "--metric", "quality", "--baseline", "mix-0", "--noise", "0.01")
    (found,) = json.loads(run_cli(*rank, "--json").stdout)["against_baseline"]
    order = [one["id"] for one in json.loads(run_cli(*rank, "--json").stdout)["candidates"]]
    assert (found["kind"], found["better"], found["of"]) == ("merged", order.index("mix-0"), 7)
    assert [one["id"] for one in found["mixtures"]] == [name for name in order if name != "mix-0"]
    lines = run_cli(*rank).stdout.decode()
    assert f"merged against mix-0 ({found['score']:.6g}): {found['better']} of 7 are better" in lines
    refused = run_cli("mergemix", "rank", scored, "--metric", "quality", "--baseline", "hand")
    assert refused.returncode == 2 and b"--baseline hand: has no score beside" in refused.stderr


def test_models_that_could_not_be_scored_are_told_and_tried_again(
    run_cli: RunCli, scored: Path, tmp_path: Path
) -> None:
    lines = (scored / "scores.jsonl").read_text().splitlines(keepends=True)
    (scored / "scores.jsonl").write_text("".join(lines[:5]))
    command = json.loads(lines[0])["scorer"]
    (tmp_path / "score.py").rename(tmp_path / "away")
    failed = run_cli("mergemix", "score", scored, "--score-command", command)
    assert failed.returncode == 1
    *faults, last = failed.stderr.decode().splitlines()
    for name, fault in zip(("mix-5", "mix-6", "mix-7"), faults, strict=True):
        assert fault.startswith(f"error: {name}: score command failed (exit code 2): ")
    assert last == "error: not scored: mix-5, mix-6, mix-7; the same command tries only these again"
    (tmp_path / "away").rename(tmp_path / "score.py")
    assert run_cli("mergemix", "score", scored, "--score-command", command).stderr.endswith(
        f"3 evaluations -> {scored / 'scores.jsonl'}\n".encode()
    )
    assert (scored / "scores.jsonl").read_text() == "".join(lines)


def test_an_evaluator_that_prints_text_too_is_read_by_its_metric_which_heads_its_column(
    run_cli: RunCli, models: list[str], tmp_path: Path
) -> None:
    """Without the metric the first reply stops it, says which numbers there are, and is kept."""
    merges = tmp_path / "merges"
    run_cli("mergemix", "merge", *models, "-o", merges, "--candidates", "4", "--deferred", "-q")
    reply = '{"results": {"gsm8k": {"acc,none": 0.${#1}, "alias": "gsm8k"}}}'
    (tmp_path / "ev.sh").write_text(f"echo loading\ncat <<END\n{reply}\nEND\necho done.\n")
    score = ("mergemix", "score", merges, "--score-command", f"sh {tmp_path / 'ev.sh'} {{model}}")
    stopped = run_cli(*score)
    assert stopped.returncode == 1 and stopped.stderr.count(b"\n") == 1
    assert b"no score on the last line" in stopped.stderr and not (merges / "scores.jsonl").exists()
    assert (merges / "scores.mix-0.output").read_text().startswith("loading\n")
    assert run_cli(*score, "--metric", "acc,none", "-q").returncode == 0
    lines = run_cli("mergemix", "rank", merges).stdout.decode().splitlines()
    assert lines[0].startswith("mixtures by gsm8k/acc,none ") and lines[1].split() == ["mixture", "gsm8k/acc,none"]
    lacking = run_cli(*score, "--metric", "f1", "--repeats", "2")
    assert lacking.returncode == 1 and b"it prints gsm8k/acc,none" in lacking.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--score-command", "echo {model}", "--repeat", "runs"], "give --trained FOLDER too"),
        (["--held-out", "tokens", "--metric", "loss"], "leave it out here, and give it to rank"),
        ([], "scores need exactly one source; give --held-out TOKENS or --score-command 'CMD {model}'"),
        (["--held-out", "tokens", "--score-command", "echo {model}"], "scores need exactly one source"),
        (["--held-out", "tokens", "--score-timeout", "5"], "--score-timeout ends a score command"),
        (["--held-out", "tokens", "--repeats", "2"], "held-out loss is the same every time"),
    ],
)
def test_scores_come_from_one_place(run_cli: RunCli, tmp_path: Path, options: list[str], message: str) -> None:
    done = run_cli("mergemix", "score", tmp_path, *options)
    assert done.returncode == 2 and message in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("command", ["mergemix score merges --held-out tokens", "train packed -o run --init ."])
def test_the_held_out_loss_without_torch_is_refused_as_training_is(command: str, tmp_path: Path) -> None:
    code = (
        "import importlib.util as util; found = util.find_spec\n"
        "util.find_spec = lambda name, *more: None if name == 'torch' else found(name, *more)\n"
        "from sft_toolkit.cli.main import run\nrun()"
    )
    words = [sys.executable, "-c", code, *command.split()]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (
        2,
        "error: torch is not installed; in the checkout: pip install '.[train]'\n",
    )


def test_neither_a_score_command_nor_a_ranking_loads_torch(scored: Path) -> None:
    code = (
        "import sys; from sft_toolkit.cli.main import run\n"
        "try:\n run()\nfinally:\n print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    command = json.loads((scored / "scores.jsonl").read_text().splitlines()[0])["scorer"]
    for arguments in (["score", scored, "--score-command", command], ["rank", scored, "--metric", "loss"]):
        words = [sys.executable, "-c", code, "mergemix", *map(str, arguments)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and done.stdout.splitlines()[-1] == "[]", done.stderr


def test_many_clusters_unchecked_draw_a_warning(run_cli: RunCli, models: list[str], tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"more-{number}").mkdir()
        write_safetensors(tmp_path / f"more-{number}" / "model.safetensors", {"w": bfloat16(number, 2)})
        models += ["--specialist", f"more-{number}={tmp_path / f'more-{number}'}"]
    merges = tmp_path / "merges"
    run_cli("mergemix", "merge", *models, "-o", merges, "--candidates", "6", "--deferred", "-q")
    done = run_cli("mergemix", "score", merges, "--score-command", "sh -c 'echo ${#0}' {model}")
    assert done.returncode == 0, done.stderr
    ranked = run_cli("mergemix", "rank", merges)
    assert b"warning: 5 clusters and no trained check" in ranked.stderr and b"-0.09" in ranked.stderr


def test_a_file_of_mixtures_may_replace_the_draw(run_cli: RunCli, models: list[str], tmp_path: Path) -> None:
    (tmp_path / "mixtures.jsonl").write_text('{"id": "half", "weights": {"code": 0.5, "math": 0.5}}\n')
    merges = tmp_path / "merges"
    done = run_cli("mergemix", "merge", *models, "-o", merges, "--mixtures", tmp_path / "mixtures.jsonl", "--json")
    assert json.loads(done.stdout)["mixtures"] == [{"id": "half", "weights": {"code": 0.5, "math": 0.5}}]
    assert (merges / "half" / "model.safetensors").is_file()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "mixtures need exactly one source"),
        (["--candidates", "3", "--mixtures", "x"], "mixtures need exactly one source"),
        (["--candidates", "3", "--specialist", "law"], "not of the form NAME=CKPT"),
        (["--candidates", "3", "--specialist", "code=x"], "--specialist code: given twice"),
        (["--candidates", "3", "--concentration", "0"], "above zero"),
    ],
)
def test_a_merge_that_makes_no_sense_is_a_usage_error(
    run_cli: RunCli, models: list[str], tmp_path: Path, options: list[str], message: str
) -> None:
    done = run_cli("mergemix", "merge", *models, "-o", tmp_path / "merges", *options)
    assert done.returncode == 2 and message in done.stderr.decode()
    assert not (tmp_path / "merges").exists()


def test_ranking_too_few_scores_is_refused(run_cli: RunCli, models: list[str], tmp_path: Path) -> None:
    merges = tmp_path / "merges"
    run_cli("mergemix", "merge", *models, "-o", merges, "--candidates", "3", "--deferred", "-q")
    done = run_cli("mergemix", "rank", merges)
    assert done.returncode == 2 and b"0 scored mixtures are too few to fit" in done.stderr


def test_data_sets_are_clustered_by_their_words(run_cli: RunCli) -> None:
    records = [
        {"id": f"{dataset}-{number}", "dataset": dataset, "messages": [{"role": "user", "content": f"{text} {number}"}]}
        for dataset, text in {
            "algebra": "solve the equation for the unknown number",
            "geometry": "solve for the unknown angle of the triangle",
            "poems": "write a sonnet about autumn leaves",
        }.items()
        for number in range(20)
    ]
    lines = "\n".join(map(json.dumps, records)).encode()
    done = run_cli("mergemix", "cluster", "-", "--clusters", "2", "--json", stdin=lines)
    assert done.returncode == 0, done.stderr
    assert [cluster["datasets"] for cluster in json.loads(done.stdout)["clusters"]] == [
        ["algebra", "geometry"],
        ["poems"],
    ]
    nameless = run_cli("mergemix", "cluster", "-", stdin=b'{"messages": [{"role": "user", "content": "hi"}]}')
    assert nameless.returncode == 1 and b"names no data set" in nameless.stderr
