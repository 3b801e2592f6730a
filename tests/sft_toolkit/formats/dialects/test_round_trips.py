"""Every dialect of calls: what a writer of it writes is read back, whatever names, values and text it holds."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sft_toolkit.formats.dialects import read_assistant_text
from tests.dialect_writers import BARE_WRITERS, JSON_WRITERS, PYTHON_WRITERS, TYPED_WRITERS

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}(\.[a-z]{1,5})?", fullmatch=True).filter(
    lambda name: name not in ("None", "True", "False", "null", "true", "false") and not name.endswith(".call")
)
KEYS = st.from_regex(r"[a-z][a-z_0-9]{0,8}", fullmatch=True)
# What no dialect can tell from its own marks stays out of texts; brackets, quotes, tags and code do not.
FORBIDDEN = ("</parameter", "</arg_value", '<|"|>', "DSML", "</function>", "</invoke", "</atem", "}'", "'{")
PIECES = st.sampled_from(
    [
        *"{}[]()\"'\\\n ,:=`a",
        "<b>",
        "</tool_call>",
        "```",
        "é漢🙂",
        "name",
        "null",
        "[TOOL_CALLS]",
        "<think>",
        "04109",
        "Bonn",
    ]
)
TEXTS = st.lists(PIECES, max_size=8).map("".join).filter(lambda text: not any(mark in text for mark in FORBIDDEN))
NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20), st.decimals("-1000", "1000", places=2, allow_nan=False).filter(lambda d: d)
)
SCALARS = st.one_of(TEXTS, NUMBERS, st.booleans(), st.none())
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=6,
)
CALLS = st.lists(st.tuples(NAMES, st.dictionaries(KEYS, VALUES, max_size=3)), min_size=1, max_size=3)
PROSE = st.sampled_from(
    ["", "I look.", "Zwei Zeilen:\n\nzweite", "a < b and `</tool_call>` stays", "```xml\n<tool_call>\n```\n."]
)
REASONING = st.sampled_from([None, "Because.", "Two\n\nparagraphs with `</think>` in code"])


def schema_of(value: object) -> dict[str, object]:
    kinds = {str: "string", bool: "boolean", int: "integer", Decimal: "number", list: "array", dict: "object"}
    return {"type": kinds.get(type(value), "null")}


def declared(calls) -> list[dict[str, object]]:
    """Tools whose schemas say what kind each value is; an argument of several kinds may be any of them."""
    properties: dict[str, dict[str, list[object]]] = {}
    for name, arguments in calls:
        for key, value in arguments.items():
            properties.setdefault(name, {}).setdefault(key, []).append(schema_of(value))
    return [
        {"name": name, "parameters": {"type": "object", "properties": {k: {"anyOf": s} for k, s in keys.items()}}}
        for name, keys in {**{name: {} for name, _ in calls}, **properties}.items()
    ]


def check(text, calls, content="", reasoning=None):
    tools = declared(calls)
    names = frozenset(name for name, _ in calls)
    found = read_assistant_text(text, tools_declared=names, tool_message_follows=False, tools=tools)
    assert [(call.name, call.arguments) for call in found.calls] == calls
    assert found.content == content
    assert found.reasoning == reasoning


@pytest.mark.parametrize("dialect", JSON_WRITERS)
@given(calls=CALLS, content=PROSE, reasoning=REASONING)
@settings(max_examples=6, deadline=None, derandomize=True)
def test_json_between_marks(dialect, calls, content, reasoning):
    written = JSON_WRITERS[dialect](calls)
    opening = f"<think>\n{reasoning}\n</think>\n\n" if reasoning else ""
    assume("glaive" not in dialect or "\\" not in written)  # whose escapes they are cannot be told
    check(f"{opening}{content}\n\n{written}", calls, content, reasoning)


@pytest.mark.parametrize("dialect", PYTHON_WRITERS)
@given(calls=CALLS, content=PROSE)
@settings(max_examples=6, deadline=None, derandomize=True)
def test_literals_between_marks(dialect, calls, content):
    check(f"{content}\n{PYTHON_WRITERS[dialect](calls)}\n", calls, content)


@pytest.mark.parametrize("dialect", TYPED_WRITERS)
@given(data=st.data(), content=PROSE)
@settings(max_examples=10, deadline=None, derandomize=True)
def test_values_in_tags_take_the_declared_type(dialect, data, content):
    """One kind per argument: what a text in a union with numbers stands for cannot be told."""
    names = data.draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    texts = TEXTS.filter(lambda text: not (text[:1] == "\n" and text[-1:] == "\n"))
    values = st.one_of(
        texts,
        NUMBERS,
        st.booleans(),
        st.none(),
        st.lists(VALUES, max_size=2),
        st.dictionaries(KEYS, VALUES, max_size=2),
    )
    calls = [(name, data.draw(st.dictionaries(KEYS, values, max_size=3))) for name in names]
    written = TYPED_WRITERS[dialect](calls)
    check(f"{content}\n{written}", calls, content)


@pytest.mark.parametrize("dialect", BARE_WRITERS)
@given(calls=CALLS)
@settings(max_examples=10, deadline=None, derandomize=True)
def test_calls_without_marks_are_all_of_the_text(dialect, calls):
    written = BARE_WRITERS[dialect](calls)
    check(written, calls)
    check(f"<think>x</think>\n{written}", calls, reasoning="x")
    alone = read_assistant_text(written, tools_declared=frozenset({"other"}), tool_message_follows=True)
    assert (alone.content, alone.calls) == (written, [])
