"""`kolibri-sft soup`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sft_toolkit.cli.console import print_json, print_note, print_table, print_warning
from sft_toolkit.cli.guard import guarded
from sft_toolkit.cli.model_options import (
    Dtype,
    LowerIsBetter,
    MaxShardSize,
    Metric,
    ScoreTimeout,
    Threads,
    elements_shown,
    evaluator,
    output_options,
)
from sft_toolkit.cli.options import Config, Debug, Force, Json, Quiet, summary_format
from sft_toolkit.errors import UsageError

if TYPE_CHECKING:
    from sft_toolkit.souping.writing import Recipe


@guarded
def soup(
    checkpoints: Annotated[
        list[Path], typer.Argument(metavar="CKPT...", help="Hugging Face folders, or files of weights.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the averaged checkpoint.")],
    weights: Annotated[str | None, typer.Option(help="One per checkpoint: 1,2 or 0.25,0.75; default: equal.")] = None,
    weights_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TOML: other weights for some layers or patterns of tensors.")
    ] = None,
    greedy: Annotated[bool, typer.Option("--greedy", help="Keep only checkpoints that improve the score.")] = False,
    score_command: Annotated[str | None, typer.Option(help="'CMD {model}', prints a score on its last line.")] = None,
    score_timeout: ScoreTimeout = None,
    metric: Metric = None,
    lower_is_better: LowerIsBetter = False,
    dtype: Dtype = None,
    max_shard_size: MaxShardSize = "5GB",
    threads: Threads = 0,
    force: Force = False,
    config: Config = None,
    quiet: Quiet = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Average checkpoints exactly: one rounding, bounded memory, every tensor accounted for.

    --weights-file has tables [[tensors]] with weights = {NAME = NUMBER}, by the names of the checkpoints, and match (a
    pattern of tensor names), layers ("0-11") or both; the first that fits counts. [default] is for the other tensors.
    """
    from sft_toolkit.souping.greedy import greedy_soup
    from sft_toolkit.souping.soup import require_distinct
    from sft_toolkit.souping.soup import soup as write_soup
    from sft_toolkit.souping.weights_file import TensorWeights, read_weights

    require_distinct(checkpoints)
    if greedy != (score_command is not None):
        raise UsageError("--greedy and --score-command need each other", "give both or neither")
    if greedy and (weights is not None or weights_file is not None):
        raise UsageError("--greedy chooses the weights itself", "leave out --weights and --weights-file")
    if weights is not None and weights_file is not None:
        raise UsageError("weights need one source", "give --weights, or --weights-file with a table [default]")
    options = output_options(dtype, max_shard_size, threads, force)
    manner = summary_format(quiet, json)
    if score_command is not None:
        evaluate = evaluator(score_command, score_timeout, metric)
        recipe = greedy_soup(checkpoints, output, options, evaluate, lower_is_better)
    else:
        given = TensorWeights(tuple(_weights(weights, len(checkpoints))))
        if weights_file is not None:
            given = read_weights(weights_file, checkpoints)
        with elements_shown("soup", quiet or json) as advance:
            recipe = write_soup(checkpoints, given.default, output, options, advance, rules=given.rules)
    _tell(recipe, output, manner, metric or "score")


def _weights(text: str | None, count: int) -> list[Fraction]:
    from sft_toolkit.souping.weights import parse_weight

    if text is None:
        return [Fraction(1)] * count
    weights = [parse_weight(part) for part in text.split(",")]
    if len(weights) != count:
        raise UsageError(f"--weights {text}: {len(weights)} for {count} checkpoints", "give one for each checkpoint")
    return weights


def _tell(recipe: Recipe, output: Path, manner: str, metric: str) -> None:
    origins = recipe["side_files"]["from"]
    for name in recipe["side_files"]["differing"]:
        print_warning(f"{name} differs between the checkpoints; that of {origins[name]} was copied")
    if manner == "json":
        print_json(recipe)
    elif manner == "text":
        if "greedy" in recipe:
            print_table("greedy soup", ("members", metric, "kept"), [_row(step) for step in recipe["greedy"]])
        actions = Counter(tensor["action"] for tensor in recipe["tensors"].values())
        print_table(f"soup -> {output}", ("tensors", "count"), sorted(actions.items()))
        for folder in dict.fromkeys(origins.values()):
            names = ", ".join(name for name, origin in origins.items() if origin == folder)
            print_note(f"from {folder}: {names}")


def _row(step: Mapping[str, Any]) -> tuple[str, float, str]:
    return ", ".join(Path(path).name for path in step["members"]), step["score"], "yes" if step["kept"] else "no"
