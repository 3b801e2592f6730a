"""Files that appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from sft_toolkit.errors import ToolkitError
from sft_toolkit.shards.atomic import atomic_path, write_text, write_text_once


def test_two_writers_of_one_target_do_not_meet_also_where_they_share_a_process_id(tmp_path: Path) -> None:
    target = tmp_path / "run.json"
    with atomic_path(target) as first:
        first.write_text("first")
        with atomic_path(target) as second:
            second.write_text("second")
        assert target.read_text() == "second"
    assert target.read_text() == "first"
    assert list(tmp_path.iterdir()) == [target]


def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "run.json"
    write_text(target, "old")
    with pytest.raises(RuntimeError), atomic_path(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_an_error_names_the_target_not_the_temporary_file(tmp_path: Path) -> None:
    target = tmp_path / "gone" / "run.json"
    with pytest.raises(ToolkitError) as caught:
        write_text(target, "x")
    assert caught.value.message == f"{target}: No such file or directory"


def test_of_two_that_write_once_the_first_wins(tmp_path: Path) -> None:
    target = tmp_path / "run.json"
    assert write_text_once(target, "first")
    assert not write_text_once(target, "second")
    assert target.read_text() == "first" and list(tmp_path.iterdir()) == [target]
