"""Values of options from a configuration file and from variables: every name in them must be one that a command has."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

ENV_PREFIX = "KOLIBRI_SFT"
CONFIG_KEYS = "kolibri_sft.config_keys"
"""In a context's `meta`: of each option whose value the file gives, where it stands there, as in `[pack] capacity`."""
_OTHER_VARIABLES = ("DEBUG", "API_KEY", "SHARD_INDEX", "SHARD_COUNT", "MODEL", "LID176", "TEST_SERVERS", "WRITE_DOCS")
"""Of no option: some are read elsewhere, MODEL is set for score commands, the last two are for the project's tests."""

Words = tuple[str, ...]


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take defaults from a TOML file: keys at its top for every command, a table named as the command for that one.

    The table of a subcommand is `[effort.label]`; keys of `[effort]` are for every subcommand of it. Raises
    BadParameter for a key or a table that no command has, whichever command runs.
    """
    if path is None:
        return None
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as fault:
        raise typer.BadParameter(f"{path}: {fault.strerror}") from fault
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise typer.BadParameter(f"{path}: not TOML: {fault}") from fault
    known = {words: set(_options(command)) for words, command in all_commands()}
    for complaint in _strangers(content, (), known):
        raise typer.BadParameter(f"{path}: {complaint}")
    words = tuple(context.command_path.split()[1:])
    mine = set(_options(context.command))
    context.default_map = {}
    places = context.meta.setdefault(CONFIG_KEYS, {})
    for table in (words[:depth] for depth in range(len(words) + 1)):
        for key, value in _values(_at(content, table)):
            if (name := _option_name(key)) in mine:
                context.default_map[name] = value
                places[name] = f"{path}: {_table(table)}{key}"
    return path


def check_environment(context: typer.Context) -> None:
    """Raise BadParameter for a variable that begins as ours do and is none, with the nearest name."""
    given = [name for name in os.environ if name.startswith(f"{ENV_PREFIX}_")]
    others = {f"{ENV_PREFIX}_{name}" for name in _OTHER_VARIABLES}
    own = set(_variables(context.command.params, str(context.auto_envvar_prefix)))
    if set(given) <= own | others:
        return
    known = others | {
        variable
        for words, command in all_commands()
        for variable in _variables(command.params, "_".join((ENV_PREFIX, *map(str.upper, words))))
    }
    for name in sorted(set(given) - known):
        raise typer.BadParameter(f"no command reads the variable {name}{_nearest(name, known)}")


def all_commands() -> Iterator[tuple[Words, Any]]:
    """Every command that does something, with the words that call it. Imports all of cli/: for rare occasions."""
    from sft_toolkit.cli.main import build_app
    from sft_toolkit.cli.registry import COMMANDS

    for name in COMMANDS:
        group: Any = typer.main.get_command(build_app([name]))
        yield from _leaves((name,), group.commands[name])


def _leaves(words: Words, command: Any) -> Iterator[tuple[Words, Any]]:
    children: Mapping[str, Any] = getattr(command, "commands", {})
    for name, child in children.items():
        yield from _leaves((*words, name), child)
    if not children:
        yield words, command


def _strangers(table: dict[str, Any], words: Words, known: Mapping[Words, set[str]]) -> Iterator[str]:
    """What is wrong with the keys and tables below `words`."""
    within = {path: options for path, options in known.items() if path[: len(words)] == words}
    options = set().union(*within.values())
    tables = {path[len(words)] for path in within if len(path) > len(words)}
    for key, value in table.items():
        if isinstance(value, dict):
            if key in tables:
                yield from _strangers(value, (*words, key), known)
            else:
                yield f"no command has a table [{'.'.join((*words, key))}]{_nearest(key, tables)}"
        elif _option_name(key) not in options:
            whose = f"[{'.'.join(words)}] has" if words else "no command has"
            article = "no option" if words else "an option"
            yield f"{whose} {article} {key}{_nearest(_option_name(key), options)}"


def _nearest(name: str, known: Iterable[str]) -> str:
    import difflib

    found = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {found[0]}?" if found else ""


def _option_name(key: str) -> str:
    return key.replace("-", "_")


def _options(command: Any) -> Iterator[str]:
    return (parameter.name for parameter in command.params if parameter.name not in ("config", "help"))


def _variables(parameters: Iterable[Any], prefix: str) -> Iterator[str]:
    for parameter in parameters:
        yield f"{prefix}_{parameter.name.upper()}"
        if parameter.envvar:
            yield parameter.envvar


def _at(content: dict[str, Any], words: Words) -> dict[str, Any]:
    """The table under these words; empty where there is none."""
    for word in words:
        inner = content.get(word)
        content = inner if isinstance(inner, dict) else {}
    return content


def _values(table: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((key, value) for key, value in table.items() if not isinstance(value, dict))


def _table(words: Words) -> str:
    return f"[{'.'.join(words)}] " if words else ""
