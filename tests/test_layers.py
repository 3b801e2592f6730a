"""Which package may import which, read from the sources: the one table of layers, and proof that it can fail.

The three folders at the root are part of the one import package `sft_toolkit`, as pyproject.toml maps them. Imports
inside functions and under TYPE_CHECKING count like any other.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

MAPPED = {"cli": "sft_toolkit.cli", "labelers": "sft_toolkit.labelers", "packers": "sft_toolkit.packers"}

# From the ground up: a package may import itself and what stands on a line above it, as far as ALLOWED says.
# `ground` are the modules that lie in sft_toolkit itself.
LAYERS = [
    "packers",
    "labelers",
    "ground",
    "tool_calls",
    "formats.dialects",
    "formats",
    "verifiers",
    "chat",
    "shards",
    "running.drivers",
    "running",
    "teachers",
    "stages.effort",
    "stages.grade",
    "stages.pack",
    "stages",
    "stages.choosing",
    "stages.mix",
    "souping",
    "training",
    "mergemix",
    "reporting",
    "cli",
]
ALLOWED = {
    "packers": set(),
    "labelers": {"packers"},
    "ground": set(),
    "tool_calls": {"ground"},
    "formats.dialects": {"ground", "tool_calls"},
    "formats": {"ground", "tool_calls", "formats.dialects"},
    "verifiers": {"ground", "tool_calls", "formats.dialects"},
    "chat": {"ground", "tool_calls"},
    "shards": {"ground", "packers"},
    "running.drivers": {"ground"},
    "running": {"ground", "formats", "shards", "running.drivers"},
    "teachers": {"ground", "tool_calls", "formats.dialects", "formats", "chat", "shards", "running"},
    "stages.effort": {"ground", "labelers", "chat", "shards", "running", "teachers"},
    "stages.grade": {"ground", "labelers", "shards", "running", "teachers"},
    "stages.pack": {"ground", "packers", "shards", "running"},
    "stages": {"ground", "labelers", "tool_calls", "formats.dialects", "chat", "shards", "running", "teachers"},
    "stages.choosing": {
        "ground",
        "labelers",
        "tool_calls",
        "formats",
        "verifiers",
        "shards",
        "running",
        "stages",
    },
    "stages.mix": {"ground", "shards", "running", "stages"},
    "souping": {"ground", "shards"},
    "training": {"ground", "packers", "chat", "shards", "souping"},
    "mergemix": {"ground", "labelers", "shards", "running", "souping", "training"},
    "reporting": {
        "ground",
        "packers",
        "formats.dialects",
        "formats",
        "chat",
        "shards",
        "running",
        "stages.effort",
        "stages",
    },
}
ALLOWED["cli"] = {*LAYERS} - {"cli"}

# What the ground floor may use of the world outside.
GROUND_FLOOR_LIBRARIES = {"numpy", "polars", "fasttext", "numba", "scipy", "sklearn"}


def module_paths(root: Path) -> dict[str, Path]:
    """Every module of the product under its import name."""
    found = {}
    for top in ("sft_toolkit", *MAPPED):
        for path in (root / top).rglob("*.py"):
            parts = [part for part in path.relative_to(root / top).with_suffix("").parts if part != "__init__"]
            found[".".join([MAPPED.get(top, top), *parts])] = path
    return found


def imports_of(tree: ast.Module, modules: dict[str, Path]) -> Iterator[str]:
    """What a module imports: `from a import b` is a.b where that is a module, else a."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in modules else node.module


def package_of(module: str, modules: dict[str, Path]) -> str:
    package = module if modules[module].name == "__init__.py" else module.rpartition(".")[0]
    return package.removeprefix("sft_toolkit").removeprefix(".") or "ground"


def arrows(root: Path) -> Iterator[tuple[str, str]]:
    """(importing module, imported module), both of the product."""
    modules = module_paths(root)
    for module, path in modules.items():
        for name in imports_of(ast.parse(path.read_text()), modules):
            if name in modules and name != module:
                yield module, name


def breaches(root: Path) -> list[str]:
    """The arrows that the table does not allow."""
    modules = module_paths(root)
    found = set()
    for importer, imported in arrows(root):
        above, below = package_of(importer, modules), package_of(imported, modules)
        if above != below and imported != "sft_toolkit" and below not in ALLOWED[above]:
            found.add(f"{importer} -> {imported}")
    return sorted(found)


def test_imports_follow_the_table_of_layers() -> None:
    assert breaches(ROOT) == []


def test_the_table_itself_points_down_only() -> None:
    assert set(ALLOWED) == set(LAYERS)
    for package, allowed in ALLOWED.items():
        assert [name for name in allowed if LAYERS.index(name) >= LAYERS.index(package)] == []


def test_every_package_has_its_line() -> None:
    modules = module_paths(ROOT)
    assert {package_of(module, modules) for module in modules} == set(LAYERS)


def test_the_ground_floor_uses_arrays_and_text_alone() -> None:
    foreign = set()
    for folder in ("packers", "labelers"):
        for path in (ROOT / folder).glob("*.py"):
            names = {name.partition(".")[0] for name in imports_of(ast.parse(path.read_text()), {})}
            foreign |= names - GROUND_FLOOR_LIBRARIES - sys.stdlib_module_names - {"sft_toolkit"}
    assert foreign == set()


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("labelers/effort.py", "from sft_toolkit.training import trainer"),
        ("packers/plan.py", "import sft_toolkit.shards.jsonl"),
        ("sft_toolkit/errors.py", "from sft_toolkit.running.runner import run_stage"),
        ("sft_toolkit/souping/soup.py", "from sft_toolkit.training.train import run"),
        ("sft_toolkit/shards/output.py", "from sft_toolkit import running\nfrom sft_toolkit.running import runner"),
        ("sft_toolkit/training/train.py", "def late() -> None:\n    from sft_toolkit.cli import main"),
    ],
)
def test_a_planted_wrong_import_is_found(file: str, line: str, tmp_path: Path) -> None:
    for folder in ("sft_toolkit", *MAPPED):
        for path in (ROOT / folder).rglob("*.py"):
            copy = tmp_path / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(path.read_text())
    with (tmp_path / file).open("a") as source:
        source.write(f"\n{line}\n")
    importer = Path(file).stem
    assert [breach for breach in breaches(tmp_path) if f".{importer} -> " in breach]


def test_a_long_folder_says_why_it_is_one() -> None:
    folders = {path.parent for package in ("sft_toolkit", *MAPPED) for path in (ROOT / package).rglob("*.py")}
    for folder in folders:
        if len(list(folder.glob("*.py"))) > 20:
            assert "More than 20 modules, because" in (folder / "__init__.py").read_text(), folder
