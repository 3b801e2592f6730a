"""The mapping: paths, stars, empty paths, and what goes together."""

from __future__ import annotations

from typing import Any

import pytest

from sft_toolkit.formats.mapping import parse_mapping
from tests.sft_toolkit.formats.reading import ANSWER, USER, one, read, refusal, said

QA = ("user=q", "assistant=a")
OWN = {"role": "system", "content": "own"}


@pytest.mark.parametrize(
    ("record", "lines", "expected"),
    [
        ({"a b": "q", "c.d": "a"}, ("user=a b", "assistant=c.d"), ["user: q", "assistant: a"]),
        ({"q": "x", "a": True}, QA, ["user: x", "assistant: true"]),
        ({"q": 1.50, "a": 10**30}, QA, ["user: 1.5", f"assistant: {10**30}"]),
        ({"q": "x", "a": "y", "p": None}, (*QA, "reasoning=p.x"), ["user: x", "assistant: y"]),
        ({"q": "x", "a": "y", "p": '{"r": ["z"]}'}, (*QA, "reasoning=p.r.0"), ["user: x", "assistant: (z) y"]),
        (
            {"q": "x", "r": "", "c": "c", "a": "y"},
            ("user=r", "user=c", "user=q", "assistant=a"),
            ["user: c\n\nx", "assistant: y"],
        ),
        ({"q": "x", "a": "y", "s": "S", "system": "T"}, (*QA, "system=s"), ["system: S", "user: x", "assistant: y"]),
        ({"q": "x", "a": "y", "system": "T"}, (*QA, "system="), ["user: x", "assistant: y"]),
        ({"messages": [OWN, USER, ANSWER], "s": "T"}, ("system=s",), ["system: T", "user: q", "assistant: a"]),
        ({"messages": [OWN, USER, ANSWER], "s": ""}, ("system=s",), ["system: own", "user: q", "assistant: a"]),
        ({"messages": [OWN, USER, ANSWER], "system": "T"}, ("system=",), ["system: own", "user: q", "assistant: a"]),
        (
            {"m": [USER, ANSWER, USER], "r": "rr", "t": "th"},
            ("messages=m", "reasoning=t", "assistant=r"),
            ["user: q", "assistant: a", "user: q", "assistant: (th) rr"],
        ),
        ({"m": [USER], "n": [ANSWER]}, ("messages=m", "messages=n"), ["user: q", "assistant: a"]),
        ({"t": "USER: hi ASSISTANT: ho</s>"}, ("transcript=t",), ["user: hi", "assistant: ho"]),
        ({"q": "x", "a": "y"}, ("user=q",), ["user: x"]),
        ({"prompt": "q", "response": "a", "cot": "c"}, ("reasoning=",), ["user: q", "assistant: a"]),
        ({"prompt": "q", "response": "a"}, ("assistant=",), ["user: q"]),
        ({"messages": [USER], "prompt": "p", "response": "a"}, ("messages=",), ["user: p", "assistant: a"]),
        (
            {"messages": [{"role": "My-Narrator", "content": "x"}, USER, ANSWER]},
            ("as-system=my narrator",),
            ["system: x", "user: q", "assistant: a"],
        ),
        (
            {"messages": [{**USER, "keep": True}, {**ANSWER, "keep": False}]},
            ("weight=keep",),
            ["user: q", "assistant: a [0]"],
        ),
        ({"messages": [USER, {**ANSWER, "drop": True}]}, ("masked=drop",), ["user: q", "assistant: a [0]"]),
        ({"messages": [USER, {**ANSWER, "loss": 0}]}, ("weight=",), ["user: q", "assistant: a"]),
        (
            {"log": [{"who": "user", "said": "q"}, {"who": "bot", "said": "a"}]},
            ("role=who", "content=said"),
            ["user: q", "assistant: a"],
        ),
    ],
)
def test_a_mapping_reads_what_it_names(record: dict[str, Any], lines: tuple[str, ...], expected: list[str]) -> None:
    assert said(one(record, *lines)) == expected


