"""Which method judges best if a trace stays German: the toolkit, whole-text fastText, or lingua, on labelled traces.

    python benchmarks/language.py

`stays German` is the positive class; a trace that a method cannot judge counts as one that does not stay. lingua
(pip install lingua-language-detector) is asked twice: for the whole text, and for the stretches of its detector of
several languages within a text, of which all with five words or more must be German.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from lingua import Language, LanguageDetectorBuilder

from sft_toolkit.labelers.language import identify, judge_language
from sft_toolkit.labelers.wilson import wilson_interval

TRACES = Path(__file__).parents[1] / "sample_data" / "language_traces.jsonl"
Row = dict[str, str]


def main() -> None:
    rows = [json.loads(line) for line in TRACES.read_text(encoding="utf-8").splitlines()]
    print(f"{'half':12} {'method':22} {'precision':>22} {'recall':>22} {'wrong':>6} {'traces/s':>9}")
    for half in ("development", "test"):
        wanted = [row for row in rows if row["half"] == half]
        for name, method in methods().items():
            method(wanted[0])
            begun = time.perf_counter()
            found = [method(row) for row in wanted]
            rate = len(wanted) / (time.perf_counter() - begun)
            hits = sum(stays and row["stays_german"] for stays, row in zip(found, wanted, strict=True))
            positives = sum(row["stays_german"] for row in wanted)
            wrong = sum(stays != row["stays_german"] for stays, row in zip(found, wanted, strict=True))
            cells = [proportion(hits, sum(found)), proportion(hits, positives)]
            print(f"{half:12} {name:22} {cells[0]:>22} {cells[1]:>22} {wrong:>6} {rate:>9,.0f}")


def methods() -> dict[str, Callable[[Row], bool]]:
    detector = LanguageDetectorBuilder.from_all_languages().build()

    def whole_lingua(row: Row) -> bool:
        return detector.detect_language_of(row["reasoning"]) == Language.GERMAN

    def stretches_of_lingua(row: Row) -> bool:
        found = detector.detect_multiple_languages_of(row["reasoning"])
        return all(part.language == Language.GERMAN for part in found if part.word_count >= 5)

    return {
        "kolibri-sft": lambda row: judge_language(row["reasoning"], "de", row["prompt"]).stays is True,
        "fastText, whole text": lambda row: identify(row["reasoning"])[0] == "de",
        "lingua, whole text": whole_lingua,
        "lingua, stretches": stretches_of_lingua,
    }


def proportion(successes: int, trials: int) -> str:
    low, high = wilson_interval(successes, trials)
    return f"{successes / trials:.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    main()
