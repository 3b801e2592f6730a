"""Folders that appear whole or not at all, and what is never replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.shards.whole_folder import require_free, whole_folder

MARK = "recipe.json"


def write(target: Path, text: str, *, force: bool = False) -> None:
    with whole_folder(target, MARK, force=force) as folder:
        (folder / MARK).write_text(text)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_appears_whole_and_its_parents_with_it(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b"
    with whole_folder(target, MARK, force=False) as folder:
        (folder / MARK).write_text("new")
        assert not target.exists()
    assert (target / MARK).read_text() == "new" and names(target.parent) == ["b"]


def test_what_a_killed_run_left_beside_it_neither_stops_the_next_nor_is_taken_for_its_own(tmp_path: Path) -> None:
    """Containers share process ids: a live run's folder must not be removed either."""
    target = tmp_path / "out"
    with pytest.raises(RuntimeError), whole_folder(target, MARK, force=False) as dead:
        (dead / "half").write_text("")
        dead.rename(tmp_path / ".out.1.tmp")
        raise RuntimeError
    write(target, "new")
    assert names(tmp_path) == [".out.1.tmp", "out"] and names(tmp_path / ".out.1.tmp") == ["half"]


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("old", [False, True])
def test_of_two_at_once_one_wins_whole_and_the_other_is_refused(tmp_path: Path, force: bool, old: bool) -> None:
    target = tmp_path / "out"
    if old:
        write(target, "old")
        force = True
    refused = pytest.raises(UsageError, match="out: another run has written it meanwhile")
    with refused, whole_folder(target, MARK, force=force) as folder:
        (folder / MARK).write_text("slow")
        write(target, "quick", force=force)
    assert (target / MARK).read_text() == "quick" and names(tmp_path) == ["out"]


def test_force_replaces_what_stood_there_at_the_beginning(tmp_path: Path) -> None:
    write(tmp_path / "out", "old")
    (tmp_path / "out" / "scores.jsonl").write_text("")
    with pytest.raises(UsageError, match="exists already"):
        write(tmp_path / "out", "new")
    write(tmp_path / "out", "new", force=True)
    assert (tmp_path / "out" / MARK).read_text() == "new" and names(tmp_path / "out") == [MARK]
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_of_something_else_and_a_file_are_never_replaced(tmp_path: Path, force: bool) -> None:
    (tmp_path / "mine").mkdir()
    require_free(tmp_path / "mine", MARK, force=force)
    (tmp_path / "mine" / "thesis.txt").write_text("…")
    with pytest.raises(UsageError, match=r"mine: is not empty and holds no recipe.json"):
        write(tmp_path / "mine", "new", force=force)
    with pytest.raises(UsageError, match=r"thesis.txt: is a file"):
        write(tmp_path / "mine" / "thesis.txt", "new", force=force)
    with pytest.raises(UsageError, match=r"thesis.txt: is a file"):
        write(tmp_path / "mine" / "thesis.txt" / "below", "new", force=force)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "…"


def test_a_failure_leaves_the_old_folder_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path / "out", "old")
    with pytest.raises(RuntimeError), whole_folder(tmp_path / "out", MARK, force=True):
        raise RuntimeError
    assert (tmp_path / "out" / MARK).read_text() == "old" and names(tmp_path) == ["out"]


def test_what_the_file_system_refuses_is_one_sentence_with_the_path(tmp_path: Path) -> None:
    refused = pytest.raises(ToolkitError, match=r"out/gone/x: No such file or directory")
    with refused, whole_folder(tmp_path / "out", MARK, force=False):
        (tmp_path / "out" / "gone" / "x").write_text("")
