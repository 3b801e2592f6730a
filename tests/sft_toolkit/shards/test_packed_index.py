from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sft_toolkit.errors import ToolkitError
from sft_toolkit.packers.balance import DataSetMix
from sft_toolkit.shards.packed_index import INDEX, DataSetShares, read_index, write_index
from sft_toolkit.shards.schemas import PACKED
from sft_toolkit.shards.writer import shard_writer


def write_packed(path: Path, lengths: list[list[int]]) -> Path:
    """A packed shard with one row per list of document lengths."""
    with shard_writer(path, PACKED) as writer:
        for row in lengths:
            total = sum(row)
            writer.write(
                {
                    "input_ids": np.zeros(total, np.int32),
                    "loss_mask": np.ones(total, bool),
                    "cu_seqlens": np.cumsum([0, *row], dtype=np.int32),
                    "ids": [str(place) for place in range(len(row))],
                    "tokens": total,
                    "documents": len(row),
                    "loss_tokens": total,
                    "cost": sum(length**2 for length in row),
                }
            )
    return path


def test_an_index_comes_back_as_it_was_written(tmp_path: Path) -> None:
    shards = [write_packed(tmp_path / "0.arrow", [[3, 4], [5]]), write_packed(tmp_path / "1.arrow", [[6]])]
    mix = DataSetMix(np.array([0, 2, 3, 4]), np.array([1, 0, 1, 0]), np.array([3, 4, 5, 6]))
    shares = DataSetShares(mix, np.array([1, 1, 1, 1]), np.array([3, 4, 5, 6]))
    write_index(tmp_path / INDEX, shards, shares, ["a", "b"])
    index = read_index(tmp_path)
    assert index.shard.tolist() == [0, 0, 1]
    assert index.row.tolist() == [0, 1, 0]
    assert index.cost.tolist() == [25, 25, 36]
    assert index.tokens.tolist() == [7, 5, 6]
    assert index.shares.documents.tolist() == [1, 1, 1, 1]
    assert index.shares.loss_tokens.tolist() == [3, 4, 5, 6]
    per_sequence = index.mix.of(np.array([[0], [1], [2]]))
    assert per_sequence[:, [index.datasets.index("a"), index.datasets.index("b")]].tolist() == [[4, 3], [0, 5], [6, 0]]


def test_loss_that_the_masks_do_not_hold_is_refused(tmp_path: Path) -> None:
    shares = DataSetShares(DataSetMix(np.array([0, 1]), np.array([0]), np.array([7])), np.array([2]), np.array([6]))
    with pytest.raises(ToolkitError, match="not those of their loss masks"):
        write_index(tmp_path / INDEX, [write_packed(tmp_path / "0.arrow", [[3, 4]])], shares, ["a"])


def test_a_missing_or_damaged_index_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ToolkitError, match=r"index\.parquet") as caught:
        read_index(tmp_path)
    assert caught.value.hint == "pack the folder again"
    (tmp_path / INDEX).write_bytes(b"PAR1 not really")
    with pytest.raises(ToolkitError, match=r"index\.parquet"):
        read_index(tmp_path)
