"""Merges of specialists by many mixtures, in one pass or one at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.mergemix.candidates import Candidate, sample_candidates
from sft_toolkit.mergemix.merge import Sources, open_merges, write_merges
from sft_toolkit.mergemix.score_command import ScoreCommand, Scores
from sft_toolkit.mergemix.score_journal import open_journal, require_comparable
from sft_toolkit.mergemix.scoring import Model, merged_models, score_models, trained_models
from sft_toolkit.mergemix.verdict import Noise, pooled_noise
from sft_toolkit.souping.soup import soup
from sft_toolkit.souping.writing import OutputOptions
from tests.sft_toolkit.souping import reference
from tests.sft_toolkit.souping.checkpoints import bfloat16, read_patterns

WriteCheckpoint = Callable[..., Path]
OPTIONS = OutputOptions(threads=2)


def patterns(seed: int, count: int = 3000) -> tuple[str, np.ndarray]:
    base, own = np.random.RandomState(99), np.random.RandomState(seed)
    values = base.normal(0, 0.02, count) + own.normal(0, 0.002, count) * (seed > 0)
    return "BF16", (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


@pytest.fixture
def sources(write_checkpoint: WriteCheckpoint) -> Sources:
    runs = {
        name: write_checkpoint(name, {"w": patterns(seed)}) for seed, name in enumerate(("base", "code", "law", "math"))
    }
    return Sources(runs.pop("base"), runs)


def mixture(name: str, *weights: str) -> Candidate:
    return Candidate(name, dict(zip(("code", "law", "math"), map(Fraction, weights), strict=True)))


def test_a_merge_is_the_base_and_the_weighted_differences_rounded_once(sources: Sources, tmp_path: Path) -> None:
    """Also off the simplex, where the base keeps a share."""
    wanted = [
        mixture("a", "0.2", "0.3", "0.5"),
        mixture("b", "0.333333", "0.333333", "0.333333"),
        mixture("c", "0.25", "0", "0.5"),
    ]
    write_merges(sources, wanted, tmp_path / "out", OPTIONS)
    form = reference.FORMATS["BF16"]
    base, *specialists = (read_patterns(path)["w"] for path in sources.paths)
    for wish in wanted:
        got = read_patterns(tmp_path / "out" / wish.id)["w"]
        for place in range(0, got.size, 7):
            origin = reference.value_of(int(base[place]), form)
            merged = origin + sum(
                alpha * (reference.value_of(int(run[place]), form) - origin)
                for alpha, run in zip(wish.weights.values(), specialists, strict=True)
            )
            assert reference.value_of(int(got[place]), form) == reference.nearest(merged, form)


def test_many_merges_in_one_pass_are_the_soups_that_each_would_be(sources: Sources, tmp_path: Path) -> None:
    wanted = sample_candidates(sources.clusters, 5, 0)
    write_merges(sources, wanted, tmp_path / "out", OPTIONS)
    for wish in wanted:
        soup(
            [sources.specialists[name] for name in wish.weights],
            list(wish.weights.values()),
            tmp_path / wish.id,
            OPTIONS,
        )
        one, two = ((tmp_path / place / "model.safetensors").read_bytes() for place in (f"out/{wish.id}", wish.id))
        assert one == two


def test_nan_in_the_base_is_refused_though_no_mixture_on_the_simplex_reads_it(
    write_checkpoint: WriteCheckpoint, tmp_path: Path
) -> None:
    base = write_checkpoint("base", {"w": ("BF16", np.array([0x7FC0], np.uint16))})
    runs = {name: write_checkpoint(name, {"w": bfloat16(1)}) for name in ("x", "y")}
    with pytest.raises(ToolkitError, match=r"tensor w in .*/base/model.safetensors holds NaN"):
        write_merges(Sources(base, runs), sample_candidates(["x", "y"], 2, 0), tmp_path / "out", OPTIONS)
    assert not (tmp_path / "out").exists()


def test_a_specialist_that_is_also_the_base_is_refused(sources: Sources, tmp_path: Path) -> None:
    with pytest.raises(ToolkitError, match="given twice"):
        write_merges(Sources(sources.base, {"x": sources.base}), [], tmp_path / "out", OPTIONS)


def test_deferred_merges_are_made_for_the_time_they_are_needed(sources: Sources, tmp_path: Path) -> None:
    wanted = sample_candidates(sources.clusters, 3, 0)
    write_merges(sources, wanted, tmp_path / "now", OPTIONS)
    write_merges(sources, wanted, tmp_path / "later", OutputOptions(dtype="F32"), deferred=True)
    write_merges(sources, wanted, tmp_path / "wide", OutputOptions(dtype="F32"))
    assert sorted(path.name for path in (tmp_path / "later").iterdir()) == ["mixtures.jsonl", "sources.json"]
    merges = open_merges(tmp_path / "later")
    with merges.model(merges.mixtures[1], threads=1) as model:
        made, expected = (path / "model.safetensors" for path in (model, tmp_path / "wide" / wanted[1].id))
        assert made.read_bytes() == expected.read_bytes()
    assert not model.exists()
    with open_merges(tmp_path / "now").model(wanted[0], threads=1) as model:
        assert model == tmp_path / "now" / wanted[0].id
    assert model.exists()


def test_a_folder_that_holds_no_merges_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolkitError, match="no folder of merges"):
        open_merges(tmp_path)
    (tmp_path / "sources.json").write_text("[]")
    with pytest.raises(ToolkitError, match="not the sources of merges"):
        open_merges(tmp_path)


@pytest.fixture
def counting(tmp_path: Path) -> ScoreCommand:
    """Appends the model's name to a file, prints its length so far, and fails while a file `broken` names the model."""
    script = tmp_path / "count.sh"
    script.write_text(
        f'name=$(basename "$1")\n'
        f'if [ "$(cat "{tmp_path}/broken" 2>/dev/null)" = "$name" ]; then echo "out of memory" >&2; exit 3; fi\n'
        f'echo "$name" >> "{tmp_path}/seen"\nwc -l < "{tmp_path}/seen"\n'
    )
    return ScoreCommand(f"sh '{script}' {{model}}")


