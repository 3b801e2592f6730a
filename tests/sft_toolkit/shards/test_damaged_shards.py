"""Shards whose bytes are not those that were written: every reader says so in one line, none crashes or trusts them."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sft_toolkit.errors import ToolkitError
from sft_toolkit.running.options import RunOptions
from sft_toolkit.running.runner import run_stage
from sft_toolkit.shards.shard_folder import MANIFEST, ShardFolder
from sft_toolkit.shards.sources import Source
from sft_toolkit.stages.convert import ConvertStage
from sft_toolkit.stages.mix.mixing import MixOptions, run_mix
from sft_toolkit.stages.mix.mixture_file import Ingredient, Mixture
from sft_toolkit.stages.pack.two_passes import PackOptions, run_pack
from tests.conftest import CASES, RunCli
from tests.token_shards import random_documents, write_token_folder

HOSTILE = CASES / "hostile"
FLIPS = 40


def run_options(folder: Path, output: Path, **more: Any) -> RunOptions:
    return RunOptions(inputs=[str(folder)], output=str(output), workers=1, force=True, **more)


def convert(folder: Path, output: Path) -> None:
    run_stage(ConvertStage(), run_options(folder, output))


def mix(folder: Path, output: Path) -> None:
    run_mix(MixOptions(Mixture({"maths": Ingredient(epochs=1)}, None, 1)), run_options(folder, output))


def pack(folder: Path, output: Path, **more: Any) -> None:
    run_pack(PackOptions(capacity=4096), run_options(folder, output, **more))


def record_folder(path: Path) -> Path:
    lines = [
        json.dumps(
            {"id": f"r{n}", "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
        )
        for n in range(50)
    ]
    given = path.with_suffix(".jsonl")
    given.write_text("\n".join(lines) + "\n")
    convert(given, path)
    return path


def token_folder(path: Path) -> Path:
    return write_token_folder(path, random_documents(50, longest=90), shards=2)


def with_shard(folder: Path, shard: Path) -> None:
    """Put a damaged shard in place of the first, with a manifest that knows its size and not its checksum."""
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["shards"] = manifest["shards"][:1]
    manifest["shards"][0]["bytes"] = shard.stat().st_size
    (folder / MANIFEST).write_text(json.dumps(manifest))
    shutil.copy(shard, folder / manifest["shards"][0]["name"])


@pytest.mark.parametrize(
    ("written", "read"),
    [(record_folder, convert), (token_folder, pack), (token_folder, mix)],
    ids=["record", "pack", "mix"],
)
def test_any_flipped_byte_of_a_shard_is_found_before_a_stage_writes(
    tmp_path: Path, written: Callable[[Path], Path], read: Callable[[Path, Path], None]
) -> None:
    folder = written(tmp_path / "whole")
    draw = random.Random(18)
    for _ in range(FLIPS):
        shard = draw.choice(ShardFolder(folder).paths)
        whole = bytearray(shard.read_bytes())
        place = draw.randrange(len(whole))
        whole[place] ^= draw.randrange(1, 256)
        kept = shard.read_bytes()
        shard.write_bytes(whole)
        with pytest.raises(ToolkitError, match=f"{shard.name}: damaged|not a whole Arrow file"):
            read(folder, tmp_path / "out")
        assert not (tmp_path / "out" / MANIFEST).exists()
        shard.write_bytes(kept)
    read(folder, tmp_path / "out")


UNCHECKED = """
import random, sys
from pathlib import Path
from sft_toolkit.errors import RecordError, ToolkitError
from tests.sft_toolkit.shards.test_damaged_shards import pack
folder, out = map(Path, sys.argv[1:])
shard, draw = folder / "part-00000.arrow", random.Random(5)
whole, refused = shard.read_bytes(), 0
for _ in range(150):
    damaged = bytearray(whole)
    for _ in range(16):
        damaged[draw.randrange(len(damaged))] = draw.randrange(256)
    shard.write_bytes(damaged)
    try:
        pack(folder, out, checksums=False)
    except (RecordError, ToolkitError):
        refused += 1
