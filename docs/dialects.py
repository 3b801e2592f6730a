"""Writes the examples in docs/dialects.md from the registry and the tests' writers: `python docs/dialects.py`.

Every example is what a writer in tests/dialect_writers.py makes of one call, and what the registry finds in it.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from sft_toolkit.formats.dialects import find_calls  # noqa: E402
from sft_toolkit.formats.dialects.reasoning_tags import TAGS  # noqa: E402
from sft_toolkit.formats.dialects.registry import MARKED  # noqa: E402
from tests.dialect_writers import JSON_WRITERS, PYTHON_WRITERS, TYPED_WRITERS  # noqa: E402

TARGET = Path(__file__).with_name("dialects.md")
BEGIN, END = "<!-- written by docs/dialects.py -->", "<!-- end -->"
CALL = ("weather", {"city": "Bonn", "days": 2})


def page() -> str:
    """The page with its examples written anew; the text around them is as it stands."""
    before, _, rest = TARGET.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{reasoning()}\n{calls()}\n{END}{after}"


def reasoning() -> str:
    rows = ["| opens | closes | wrapper of the answer | who writes it |", "| --- | --- | --- | --- |"]
    for tag in TAGS:
        wrapper = f"`{tag.wrapper.opening}` … `{tag.wrapper.closing}`" if tag.wrapper else ""
        rows.append(
            f"| `{tag.opening}` | `{tag.closing}` | {wrapper} | {tag.writers} |".replace("<|", r"<\|").replace(
                "|>", r"\|>"
            )
        )
    return "\n".join([*rows, ""])


def calls() -> str:
    """One section a mark, with the forms of it that the tests write."""
    examples: dict[str, dict[str, str]] = defaultdict(dict)
    for write in {**JSON_WRITERS, **PYTHON_WRITERS, **TYPED_WRITERS}.values():
        text = write([CALL]).strip()
        examples[find_calls(text)[0].dialect].setdefault("".join(text.split()), text)
    sections = []
    for dialect in MARKED:
        forms = "\n\n".join(
            f"```text\n{text}\n```" if "```" not in text else f"````text\n{text}\n````"
            for text in examples[dialect.name].values()
        )
        sections.append(f"### `{dialect.name}`\n\n{dialect.writers}:\n\n{forms}\n")
    return "\n".join(sections)


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