def test_a_model_that_fails_keeps_no_other_from_its_score_and_is_tried_again(
    sources: Sources, tmp_path: Path, counting: ScoreCommand
) -> None:
    write_merges(sources, sample_candidates(sources.clusters, 3, 0), tmp_path / "out", OPTIONS, deferred=True)
    merges, path = open_merges(tmp_path / "out"), tmp_path / "out" / "scores.jsonl"
    (tmp_path / "broken").write_text("mix-1")
    faults: list[tuple[str, str]] = []
    with pytest.raises(ToolkitError, match="not scored: mix-1") as failed:
        score_models(
            merged_models(merges, 1),
            counting,
            open_journal(path),
            1,
            show_fault=lambda name, fault: faults.append((name, fault.message)),
        )
    assert failed.value.exit_code == 1
    ((name, message),) = faults
    assert name == "mix-1" and "failed (exit code 3)" in message and message.endswith("out of memory")
    (tmp_path / "broken").unlink()
    assert score_models(merged_models(merges, 1), counting, open_journal(path), 1) == 1
    assert (tmp_path / "seen").read_text().split() == ["mix-0", "mix-2", "mix-1"]
    assert score_models(merged_models(merges, 1), counting, open_journal(path), 2) == 3
    assert open_journal(path).of_metric(None) == {"mix-0": [1, 4], "mix-1": [3, 5], "mix-2": [2, 6]}
    assert sorted(child.name for child in (tmp_path / "out").iterdir()) == [
        "mixtures.jsonl",
        "scores.jsonl",
        "sources.json",
    ]


def test_a_line_that_was_cut_off_is_scored_again(tmp_path: Path) -> None:
    journal = open_journal(tmp_path / "scores.jsonl")
    command = ScoreCommand("CMD {model}")
    journal.add("a", command, {"score": 0.5})
    journal.add("b", command, {"score": 0.25})
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole[:-9])
    again = open_journal(journal.path)
    assert again.of_metric(None) == {"a": [0.5]}
    again.add("b", command, {"score": 0.25})
    assert journal.path.read_bytes() == whole


