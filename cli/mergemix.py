"""`kolibri-sft mergemix cluster | merge | score | rank`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sft_toolkit.choices import SurrogateKind
from sft_toolkit.cli.console import print_error, print_json, print_note, print_table, print_warning
from sft_toolkit.cli.guard import guarded
from sft_toolkit.cli.model_options import (
    Dtype,
    LowerIsBetter,
    MaxShardSize,
    Metric,
    ScoreTimeout,
    Threads,
    elements_shown,
    output_options,
    require_torch,
)
from sft_toolkit.cli.options import Config, Debug, Force, Json, Quiet, Seed, reading_command, summary_format
from sft_toolkit.cli.progress import clear_progress
from sft_toolkit.errors import ToolkitError, UsageError

if TYPE_CHECKING:
    from sft_toolkit.mergemix.baseline import BaselineComparison
    from sft_toolkit.mergemix.candidates import Candidate
    from sft_toolkit.mergemix.rank_correlation import Interval
    from sft_toolkit.mergemix.ranking import Ranking
    from sft_toolkit.mergemix.score_command import Scorer
    from sft_toolkit.running.options import RunOptions

app = typer.Typer(no_args_is_help=True)

Merges = Annotated[Path, typer.Argument(metavar="MERGES", help="Folder that mergemix merge wrote.")]
JsonReport = Annotated[bool, typer.Option("--json", help="One JSON object instead of tables.")]


@app.command()
@reading_command
def cluster(
    run: RunOptions,
    clusters: Annotated[int, typer.Option(help="How many clusters.", min=1)] = 3,
    json: JsonReport = False,
) -> None:
    """Group data sets whose words are alike, as a help for choosing the clusters."""
    from sft_toolkit.json_text import encode_text
    from sft_toolkit.mergemix.ngram_profiles import cluster_datasets
    from sft_toolkit.mergemix.profile_inputs import profile_datasets

    found = cluster_datasets(profile_datasets(run)[0], clusters)
    clear_progress()
    if json:
        print(encode_text({"clusters": [{"datasets": one.datasets, "cohesion": one.cohesion} for one in found]}))
    else:
        rows = [(place, one.cohesion, ", ".join(one.datasets)) for place, one in enumerate(found)]
        print_table("data sets by likeness of words", ("cluster", "mean cosine", "data sets"), rows, sys.stdout)


@app.command()
@guarded
def merge(
    base: Annotated[Path, typer.Option(help="Checkpoint that all specialists were trained from.")],
    specialist: Annotated[list[str], typer.Option(metavar="NAME=CKPT", help="A cluster's specialist. Repeatable.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the merges, one model a mixture.")],
    candidates: Annotated[int | None, typer.Option(help="Draw this many mixtures.", min=1)] = None,
    mixtures: Annotated[Path | None, typer.Option(help="JSONL of mixtures, as mix --candidates writes it.")] = None,
    concentration: Annotated[float, typer.Option(help="Of drawn mixtures: higher is nearer to equal weights.")] = 1.0,
    deferred: Annotated[
        bool, typer.Option("--deferred", help="Write no models yet: score makes one at a time.")
    ] = False,
    seed: Seed = 0,
    dtype: Dtype = None,
    max_shard_size: MaxShardSize = "5GB",
    threads: Threads = 0,
    force: Force = False,
    config: Config = None,
    quiet: Quiet = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Merge specialists by many mixtures in one pass: base + sum of alpha * (specialist - base)."""
    from sft_toolkit.mergemix.merge import Sources, write_merges

    sources = Sources(base, _specialists(specialist))
    wanted = _mixtures(sources.clusters, candidates, mixtures, concentration, seed)
    options = output_options(dtype, max_shard_size, threads, force)
    with elements_shown("merge", quiet or json) as advance:
        write_merges(sources, wanted, output, options, deferred, advance)
    if summary_format(quiet, json) == "json":
        print_json({"output": str(output), "mixtures": [mixture.to_json() for mixture in wanted]})
    elif not quiet:
        rows = [(mixture.id, *map(float, mixture.weights.values())) for mixture in wanted]
        print_table(f"mergemix merge -> {output}", ("mixture", *sources.clusters), rows)


