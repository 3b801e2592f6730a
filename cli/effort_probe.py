"""`kolibri-sft effort probe`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sft_toolkit.cli.console import print_table
from sft_toolkit.cli.options import Inputs, Seed, stage_command
from sft_toolkit.cli.run_and_report import report_summary
from sft_toolkit.cli.teacher_access import KEY_VARIABLE, LOCAL
from sft_toolkit.cli.teacher_options import choose_teacher
from sft_toolkit.cli.template_options import EffortSentencesFile, TemplateVariable, effort_sentences_of
from sft_toolkit.errors import UsageError

if TYPE_CHECKING:
    from sft_toolkit.running.options import RunOptions


@stage_command
def probe(
    run: RunOptions,
    probed: Annotated[
        str, typer.Argument(metavar="MODEL", help="Folder of a model, a GGUF file, or URL of an endpoint.")
    ],
    inputs: Inputs = None,
    model: Annotated[str, typer.Option(help="Name of the model at the endpoint.")] = "",
    effort_sentences: EffortSentencesFile = None,
    template_variable: TemplateVariable = None,
    samples: Annotated[int, typer.Option(help="Replies per prompt and level.", min=1)] = 1,
    max_tokens: Annotated[int, typer.Option(help="Maximum tokens of a reply.", min=1)] = 4096,
    temperature: Annotated[float, typer.Option(help="Sampling temperature; 0 takes the likeliest token.", min=0)] = 0.7,
    top_p: Annotated[float | None, typer.Option(help="Top-p (nucleus) sampling.", min=0, max=1)] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Count tokens of reasoning with this tokenizer; else the model folder's, or characters."
        ),
    ] = None,
    concurrency: Annotated[int, typer.Option(help="Maximum number of concurrent requests.", min=1)] = 32,
    api_key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help=f"File with the key; else {KEY_VARIABLE}.")
    ] = None,
    journal: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where replies are kept; else OUTPUT.journal.")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Ask a model prompts at each level of effort, and say whether it obeys.

    INPUT are records that it was not trained on; the first question of each is asked. The replies are written as
    records; the report is of lengths at each level, of the order of levels within a prompt, and of thinking at none.
    """
    from sft_toolkit.chat.effort_sentences import EffortSentences
    from sft_toolkit.stages.effort.probe import ProbeStage
    from sft_toolkit.stages.effort.probe_report import read_replies, to_json
    from sft_toolkit.teachers.ask_then_judge import run_with_teacher

    if run.output == "-" and not run.dry_run:
        raise UsageError("the report reads the replies from the output", "name a folder or FILE.jsonl with --output")
    teacher = choose_teacher(
        run,
        teacher=probed if "://" in probed else f"{LOCAL}{probed}",
        model=model,
        prefill="none",
        temperature=temperature,
        top_p=top_p,
        max_tokens=max_tokens,
        template_variable=template_variable,
        concurrency=concurrency,
        api_key_file=api_key_file,
        journal=journal,
        seed=seed,
    )
    sentences = effort_sentences_of(effort_sentences) or EffortSentences()
    stage = ProbeStage(teacher.plain_asking, teacher.journal, samples=samples, sentences=sentences)
    summary = run_with_teacher(stage, run, teacher.options)
    if run.dry_run or not summary.complete:
        report_summary(summary, run)
        return
    counted = tokenizer or (Path(probed) if Path(probed, "tokenizer.json").is_file() else None)
    found = read_replies(run.output, counted)
    unit = "characters" if counted is None else "tokens"
    summary.facts["obedience"] = to_json(found, unit)
    report_summary(summary, run)
    if run.summary_format == "text":
        _print_report(found, unit)


def _print_report(found: dict[str, Any], unit: str) -> None:
    from sft_toolkit.stages.effort.probe_report import LENGTHS_HEADER, ORDER_HEADER, lengths_rows, order_rows

    print_table(f"length of reasoning, in {unit}: median over prompts", LENGTHS_HEADER, lengths_rows(found))
    print_table("prompts that order the levels (1 in 6 would by chance)", ORDER_HEADER, order_rows(found))
