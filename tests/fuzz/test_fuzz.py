"""Every reader bears damaged inputs, and the fuzzer finds what does not."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.fuzz import fuzzing
from tests.fuzz.targets import REFUSALS, TARGETS, Target

INPUTS = 40


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_inputs_are_read_or_refused_in_one_line(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    (tmp_path / "seeds").mkdir()
    seeds = target.seeds(tmp_path / "seeds")
    (tmp_path / "run").mkdir()
    for number in range(INPUTS):
        data = fuzzing.made(name, target, seeds, 18, number)
        assert fuzzing.tried(target, data, tmp_path / "run")[1] == "", f"input {number}: {data[:200]!r}"


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_not_damaged_is_read(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    (tmp_path / "seeds").mkdir()
    (tmp_path / "run").mkdir()
    for seed in target.seeds(tmp_path / "seeds")[:3]:
        target.run(seed, tmp_path / "run")


def _behave(data: bytes, _: Path) -> None:
    match data[0] % 4:
        case 0:
            os.kill(os.getpid(), signal.SIGKILL)
        case 1:
            time.sleep(60)
        case 2:
            raise KeyError("x")
        case _:
            raise REFUSALS[0]("refused")


def test_a_signal_a_hang_and_a_traceback_are_each_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TARGETS, "planted", PLANTED)
    monkeypatch.setattr(fuzzing, "HANG_SECONDS", 1.0)
    monkeypatch.setattr(fuzzing, "START_METHOD", "fork")
    found = fuzzing.fuzz("planted", 8, 0, tmp_path / "kept")
    assert {how.partition(" at ")[0] for how in found.faults} == {"exit code -9", "hangs for 1 s", "KeyError"}
    assert found.inputs == 8 and len(list((tmp_path / "kept").iterdir())) == 3


PLANTED = Target(lambda folder: [bytes([n]) for n in range(4)], lambda draw, seeds: draw.choice(seeds), _behave)
