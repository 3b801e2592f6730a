"""Effort labels for 22M exchanges in 285 groups, against the same arithmetic written as polars expressions.

The polars form is a bound: it draws from uniforms that it is given, where ours hashes (seed, id) for each exchange,
and it works on one frame in memory with all processors, where ours goes block by block on one, as a worker does.

    python benchmarks/effort.py --rows 22000000
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import polars as pl

from sft_toolkit.draws import uniforms
from sft_toolkit.labelers.effort import BETA, CENTRES, FALLBACK, LEVELS, WIDTHS, EdgeTable, fit, label

DATASETS, DIFFICULTIES = 57, 5
BLOCK = 65_536

Result = TypeVar("Result")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=22_000_000)
    rows = parser.parse_args().rows
    frame = exchanges(rows)
    table, fit_seconds = timed(lambda: fit(frame.group_by("dataset", "difficulty", "length").len("count")))
    edges, bound_fit_seconds = timed(lambda: polars_fit(frame))
    split, label_seconds, hash_seconds = label_blocks(frame, table)
    bound_split, bound_seconds = timed(lambda: polars_label(frame, edges))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{rows:,} exchanges, {len(table.levels['group'])} groups; peak {peak:.1f} GiB, the input included")
    compare("fit", fit_seconds, "polars quantiles", bound_fit_seconds)
    compare("label", label_seconds, "polars expressions", bound_seconds)
    print(f"draws {hash_seconds:6.2f} s   {hash_seconds / rows * 1e9:.0f} ns an id")
    print(f"split {shares(split)}   polars {shares(bound_split)}")


def compare(what: str, seconds: float, bound: str, bound_seconds: float) -> None:
    print(f"{what:5} {seconds:6.2f} s   {bound:18} {bound_seconds:6.2f} s   x{seconds / bound_seconds:.2f}")


def exchanges(rows: int) -> pl.DataFrame:
    """Lognormal lengths whose median depends on the data set and whose range over difficulties reaches 31x."""
    rng = np.random.default_rng(0)
    dataset, difficulty = rng.integers(0, DATASETS, rows), rng.integers(0, DIFFICULTIES, rows)
    medians = np.exp(np.linspace(np.log(27), np.log(90_223), DATASETS))[dataset] * 31 ** (difficulty / 4 - 0.5)
    lengths = np.maximum(np.rint(medians * np.exp(0.7 * rng.standard_normal(rows))), 1)
    return pl.DataFrame(
        {"dataset": dataset, "difficulty": difficulty, "length": lengths.astype(np.int32)}
    ).with_columns(
        pl.format("set{}", "dataset").cast(pl.Categorical),
        difficulty=pl.format("{}", "difficulty").cast(pl.Categorical),
    )


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    begun = time.perf_counter()
    return work(), time.perf_counter() - begun


def label_blocks(frame: pl.DataFrame, table: EdgeTable) -> tuple[np.ndarray, float, float]:
    """How often each level was drawn, seconds for labelling without the draws, and seconds for the draws."""
    split, seconds, hashing = np.zeros(len(LEVELS), np.int64), 0.0, 0.0
    for start in range(0, frame.height, BLOCK):
        block = frame.slice(start, BLOCK)
        ids = [f"record-{row}" for row in range(start, start + block.height)]
        drawn, took = timed(lambda ids=ids: uniforms(0, ids, "effort"))
        hashing += took
        levels, took = timed(lambda block=block, drawn=drawn: label_block(block, table, drawn))
        seconds += took
        split += np.bincount(levels, minlength=len(LEVELS))
    return split, seconds, hashing


def label_block(block: pl.DataFrame, table: EdgeTable, drawn: np.ndarray) -> np.ndarray:
    codes = (
        block["dataset"].to_physical().to_numpy().astype(np.int64) * 256 + block["difficulty"].to_physical().to_numpy()
    )
    _, first, place = np.unique(codes, return_index=True, return_inverse=True)
    found = [table.find(*block.row(int(row))[:2])[1] for row in first]
    l30, l70 = np.array([edges.l30 for edges in found])[place], np.array([edges.l70 for edges in found])[place]
    return label(block["length"].to_numpy(), l30, l70, drawn)


def polars_fit(frame: pl.DataFrame) -> pl.DataFrame:
    """Edges at all levels; those of the groups are handed back."""
    quantiles = {
        "l30": pl.col("length").quantile(0.3, "linear"),
        "l70": pl.col("length").quantile(0.7, "linear"),
    }
    frame.select(**quantiles)
    by_level = [frame.group_by(columns).agg(**quantiles) for columns in FALLBACK.values() if columns]
    return by_level[0]


def polars_label(frame: pl.DataFrame, edges: pl.DataFrame) -> np.ndarray:
    drawn = pl.Series("drawn", np.random.default_rng(1).random(frame.height))
    log = {name: pl.col(name).log() for name in ("length", "l30", "l70")}
    place = (0.3 + 0.4 * (log["length"] - log["l30"]) / (log["l70"] - log["l30"])).clip(0, 1)
    exponents = [((pl.col("u") - m) / (BETA * w)) ** 2 * -0.5 for m, w in zip(CENTRES, WIDTHS, strict=True)]
    largest = pl.max_horizontal(exponents)
    weights = {name: (e - largest).exp() for name, e in zip(LEVELS[1:], exponents, strict=True)}
    total = pl.col("low") + pl.col("medium") + pl.col("high")
    level = (
        pl.when(pl.col("drawn") < pl.col("low") / total)
        .then(1)
        .when(pl.col("drawn") < 1 - pl.col("high") / total)
        .then(2)
        .otherwise(3)
    )
    levels = (
        frame.lazy()
        .with_columns(drawn)
        .join(edges.lazy(), on=["dataset", "difficulty"], maintain_order="left")
        .with_columns(u=place)
        .with_columns(**weights)
        .select(level=level.cast(pl.Int8))
        .collect()
    )
    return np.bincount(levels["level"].to_numpy(), minlength=len(LEVELS))


def shares(split: np.ndarray) -> str:
    return " / ".join(f"{share:.1%}" for share in split[1:] / split.sum())


if __name__ == "__main__":
    main()
