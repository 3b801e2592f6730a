"""Writes docs/cli.md, the reference of all commands, from the commands themselves: `python docs/reference.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from sft_toolkit.cli.main import build_app
from sft_toolkit.cli.options import SHARED_PANEL
from sft_toolkit.cli.registry import COMMANDS

TARGET = Path(__file__).with_name("cli.md")


def reference() -> str:
    """The whole page, as Markdown. Options that all stage commands share stand once, at the end."""
    commands = [command for name in COMMANDS for command in leaves(name, root_command(name))]
    parts = ["# Commands\n", "Written by `python docs/reference.py`.\n"]
    parts += [section(path, command) for path, command in commands]
    shared = [option for option in root_command("convert").params if option.rich_help_panel == SHARED_PANEL]
    parts.append("## Shared options\n\n" + table(shared))
    return "\n".join(parts)


def root_command(name: str) -> Any:
    return typer.main.get_command(build_app([name])).commands[name]  # type: ignore[attr-defined]


def leaves(path: str, command: Any) -> list[tuple[str, Any]]:
    children = getattr(command, "commands", None)
    if not children:
        return [(path, command)]
    return [leaf for name, child in children.items() for leaf in leaves(f"{path} {name}", child)]


def section(path: str, command: Any) -> str:
    own = [option for option in command.params if getattr(option, "rich_help_panel", None) != SHARED_PANEL]
    note = "" if len(own) == len(command.params) else "\nTakes the shared options too.\n"
    return f"## {path}\n\n{command.help}\n\n{table(own)}{note}"


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
    return "" if option.default in (None, False, "", (), []) else f"`{option.default}`"


def text(option: Any) -> str:
    return " ".join((option.help or "").split()).replace("|", "\\|")


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