def test_scores_of_two_commands_are_not_mixed(tmp_path: Path, counting: ScoreCommand) -> None:
    journal = open_journal(tmp_path / "scores.jsonl")
    journal.add("a", ScoreCommand("another {model}"), {"score": 1.0})
    with pytest.raises(ToolkitError, match=r"scores of another command: another \{model\}"):
        score_models(iter(()), counting, open_journal(journal.path), 1)


@dataclass(frozen=True)
class Loss:
    """A scorer whose scores are losses."""

    name: str
    is_loss = True

    def run(self, model: Path) -> Scores:
        return {"loss": 0.5, "loss/a": 0.25}


def test_a_journal_of_losses_knows_that_they_are(tmp_path: Path, counting: ScoreCommand) -> None:
    path = tmp_path / "scores.jsonl"
    assert (
        score_models(iter([Model("x", nullcontext(tmp_path))]), Loss("held-out loss on 1"), open_journal(path), 1) == 1
    )
    journal = open_journal(path)
    assert journal.is_loss and journal.of_metric(None) == {"x": [0.5]} and journal.of_metric("loss/a") == {"x": [0.25]}
    for other in (Loss("held-out loss on 2"), counting):
        with pytest.raises(UsageError, match="scores of another held-out set: held-out loss on 1"):
            journal.require_scorer(other)


def test_losses_are_compared_with_losses_on_the_same_data_alone(tmp_path: Path) -> None:
    """Two commands may differ: one may name what the other leaves out."""
    scorers = [Loss("held-out loss on 1"), Loss("held-out loss on 2"), ScoreCommand("CMD {model}")]
    ours, others, command = (open_journal(tmp_path / str(number)) for number in range(3))
    for journal, scorer in zip((ours, others, command), scorers, strict=True):
        require_comparable(ours, journal)
        journal.add("x", scorer, {"loss": 0.5})
    for pair in ((ours, others), (ours, command), (command, ours)):
        with pytest.raises(UsageError, match="scores that cannot be compared: "):
            require_comparable(*pair)
    another = open_journal(tmp_path / "another")
    another.add("x", ScoreCommand("CMD {model} --trained"), {"score": 0.5})
    require_comparable(command, another)


@pytest.mark.parametrize("line", ["5", "{}", '{"id": "a"}', '{"id": "a", "scores": {"x": "y"}}', "torn"])
def test_a_line_that_is_no_score_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "scores.jsonl").write_text(f'{{"id": "a", "scores": {{"x": 1}}}}\n{line}\n')
    with pytest.raises(ToolkitError, match=r"scores.jsonl:2: no line of scores"):
        open_journal(tmp_path / "scores.jsonl")


def test_trained_models_are_those_that_are_named_as_mixtures(sources: Sources, tmp_path: Path) -> None:
    write_merges(sources, sample_candidates(sources.clusters, 3, 0), tmp_path / "out", OPTIONS, deferred=True)
    merges = open_merges(tmp_path / "out")
    (tmp_path / "trained" / "mix-2").mkdir(parents=True)
    (model,) = trained_models(merges, tmp_path / "trained")
    with model.folder as folder:
        assert (model.name, folder) == ("mix-2", tmp_path / "trained" / "mix-2")
    with pytest.raises(ToolkitError, match="no model is named as a mixture"):
        list(trained_models(merges, tmp_path / "out"))


def test_a_trained_model_may_lie_in_the_folder_of_its_run(sources: Sources, tmp_path: Path) -> None:
    write_merges(sources, sample_candidates(sources.clusters, 3, 0), tmp_path / "out", OPTIONS, deferred=True)
    for name in ("mix-0/model", "mix-2"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name[:5] / "run.json").write_text("{}")
    finished, unfinished = (model.folder for model in trained_models(open_merges(tmp_path / "out"), tmp_path / "runs"))
    with finished as folder:
        assert folder == tmp_path / "runs" / "mix-0" / "model"
    with pytest.raises(ToolkitError, match="runs/mix-2: a run that has not ended"), unfinished:
        pass


