"""`kolibri-sft mix`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sft_toolkit.cli.console import print_table, print_warning
from sft_toolkit.cli.options import Seed, stage_command
from sft_toolkit.cli.run_and_report import report_summary
from sft_toolkit.errors import UsageError

if TYPE_CHECKING:
    from sft_toolkit.running.options import RunOptions
    from sft_toolkit.stages.mix.mixture_file import Mixture
    from sft_toolkit.stages.mix.record_rows import Measure

_HEADER = ("data set", "records", "tokens", "asked", "got", "with loss", "taken", "epochs", "why")


@stage_command
def mix(
    run: RunOptions,
    mixture: Annotated[Path, typer.Option(metavar="FILE", help="TOML: data sets, budgets, caps and filters.")],
    tokenizer: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Count the tokens of records as render does with this folder.")
    ] = None,
    length_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Take the tokens of records from this key.")
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="Write what is taken as a list of ids and places, not the rows.")
    ] = False,
    weights: Annotated[
        str | None, typer.Option(metavar="FILE#ID", help="Weights of one mixture of a file that --candidates wrote.")
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(metavar="T", help="Multiply each weight by its data set's tokens to the power 1/T.")
    ] = None,
    candidates: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Read no input; write N mixtures around the weights of FILE.")
    ] = None,
    concentration: Annotated[
        float, typer.Option(help="Of candidates: the higher, the nearer they are to the weights of FILE.")
    ] = 1.0,
    seed: Seed = 0,
) -> None:
    """Mix data sets by weights or token budgets, whole records at a time.

    The mixture file has a table [datasets.NAME] for each data set, with one of weight, tokens or epochs; with from
    (other names of data sets), where (filters on columns), max_epochs, max_tokens, max_records and max_per_prompt.
    At its top stand tokens, a total that is shared out by weight, max_epochs (1 unless set) and temperature.
    Copies of a record get the ids ID#2, ID#3 and so on, as far as they are free. Rows keep the order of the input: pack
    shuffles.
    """
    from sft_toolkit.stages.mix.mixing import MixOptions, run_mix
    from sft_toolkit.stages.mix.mixture_file import read_mixture

    wanted = read_mixture(mixture)
    if temperature is not None:
        wanted = wanted.tempered(temperature)
    if candidates is not None:
        _write_candidates(wanted, candidates, concentration, seed, run)
        return
    if weights is not None:
        wanted = _reweighted(wanted, weights)
    summary = run_mix(MixOptions(wanted, _measure(tokenizer, length_column), listed, seed), run)
    report_summary(summary, run)
    if run.summary_format == "text" and not summary.finished_before:
        _tell_accounts(summary.facts["mixture"])


def _measure(tokenizer: Path | None, length_column: str | None) -> Measure | None:
    from sft_toolkit.stages.mix.record_rows import GivenLengths, RenderedLengths
    from sft_toolkit.stages.render import RenderStage

    if tokenizer is not None and length_column is not None:
        raise UsageError("lengths need exactly one source", "give either --tokenizer DIR or --length-column NAME")
    if tokenizer is not None:
        return RenderedLengths(RenderStage(str(tokenizer)))
    return None if length_column is None else GivenLengths(length_column)


def _tell_accounts(accounts: list[dict[str, Any]]) -> None:
    from sft_toolkit.stages.mix.choice import NOTHING_FITS

    columns = ("name", "records", "tokens", "asked", "got", "got_loss", "taken", "epochs", "why")
    print_table("mixture, in tokens", _HEADER, [tuple(account[column] for column in columns) for account in accounts])
    for account in accounts:
        if account["why"] == NOTHING_FITS:
            asked = account["asked"]
            print_warning(f"{account['name']}: no record, for {asked:,} tokens are less than half of its first record")
        if account["got"] < account["asked"] and account["why"].startswith("max_"):
            missing = account["asked"] - account["got"]
            print_warning(f"{account['name']}: {missing:,} tokens short, {account['why']} ends it")


def _reweighted(mixture: Mixture, named: str) -> Mixture:
    from sft_toolkit.mergemix.candidates import read_candidates

    path, hash_sign, wanted = named.rpartition("#")
    if not hash_sign:
        raise UsageError(f"--weights {named}: not FILE#ID", "ID is that of a mixture in the file")
    found = {candidate.id: candidate for candidate in read_candidates(Path(path), list(mixture.weights))}
    if wanted not in found:
        raise UsageError(f"--weights {named}: {path} has no mixture {wanted}", f"it has {', '.join(found)}")
    return mixture.reweighted(found[wanted].weights)


def _write_candidates(mixture: Mixture, count: int, concentration: float, seed: int, run: RunOptions) -> None:
    from sft_toolkit.json_text import encode
    from sft_toolkit.mergemix.candidates import sample_candidates
    from sft_toolkit.running.output_checks import check_stream_options
    from sft_toolkit.shards.jsonl import open_sink

    if run.to_folder:
        raise UsageError("--candidates writes JSONL", "name a .jsonl file with --output")
    unweighted = [name for name in mixture.ingredients if name not in mixture.weights]
    if unweighted:
        raise UsageError(f"{unweighted[0]}: has no weight", "candidates are drawn around weights")
    if mixture.temperature is not None:
        raise UsageError("--candidates reads no input, and --temperature needs its sizes", "leave one of them out")
    check_stream_options(run)
    total = sum(mixture.weights.values())
    base = {name: weight / total for name, weight in mixture.weights.items()} if total else {}
    with open_sink(run.output) as write:
        for candidate in sample_candidates(list(base), count, seed, concentration, base):
            write(encode(candidate.to_json()) + b"\n")
