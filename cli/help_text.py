"""Help as plain text, in sections: drawing it with boxes would take as long again as all else that help needs."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup


class SectionedCommand(TyperCommand):
    """A command whose help lists each panel of options under its own heading."""

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


class SectionedGroup(TyperGroup):
    """A group whose help lists each panel of commands under its own heading."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            panel = getattr(command, "rich_help_panel", None) or "Commands"
            sections.setdefault(panel, []).append((name, " ".join((command.help or "").split("\n\n")[0].split())))
        _write(formatter, sections)


def _write(formatter: Any, sections: dict[str, list[tuple[str, str]]]) -> None:
    for heading, records in sections.items():
        with formatter.section(heading):
            formatter.write_dl(records)
