"""Does an order whose steps are all long or all short train worse? Held-out loss by order, the same data and steps.

    python benchmarks/order_training.py [--seeds 5] [--ranks 4] [--steps 120]

Three sample sets, 20 records of each held out, packed to 2,048 tokens; the sample's tiny Qwen3 from random weights,
one sequence for each rank and step: the shape in which an order by cost is least random. Loss is that of all held-out
tokens after the last step; the interval is Student's t over seeds; differences are paired with `random` by seed, which
has the same initial weights.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy import stats

SAMPLES = Path(__file__).resolve().parent.parent / "sample_data"
TOKENIZER = SAMPLES / "tokenizer"
SETS = ("school_maths", "science_questions", "code_review")
HELD_OUT = 20
CAPACITY = 2048
ORDERS = ("random", "window", "within-step", "sorted-buffer")


def kolibri_sft(*arguments: str | Path) -> None:
    script = Path(sys.executable).with_name("kolibri-sft")
    subprocess.run([script, *map(str, arguments), "--quiet"], check=True)


def pack(folder: Path, name: str, lines: list[str]) -> Path:
    """Packed shards of these records."""
    given = folder / f"{name}.jsonl"
    given.write_text("".join(lines), encoding="utf-8")
    kolibri_sft("mask", given, "-o", folder / f"{name}-masked")
    kolibri_sft("render", folder / f"{name}-masked", "--tokenizer", TOKENIZER, "-o", folder / f"{name}-tokens")
    packed = folder / f"{name}-packed"
    kolibri_sft("pack", folder / f"{name}-tokens", "--capacity", str(CAPACITY), "--overlong", "drop", "-o", packed)
    return packed


def held_out_loss(folder: Path, train: Path, validation: Path, order: str, seed: int, ranks: int, steps: int) -> float:
    run = folder / f"{order}-{seed}"
    kolibri_sft(
        *("train", train, "--init", SAMPLES / "tiny_qwen3.json", "--tokenizer", TOKENIZER, "-o", run),
        *("--validation", validation, "--order", order, "--seed", str(seed), "--nproc", str(ranks)),
        *("--steps", str(steps), "--learning-rate", "0.003"),
    )
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return float(next(row["eval_loss"] for row in reversed(rows) if "eval_loss" in row))


def interval(values: np.ndarray) -> str:
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():8.4f} [{values.mean() - half:8.4f}, {values.mean() + half:8.4f}]"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=120)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        lines = {name: (SAMPLES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines(True) for name in SETS}
        train = pack(folder, "train", [line for name in SETS for line in lines[name][:-HELD_OUT]])
        validation = pack(folder, "held-out", [line for name in SETS for line in lines[name][-HELD_OUT:]])
        losses = {
            order: np.array(
                [
                    held_out_loss(folder, train, validation, order, seed, given.ranks, given.steps)
                    for seed in range(given.seeds)
                ]
            )
            for order in ORDERS
        }
    print(f"{given.ranks} ranks, {given.steps} steps, {given.seeds} seeds: held-out loss [95 %], minus that of random")
    for order, found in losses.items():
        against = "" if order == "random" else interval(found - losses["random"])
        print(f"{order:15}{interval(found)}  {against}", flush=True)


if __name__ == "__main__":
    main()
