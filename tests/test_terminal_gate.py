"""Everything that is printed for people goes through one filter: found by looking at every place that prints."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILTERS = {"visible", "one_line", "encode_text"}
"""The last writes JSON, in which control characters are escaped."""
PRINTED_FILTERED = {
    "cli/console.py": {"table"},
    "cli/check.py": {"table"},
    "cli/inspect.py": {"Text.assemble(*line)"},
    "cli/completion.py": {"SCRIPTS[shell](completed_commands())"},
}
"""What is handed to rich, by file, its texts filtered where cells or lines were made; and a script of our own words."""


def is_safe(node: ast.expr) -> bool:
    """True for what holds no text from outside: literals, names of constants, and what a filter returned."""
    match node:
        case ast.Constant():
            return True
        case ast.Name(name):
            return name.isupper()
        case ast.Call(func=ast.Name(name)):
            return name in FILTERS
        case ast.JoinedStr(parts):
            return all(is_safe(part) for part in parts)
        case ast.FormattedValue(value):
            return is_safe(value)
        case ast.IfExp(body=body, orelse=orelse):
            return is_safe(body) and is_safe(orelse)
        case ast.BinOp(left=left, right=right):
            return is_safe(left) and is_safe(right)
    return False


def printing(tree: ast.AST) -> Iterator[ast.Call]:
    """Calls of print, of a console's print, and of write on stdout or stderr."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called == "print" or called.endswith((".print", "stdout.write", "stderr.write")):
            yield node


def unfiltered(source: str, allowed: set[str]) -> list[int]:
    """Lines that print what no filter has seen."""
    return [
        call.lineno
        for call in printing(ast.parse(source))
        if not all(is_safe(argument) or ast.unparse(argument) in allowed for argument in call.args)
    ]


@pytest.mark.parametrize(
    "path",
    [path for top in ("cli", "sft_toolkit") for path in sorted((ROOT / top).rglob("*.py"))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_nothing_reaches_a_terminal_unfiltered(path: Path) -> None:
    allowed = PRINTED_FILTERED.get(path.relative_to(ROOT).as_posix(), set())
    assert unfiltered(path.read_text(encoding="utf-8"), allowed) == []


@pytest.mark.parametrize(
    "source",
    ["print(name)", "print(f'{name}: done')", "sys.stderr.write(text)", "Console().print(text)", "print('a' + b)"],
)
def test_the_scan_finds_what_is_printed_as_it_came(source: str) -> None:
    assert unfiltered(source, set()) == [1]
