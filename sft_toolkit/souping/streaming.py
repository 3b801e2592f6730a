"""Weighted sums of checkpoints, a chunk at a time: memory does not grow with the models.

Arithmetic: float64, inputs in their given order, starting from the first product (a sum that starts from zero turns -0
into +0), divided by the divisor, rounded once to the output's format. With integer coefficients this is the exact
rational mean rounded once, as long as the numerator fits 53 bits.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from sft_toolkit.errors import ToolkitError
from sft_toolkit.souping.agreed_tensors import Parameter
from sft_toolkit.souping.float_formats import FORMATS
from sft_toolkit.souping.model_files import ModelFiles
from sft_toolkit.souping.safetensors_file import BITS, Tensor
from sft_toolkit.souping.weights import Combination

CHUNK = 1 << 16
"""Elements per step: a float64 sum of 512 KiB stays in a second level cache."""

BLOCK = 1 << 21
"""Elements per turn of a thread, a multiple of CHUNK. Fixed, for the digests of blocks make up an input's digest."""

Digests = list[bytes]


@dataclass(frozen=True, slots=True)
class _Block:
    parameter: Parameter
    start: int
    stop: int


class _Buffers(threading.local):
    """What a thread needs for one chunk, whatever the number of inputs."""

    def __init__(self, outputs: int) -> None:
        self.stored = np.empty(CHUNK, np.float64)
        self.other = np.empty(CHUNK, np.float64)
        self.totals = [np.empty(CHUNK, np.float64) for _ in range(outputs)]


def write_combinations(
    parameters: Sequence[Parameter],
    combinations: Sequence[Combination],
    models: Sequence[ModelFiles],
    threads: int,
    advance: Callable[[int], None],
) -> list[str]:
    """Write one model per combination in a single pass over the inputs; `advance` hears of elements done.

    Returns each input's digest: XXH3-128 over its tensors in order of name (name, dtype, shape, digests of its blocks).
    Raises ToolkitError, naming the tensor, for NaN, infinity, overflow and integers that differ.
    """
    writer = _Writer(combinations, models)
    blocks = [block for parameter in parameters for block in _blocks(parameter)]
    digests: dict[str, list[Digests]] = {parameter.name: [] for parameter in parameters}
    with ThreadPoolExecutor(threads) as pool:
        try:
            for block, block_digests in zip(blocks, pool.map(writer.write, blocks), strict=True):
                digests[block.parameter.name].append(block_digests)
                advance(block.stop - block.start)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    inputs = range(len(parameters[0].sources)) if parameters else ()
    return [_content_digest(parameters, digests, position) for position in inputs]


def _blocks(parameter: Parameter) -> Iterator[_Block]:
    for start in range(0, parameter.elements, BLOCK):
        yield _Block(parameter, start, min(start + BLOCK, parameter.elements))


def _content_digest(parameters: Sequence[Parameter], digests: dict[str, list[Digests]], position: int) -> str:
    digest = xxhash.xxh3_128()
    for parameter in sorted(parameters, key=lambda parameter: parameter.name):
        source = parameter.sources[position]
        digest.update(f"{source.name}\0{source.dtype}\0{source.shape}\0".encode())
        for block_digests in digests[parameter.name]:
            digest.update(block_digests[position])
    return digest.hexdigest()


