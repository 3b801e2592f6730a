"""Does an order whose steps are all long or all short train worse? Held-out loss by order, the same data and steps.

    python benchmarks/order_training.py [--seeds 5] [--ranks 8] [--epochs 2]

Three sample sets, 20 records of each held out, packed to 512 tokens; the sample's tiny Qwen3 from random weights, one
sequence for each rank and step: the shape in which an order by cost is least random. The ranks' sequences of a step are
read by one process, which sums the same gradients. Loss is that of all held-out tokens after the last step; intervals
are Student's t over seeds; differences are paired with `random` by seed, which has the same initial weights. The order
within-step is not trained: its steps are those of random.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sft_toolkit.packers import Plan, plan_for
from sft_toolkit.packers.balance import balance_of
from sft_toolkit.training.checkpoints import Checkpoints
from sft_toolkit.training.evaluation import Evaluation
from sft_toolkit.training.flops import Flops
from sft_toolkit.training.model import load_sharded, read_config
from sft_toolkit.training.options import ModelSource, Recipe, TrainOptions
from sft_toolkit.training.order import Figures, Order
from sft_toolkit.training.processes import Ranks, joined_ranks
from sft_toolkit.training.reader import Reader
from sft_toolkit.training.sequences import PackedFolder
from sft_toolkit.training.trainer import Trainer

SAMPLES = Path(__file__).resolve().parent.parent / "sample_data"
TOKENIZER = SAMPLES / "tokenizer"
SETS = ("school_maths", "science_questions", "code_review")
HELD_OUT = 20
CAPACITY = 512
LEARNING_RATE = 0.003
ORDERS = ("random", "window", "sorted-buffer")


def kolibri_sft(*arguments: str | Path) -> None:
    script = Path(sys.executable).with_name("kolibri-sft")
    subprocess.run([script, *map(str, arguments), "--quiet"], check=True)


def pack(folder: Path, name: str, lines: list[str]) -> PackedFolder:
    """These records, packed."""
    given = folder / f"{name}.jsonl"
    given.write_text("".join(lines), encoding="utf-8")
    kolibri_sft("mask", given, "-o", folder / f"{name}-masked")
    kolibri_sft("render", folder / f"{name}-masked", "--tokenizer", TOKENIZER, "-o", folder / f"{name}-tokens")
    packed = folder / f"{name}-packed"
    kolibri_sft("pack", folder / f"{name}-tokens", "--capacity", str(CAPACITY), "--overlong", "drop", "-o", packed)
    return PackedFolder(packed)


class Rows:
    """A report that keeps its rows."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def write(self, row: dict[str, Any]) -> None:
        self.rows.append(row)

    def close(self) -> None:
        pass


def held_out_loss(ranks: Ranks, train: PackedFolder, held_out: PackedFolder, plan: Plan, epochs: int) -> float:
    """The loss after `epochs` of the plan, whatever ranks it is made for."""
    recipe = Recipe(epochs=epochs, learning_rate=LEARNING_RATE, seed=plan.seed)
    source = ModelSource(init=SAMPLES / "tiny_qwen3.json", tokenizer=TOKENIZER)
    with tempfile.TemporaryDirectory() as temporary:
        options = TrainOptions(train.path, Path(temporary), source, recipe, quiet=True)
        config = read_config(source)
        model = load_sharded(options, config, ranks.mesh)
        figures = Figures(train.index, Flops.of(model.causal_lm).of_sequences(train.index))
        reader = Reader.of(train, config, ranks.device)
        trainer = Trainer(options, ranks, model, reader, Order(plan, ranks.count), figures)
        report = Rows()
        checkpoints = Checkpoints(options.output, ranks, keep=1)
        trainer.run(checkpoints, [report], Evaluation(Reader.of(held_out, config, ranks.device), ranks))
    return float(report.rows[-1]["eval_loss"])


def interval(values: NDArray[np.float64]) -> str:
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():7.4f} [{values.mean() - half:7.4f}, {values.mean() + half:7.4f}]"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, joined_ranks() as ranks:
        folder = Path(temporary)
        lines = {name: (SAMPLES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines(True) for name in SETS}
        train = pack(folder, "train", [line for name in SETS for line in lines[name][:-HELD_OUT]])
        held_out = pack(folder, "held-out", [line for name in SETS for line in lines[name][-HELD_OUT:]])
        tokens, costs = train.index.tokens, train.index.cost
        print(f"{len(costs)} sequences, {given.epochs} epochs, {given.ranks} ranks, {given.seeds} seeds")
        print(f"{'order':15}{'deff':>6}  held-out loss [95 %]      minus that of random")
        losses: dict[str, NDArray[np.float64]] = {}
        for order in ORDERS:
            plans = [plan_for(order, costs, given.ranks, 1, seed=seed) for seed in range(given.seeds)]
            deff = np.mean([balance_of(plan.epoch(0)[: plan.whole_steps], tokens, costs).deff for plan in plans])
            losses[order] = np.array([held_out_loss(ranks, train, held_out, plan, given.epochs) for plan in plans])
            against = "" if order == "random" else interval(losses[order] - losses["random"])
            print(f"{order:15}{deff:6.2f}  {interval(losses[order])}  {against}", flush=True)


if __name__ == "__main__":
    main()