def test_mixtures_that_were_trained_once_more_measure_the_noise_of_training(sources: Sources, tmp_path: Path) -> None:
    """Two runs of mix-0 score 1 and 3, mix-1 once 5: the means are of runs, the noise of a run sqrt(2), one degree."""
    write_merges(sources, sample_candidates(sources.clusters, 3, 0), tmp_path / "out", OPTIONS, deferred=True)
    merges, path = open_merges(tmp_path / "out"), tmp_path / "trained.jsonl"
    for place, score in (("runs/mix-0", 1), ("runs/mix-1", 5), ("again/mix-0", 3)):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "score").write_text(str(score))
    command = ScoreCommand("cat {model}/score")
    for expected in (6, 0):
        models = trained_models(merges, tmp_path / "runs", [tmp_path / "again"])
        assert score_models(models, command, open_journal(path), 2) == expected
    journal = open_journal(path)
    assert journal.of_runs(None) == {"mix-0": [1, 3], "mix-1": [5]}
    assert pooled_noise(list(journal.of_runs(None).values())) == Noise(2**0.5, 1)
    assert [json.loads(line).get("run") for line in path.read_text().splitlines()] == [None] * 4 + [2, 2]
    with pytest.raises(ToolkitError, match="nowhere: no model is named as a mixture"):
        list(trained_models(merges, tmp_path / "runs", [tmp_path / "nowhere"]))


def test_an_unreadable_first_reply_stops_at_once_and_is_kept(sources: Sources, tmp_path: Path) -> None:
    """A later one does not: the command works, so that it is a fault of that model."""
    write_merges(sources, sample_candidates(sources.clusters, 3, 0), tmp_path / "out", OPTIONS, deferred=True)
    merges, path = open_merges(tmp_path / "out"), tmp_path / "scores.jsonl"
    with pytest.raises(ToolkitError, match="no score on the last line") as stopped:
        score_models(merged_models(merges, 1), ScoreCommand("echo first of {model}"), open_journal(path), 1)
    kept = tmp_path / "scores.mix-0.output"
    assert str(kept) in stopped.value.message and kept.read_text().startswith("first of ")
    assert [child.name for child in tmp_path.glob("scores*")] == ["scores.mix-0.output"]
    script = tmp_path / "sometimes.sh"
    script.write_text('case "$1" in *mix-1*) echo oops;; *) echo 0.5;; esac')
    with pytest.raises(ToolkitError, match="not scored: mix-1"):
        score_models(merged_models(merges, 1), ScoreCommand(f"sh {script} {{model}}"), open_journal(path), 1)
    assert (tmp_path / "scores.mix-1.output").read_text() == "oops\n"
    assert open_journal(path).of_metric(None) == {"mix-0": [0.5], "mix-2": [0.5]}


def test_a_command_that_cannot_start_is_no_fault_of_a_model(sources: Sources, tmp_path: Path) -> None:
    write_merges(sources, sample_candidates(sources.clusters, 3, 0), tmp_path / "out", OPTIONS, deferred=True)
    models, faults = merged_models(open_merges(tmp_path / "out"), 1), []
    with pytest.raises(UsageError, match="cannot start"):
        score_models(
            models,
            ScoreCommand("no-such-command-here {model}"),
            open_journal(tmp_path / "scores.jsonl"),
            1,
            show_fault=lambda name, fault: faults.append(name),
        )
    assert not faults and not (tmp_path / "scores.jsonl").exists()


def test_the_recipe_of_a_merge_reports_its_mixture(sources: Sources, tmp_path: Path) -> None:
    write_merges(sources, [mixture("a", "0.2", "0.3", "0.5")], tmp_path / "out", OPTIONS)
    recipe = json.loads((tmp_path / "out" / "a" / "recipe.json").read_text())
    assert recipe["mixture"] == {"id": "a", "weights": {"code": 0.2, "law": 0.3, "math": 0.5}}
    assert [entry["weight"] for entry in recipe["inputs"]] == ["0", "1/5", "3/10", "1/2"]