print(refused)
"""


def test_without_checksums_damage_ends_in_an_error_or_in_other_tokens_never_in_a_crash(tmp_path: Path) -> None:
    folder = token_folder(tmp_path / "tokens")
    done = subprocess.run(
        [sys.executable, "-c", UNCHECKED, folder, tmp_path / "out"], capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert 20 < int(done.stdout) <= 150


@pytest.mark.parametrize("options", [(), ("--no-checksums",)], ids=["checksums", "no checksums"])
def test_a_token_shard_that_would_end_the_process_is_refused(
    tmp_path: Path, run_cli: RunCli, options: tuple[str, ...]
) -> None:
    folder = token_folder(tmp_path / "tokens")
    with_shard(folder, HOSTILE / "segfault_token_shard.arrow")
    done = run_cli("pack", folder, "-o", tmp_path / "out", *options)
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert b"part-00000.arrow: damaged: " in done.stderr


def test_a_packed_shard_that_would_abort_the_process_is_refused(
    tmp_path: Path, run_cli: RunCli, sample_data: Path
) -> None:
    pack(token_folder(tmp_path / "tokens"), tmp_path / "packed")
    with_shard(tmp_path / "packed", HOSTILE / "abort_packed_shard.arrow")
    done = run_cli("inspect", tmp_path / "packed", "--tokenizer", sample_data / "tokenizer")
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert b"part-00000.arrow: damaged: " in done.stderr


SHARD = {"name": "part-00000.arrow", "rows": 1, "tokens": 1, "bytes": 1, "blake2b": "0"}


@pytest.mark.parametrize(
    "change",
    [
        {"shards": None},
        {"shards": [5]},
        {"shards": [{}]},
        {"shards": "part-00000.arrow"},
        {"shards": {"0": SHARD}},
        {"shards": [{**SHARD, "name": 5}]},
        {"shards": [{**SHARD, "rows": "1"}]},
        {"shards": [{**SHARD, "rows": -1}]},
        {"shards": [{**SHARD, "bytes": 1.5}]},
        {"shards": [{**SHARD, "blake2b": None}]},
        {"shards": [{**SHARD, "name": "../other.arrow"}]},
        {"shards": [{**SHARD, "name": "/etc/passwd"}]},
        {"shards": [{**SHARD, "name": "sub/part.arrow"}]},
        {"shards": [{**SHARD, "name": "..\\other.arrow"}]},
        {"shards": [{**SHARD, "name": "a\0b"}]},
        {"shards": [{**SHARD, "name": ".."}]},
        {"shards": [{**SHARD, "name": ""}]},
        {"shards": [{**SHARD, "name": "x" * 5000}]},
        {"schema": "pickles"},
        {"schema": None},
        {"schema": ["tokens"]},
    ],
    ids=str,
)
def test_a_manifest_of_another_shape_is_refused_by_name(tmp_path: Path, change: dict[str, Any]) -> None:
    folder = token_folder(tmp_path / "tokens")
    path = folder / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ToolkitError, match=f"{MANIFEST}: not a manifest of this tool"):
        ShardFolder(folder)
    with pytest.raises(ToolkitError, match=f"{MANIFEST}: not a manifest of this tool"):
        Source([str(folder)])


@pytest.mark.parametrize("text", ["null", "[]", "5", '"x"', "{", "{}", '{"schema_version": 1}', "[" * 5000])
def test_a_manifest_that_is_no_object_of_ours_is_refused_by_name(tmp_path: Path, text: str) -> None:
    folder = token_folder(tmp_path / "tokens")
    (folder / MANIFEST).write_text(text)
    with pytest.raises(ToolkitError, match=f"{MANIFEST}: not a manifest of this tool"):
        ShardFolder(folder)


@pytest.mark.parametrize(
    "files",
    [[{"filename": "../x.arrow"}], [{"filename": "/etc/passwd"}], [{"filename": 5}], [5], [{}], [None], [["x.arrow"]]],
    ids=str,
)
def test_a_state_file_names_files_beside_it_and_nothing_else(tmp_path: Path, files: list[Any]) -> None:
    (tmp_path / "state.json").write_text(json.dumps({"_data_files": files}))
    with pytest.raises(ToolkitError, match=r"state\.json: .* is not the name of a file beside it"):
        Source([str(tmp_path)])


def test_nothing_of_the_machine_gets_into_the_quarantine(tmp_path: Path, run_cli: RunCli) -> None:
    shutil.copy(HOSTILE / "state.json", tmp_path / "state.json")
    rejected = tmp_path / "q.jsonl"
    done = run_cli("convert", tmp_path, "-o", "-", "--on-error", "quarantine", "--quarantine", rejected)
    assert done.returncode in (1, 2)
    assert b"state.json: " in done.stderr and not rejected.exists()


def test_a_column_whose_name_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    table = pa.table({"messages": ["[]"], "columnname": ["x"]})
    with pa.ipc.new_file(path, table.schema) as sink:
        sink.write(table)
    path.write_bytes(path.read_bytes().replace(b"columnname", b"column\xa4ame"))
    with pytest.raises(ToolkitError, match=r"x\.arrow: "):
        convert(path, tmp_path / "out")


def test_splits_of_any_kind_are_named(tmp_path: Path) -> None:
    (tmp_path / "dataset_dict.json").write_text('{"splits": [1, "test"]}')
    with pytest.raises(ToolkitError, match="several splits"):
        Source([str(tmp_path)])
