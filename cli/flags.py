"""How a command speaks of its options: parameters that a library's error names become the flags of the command.

Below cli/ an error writes a parameter as `name`, a value of it as `name=value`, and a parameter of another command as
`command(name)`. A person at the command line reads `--name`, `--name value` and `kolibri-sft command --name`; where
the value that is at fault came from a variable or a file, the message says which.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import Any, Literal, get_args, get_origin

import typer

from sft_toolkit.cli.settings import CONFIG_KEYS

RUNNING: ContextVar[typer.Context | None] = ContextVar("running", default=None)
"""The context of the command that runs."""

CLI_NAMES = {
    "quarantine": "on_error",
    "quarantine_file": "quarantine",
    "part": "shard",
    "shuffle": "no_shuffle",
    "failure_patterns": "failure_pattern",
    "known_tools": "known_tool",
    "unknown_tool_patterns": "unknown_tool_pattern",
    "invalid_arguments_patterns": "invalid_arguments_pattern",
    "template_variables": "template_variable",
    "compare": "ab",
    "instruction": "system",
    "form": "answers",
    "every_turn": "all_turns",
    "timeout": "score_timeout",
    "reports": "report",
    "fields": "field",
    "low": "pass_rate",
    "high": "pass_rate",
}
"""Names of parameters below cli/ that differ from those of the command."""
_WRITTEN_OTHERWISE = {"quarantine=True": "--on-error quarantine", "shuffle=False": "--no-shuffle"}
_NAMED = re.compile(r"`(?:(?P<command>[a-z][a-z ]*)\()?(?P<name>[a-z]\w*)(?:=(?P<value>[^`]*?))?\)?`")


def spelled(text: str) -> str:
    """`text` with the flags of the running command in place of the parameters that it names."""
    return _NAMED.sub(lambda named: _flag(named) or named.group(), text)


def source_of(text: str) -> str:
    """Where the value of the first parameter that `text` names came from, "" where that is the command line."""
    named = _NAMED.search(text)
    parameter = None if named is None or named["command"] else _parameter(named["name"])
    context = RUNNING.get()
    return "" if parameter is None or context is None else value_source(parameter, context)


def flag_of(parameter: Any) -> str:
    """What a parameter is called in help: its long flag, or the name of an argument."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    return str(max(parameter.opts, key=len))


def choices_of(parameter: Any) -> tuple[str, ...]:
    """The values of a parameter that has a fixed choice, else none."""
    annotation = parameter.type_descriptor.annotation
    literals = [kind for kind in (annotation, *get_args(annotation)) if get_origin(kind) is Literal]
    return get_args(literals[0]) if literals else ()


def value_source(parameter: Any, context: typer.Context) -> str:
    """The variable, or the file and the key in it, that a parameter's value came from; "" where that is neither."""
    source = context.get_parameter_source(parameter.name)
    match source.name if source else "":
        case "ENVIRONMENT":
            return parameter.envvar or f"{context.auto_envvar_prefix}_{parameter.name.upper()}"
        case "DEFAULT_MAP":
            return str(context.meta[CONFIG_KEYS][parameter.name])
    return ""


def _flag(named: re.Match[str]) -> str | None:
    name, value = named["name"], named["value"]
    if named["command"]:
        return _valued(f"kolibri-sft {named['command']} {_dashed(name)}", value)
    if (written := _WRITTEN_OTHERWISE.get(f"{name}={value}")) is not None:
        return written
    parameter = _parameter(name)
    if parameter is None:
        return None if value is None else _valued(_dashed(name), value)
    return _valued(flag_of(parameter), value)


def _dashed(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _valued(flag: str, value: str | None) -> str:
    return flag if value in (None, "True") else f"{flag} {value}"


def _parameter(name: str) -> Any | None:
    """The running command's own parameter of this name, or that which stands for it."""
    context = RUNNING.get()
    own = {} if context is None else {parameter.name: parameter for parameter in context.command.params}
    return own.get(CLI_NAMES.get(name, name), own.get(name))