@pytest.mark.parametrize(
    ("record", "lines", "named"),
    [
        ({"q": "x", "a": {"t": "y", "u": "z"}}, QA, ("a.t, a.u", "--map assistant=a.t")),
        ({"q": "x", "a": ["y"]}, QA, ("--map assistant=a.0", "--map 'assistant=a.*'")),
        ({"q": "x", "a": "  "}, QA, ("a is empty",)),
        ({"q": "", "a": "y"}, QA, ("q is empty",)),
        ({"q": "x", "b": "y"}, QA, ("a", "columns: q, b")),
        ({"q": "x", "a": ["y"]}, ("user=q", "assistant=a.1"), ("a.1", "1 elements")),
        ({"q": "x", "a": ["y"]}, ("user=q", "assistant=a.x"), ("inside a list",)),
        ({"q": "x", "a": "y"}, ("user=q", "assistant=a.0"), ("inside text",)),
        (
            {"q": "x", "r": ["1", "2"], "a": ["z"]},
            ("user=q", "reasoning=r.*", "assistant=a.*"),
            ("r.* has 2", "a.* has 1"),
        ),
        ({"q": "x", "a": None}, ("user=q", "assistant=a.*"), ("a.*: the list is empty",)),
        ({"messages": [USER, ANSWER], "n": [1]}, ("difficulty=n",), ("--map difficulty=n.0",)),
        ({"t": "hello"}, ("transcript=t",), ("no marker",)),
        ({"q": "x"}, ("asistant=a",), ("did you mean assistant?", "known keys: user, assistant, reasoning")),
        ({"q": "x"}, ("user",), ("there is no =", "known keys")),
        ({"q": "x"}, ("assistant=a",), ("--map user=COLUMN",)),
        ({"q": "x"}, ("user=q", "user="), ("given a path as well",)),
        ({"q": "x"}, ("system=a", "system=b"), ("given twice",)),
        ({"q": "x"}, ("transcript=q", "user=q"), ("whole conversation",)),
        ({"messages": [USER, ANSWER], "image": "x.png"}, ("user=image",), ("image",)),
    ],
)
def test_what_a_mapping_cannot_read_is_named(
    record: dict[str, Any], lines: tuple[str, ...], named: tuple[str, ...]
) -> None:
    message = refusal(record, *lines)
    assert [word for word in named if word not in message] == []


def test_a_star_makes_a_record_of_each_element() -> None:
    record = {"id": 7, "q": "x", "a": [{"t": "one", "m": "M"}, {"t": "two", "m": "N"}], "rest": "kept"}
    first, second = read(record, "user=q", "assistant=a.*.t", "dataset=a.*.m")
    assert [first.id, second.id] == ["7#0", "7#1"]
    assert [first.dataset, second.dataset] == ["M", "N"]
    assert [said(first), said(second)] == [["user: x", "assistant: one"], ["user: x", "assistant: two"]]
    assert [first.extra, second.extra] == [
        {"a": {"t": "one", "m": "M"}, "rest": "kept"},
        {"a": {"t": "two", "m": "N"}, "rest": "kept"},
    ]


def test_equal_elements_without_an_id_still_get_ids_of_their_own() -> None:
    first, second = read({"q": "x", "a": ["same", "same"]}, "user=q", "assistant=a.*")
    assert first.id.removesuffix("#0") == second.id.removesuffix("#1")


def test_what_is_left_unread_is_kept_under_another_name_and_read_no_more() -> None:
    record = {
        "messages": [USER, {**ANSWER, "loss": 0}],
        "system": "T",
        "tools": "nonsense",
        "domain": ["a"],
        "effort": "max",
        "id": [1],
    }
    lines = [f"{key}=" for key in ("system", "tools", "domain", "effort", "id", "weight")]
    written = one(record, *lines).to_record()
    kept = {name: value for name, value in written.items() if name.startswith("source_")}
    assert kept == {
        "source_system": "T",
        "source_tools": "nonsense",
        "source_domain": ["a"],
        "source_effort": "max",
        "source_id": [1],
    }
    assert one(written).to_record() == written


def test_a_file_gives_what_the_command_line_does_not() -> None:
    table = {"user": ["a", "b"], "assistant": "c", "system": ""}
    assert parse_mapping(["assistant=d"], table).to_json() == {"user": ["a", "b"], "assistant": ["d"], "system": [""]}
