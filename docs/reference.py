"""Writes docs/cli.md, the reference of all commands, from the commands themselves: `python docs/reference.py`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import typer

from sft_toolkit.cli.examples import EXAMPLES
from sft_toolkit.cli.flags import choices_of
from sft_toolkit.cli.main import build_app
from sft_toolkit.cli.options import SHARED_PANEL
from sft_toolkit.cli.registry import COMMANDS

TARGET = Path(__file__).with_name("cli.md")


def reference() -> str:
    """The whole page, as Markdown. Options that all stage commands share stand once, at the end."""
    commands = [command for name in COMMANDS for command in leaves(name, root_command(name))]
    parts = ["# Commands\n", "Written by `python docs/reference.py`.\n"]
    parts += [section(path, command) for path, command in commands]
    parts.append("## Shared options\n\n" + table(shared_options()))
    return "\n".join(parts)


@cache
def shared_options() -> list[Any]:
    """Those of `convert`, which takes them all."""
    return [option for option in root_command("convert").params if option.rich_help_panel == SHARED_PANEL]


def root_command(name: str) -> Any:
    return typer.main.get_command(build_app([name])).commands[name]  # type: ignore[attr-defined]


def leaves(path: str, command: Any) -> list[tuple[str, Any]]:
    children = getattr(command, "commands", None)
    if not children:
        return [(path, command)]
    return [leaf for name, child in children.items() for leaf in leaves(f"{path} {name}", child)]


def section(path: str, command: Any) -> str:
    own = [option for option in command.params if getattr(option, "rich_help_panel", None) != SHARED_PANEL]
    examples = "\n".join(EXAMPLES.get(path, ()))
    return f"## {path}\n\n{command.help}\n\n```sh\n{examples}\n```\n\n{table(own)}{of_shared(command)}"


def of_shared(command: Any) -> str:
    """Which of the shared options a command takes."""
    shared = [option.name for option in command.params if option.rich_help_panel == SHARED_PANEL]
    taken = [f"`{option.opts[-1]}`" for option in shared_options() if option.name in shared]
    lacking = [f"`{option.opts[-1]}`" for option in shared_options() if option.name not in shared]
    if len(taken) > len(lacking):
        return f"\nTakes the shared options too{', all but ' * bool(lacking)}{', '.join(lacking)}.\n"
    return f"\nOf the shared options it takes {', '.join(taken)}.\n" if taken else ""


def table(options: list[Any]) -> str:
    rows = [f"| {names(option)} | {default(option)} | {text(option)} |" for option in options]
    return "\n".join(["| option | default | what it does |", "| --- | --- | --- |", *rows]) + "\n"


def names(option: Any) -> str:
    if option.param_type_name == "argument":
        return f"`{option.metavar or option.name.upper()}`"
    return ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])


def default(option: Any) -> str:
    if option.required:
        return "required"
    return "" if option.default is False or option.default in (None, "", (), []) else f"`{option.default}`"


def text(option: Any) -> str:
    """What help says, after the values of a choice."""
    choices = ", ".join(f"`{choice}`" for choice in choices_of(option))
    said = " ".join((option.help or "").split()).replace("|", "\\|")
    return f"{choices}. {said}" if choices else said


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
