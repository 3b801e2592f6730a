"""What makes a shell complete a command line: one table of all commands, written in the language of each shell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

from sft_toolkit.cli.flags import choices_of
from sft_toolkit.cli.registry import COMMANDS
from sft_toolkit.cli.settings import all_commands

FILE, FOLDER, ANYTHING = "file", "folder", "anything"
_PATHS_AS_TEXT = ("output", "quarantine")


class Option(NamedTuple):
    """`value`: None for a flag without one, else its choices, or one of FILE, FOLDER and ANYTHING."""

    names: tuple[str, ...]
    help: str
    value: tuple[str, ...] | str | None


class Command(NamedTuple):
    """`path`: its words as in /effort/label. A group has the commands below it as `words`, with a line on each."""

    path: str
    options: list[Option]
    words: dict[str, str]


def completed_commands() -> list[Command]:
    """The top, the groups and all commands."""
    leaves = list(all_commands())
    found = [Command("", [Option(("--version",), "Show the version.", None)], {n: e.help for n, e in COMMANDS.items()})]
    groups: dict[str, dict[str, str]] = defaultdict(dict)
    for words, command in leaves:
        if len(words) > 1:
            groups["/" + "/".join(words[:-1])][words[-1]] = _line(command.help)
    found += [Command(path, [], words) for path, words in groups.items()]
    return found + [_completed("/" + "/".join(words), command) for words, command in leaves]


def _completed(path: str, command: Any) -> Command:
    options = [Option(("--help",), "Show this help.", None)]
    words: dict[str, str] = {}
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            words |= dict.fromkeys(choices_of(parameter), "")
        else:
            names = (*parameter.opts, *parameter.secondary_opts)
            options.append(Option(names, _line(parameter.help), _value(parameter)))
    return Command(path, options, words)


def _value(parameter: Any) -> tuple[str, ...] | str | None:
    if parameter.is_flag:
        return None
    if choices := choices_of(parameter):
        return tuple(map(str, choices))
    if parameter.metavar == "DIR":
        return FOLDER
    annotation = parameter.type_descriptor.annotation
    takes_path = Path in (annotation, *get_args(annotation)) or any(Path in get_args(a) for a in get_args(annotation))
    return FILE if takes_path or parameter.name in _PATHS_AS_TEXT else ANYTHING


def _line(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())


def _values(commands: list[Command]) -> Iterator[tuple[tuple[str, ...] | str, list[str]]]:
    """Each kind of value, with all `PATH OPTION` that take one of it."""
    takers: dict[tuple[str, ...] | str, list[str]] = defaultdict(list)
    for command in commands:
        for option in command.options:
            if option.value is not None:
                takers[option.value] += [f"{command.path} {name}" for name in option.names]
    yield from takers.items()


def _walk(commands: list[Command]) -> str:
    return "|".join(command.path for command in commands if command.path)


def bash(commands: list[Command]) -> str:
    """A function for bash 4 and later."""
    lines = [
        "# kolibri-sft completion bash",
        "_kolibri_sft() {",
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at= word",
        '    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
        '        case "$at/$word" in',
        f"            {_walk(commands)}) at=$at/$word ;;",
        "        esac",
        "    done",
        '    case "$at $prev" in',
    ]
    kinds = {FILE: "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f", ANYTHING: "COMPREPLY=(); return ;;"}
    kinds[FOLDER] = "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d"
    for value, takers in _values(commands):
        how = f"mapfile -t COMPREPLY < <(compgen -W '{' '.join(value)}'" if isinstance(value, tuple) else kinds[value]
        ending = "" if value == ANYTHING else ' -- "$cur"); return ;;'
        lines.append(f"        {'|'.join(map(_quoted, takers))}) {how}{ending}")
    lines += ["    esac", "    local options= words=", '    case "$at" in']
    for command in commands:
        options = " ".join(name for option in command.options for name in option.names)
        lines.append(f"        {_quoted(command.path)}) options='{options}' words='{' '.join(command.words)}' ;;")
    lines += [
        "    esac",
        '    if [[ $cur == -* ]]; then mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")',
        '    elif [[ -n $words ]]; then mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")',
        '    else compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); fi',
        "}",
        "complete -F _kolibri_sft kolibri-sft",
    ]
    return "\n".join(lines) + "\n"


def zsh(commands: list[Command]) -> str:
    """A function for a file of $fpath, which may also be sourced."""
    lines = [
        "#compdef kolibri-sft",
        "_kolibri_sft() {",
        "    local at= word",
        "    local -a options texts",
        "    for word in ${words[2,CURRENT-1]}; do",
        '        case "$at/$word" in',
        f"            ({_walk(commands)}) at=$at/$word ;;",
        "        esac",
        "    done",
        '    case "$at ${words[CURRENT-1]}" in',
    ]
    kinds = {FILE: "_files", FOLDER: "_files -/", ANYTHING: "_message value"}
    for value, takers in _values(commands):
        how = f"compadd -- {' '.join(value)}" if isinstance(value, tuple) else kinds[value]
        lines.append(f"        ({'|'.join(map(_quoted, takers))}) {how}; return ;;")
    lines += ["    esac", '    case "$at" in']
    for command in commands:
        options = [_quoted(_described(name, option.help)) for option in command.options for name in option.names]
        texts = [_quoted(_described(word, said)) for word, said in command.words.items()]
        lines.append(f"        ({_quoted(command.path)}) options=({' '.join(options)}) texts=({' '.join(texts)}) ;;")
    lines += [
        "    esac",
        "    if [[ ${words[CURRENT]} == -* ]]; then _describe option options",
        "    elif (( $#texts )); then _describe command texts",
        "    else _files; fi",
        "}",
        "if [[ $funcstack[1] == _kolibri-sft ]]; then _kolibri_sft; else compdef _kolibri_sft kolibri-sft; fi",
    ]
    return "\n".join(lines) + "\n"


def fish(commands: list[Command]) -> str:
    """A file of `complete` lines."""
    lines = [
        "# kolibri-sft completion fish",
        "function __kolibri_sft_at",
        "    set -l at ''",
        "    for word in (commandline -opc)[2..]",
        '        switch "$at/$word"',
        f"            case {_walk(commands).replace('|', ' ')}",
        '                set at "$at/$word"',
        "        end",
        "    end",
        '    test "$at" = "$argv[1]"',
        "end",
        "complete -c kolibri-sft -f",
    ]
    for command in commands:
        here = f"complete -c kolibri-sft -n '__kolibri_sft_at \"{command.path}\"'"
        lines += [f"{here} -a {word} -d {_fish_quoted(said)}" for word, said in command.words.items()]
        lines += [f"{here} -F"] if not command.words else []
        for option in command.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            lines.append(f"{here} {names} -d {_fish_quoted(option.help)}{_fish_value(option.value)}")
    return "\n".join(lines) + "\n"


def _fish_value(value: tuple[str, ...] | str | None) -> str:
    if isinstance(value, tuple):
        return f" -x -a '{' '.join(value)}'"
    kinds = {None: "", FILE: " -r -F", FOLDER: " -x -a '(__fish_complete_directories)'", ANYTHING: " -x"}
    return kinds[value]


def _described(name: str, said: str) -> str:
    return f"{name}:{said}" if said else name


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SCRIPTS: dict[str, Callable[[list[Command]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
