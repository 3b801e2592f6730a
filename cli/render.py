"""`kolibri-sft render`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sft_toolkit.choices import EffortMismatch, History, Overlong, TrainedTurns
from sft_toolkit.cli.options import Seed, stage_command
from sft_toolkit.cli.run_and_report import execute
from sft_toolkit.cli.template_options import (
    ChatTemplate,
    EffortSentencesFile,
    TemplateVariable,
    ToolsInSystem,
    template_variables,
)

if TYPE_CHECKING:
    from sft_toolkit.running.options import RunOptions


@stage_command
def render(
    run: RunOptions,
    tokenizer: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder in Hugging Face layout: tokenizer.json and its configuration.")
    ],
    chat_template: ChatTemplate = None,
    template_variable: TemplateVariable = None,
    tools_in_system: ToolsInSystem = False,
    effort_sentences: EffortSentencesFile = None,
    effort_mismatch: Annotated[
        EffortMismatch,
        typer.Option(
            help="Exchanges whose effort the prompt would not state: split (a document for each run of exchanges of "
            "one effort, ids get the number of its first exchange: #0, #2, …), mask (no loss on them), or error.",
        ),
    ] = "split",
    history: Annotated[
        History,
        typer.Option(
            help="Reasoning of a document's earlier exchanges: keep, drop (what it would train gets a document of its "
            "own), or both (either, by a draw for each record).",
        ),
    ] = "keep",
    train: Annotated[
        TrainedTurns, typer.Option(help="Assistant turns that carry loss; last: the final message alone.")
    ] = "all",
    train_empty_think: Annotated[
        bool, typer.Option("--train-empty-think", help="Put loss on empty thinking blocks that a prompt would give.")
    ] = False,
    per_exchange: Annotated[
        bool,
        typer.Option(
            "--per-exchange",
            help="One document per user turn, loss on that exchange alone: trains reasoning that a template drops "
            "from earlier exchanges. Ids get #0, #1, ….",
        ),
    ] = False,
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", min=2, help="Maximum tokens of a document; none is split.")
    ] = None,
    overlong: Annotated[
        Overlong, typer.Option(help="What becomes of longer documents; truncate: after the last whole turn that fits.")
    ] = "error",
    date: Annotated[
        str, typer.Option(metavar="DATE", help="Today's date, for a template that writes it.")
    ] = "2026-01-01",
    seed: Seed = 0,
) -> None:
    """Render conversations to tokens with an exact loss mask, with any chat template."""
    from sft_toolkit.stages.render import RenderStage

    stage = RenderStage(
        tokenizer=str(tokenizer),
        chat_template=chat_template,
        train=train,
        train_empty_think=train_empty_think,
        per_exchange=per_exchange,
        max_tokens=max_tokens,
        overlong=overlong,
        date=date,
        template_variables=template_variables(template_variable),
        tools_in_system=tools_in_system,
        effort_sentences=None if effort_sentences is None else str(effort_sentences),
        effort_mismatch=effort_mismatch,
        history=history,
        seed=seed,
    )
    execute(stage, run)