class _Writer:
    def __init__(self, combinations: Sequence[Combination], models: Sequence[ModelFiles]) -> None:
        self._combinations = combinations
        self._models = models
        self._buffers = _Buffers(len(models))

    def write(self, block: _Block) -> Digests:
        """Write one block into every model; returns the digest of each input's bytes."""
        write_chunk = self._average if block.parameter.averaged else self._copy
        digests = [xxhash.xxh3_128() for _ in block.parameter.sources]
        places = [model.places[block.parameter.name] for model in self._models]
        with ExitStack() as files, np.errstate(all="ignore"):
            sources = [files.enter_context(open(source.path, "rb", 0)) for source in block.parameter.sources]
            targets = [files.enter_context(open(place.path, "r+b", 0)) for place in places]
            width = BITS[block.parameter.dtype] // 8
            for start in range(block.start, block.stop, CHUNK):
                chunk = _Chunk(block.parameter, start, min(CHUNK, block.stop - start), [f.fileno() for f in sources])
                for target, place, stored in zip(targets, places, write_chunk(chunk, digests), strict=True):
                    _write_all(target.fileno(), stored.data.cast("B"), place.offset + start * width)
        return [digest.digest() for digest in digests]

    def _average(self, chunk: _Chunk, digests: Sequence[Any]) -> Iterator[NDArray[Any]]:
        totals = [total[: chunk.count] for total in self._buffers.totals]
        combinations = [combination.of(chunk.parameter.name) for combination in self._combinations]
        for position, digest in enumerate(digests):
            source_format = FORMATS[chunk.parameter.sources[position].dtype]
            stored = chunk.read(position, self._buffers.stored, source_format.storage)
            digest.update(stored)
            coefficients = [combination.coefficients[position] for combination in combinations]
            if not any(coefficients):
                chunk.require_finite(position, stored)
            for total, coefficient, combination in zip(totals, coefficients, combinations, strict=True):
                if coefficient:
                    source_format.accumulate(stored, coefficient, total, position == combination.first)

        target_format = FORMATS[chunk.parameter.dtype]
        output = self._buffers.stored.view(target_format.storage)[: chunk.count]
        for total, combination in zip(totals, combinations, strict=True):
            if not target_format.round_quotient(total, combination.divisor, output):
                chunk.explain_not_finite()
            yield output

    def _copy(self, chunk: _Chunk, digests: Sequence[Any]) -> Iterator[NDArray[Any]]:
        width = BITS[chunk.parameter.dtype] // 8
        storage = np.dtype(f"u{width}")
        first = chunk.read(0, self._buffers.stored, storage)
        digests[0].update(first)
        for position in range(1, len(digests)):
            other = chunk.read(position, self._buffers.other, storage)
            digests[position].update(other)
            if not np.array_equal(first, other):
                one, two = chunk.parameter.sources[0].path, chunk.parameter.sources[position].path
                fault = f"tensor {chunk.parameter.name} holds {chunk.parameter.dtype} that differ in {one} and {two}"
                raise ToolkitError(fault, "integers are copied, not averaged: they have to be equal")
        for _ in self._models:
            yield first


@dataclass(frozen=True, slots=True)
class _Chunk:
    """`count` elements from `start` of one parameter; `files` are descriptors of its sources."""

    parameter: Parameter
    start: int
    count: int
    files: Sequence[int]

    def read(self, position: int, buffer: NDArray[Any], storage: np.dtype[Any]) -> NDArray[Any]:
        """The elements of one source, in `buffer`."""
        stored = buffer.view(storage)[: self.count]
        source = self.parameter.sources[position]
        view = stored.view(np.uint8).data
        offset = source.offset + self.start * storage.itemsize
        while view.nbytes:
            got = os.preadv(self.files[position], [view], offset)
            if not got:
                raise ToolkitError(f"{source.path}: became shorter while tensor {source.name} was read")
            view, offset = view[got:], offset + got
        return stored

    def require_finite(self, position: int, stored: NDArray[Any]) -> None:
        source = self.parameter.sources[position]
        if not FORMATS[source.dtype].all_finite(stored):
            raise _not_finite(source)

    def explain_not_finite(self) -> None:
        """Raise ToolkitError: an input holds NaN or infinity, or the output's format is too narrow."""
        buffer = np.empty(CHUNK, np.float64)
        for position, source in enumerate(self.parameter.sources):
            self.require_finite(position, self.read(position, buffer, FORMATS[source.dtype].storage))
        fault = f"tensor {self.parameter.name} does not fit {self.parameter.dtype}: the average overflows"
        raise ToolkitError(fault, "choose a wider `dtype`")


def _not_finite(source: Tensor) -> ToolkitError:
    return ToolkitError(f"tensor {source.name} in {source.path} holds NaN or infinity", "leave this checkpoint out")


def _write_all(file: int, view: memoryview, offset: int) -> None:
    while view.nbytes:
        written = os.pwrite(file, view, offset)
        view, offset = view[written:], offset + written
