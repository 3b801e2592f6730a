"""What a run reports, and what is left of it after a kill."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.errors import UsageError
from sft_toolkit.training.options import ModelSource, TrainOptions
from sft_toolkit.training.reports import Line, MetricsFile, TensorBoard, open_reports


def row(step: int, **more: Any) -> dict[str, Any]:
    return {
        "step": step,
        "loss": 2.5,
        "grad_norm": 0.75,
        "learning_rate": 1e-3,
        "loss_tokens": 1234,
        "tokens": 2000,
        "seconds": 2.0,
        "tokens_per_second": 1000.0,
        "tflops_per_rank": 0.5,
        "mfu": None,
        "imbalance": 1.25,
        **more,
    }


def test_steps_that_a_resumed_run_repeats_and_a_torn_line_are_taken_out(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps({"step": step}) + "\n" for step in range(1, 8)) + '{"step": 8, "lo')
    report = MetricsFile(path, begun=5)
    report.write({"step": 6, "loss": 0.1})
    report.close()
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1, 2, 3, 4, 5, 6]


def test_a_loss_comes_back_from_the_file_bit_for_bit(tmp_path: Path) -> None:
    report = MetricsFile(tmp_path / "metrics.jsonl", begun=0)
    report.write({"step": 1, "loss": 0.1 + 0.2})
    assert json.loads((tmp_path / "metrics.jsonl").read_text())["loss"] == 0.1 + 0.2


def test_the_line_reports_figures_and_the_time_left(capfd: pytest.CaptureFixture[str]) -> None:
    line = Line(steps=46)
    line.write(row(1))
    line.write({"step": 1, "eval_loss": 3.0, "eval_loss_tokens": 10})
    assert capfd.readouterr().err == (
        "step 1/46  loss 2.5000  norm 0.750  lr 1.00e-03  1,234 loss tokens  1,000 tok/s  0.5 TFLOP/s a rank  "
        "imbalance 1.25  left 0:01:30\n"
        "step 1  validation loss 3.0000\n"
    )
    line.write({"step": 2, "eval_loss": 2.5, "eval_loss/math": 2.0, "eval_loss/code": 3.0, "eval_loss_tokens": 10})
    assert capfd.readouterr().err == "step 2  validation loss 2.5000 (math 2.0000, code 3.0000)\n"


def test_in_a_pipe_lines_come_now_and_then_and_at_the_end(capfd: pytest.CaptureFixture[str]) -> None:
    line = Line(steps=5)
    for step in range(1, 6):
        line.write(row(step, mfu=0.375))
    first, last = capfd.readouterr().err.splitlines()
    assert first.startswith("step 1/5 ")
    assert last.startswith("step 5/5 ") and "MFU 37.5%" in last


def test_an_unknown_report_is_refused_with_those_there_are(tmp_path: Path) -> None:
    source = ModelSource(init=tmp_path)
    with pytest.raises(UsageError, match="`reports` mlflow: unknown"):
        open_reports(TrainOptions(tmp_path, tmp_path, source, reports=("mlflow",)), 0, 10)


def test_tensorboard_holds_the_figures_by_step(tmp_path: Path) -> None:
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    report = TensorBoard(tmp_path, begun=0)
    report.write(row(3))
    report.write({"step": 3, "eval_loss": 1.5})
    report.close()
    found = accumulators.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(event.step, event.value) for event in found.Scalars("loss")] == [(3, 2.5)]
    assert found.Scalars("eval_loss")[0].value == 1.5
