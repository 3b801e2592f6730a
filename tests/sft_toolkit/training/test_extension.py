"""Runs that begin with the state of another one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch.distributed as dist

from sft_toolkit.errors import UsageError
from sft_toolkit.training.options import TrainOptions
from sft_toolkit.training.train import train
from tests.sft_toolkit.training.tiny import counting_documents, losses, tiny_config, write_packed

pytestmark = pytest.mark.usefixtures("no_ranks_before_or_after")


def steady(options: TrainOptions, output: str, steps: int, **more: object) -> TrainOptions:
    recipe = replace(options.recipe, schedule="wsd", warmup_ratio=0.0, decay_ratio=0.0, steps=steps)
    return replace(options, output=options.output.with_name(output), recipe=recipe, **more)


def trained(options: TrainOptions) -> list[float]:
    train(options)
    return losses(options)


def test_two_short_runs_one_after_the_other_are_one_long_run(options: TrainOptions) -> None:
    whole = trained(steady(options, "whole", 12))
    first = steady(options, "first", 6, checkpoint_every=3)
    begun = trained(first)
    extended = trained(steady(options, "second", 6, extend=first.output))
    assert begun + extended == whole
    branch = trained(steady(options, "branch", 9, extend=first.output / "checkpoints" / "step-00000003"))
    assert begun[:3] + branch == whole


def test_weights_alone_leave_the_optimizer_new(options: TrainOptions) -> None:
    whole = trained(steady(options, "whole", 9))
    first = steady(options, "first", 6)
    trained(first)
    extended = trained(steady(options, "second", 3, extend=first.output, weights_only=True))
    assert extended[0] == whole[6]
    assert extended[2] != whole[8]
    assert extended[2] == pytest.approx(whole[8], abs=0.5)


def test_other_data_starts_its_order_anew_and_resuming_is_held_to_the_same_state(
    options: TrainOptions, tmp_path: Path
) -> None:
    first = steady(options, "first", 3)
    trained(first)
    other = write_packed(tmp_path, counting_documents(30, seed=1))
    second = steady(options, "second", 2, extend=first.output, packed=other)
    assert trained(second)[0] < losses(first)[0]
    assert trained(replace(second, resume=True)) == losses(second)
    with pytest.raises(UsageError, match="was begun from another state"):
        train(replace(second, resume=True, extend=None))


def test_another_model_and_what_is_no_run_are_refused(options: TrainOptions, tmp_path: Path) -> None:
    first = steady(options, "first", 1)
    trained(first)
    with pytest.raises(UsageError, match="neither a run with a checkpoint nor one of its checkpoints"):
        train(steady(options, "second", 1, extend=tmp_path / "config"))
    dist.destroy_process_group()
    tiny_config("llama").save_pretrained(tmp_path / "config")
    with pytest.raises(UsageError, match="its model has another configuration"):
        train(steady(options, "second", 1, extend=first.output))
