"""What mergemix's statistics claim where the truth is known: false and right claims, and the coverage of intervals.

    python benchmarks/mergemix_statistics.py

Everything is simulated; about a minute on one core. The older rules beside ours: the least leave-one-out error of 18
settings compared with that of the mean, and percentiles of the bootstrap.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sft_toolkit.mergemix.rank_correlation import spearman_interval
from sft_toolkit.mergemix.ridge import SHAPES, _Path, nested
from sft_toolkit.mergemix.surrogate import fit_surrogate

Floats = NDArray[np.float64]
SETS, NOISES = 10, 100
"""Sets of mixtures, and score vectors for each."""
PAIRS, DRAWS = 2_000, 200


def main() -> None:
    claims()
    prediction_intervals()
    correlation_intervals()


def claims() -> None:
    print(f"scores that the regression claims to explain, of {SETS * NOISES} sets; signal: slopes 3 ... -3, noise .3")
    print("clusters, n     noise: least of 18  nested  nested and random orders (of 100)  signal: the last")
    for clusters, n in ((3, 12), (8, 12), (3, 24)):
        generator = np.random.RandomState(0)
        found = np.zeros(4)
        for _ in range(SETS):
            mixtures = generator.dirichlet(np.ones(clusters), n)
            noise = generator.standard_normal((n, NOISES))
            mean = np.sqrt((((noise - noise.mean(axis=0)) * n / (n - 1)) ** 2).mean(axis=0))
            least = np.concatenate([_Path(expand(mixtures), noise).left_out_errors() for _, expand in SHAPES])
            honest = np.sqrt((nested(mixtures, noise)[1] ** 2).mean(axis=0))
            signal = 3 * mixtures @ np.linspace(1, -1, clusters)
            tried = noise[:, :10].T
            explained = [fit_surrogate("ridge", mixtures, one).explains for one in tried]
            right = [fit_surrogate("ridge", mixtures, signal + 0.3 * one).explains for one in tried]
            found += [
                (least.min(axis=0) < mean).mean(),
                (honest < mean).mean(),
                np.mean(explained),
                np.mean(right),
            ]
        print(f"{clusters:2}, {n:2} " + "".join(f"{share:20.3f}" for share in found / SETS))


def prediction_intervals() -> None:
    print("coverage of 90% prediction intervals, linear truth, noise .3; 50 unseen scores for each of 30 sets")
    for clusters, n in ((3, 9), (3, 12), (8, 12), (3, 24)):
        generator = np.random.RandomState(1)
        held: list[bool] = []
        for _ in range(30):
            law = generator.standard_normal(clusters)
            mixtures, unseen = (generator.dirichlet(np.ones(clusters), count) for count in (n, 50))
            noise = 0.3 * generator.standard_normal(n + 50)
            intervals = fit_surrogate("ridge", mixtures, mixtures @ law + noise[:n]).intervals(unseen)
            scores = unseen @ law + noise[n:]
            held += [
                one is not None and one.low <= score <= one.high for one, score in zip(intervals, scores, strict=True)
            ]
        print(f"  {clusters} clusters, {n} scores: {np.mean(held):.3f}")


def correlation_intervals() -> None:
    print("coverage of 95% intervals of rho, normal pairs: ours; bootstrap percentiles")
    correlations = (0.0, 0.5, 0.8, 0.95)
    print("   n" + "".join(f"{f'r = {correlation}':>16}" for correlation in correlations))
    for n in (4, 5, 6, 7, 8, 10, 12, 16, 20):
        cells = []
        for correlation in correlations:
            generator = np.random.RandomState(n)
            x, noise = generator.standard_normal((2, PAIRS, n))
            y = correlation * x + np.sqrt(1 - correlation**2) * noise
            truth = 6 / np.pi * np.arcsin(correlation / 2)
            ours = [spearman_interval(float(rho), n) for rho in correlation_of(ranks(x), ranks(y))]
            covered = [one.low <= truth <= one.high for one in ours if one is not None]
            low, high = bootstrap(x[:400], y[:400], generator)
            cells.append(
                f"{np.mean(covered) if covered else float('nan'):.3f}; {np.mean((low <= truth) & (truth <= high)):.3f}"
            )
        print(f"{n:4}" + "".join(f"{cell:>16}" for cell in cells))


def bootstrap(x: Floats, y: Floats, generator: np.random.RandomState) -> tuple[Floats, Floats]:
    """Percentile intervals of each row, of DRAWS samples with replacement."""
    rows, n = x.shape
    picks = generator.randint(0, n, (rows, DRAWS, n))
    drawn = [average_ranks(np.take_along_axis(side[:, None, :], picks, axis=2)) for side in (x, y)]
    with np.errstate(invalid="ignore"):
        found = correlation_of(*drawn)
    low, high = np.nanquantile(found, [0.025, 0.975], axis=1)
    return low, high


def average_ranks(values: Floats) -> Floats:
    """Ranks along the last axis; equal values share their mean."""
    below = (values[..., None, :] < values[..., :, None]).sum(axis=-1)
    equal = (values[..., None, :] == values[..., :, None]).sum(axis=-1)
    return below + (equal + 1) / 2


def ranks(values: Floats) -> Floats:
    return values.argsort(axis=-1).argsort(axis=-1) + 1.0


def correlation_of(x: Floats, y: Floats) -> Floats:
    """Pearson correlation along the last axis."""
    x, y = (side - side.mean(axis=-1, keepdims=True) for side in (x, y))
    return np.asarray((x * y).sum(-1) / np.sqrt((x * x).sum(-1) * (y * y).sum(-1)))


if __name__ == "__main__":
    main()
