"""`kolibri-sft inspect`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sft_toolkit.cli.flags import spelled
from sft_toolkit.cli.guard import guarded
from sft_toolkit.cli.options import Config, Debug, Map, MapFile, record_reader
from sft_toolkit.cli.pager import paged
from sft_toolkit.cli.template_options import (
    ChatTemplate,
    EffortSentencesFile,
    TemplateVariable,
    ToolsInSystem,
    effort_sentences_of,
    template_variables,
)
from sft_toolkit.errors import UsageError

if TYPE_CHECKING:
    from sft_toolkit.formats import RecordReader
    from sft_toolkit.reporting.view import View


@guarded
def inspect(
    what: Annotated[
        str,
        typer.Argument(metavar="WHAT", help="Records (as stages read them), or a folder of token or packed shards."),
    ],
    identity: Annotated[str | None, typer.Argument(metavar="ID", help="Id of a record or document.")] = None,
    row: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Row number instead of an id, from 0 (the default).")
    ] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Renders records, and decodes the tokens of shards.")
    ] = None,
    chat_template: ChatTemplate = None,
    template_variable: TemplateVariable = None,
    tools_in_system: ToolsInSystem = False,
    effort_sentences: EffortSentencesFile = None,
    document: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Which document, from 0, of a record that gives one per effort."),
    ] = None,
    tokens: Annotated[bool, typer.Option("--tokens", help="Show where each token ends.")] = False,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page for a browser instead.")] = None,
    no_pager: Annotated[bool, typer.Option("--no-pager", help="Do not page the output.")] = False,
    map: Map = None,
    map_file: MapFile = None,
    config: Config = None,
    debug: Debug = False,
) -> None:
    """Look at a record, a rendered document or a packed sequence.

    Text that carries loss is green, or stands in brackets ⟦…⟧ where there is no colour.
    """
    if identity is not None and row is not None:
        raise UsageError(f"{identity} and --row {row}: both say what to show", "give one of them")
    rendering = {
        "--chat-template": chat_template,
        "--template-variable": template_variables(template_variable),
        "--tools-in-system": tools_in_system,
        "--effort-sentences": effort_sentences,
    }
    view = _with_flags(
        _view(what, identity, row or 0, record_reader(map, map_file), tokenizer, rendering, document, tokens)
    )
    if html is not None:
        _write_page(view, html)
    elif sys.stdout.isatty():
        _show_on_terminal(view, pager=not no_pager)
    else:
        _print_plain(view)


def _with_flags(view: View) -> View:
    facts = [(name, spelled(value)) if name == "shown" else (name, value) for name, value in view.facts]
    return replace(view, facts=facts, warnings=list(map(spelled, view.warnings)))


def _view(
    what: str,
    identity: str | None,
    row: int,
    reader: RecordReader,
    tokenizer: Path | None,
    rendering: dict[str, Any],
    document: int | None,
    tokens: bool,
) -> View:
    """`rendering` are the values of the options, by flag, that change how records are rendered."""
    from sft_toolkit.reporting.find import Sequence, find
    from sft_toolkit.reporting.record_view import document_of, record_view, rendered_view
    from sft_toolkit.reporting.shard_view import read_tokenizer, sequence_view

    given = next((flag for flag, value in rendering.items() if value), None)
    given = "--document" if given is None and document is not None else given
    if tokenizer is None and given is not None:
        raise UsageError(f"{given} needs --tokenizer", "without one, records are shown as they stand")
    found = find(what, identity, row, reader)
    if isinstance(found, Sequence):
        if given is not None:
            raise UsageError(f"{what}: holds tokens, which {given} cannot change", "inspect the records instead")
        return sequence_view(found, None if tokenizer is None else read_tokenizer(tokenizer), tokens)
    if tokenizer is None:
        if tokens:
            raise UsageError("--tokens needs --tokenizer", "a record has no tokens before it is rendered")
        return record_view(found)
    from sft_toolkit.chat import Renderer

    renderer = Renderer.from_folder(
        tokenizer,
        rendering["--chat-template"],
        variables=rendering["--template-variable"],
        tools_in_system=rendering["--tools-in-system"],
        effort_sentences=effort_sentences_of(rendering["--effort-sentences"]),
    )
    shown, others = document_of(found, renderer, document)
    view = rendered_view(shown, renderer, tokens)
    return replace(view, warnings=[*view.warnings, others]) if others else view


def _write_page(view: View, path: Path) -> None:
    from sft_toolkit.cli.console import print_note, print_warning
    from sft_toolkit.reporting.html import html_page
    from sft_toolkit.shards.atomic import write_text

    write_text(path, "".join(html_page(view)))
    for warning in view.warnings:
        print_warning(warning)
    print_note(f"wrote {path}")


def _show_on_terminal(view: View, pager: bool) -> None:
    from rich.console import Console
    from rich.text import Text

    from sft_toolkit.reporting.terminal import view_lines

    console = Console(force_terminal=True, highlight=False)
    colour = console.color_system is not None and not console.no_color
    with paged(pager) as stream:
        for line in view_lines(view, colour, console.width):
            with console.capture() as printed:
                console.print(Text.assemble(*line), overflow="fold")
            stream.write(printed.get())


def _print_plain(view: View) -> None:
    from sft_toolkit.reporting.terminal import view_lines
    from sft_toolkit.shards.jsonl import write_stdout

    for line in view_lines(view, colour=False):
        write_stdout("".join(fragment.text for fragment in line).encode() + b"\n")
