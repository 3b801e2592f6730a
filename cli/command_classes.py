"""What every command is made of: help as plain text in sections, and errors that know which command is running.

Drawing help with boxes would take as long again as all else that it needs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from sft_toolkit.cli.console import print_error
from sft_toolkit.cli.examples import EXAMPLES
from sft_toolkit.cli.flags import RUNNING, flag_of, value_source
from sft_toolkit.cli.settings import check_environment
from sft_toolkit.cli.written_paths import check_written_paths

USAGE = 2
_NO_VALID = "Input should be a valid "
_UsageFault: Any = typer.BadParameter.__base__
"""What a parser raises: an unknown option, one too many, a bad value."""


class SectionedCommand(TyperCommand):
    """A command whose help lists each panel of options under its own heading."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As usual; what is wrong is one line, which says of a bad value which variable or file it came from."""
        with _faults_in_one_line(ctx):
            rest = super().parse_args(ctx, args)
            check_environment(ctx)
            check_written_paths(ctx)
            return rest

    def invoke(self, ctx: Any) -> Any:
        RUNNING.set(ctx)
        return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        parameters: list[Any] = self.get_params(ctx)
        for parameter in parameters:
            # Environment variables follow one rule, stated in the README; repeated here they would bury the help.
            parameter.show_envvar = False
            record = parameter.get_help_record(ctx)
            if record is not None:
                default = "Arguments" if parameter.param_type_name == "argument" else "Options"
                panel = getattr(parameter, "rich_help_panel", None) or default
                sections.setdefault(panel, []).append(record)
        _write(formatter, sections)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Lines to copy, unwrapped."""
        with formatter.section("Examples"):
            for line in EXAMPLES.get(ctx.command_path.partition(" ")[2], ()):
                formatter.write(f"  {line}\n")


class SectionedGroup(TyperGroup):
    """A group whose help lists each panel of commands under its own heading."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As usual; without any words it raises what prints help."""
        if not args:
            return super().parse_args(ctx, args)
        with _faults_in_one_line(ctx):
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        with _faults_in_one_line(ctx):
            return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            panel = getattr(command, "rich_help_panel", None) or "Commands"
            sections.setdefault(panel, []).append((name, " ".join((command.help or "").split("\n\n")[0].split())))
        _write(formatter, sections)


@contextmanager
def _faults_in_one_line(context: Any) -> Iterator[None]:
    try:
        yield
    except _UsageFault as fault:
        print_error(_sentence(fault, context), f"see {context.command_path} --help")
        raise typer.Exit(USAGE) from fault


def _write(formatter: Any, sections: dict[str, list[tuple[str, str]]]) -> None:
    for heading, records in sections.items():
        with formatter.section(heading):
            formatter.write_dl(records)


def _sentence(fault: Any, context: Any) -> str:
    """What is wrong with the command line, without a full stop."""
    parameter = getattr(fault, "param", None)
    if type(fault) is not typer.BadParameter or parameter is None:
        return str(fault.format_message()).rstrip(".").removeprefix("Invalid value: ")
    source = value_source(parameter, context)
    message = _said_of_value(fault.message, parameter.name, source, context)
    return f"{flag_of(parameter)}: {message}{f' (from {source})' if source else ''}"


def _said_of_value(message: str, name: str, source: str, context: Any) -> str:
    """What is wrong with a value, which is quoted where it stands in a variable or a file."""
    message = message.removeprefix("Value error, ").rstrip(".").replace("Value must be an iterable", "not a list")
    if not message.startswith(_NO_VALID):
        return message
    kind = message.removeprefix(_NO_VALID).partition(",")[0]
    value = os.environ.get(source, (context.default_map or {}).get(name)) if source else None
    return f"not a valid {kind}" if value is None else f"{value!r} is not a valid {kind}"
