"""`kolibri-sft`: a static list of commands, of which only the one that is asked for is imported."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Annotated, Any

import typer

import sft_toolkit
from sft_toolkit.cli.command_classes import SectionedCommand, SectionedGroup
from sft_toolkit.cli.console import print_note
from sft_toolkit.cli.registry import COMMANDS, Entry


def run() -> None:
    """Entry point of the console script."""
    _open_closed_streams()
    typer.main.get_command(build_app(sys.argv[1:]))(prog_name="kolibri-sft")


def _open_closed_streams() -> None:
    """A stream that the caller closed (`<&-`, some daemons) is None in Python: it becomes an empty one."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115


def build_app(arguments: list[str]) -> typer.Typer:
    """The application for one command line: the named command in full, the others by their line of help alone."""
    app = typer.Typer(
        help="Prepare SFT data: exact loss masks, effort labels, packing and balance.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        cls=SectionedGroup,
        context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "KOLIBRI_SFT"},
    )
    app.callback()(_top)
    wanted = next((word for word in arguments if not word.startswith("-")), None)
    for name, entry in COMMANDS.items():
        _add(app, name, entry, loaded=name == wanted)
    return app


def _add(app: typer.Typer, name: str, entry: Entry, loaded: bool) -> None:
    if not loaded:
        app.command(name, help=entry.help, rich_help_panel=entry.panel)(_not_loaded)
        return
    target: Any = getattr(importlib.import_module(f"sft_toolkit.cli.{entry.module}"), entry.attribute)
    if isinstance(target, typer.Typer):
        for command in target.registered_commands:
            command.cls = SectionedCommand
        app.add_typer(target, name=name, help=entry.help, rich_help_panel=entry.panel, cls=SectionedGroup)
    else:
        app.command(name, rich_help_panel=entry.panel, cls=SectionedCommand)(target)


def _not_loaded() -> None:
    """Stands in the list of commands for one that this command line does not name."""


def _show_version(wanted: bool) -> None:
    if wanted:
        print_note(f"kolibri-sft {sft_toolkit.__version__}", sys.stdout)
        raise typer.Exit


def _top(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", show_envvar=False, callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Prepare SFT data: exact loss masks, effort labels, packing and balance."""
