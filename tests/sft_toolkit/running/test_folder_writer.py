"""The one writer of shard folders: what a manifest states is what ran, whichever command wrote it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.running.options import RunOptions
from sft_toolkit.running.runner import run_stage
from sft_toolkit.stage import StageOptions
from sft_toolkit.stages.mask import MaskStage
from sft_toolkit.stages.mix.mixing import MixOptions, run_mix
from sft_toolkit.stages.mix.mixture_file import Ingredient, Mixture
from sft_toolkit.stages.pack.two_passes import PackOptions, run_pack
from tests.token_shards import random_documents, write_token_folder

RECORD = {"id": "a", "messages": [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}]}


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_token_folder(tmp_path_factory.mktemp("tokens") / "T", random_documents(60))


@pytest.fixture
def records(tmp_path: Path) -> Path:
    (tmp_path / "in.jsonl").write_text(json.dumps(RECORD) + "\n")
    return tmp_path / "in.jsonl"


def manifest_of(command: Callable[..., Any], options: StageOptions, source: Path, output: Path, **run: Any) -> Any:
    command(options, RunOptions([str(source)], output=str(output), workers=1, **run))
    return json.loads((output / "manifest.json").read_text())


def test_a_packed_folder_states_the_seed_and_options_that_made_it(tokens: Path, tmp_path: Path) -> None:
    manifest = manifest_of(run_pack, PackOptions(capacity=1000, seed=5), tokens, tmp_path / "P", rows_per_shard=7)
    assert manifest["seed"] == 5
    assert manifest["options"] == {
        "capacity": {"value": 1000, "from": "caller"},
        "k": {"value": 256, "from": "default"},
        "method": {"value": "nkf", "from": "default"},
        "overlong": {"value": "error", "from": "default"},
        "shuffle": {"value": True, "from": "default"},
        "labels": {"value": False, "from": "default"},
        "seed": {"value": 5, "from": "caller"},
        "source_format": {"value": "auto", "from": "default"},
        "mapping": {"value": {}, "from": "default"},
        "duplicates": {"value": "error", "from": "default"},
        "rows_per_shard": {"value": 7, "from": "caller"},
        "quarantine": {"value": False, "from": "default"},
        "driver": {"value": "local", "from": "default"},
        "workers": {"value": 1, "from": "caller"},
    }


def test_a_mixture_states_its_seed_and_itself(tokens: Path, tmp_path: Path) -> None:
    mixture = Mixture({"maths": Ingredient(epochs=0.5)}, None, 1)
    manifest = manifest_of(run_mix, MixOptions(mixture, seed=3), tokens, tmp_path / "M")
    assert manifest["seed"] == manifest["options"]["seed"]["value"] == 3
    assert manifest["options"]["mixture"]["value"] == manifest["mixture"]
    assert manifest["options"]["listed"] == {"value": False, "from": "default"}


def test_a_stage_that_draws_nothing_states_no_seed(records: Path, tmp_path: Path) -> None:
    manifest = manifest_of(run_stage, MaskStage(failure_patterns=("Fehler",)), records, tmp_path / "M")
    assert manifest["seed"] is None and "seed" not in manifest["options"]
    assert manifest["options"]["failure_patterns"] == {"value": ["Fehler"], "from": "caller"}


def test_origins_that_the_caller_knows_are_stated(records: Path, tmp_path: Path) -> None:
    origins = {"failure_patterns": "config file", "workers": "environment"}
    manifest = manifest_of(run_stage, MaskStage(), records, tmp_path / "M", origins=origins)
    assert manifest["options"]["failure_patterns"] == {"value": [], "from": "config file"}
    assert manifest["options"]["workers"] == {"value": 1, "from": "environment"}
