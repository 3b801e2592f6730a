"""Finding a checkpoint's tensors, in one file or in several with an index."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from sft_toolkit.errors import ToolkitError
from sft_toolkit.souping.checkpoint import in_order, open_checkpoint
from tests.sft_toolkit.souping.checkpoints import bfloat16, write_safetensors

FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    write_safetensors(tmp_path / FIRST, {"a": bfloat16(1)})
    write_safetensors(tmp_path / SECOND, {"b": bfloat16(2), "c": bfloat16(3)})
    write_index(tmp_path, {"a": FIRST, "b": SECOND, "c": SECOND})
    return tmp_path


def write_index(folder: Path, weight_map: Mapping[str, object]) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


def refusal(path: Path) -> str:
    with pytest.raises(ToolkitError) as caught:
        open_checkpoint(path)
    assert str(path) in caught.value.message
    return caught.value.message + "; " + caught.value.hint


def test_a_sharded_checkpoint_gives_the_tensors_of_all_its_files(sharded: Path) -> None:
    checkpoint = open_checkpoint(sharded)
    assert {name: tensor.path.name for name, tensor in checkpoint.tensors.items()} == {
        "a": FIRST,
        "b": SECOND,
        "c": SECOND,
    }


def test_a_bare_file_is_a_checkpoint_without_side_files(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "x.safetensors", {"a": bfloat16(1)})
    assert open_checkpoint(tmp_path / "x.safetensors").folder is None


def test_an_index_that_names_a_missing_file_is_stale(sharded: Path) -> None:
    (sharded / SECOND).unlink()
    assert f"names {SECOND}, which is missing, for tensor b" in refusal(sharded)


def test_an_index_that_does_not_know_a_file_beside_it_is_stale(sharded: Path) -> None:
    write_safetensors(sharded / "model-00003-of-00003.safetensors", {"d": bfloat16(1)})
    assert "does not name model-00003-of-00003.safetensors" in refusal(sharded)


def test_an_index_that_forgets_a_tensor_is_stale(sharded: Path) -> None:
    write_index(sharded, {"a": FIRST, "b": SECOND})
    assert f"does not place tensor c in {SECOND}" in refusal(sharded)


def test_an_index_that_invents_a_tensor_is_stale(sharded: Path) -> None:
    write_index(sharded, {"a": FIRST, "b": SECOND, "c": SECOND, "d": FIRST})
    assert f"places tensor d in {FIRST}, where it is not" in refusal(sharded)


def test_an_index_beside_a_single_file_is_stale_or_the_file_is(sharded: Path) -> None:
    write_safetensors(sharded / "model.safetensors", {"a": bfloat16(1)})
    assert "one of them is stale" in refusal(sharded)


def test_a_tensor_in_two_files_is_refused(sharded: Path) -> None:
    write_safetensors(sharded / SECOND, {"a": bfloat16(1), "b": bfloat16(2), "c": bfloat16(3)})
    assert "tensor a is in " in refusal(sharded)


@pytest.mark.parametrize("place", ["../elsewhere.safetensors", "/etc/passwd", 5, None])
def test_an_index_that_leads_out_of_its_folder_is_refused(sharded: Path, place: object) -> None:
    write_index(sharded, {"a": place})
    assert "tensor a is said to be in" in refusal(sharded)


@pytest.mark.parametrize("text", ["", "[]", '{"weight_map": {}}', '{"weight_map": 1}', "[" * 100_000])
def test_an_index_that_is_none_is_refused(sharded: Path, text: str) -> None:
    (sharded / "model.safetensors.index.json").write_text(text)
    assert "not JSON" in refusal(sharded) or "no weight_map" in refusal(sharded)


@pytest.mark.parametrize(
    ("present", "hint"),
    [
        ("pytorch_model.bin", "download it again"),
        ("adapter_model.safetensors", "merge it into its base first"),
        ("README.md", "that transformers can load"),
    ],
)
def test_a_folder_without_safetensors_is_refused_with_what_to_do(tmp_path: Path, present: str, hint: str) -> None:
    (tmp_path / present).write_bytes(b"")
    assert hint in refusal(tmp_path)


def test_a_path_to_nowhere_is_refused(tmp_path: Path) -> None:
    assert "no such checkpoint" in refusal(tmp_path / "nowhere")


def test_checkpoints_are_ordered_by_name_before_path() -> None:
    paths = [Path("/b/run-1"), Path("/a/run-2"), Path("/a/run-1")]
    assert in_order(paths) == [Path("/a/run-1"), Path("/b/run-1"), Path("/a/run-2")]
