"""Parts of an array job that run at the same time: each is begun in the middle of another, at a known block."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.running.options import RunOptions, Summary
from sft_toolkit.running.runner import run_stage
from sft_toolkit.stages.convert import ConvertStage
from sft_toolkit.stages.pack.two_passes import PackOptions, run_pack
from tests.token_shards import random_documents, write_token_folder

Job = Callable[..., Summary]


@pytest.fixture
def convert(tmp_path: Path) -> Job:
    """Converts 4 blocks of one record."""
    records = ({"id": f"r{n}", "messages": [{"role": "user", "content": "x" * n}]} for n in range(4))
    source = tmp_path / "in.jsonl.gz"
    source.write_bytes(gzip.compress(b"".join(json.dumps(record).encode() + b"\n" for record in records)))

    def job(output: Path, **more: Any) -> Summary:
        return run_stage(ConvertStage(), RunOptions([str(source)], output=str(output), rows_per_shard=1, **more))

    return job


@pytest.fixture
def pack(tmp_path: Path) -> Job:
    """Packs into some ten shards."""
    write_token_folder(tmp_path / "tokens", random_documents(600))

    def job(output: Path, **more: Any) -> Summary:
        run = RunOptions([str(tmp_path / "tokens")], output=str(output), rows_per_shard=4, **more)
        return run_pack(PackOptions(capacity=1024), run)

    return job


def once_finished(output: Path, block: int, then: Callable[[], object]) -> Callable[[Any], None]:
    """What to give a run as its `progress`: calls `then`, once, as soon as that block is finished."""
    left = [then]

    def progress(_: Any) -> None:
        if left and (output / ".progress" / f"part-{block:05d}.json").exists():
            left.pop()()

    return progress


def contents(folder: Path) -> dict[str, str]:
    files = (*folder.glob("part-*"), *folder.glob("index*"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("command", ["convert", "pack"])
def test_the_last_part_writes_the_manifest_also_where_it_passed_blocks_before_they_were_finished(
    command: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    job: Job = request.getfixturevalue(command)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    job(whole, workers=1)

    def first_part() -> None:
        assert not job(parts, workers=1, part=(0, 2)).complete

    last = job(parts, workers=1, part=(1, 2), progress=once_finished(parts, 1, first_part))
    assert last.complete
    manifests = [json.loads((folder / "manifest.json").read_text()) for folder in (whole, parts)]
    assert manifests[0]["shards"] == manifests[1]["shards"]
    assert manifests[0]["counters"] == manifests[1]["counters"]
    assert contents(parts) == contents(whole)


def test_a_part_that_still_passes_over_others_blocks_ends_well_when_they_finish_the_folder(
    convert: Job, tmp_path: Path
) -> None:
    output = tmp_path / "parts"

    def others() -> None:
        done = [convert(output, workers=1, part=(part, 4)).complete for part in (1, 2, 3)]
        assert done == [False, False, True]

    first = convert(output, workers=1, part=(0, 4), progress=once_finished(output, 0, others))
    assert first.finished_before
    assert json.loads((output / "manifest.json").read_text())["counters"]["out"] == 4
    assert not (output / ".progress").exists()
