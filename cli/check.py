"""`kolibri-sft check`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sft_toolkit.cli.flags import spelled
from sft_toolkit.cli.guard import guarded
from sft_toolkit.cli.options import Config, Debug, Map, MapFile, record_reader
from sft_toolkit.cli.template_options import (
    ChatTemplate,
    EffortSentencesFile,
    TemplateVariable,
    ToolsInSystem,
    effort_sentences_of,
    template_variables,
)
from sft_toolkit.errors import ToolkitError

if TYPE_CHECKING:
    from sft_toolkit.reporting.findings import Finding

_COLOURS = {"ok": "green", "warning": "yellow", "error": "bold red"}


@guarded
def check(
    tokenizer: Annotated[Path, typer.Argument(metavar="TOKENIZER_DIR", help="Folder in Hugging Face layout.")],
    records: Annotated[
        list[str] | None, typer.Argument(metavar="RECORDS...", help="A sample to render: files, globs, folders or -.")
    ] = None,
    chat_template: ChatTemplate = None,
    template_variable: TemplateVariable = None,
    tools_in_system: ToolsInSystem = False,
    effort_sentences: EffortSentencesFile = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of lines.")] = False,
    map: Map = None,
    map_file: MapFile = None,
    config: Config = None,
    debug: Debug = False,
) -> None:
    """Report what a chat template does and what it would train wrongly.

    Exit code 1 where something would; what only wants a look is a warning.
    """
    from dataclasses import asdict, replace

    from sft_toolkit.chat import Renderer
    from sft_toolkit.json_text import encode_text
    from sft_toolkit.reporting.sample_check import count_sample, sample_findings
    from sft_toolkit.reporting.templates_check import template_findings

    renderer = Renderer.from_folder(
        tokenizer,
        chat_template,
        variables=template_variables(template_variable),
        tools_in_system=tools_in_system,
        effort_sentences=effort_sentences_of(effort_sentences),
    )
    findings = template_findings(renderer)
    counts = count_sample(records, renderer, record_reader(map, map_file)) if records else None
    findings += [] if counts is None else sample_findings(counts)
    findings = [replace(finding, advice=spelled(finding.advice)) for finding in findings]
    if json:
        report = {
            "tokenizer": renderer.tokenizer.digest,
            "chat_template": renderer.template_digest,
            "facts": asdict(renderer.facts),
            "sample": None if counts is None else counts.to_json(),
            "findings": [asdict(finding) for finding in findings],
        }
        print(encode_text(report))
    else:
        _print_findings(findings)
    wrong = sum(finding.level == "error" for finding in findings)
    if wrong:
        raise ToolkitError(f"{tokenizer}: {wrong} of {len(findings)} findings are errors", "fix these before training")


def _print_findings(findings: list[Finding]) -> None:
    """Aligned columns that wrap on a terminal; a line each in a pipe, for grep."""
    from sft_toolkit.visible import one_line, visible

    broad = max(len(finding.subject) for finding in findings)
    if sys.stdout.isatty():
        _draw_findings(findings)
        return
    for finding in findings:
        advice = f"; {finding.advice}" if finding.advice else ""
        level, subject = finding.level.ljust(7), finding.subject.ljust(broad)
        print(f"{visible(level)}  {visible(subject)}  {one_line(finding.said + advice)}")


def _draw_findings(findings: list[Finding]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from sft_toolkit.visible import one_line

    table = Table.grid(padding=(0, 2))
    for finding in findings:
        said = Text(one_line(finding.said))
        if finding.advice:
            said.append(f"\n{one_line(finding.advice)}", "dim")
        table.add_row(Text(finding.level, _COLOURS[finding.level]), Text(one_line(finding.subject)), said)
    Console(highlight=False).print(table)