@app.command()
@guarded
def score(
    merges: Merges,
    held_out: Annotated[
        list[Path] | None,
        typer.Option(metavar="TOKENS", help="Score by the held-out loss on these token shards. Repeatable."),
    ] = None,
    score_command: Annotated[
        str | None, typer.Option(help="Or by 'CMD {model}', which prints a number or JSON on its last line.")
    ] = None,
    metric: Metric = None,
    score_timeout: ScoreTimeout = None,
    repeats: Annotated[int, typer.Option(help="Evaluations of each model; two or more measure the noise.", min=1)] = 1,
    trained: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Score trained models FOLDER/ID instead of the merges.")
    ] = None,
    repeat: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER",
            help="With --trained: mixtures trained once more, with another seed, as FOLDER/ID. Repeatable. "
            "One is enough to measure the noise of training.",
        ),
    ] = None,
    threads: Threads = 0,
    config: Config = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Score every merged or trained model by its held-out loss or by a command; a second run resumes with the rest.

    The loss is that of the tokens that train would train, each document on its own: one for each data set in TOKENS,
    called loss/NAME, and their mean, called loss. With --metric a command may print text and nested objects too, as
    lm-eval does. Where its first reply cannot be read, scoring stops; what it printed is kept in MERGES.
    """
    from sft_toolkit.mergemix.merge import open_merges
    from sft_toolkit.mergemix.score_command import Scores
    from sft_toolkit.mergemix.score_journal import MERGED, TRAINED, open_journal
    from sft_toolkit.mergemix.scoring import merged_models, score_models, trained_models

    def show(name: str, scores: Scores) -> None:
        if not quiet:
            print_note(f"{name}: {', '.join(f'{metric} {value:g}' for metric, value in scores.items())}")

    def show_fault(name: str, fault: ToolkitError) -> None:
        print_error(f"{name}: {fault.message}", fault.hint)

    if repeat and trained is None:
        raise UsageError("--repeat holds mixtures that were trained once more", "give --trained FOLDER too")
    scorer = _scorer(held_out or [], score_command, metric, score_timeout, repeats)
    folder = open_merges(merges)
    journal = open_journal(merges / (TRAINED if trained else MERGED))
    models = trained_models(folder, trained, repeat or []) if trained else merged_models(folder, threads)
    ran = score_models(models, scorer, journal, repeats, show, show_fault)
    if not quiet:
        print_note(f"{ran} evaluations -> {journal.path}")


@app.command()
@guarded
def rank(
    merges: Merges,
    metric: Metric = None,
    lower_is_better: LowerIsBetter = False,
    surrogate: Annotated[SurrogateKind, typer.Option(help="Regression; auto: the better one.")] = "auto",
    proposals: Annotated[int, typer.Option(help="How many mixtures to propose.", min=1)] = 3,
    noise: Annotated[
        float | None, typer.Option(help="Standard deviation of one score, where it was not measured.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The mixture set by hand: say which others beat it, and how sure that is."),
    ] = None,
    draws: Annotated[
        int, typer.Option(help="Random orders tried for the chance of an order of 8 pairs or more.", min=100)
    ] = 10_000,
    seed: Seed = 0,
    json: JsonReport = False,
    config: Config = None,
    debug: Debug = False,
) -> None:
    """Order mixtures by their merges' scores, propose better ones, and say whether the scores mean anything.

    Of scores by --held-out the loss counts unless --metric names that of a data set, and lower is better.
    """
    from sft_toolkit.json_text import encode_text
    from sft_toolkit.mergemix.merge import open_merges
    from sft_toolkit.mergemix.ranking import RankOptions, rank_mixtures
    from sft_toolkit.mergemix.score_journal import MERGED, TRAINED, open_journal, require_comparable

    merged, trained = (open_journal(merges / name) for name in (MERGED, TRAINED))
    require_comparable(merged, trained)
    lower = lower_is_better or merged.is_loss
    options = RankOptions(surrogate, proposals, lower, noise, draws, seed, baseline, exact_merged=merged.is_loss)
    mixtures = open_merges(merges).mixtures
    ranking = rank_mixtures(mixtures, merged.of_metric(metric), trained.of_runs(metric), options)
    for warning in ranking.warnings:
        print_warning(warning)
    if json:
        print(encode_text(ranking.to_json()))
    else:
        _print_ranking(ranking, merged.metric_name(metric))


def _scorer(
    held_out: list[Path], command: str | None, metric: str | None, timeout: float | None, repeats: int
) -> Scorer:
    """Raises UsageError where it is not one of both, or has options of the other."""
    from sft_toolkit.mergemix.score_command import ScoreCommand

    if bool(held_out) == (command is not None):
        raise UsageError("scores need exactly one source", "give --held-out TOKENS or --score-command 'CMD {model}'")
    if command is not None:
        return ScoreCommand(command, timeout, metric)
    if metric is not None:
        raise UsageError("--metric names a score of a score command", "leave it out here, and give it to rank")
    if timeout is not None:
        raise UsageError("--score-timeout ends a score command", "leave it out with --held-out")
    if repeats > 1:
        raise UsageError("--repeats: a model's held-out loss is the same every time", "leave it out with --held-out")
    require_torch()
    from sft_toolkit.mergemix.held_out_loss import HeldOutLoss

    return HeldOutLoss(held_out)


def _specialists(given: list[str]) -> dict[str, Path]:
    specialists: dict[str, Path] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise UsageError(f"--specialist {text}: not of the form NAME=CKPT", "as in --specialist math=runs/math")
        if name in specialists:
            raise UsageError(f"--specialist {name}: given twice", "give each cluster one specialist")
        specialists[name] = Path(path)
    return specialists


def _mixtures(
    clusters: list[str], candidates: int | None, path: Path | None, concentration: float, seed: int
) -> list[Candidate]:
    from sft_toolkit.mergemix.candidates import read_candidates, sample_candidates

    if candidates is not None and path is None:
        return sample_candidates(clusters, candidates, seed, concentration)
    if path is not None and candidates is None:
        return read_candidates(path, clusters)
    raise UsageError("mixtures need exactly one source", "give --candidates N to draw them or --mixtures FILE")


def _print_ranking(ranking: Ranking, metric: str) -> None:
    fit = ranking.surrogate
    print_table(
        f"mixtures by {metric} of their merge, best first",
        ("mixture", metric),
        [(name, f"{score:.6g}") for name, score in ranking.scores.items()],
        sys.stdout,
    )
    found = "explains the scores" if fit.explains else "explains no more than chance would"
    chance = "" if fit.chance is None else f", p {fit.chance:.3f}"
    print_note(
        f"regression: {fit.name}; leave-one-out CV error {fit.error:.4g}, of the mean {fit.baseline_error:.4g}"
        f"{chance}: {found}",
        sys.stdout,
    )
    rows = [
        (
            *map(float, proposal.weights),
            f"{proposal.expected:.6g}",
            "none from so few" if proposal.interval is None else _shown(proposal.interval),
        )
        for proposal in ranking.proposals
    ]
    print_table("proposed", (*ranking.clusters, "expected", "90% interval"), rows, sys.stdout)
    print_note(_agreement(ranking), sys.stdout)
    for comparison in ranking.against_baseline:
        _print_against_baseline(comparison, metric)


def _shown(interval: Interval) -> str:
    return f"{interval.low:.4g} to {interval.high:.4g}"


def _print_against_baseline(comparison: BaselineComparison, metric: str) -> None:
    rows = [
        (
            other.id,
            f"{other.score:.6g}",
            f"{other.gain:+.4g}",
            "noise unknown" if other.interval is None else f"{other.interval.low:+.4g} to {other.interval.high:+.4g}",
        )
        for other in comparison.others
    ]
    rate = comparison.rate
    title = (
        f"{comparison.kind} against {comparison.baseline} ({comparison.score:.6g}): {comparison.better} of "
        f"{len(comparison.others)} are better; 95% interval of that share {rate.low:.2f} to {rate.high:.2f}"
    )
    print_table(title, ("mixture", metric, "better by", "95% interval"), rows, sys.stdout)


def _agreement(ranking: Ranking) -> str:
    check = ranking.check
    if check is None:
        return f"merged against trained: {ranking.verdict}"
    interval = "no 95% interval" if check.interval is None else f"95% interval {_shown(check.interval)}"
    return (
        f"merged against trained: {ranking.verdict}; rho {check.rho:.2f}, {interval}, n {check.n}, "
        f"p {check.chance:.3f}; "
        f"unrelated scores stay below {check.null_band:.2f}; {_noise_of(ranking)}"
    )


def _noise_of(ranking: Ranking) -> str:
    noise, check = ranking.trained_noise, ranking.check
    if noise is None:
        return "noise of training unknown: train a mixture once more and score it with --repeat"
    freedom = "given" if noise.freedom is None else f"{noise.freedom} degrees of freedom"
    stated = f"noise of training {noise.deviation:.4g} ({freedom})"
    if check is None or check.ceiling is None:
        return f"{stated}; noise of merged scores unknown"
    return f"{stated}: a perfect proxy would reach {check.ceiling:.2f}"
