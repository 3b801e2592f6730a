"""What three rules make of the same weights where records of data sets differ in length: ours counts tokens, two count
rows.

    python benchmarks/mixture_rules.py

* Megatron's blend takes, row by row, from the data set that is furthest behind its share of rows so far.
* `datasets.interleave_datasets` draws the data set of each row; with `first_exhausted` it ends with the first data set
  that runs out, with `all_exhausted` with the last, which repeats the others.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from datasets import Dataset, interleave_datasets

from sft_toolkit.stages.mix.choice import NOTE, choose
from sft_toolkit.stages.mix.mixture_file import Ingredient, Mixture

SHARES = {"chat": 0.5, "maths": 0.3, "agents": 0.2}
ROWS = {"chat": 20_000, "maths": 5_000, "agents": 500}
MEAN_TOKENS = {"chat": 300, "maths": 2_000, "agents": 20_000}
TOTAL = 8_000_000


def main() -> None:
    generator = np.random.default_rng(0)
    lengths = {
        name: np.maximum(1, generator.lognormal(np.log(mean), 0.5, ROWS[name])).astype(np.int32)
        for name, mean in MEAN_TOKENS.items()
    }
    print(f"{'rule':38} {'tokens':>12}" + "".join(f"{name:>24}" for name in SHARES))
    print(f"{'':38} {'':>12}" + f"{'share asked, got; epochs':>24}" * len(SHARES))
    show("kolibri-sft mix", lengths, by_tokens(lengths))
    rows = sum(len(one) for one in lengths.values())
    show("Megatron's blend, rows of one epoch", lengths, blend(lengths, rows))
    for strategy in ("first_exhausted", "all_exhausted"):
        show(f"interleave_datasets, {strategy}", lengths, interleave(lengths, strategy))


def by_tokens(lengths: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """How often each row is taken, by data set."""
    notes = np.concatenate([np.zeros(len(one), NOTE) for one in lengths.values()])
    notes["length"] = np.concatenate(list(lengths.values()))
    notes["ingredient"] = np.repeat(range(len(lengths)), [len(one) for one in lengths.values()])
    notes["key"] = np.random.default_rng(1).permutation(len(notes))
    mixture = Mixture({name: Ingredient(weight=share) for name, share in SHARES.items()}, TOTAL, 4)
    copies = choose(notes, mixture).copies
    return {name: copies[notes["ingredient"] == place] for place, name in enumerate(lengths)}


def blend(lengths: dict[str, np.ndarray], rows: int) -> dict[str, np.ndarray]:
    """Counts of rows: the next one comes from where share * rows so far exceeds the rows taken by most."""
    shares, taken = np.array([SHARES[name] for name in lengths]), np.zeros(len(lengths))
    for row in range(rows):
        taken[np.argmax(shares * max(row, 1) - taken)] += 1
    return {name: repeated(len(lengths[name]), int(count)) for name, count in zip(lengths, taken, strict=True)}


def interleave(lengths: dict[str, np.ndarray], strategy: str) -> dict[str, np.ndarray]:
    parts = [Dataset.from_dict({"name": [name] * len(one)}) for name, one in lengths.items()]
    mixed = interleave_datasets(parts, [SHARES[name] for name in lengths], seed=0, stopping_strategy=strategy)
    counts = Counter(mixed["name"])
    return {name: repeated(len(one), counts[name]) for name, one in lengths.items()}


def repeated(rows: int, taken: int) -> np.ndarray:
    """How often each of `rows` is taken where `taken` are, in order and from the first again."""
    epochs, rest = divmod(taken, rows)
    return epochs + (np.arange(rows) < rest)


def show(rule: str, lengths: dict[str, np.ndarray], copies: dict[str, np.ndarray]) -> None:
    tokens = {name: int((one.astype(np.int64) * copies[name]).sum()) for name, one in lengths.items()}
    total = sum(tokens.values())
    cells = (
        f"{share:.2f}, {tokens[name] / total:.3f}; {tokens[name] / int(lengths[name].sum()):.2f}"
        for name, share in SHARES.items()
    )
    print(f"{rule:38} {total:12,}" + "".join(f"{cell:>24}" for cell in cells))


if __name__ == "__main__":
    main()
