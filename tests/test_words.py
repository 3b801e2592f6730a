"""One word for one thing: sources, help texts and docs say it as docs/glossary.md does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

FOLDERS = ("sft_toolkit", "cli", "labelers", "packers", "docs", "benchmarks")
PAGES = [ROOT / "README.md", ROOT / "sample_data" / "README.md"]
INSTEAD = {
    r"told|tells": "reports, says, given",
    r"sets? (\w+ ){0,4}aside|set[ _]aside": "rejects, rejected",
    r"(hang|hangs|hung) on": "depends on",
    r"(go|goes|gone|going|went) on with|--resume to go on": "resumes, continues",
    r"mend|mends|mended": "fix",
    r"dear|dearer|dearest": "expensive",
}
PATTERN = re.compile(r"\s*rf?\"")
"""A line of a regular expression, which may name any word that a text may hold."""


def texts() -> list[Path]:
    found = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".py", ".md")]
    return [*found, *PAGES]


@pytest.mark.parametrize("words", INSTEAD)
def test_a_word_that_the_field_does_not_use_is_nowhere(words: str) -> None:
    pattern = re.compile(rf"\b({words})\b", re.IGNORECASE)
    lines = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in texts()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line) and not PATTERN.match(line)
    ]
    assert not lines, f"say {INSTEAD[words]}: {lines}"


def test_the_glossary_has_a_line_for_each_term_and_no_term_twice() -> None:
    rows = re.findall(r"^\| (.+?) \| .+ \|$", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.M)[2:]
    assert len(rows) == len(set(rows)) >= 30
