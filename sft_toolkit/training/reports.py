"""What a run reports while it trains: a line for people, `metrics.jsonl` always, TensorBoard and wandb on request."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.json_text import decode, encode_text
from sft_toolkit.shards.atomic import write_text
from sft_toolkit.training.options import TrainOptions
from sft_toolkit.visible import visible

METRICS = "metrics.jsonl"
_SECONDS_BETWEEN_LINES = 10.0
_MEMORY = 0.9
"""Weight of the past in the seconds per step from which the time left is estimated."""

Row = Mapping[str, Any]


class Report(Protocol):
    """Somewhere that rows of figures go. A row has `step`, counted from 1, and figures of training or evaluation."""

    def write(self, row: Row) -> None: ...

    def close(self) -> None: ...


def open_reports(options: TrainOptions, begun: int, steps: int) -> list[Report]:
    """The reports of a run that has `begun` of its `steps` steps behind it. Raises UsageError, ToolkitError."""
    wanted: list[Report] = [MetricsFile(options.output / METRICS, begun)]
    for name in options.reports:
        if name not in REPORTS:
            raise UsageError(f"`reports` {name}: unknown", f"choose one of {', '.join(REPORTS)}")
        try:
            wanted.append(REPORTS[name](options.output, begun))
        except ImportError as fault:
            raise ToolkitError(f"`reports` {name}: not installed", f"pip install {name}") from fault
    return wanted if options.quiet else [*wanted, Line(steps)]


class MetricsFile:
    """One JSON object a row. Rows of steps that a resumed run repeats are taken out first."""

    def __init__(self, path: Path, begun: int) -> None:
        kept = [line for line in path.read_text().splitlines() if _is_before(line, begun)] if path.exists() else []
        write_text(path, "".join(f"{line}\n" for line in kept))
        self._file = path.open("a", encoding="utf-8")

    def write(self, row: Row) -> None:
        self._file.write(encode_text(row) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _is_before(line: str, begun: int) -> bool:
    try:
        return bool(decode(line)["step"] <= begun)
    except ValueError:
        return False


class Line:
    """One line that renews itself on a terminal; elsewhere a line now and then."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._live = sys.stderr.isatty()
        self._shown = float("-inf")
        self._seconds_per_step: float | None = None

    def write(self, row: Row) -> None:
        if "eval_loss" in row:
            self._print(f"step {row['step']:,}  validation loss {row['eval_loss']:.4f}{_of_sets(row)}", lasting=True)
            return
        past = self._seconds_per_step
        self._seconds_per_step = row["seconds"] if past is None else _MEMORY * past + (1 - _MEMORY) * row["seconds"]
        last = row["step"] == self._steps
        if self._live or last or time.monotonic() - self._shown >= _SECONDS_BETWEEN_LINES:
            self._print(self._sentence(row), lasting=last or not self._live)
            self._shown = time.monotonic()

    def close(self) -> None:
        return None

    def _sentence(self, row: Row) -> str:
        assert self._seconds_per_step is not None
        left = timedelta(seconds=round((self._steps - row["step"]) * self._seconds_per_step))
        used = f"MFU {row['mfu']:.1%}" if row["mfu"] is not None else f"{row['tflops_per_rank']:.3g} TFLOP/s a rank"
        return (
            f"step {row['step']:,}/{self._steps:,}  loss {row['loss']:.4f}  norm {row['grad_norm']:.3f}  "
            f"lr {row['learning_rate']:.2e}  {row['loss_tokens']:,} loss tokens  "
            f"{row['tokens_per_second']:,.0f} tok/s  {used}  imbalance {row['imbalance']:.2f}  left {left}"
        )

    def _print(self, text: str, lasting: bool) -> None:
        print(
            f"\r\033[K{visible(text)}" if self._live else visible(text),
            end="\n" if lasting else "",
            file=sys.stderr,
            flush=True,
        )


def _of_sets(row: Row) -> str:
    losses = {name.removeprefix("eval_loss/"): loss for name, loss in row.items() if name.startswith("eval_loss/")}
    return f" ({', '.join(f'{name} {loss:.4f}' for name, loss in losses.items())})" if losses else ""


class TensorBoard:
    """Event files under `tensorboard/` of the run."""

    def __init__(self, output: Path, begun: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(output / "tensorboard"), purge_step=begun + 1)

    def write(self, row: Row) -> None:
        for name, value in row.items():
            if name != "step" and value is not None:
                self._writer.add_scalar(name, value, row["step"])

    def close(self) -> None:
        self._writer.close()


class Wandb:
    """A wandb run named as the output folder; a resumed run is another one in the same group."""

    def __init__(self, output: Path, begun: int) -> None:
        import wandb

        self._run = wandb.init(name=output.name, group=output.name, dir=str(output))

    def write(self, row: Row) -> None:
        self._run.log({name: value for name, value in row.items() if name != "step"}, step=row["step"])

    def close(self) -> None:
        self._run.finish()


REPORTS: dict[str, Callable[[Path, int], Report]] = {"tensorboard": TensorBoard, "wandb": Wandb}
