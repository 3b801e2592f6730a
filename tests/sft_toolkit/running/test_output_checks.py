"""What a run refuses before any work, so that no option destroys data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.errors import UsageError
from sft_toolkit.running.options import RunOptions
from sft_toolkit.running.runner import check_output, run_stage
from sft_toolkit.stages.convert import ConvertStage

RECORD = {"id": "a", "messages": [{"role": "user", "content": "Was kostet das?"}]}
LINE = json.dumps(RECORD) + "\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps(RECORD) + "\nno record\n")
    return path


def convert(source: Path | str, output: Path | str, **more: Any) -> None:
    run_stage(ConvertStage(), RunOptions([str(source)], output=str(output), workers=1, quarantine=True, **more))


@pytest.mark.parametrize("which", ["", "*.arrow", "quarantine/*.jsonl"])
def test_a_folder_that_holds_the_input_is_no_output_however_it_is_named(
    which: str, source: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "shards"
    convert(source, folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(UsageError, match="is input and output"):
        convert(folder / which, tmp_path / "shards" / ".." / "shards", force=True)
    with pytest.raises(UsageError, match="is input and output"):
        inputs = RunOptions([str(folder / which)], output=str(folder), force=True)
        check_output(ConvertStage(), inputs, known=False)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_folder_beside_the_input_is_an_output(source: Path, tmp_path: Path) -> None:
    convert(source, tmp_path / "shards")
    convert(tmp_path / "shards", tmp_path / "shards2")
    assert (tmp_path / "shards2" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("quarantine", "says"),
    [
        ("out.jsonl", "is the output"),
        ("../{here}/out.jsonl", "is the output"),
        ("in.jsonl", "is an input"),
    ],
)
def test_a_quarantine_file_is_neither_input_nor_output_also_by_force(
    quarantine: str, says: str, source: Path, tmp_path: Path
) -> None:
    before = source.read_bytes()
    named = tmp_path / quarantine.format(here=tmp_path.name)
    with pytest.raises(UsageError, match=says):
        convert(source, tmp_path / "out.jsonl", quarantine_file=str(named), force=True)
    assert source.read_bytes() == before
    assert not (tmp_path / "out.jsonl").exists()


def test_records_and_the_quarantine_do_not_mix_on_stdout(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="is the output"):
        convert(source, "-", quarantine_file="-")
    assert capsys.readouterr().out == ""


def test_a_quarantine_file_is_replaced_by_force_only_and_its_folder_made(source: Path, tmp_path: Path) -> None:
    rejected = tmp_path / "new" / "rejected.jsonl"
    convert(source, tmp_path / "out.jsonl", quarantine_file=str(rejected))
    assert json.loads(rejected.read_text())["reason"] == "not_json"
    rejected.write_text("precious")
    with pytest.raises(UsageError, match="exists"):
        convert(source, tmp_path / "other.jsonl", quarantine_file=str(rejected))
    assert rejected.read_text() == "precious"
    convert(source, tmp_path / "out.jsonl", quarantine_file=str(rejected), force=True)
    assert json.loads(rejected.read_text())["reason"] == "not_json"


LINKS: dict[str, Callable[[Path, Path], None]] = {
    "itself": lambda source, link: (source.rename(link), source.symlink_to(link))[-1],
    "a symbolic link": lambda source, link: link.symlink_to(source),
    "a hard link": lambda source, link: link.hardlink_to(source),
    "a link to a link": lambda source, link: (
        link.with_name("between").symlink_to(source),
        link.symlink_to(link.with_name("between")),
    )[-1],
}


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("as_quarantine", [False, True])
def test_an_input_is_never_written_over_not_with_force_nor_by_a_link(
    link: str, as_quarantine: bool, tmp_path: Path
) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(LINE)
    LINKS[link](source, output)
    with pytest.raises(UsageError, match=r"is (input and output|an input)"):
        if as_quarantine:
            convert(source, tmp_path / "other.jsonl", quarantine_file=str(output), force=True)
        else:
            convert(source, output, quarantine_file=str(tmp_path / "rejected.jsonl"), force=True)
    assert source.read_text() == LINE


def test_an_output_that_is_a_link_stays_one_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    source, link, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl", tmp_path / "disk" / "real.jsonl"
    source.write_text(LINE)
    target.parent.mkdir()
    link.symlink_to(target)
    convert(source, link, quarantine_file=str(tmp_path / "rejected.jsonl"))
    assert link.is_symlink() and target.read_text().count("\n") == 1


def test_what_a_killed_run_left_half_written_does_not_stop_force(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    convert(source, folder)
    (folder / ".manifest.json.0a1b2c3d.tmp").write_text("{")
    convert(source, folder, force=True)
    assert not list(folder.glob(".*.tmp"))


@pytest.mark.parametrize("name", ["out.json", "out.parquet", "out.jsonl.bz2", "out.gz"])
def test_a_file_of_a_kind_that_is_not_written_does_not_become_a_folder(name: str, source: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no kind of file that is written"):
        convert(source, tmp_path / name)
    assert not (tmp_path / name).exists()
    (tmp_path / name).mkdir()
    convert(source, tmp_path / name)
    assert (tmp_path / name / "manifest.json").exists()


def test_a_folder_may_have_a_dot_in_its_name(source: Path, tmp_path: Path) -> None:
    convert(source, tmp_path / "letters-v1.2")
    assert (tmp_path / "letters-v1.2" / "manifest.json").exists()
