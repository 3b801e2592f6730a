"""Reading headers strictly, writing them as the reference implementation reads them."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import deserialize

from sft_toolkit.errors import ToolkitError
from sft_toolkit.souping.safetensors_file import encode_header, read_tensors
from tests.sft_toolkit.souping.checkpoints import bfloat16, write_safetensors


def entry(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def write(path: Path, header: Any, data: bytes = bytes(8), header_size: int | None = None) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if header_size is None else header_size) + text + data)
    return path


def test_a_file_of_the_reference_implementation_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    write_safetensors(path, {"b": bfloat16(1, 2, 3), "a": bfloat16(4)})
    tensors = {tensor.name: tensor for tensor in read_tensors(path)}
    assert tensors["b"].shape == (3,) and tensors["b"].dtype == "BF16" and tensors["b"].size == 6
    content = path.read_bytes()
    assert content[tensors["a"].offset :][: tensors["a"].size] == bfloat16(4)[1].tobytes()


def test_tensors_come_in_the_order_of_their_bytes(tmp_path: Path) -> None:
    header = {"late": entry(shape=(1,), offsets=(4, 8)), "early": entry(shape=(1,), offsets=(0, 4))}
    assert [tensor.name for tensor in read_tensors(write(tmp_path / "x", header))] == ["early", "late"]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"[1]", "not a JSON object"),
        (b'{"a": ', "header is not JSON"),
        (b'{"a": {}, "a": {}}', "duplicate key a"),
        (b"\xff{}", "not a JSON object"),
        (b'{"\xff": 1}', "header is not JSON"),
        (b'{"a":' + b"[" * 100_000, "header is not JSON"),
        ({"a": 5}, "tensor a needs exactly"),
        ({"a": {"dtype": "F32", "shape": [2]}}, "tensor a needs exactly"),
        ({"a": {**entry(), "more": 1}}, "tensor a needs exactly"),
        ({"a": entry(dtype="F31")}, "tensor a has the unknown dtype F31"),
        ({"a": entry(dtype=["F32"])}, "tensor a has the unknown dtype"),
        ({"a": entry(shape=(-2,))}, r"tensor a has the shape \[-2\]"),
        ({"a": entry(shape=(True, 2))}, "tensor a has the shape"),
        ({"a": entry(shape=2)}, "tensor a has the shape 2"),
        ({"a": entry(offsets=(8, 0))}, "tensor a has the data offsets"),
        ({"a": entry(offsets=(0, 8, 8))}, "tensor a has the data offsets"),
        ({"a": entry(shape=(3,))}, r"tensor a: 8 bytes do not hold F32 of shape \[3\]"),
        ({"a": entry(shape=(2**40, 2**40, 2**40))}, "tensor a: 8 bytes do not hold"),
        ({"a": entry(), "b": entry()}, "tensor b overlaps the tensor before it"),
        ({"a": entry(shape=(1,), offsets=(0, 4)), "b": entry(offsets=(2, 10))}, "tensor b overlaps"),
        ({"a": entry(shape=(1,), offsets=(4, 8))}, "4 bytes before tensor a belong to no tensor"),
        ({"a": entry(shape=(1,), offsets=(0, 4))}, "4 bytes after the last tensor"),
        ({"a": entry(shape=(4,), offsets=(0, 16))}, r"tensor a ends at byte .*: not whole"),
        ({"a": entry(shape=(2**50,), offsets=(0, 2**52))}, r"tensor a ends at byte .*: not whole"),
    ],
)
def test_a_header_that_lies_is_refused(tmp_path: Path, header: Any, message: str) -> None:
    path = write(tmp_path / "x.safetensors", header)
    with pytest.raises(ToolkitError, match=message) as caught:
        read_tensors(path)
    assert str(path) in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("claimed", [2**63, 100_000_001, 10_000])
def test_a_header_longer_than_the_file_is_refused_without_being_read(tmp_path: Path, claimed: int) -> None:
    path = write(tmp_path / "x.safetensors", {"a": entry()}, header_size=claimed)
    with pytest.raises(ToolkitError, match=f"the header claims {claimed:,} bytes"):
        read_tensors(path)


@pytest.mark.parametrize("kept", [0, 5, 8, 40, -1])
def test_half_a_file_is_refused(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "x.safetensors"
    write_safetensors(path, {"a": bfloat16(1, 2, 3), "b": bfloat16(4)})
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ToolkitError, match=r"not whole|no safetensors file"):
        read_tensors(path)


SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)


@given(st.dictionaries(st.text(min_size=1), st.tuples(st.sampled_from(["BF16", "F64", "U8"]), SHAPES), max_size=5))
def test_a_written_header_is_what_the_reference_implementation_reads(tensors: dict[str, Any]) -> None:
    tensors.pop("__metadata__", None)
    ordered = sorted(
        ((name, *rest) for name, rest in tensors.items()), key=lambda entry: ("F64", "BF16", "U8").index(entry[1])
    )
    header = encode_header(ordered)
    assert len(header) % 8 == 0
    sizes = {"BF16": 2, "F64": 8, "U8": 1}
    total = sum(sizes[dtype] * _product(shape) for _, dtype, shape in ordered)
    read = {name: (entry["dtype"], tuple(entry["shape"])) for name, entry in deserialize(header + bytes(total))}
    assert read == {name: (dtype, shape) for name, dtype, shape in ordered}


def _product(shape: tuple[int, ...]) -> int:
    product = 1
    for size in shape:
        product *= size
    return product
