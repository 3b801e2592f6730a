"""Text that nobody meant as markup: damaged forms raise nothing but RecordError, lose no text, and cost linear time."""

from __future__ import annotations

import random
import re
import time

import pytest

from sft_toolkit.errors import RecordError
from sft_toolkit.formats.dialects import find_calls, read_assistant_text, read_tool_response, read_transcript
from sft_toolkit.formats.dialects.reasoning_tags import TAGS
from sft_toolkit.formats.dialects.registry import MARKED
from sft_toolkit.json_text import encode_text
from tests.dialect_writers import BARE_WRITERS, JSON_WRITERS, PYTHON_WRITERS, TYPED_WRITERS

TOOLS = [{"name": "find", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]
WRITERS = {**JSON_WRITERS, **PYTHON_WRITERS, **TYPED_WRITERS, **BARE_WRITERS}
CALLS = [
    ("find", {"city": "Heiligendammerstrasse"}),
    ("other", {"note": "verbindlicherweise", "list": [1, {"a": None}]}),
]
SEEDS = [
    *(f"Selbstverstaendlich.\n{write(CALLS)}" for write in WRITERS.values()),
    *(
        f"{tag.opening}Ueberlegungsweise{tag.closing}\n{tag.wrapper.opening if tag.wrapper else ''}Ergebnisorientiert"
        for tag in TAGS
    ),
    "<|channel|>analysis<|message|>Ueberlegungsweise<|end|><|start|>assistant<|channel|>final<|message|>Ergebnisorientiert",
    'Thought: Ueberlegungsweise\nAction: find\nAction Input: {"city": "Heiligendammerstrasse"}',
]
PIECES = [
    "<think>",
    "</think>",
    "`",
    "```\n",
    "\n",
    '"',
    "'",
    "{",
    "}",
    "[",
    "]",
    "</tool_call>",
    "Zwischenbemerkung",
    "\\",
    ",",
]
PIECES += [
    "<|end|>",
    "</s>",
    "<|im_end|>",
    ":",
    "=",
    "(",
    ")",
    "é",
    "\u2028",
    "\x00",
    "}'",
    "'{",
    "<function=",
    "[ARGS]",
]
WORD = re.compile(r"(?<![\w\\])[^\W\d_]{12,}")


def damaged(text: str, draw: random.Random) -> str:
    """`text` with up to three pieces cut out, put in, doubled or moved."""
    for _ in range(draw.randint(0, 3)):
        begin = draw.randrange(len(text) + 1)
        end = min(len(text), begin + draw.choice((1, 1, 3, 12, 40)))
        piece = draw.choice((draw.choice(PIECES), text[begin:end]))
        text = draw.choice(
            (text[:begin] + piece + text[begin:], text[:begin] + text[end:], text[:begin] + piece + text[end:])
        )
    return text


def check(text: str) -> str:
    """Reads a text, and that nothing of it is lost where it can be read. Returns what became of it."""
    find_calls(text, TOOLS)
    try:
        found = read_assistant_text(text, tools_declared=frozenset({"find"}), tool_message_follows=True, tools=TOOLS)
    except RecordError as refusal:
        assert "\n" not in refusal.detail
        return refusal.reason
    said = [encode_text([call.name, call.arguments, call.id, call.extra]) for call in found.calls]
    kept = "".join([found.reasoning or "", found.content, *said])
    lost = [word for word in WORD.findall(text) if word not in kept and word != "functioncall"]
    assert not lost, f"{lost} of {text!r}: {found}"
    return "calls" if found.calls else "text"


def test_damaged_markup_is_read_refused_or_text_and_loses_nothing():
    draw = random.Random(10)
    became = [check(damaged(draw.choice(SEEDS), draw)) for _ in range(2000)]
    assert {"calls", "text", "unreadable_call", "text_after_call", "unclosed_think"} <= set(became)


HOSTILE = [
    *(dialect.name for dialect in MARKED),
    *(tag.opening for tag in TAGS),
    *(f"{tag.opening}a{tag.closing}" for tag in TAGS[:3]),
    *('<tool_call>{"', "<tool_call>{'", "<tool_call>[[", '<tool_call>{"name": "find", "arguments": {'),
    *(
        "<functioncall>{'name': 'find', 'arguments': '{",
        "<tool_call><function=find><parameter=a>",
        "<function=f>x</parameter>",
    ),
    *(
        "<tool_call>find<arg_key>a</arg_key><arg_value>",
        '<invoke name="f"><parameter name="a">',
        "<function_calls>find(a=",
    ),
    *("[find(a='", "find(a='", '{"a":', "{'a':", "[{", "[TOOL_CALLS]find[ARGS]{", "<|tool_call>call:find{a:["),
    *(
        "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{}",
        "<|tool_call_begin|>f:0<|tool_call_argument_begin|>{",
        "to=functions.f",
    ),
    *("<|channel|>commentary to=functions.f<|message|>{", "`", "``` ", "```\n", "`a\n", "Thought:", "Action: find\n"),
    *("\n", " ", '\\"', "</s>", "USER: a ASSISTANT: b ", "\n\nHuman: a", "<tool_response>x</tool_response>"),
]


def seconds(piece: str, length: int) -> float:
    text = (piece * (length // len(piece) + 1))[:length]
    began = time.process_time()
    for opening in ("", '<tool_call>{"name": "find", "arguments": {"a": "'):
        check_cost(opening + text)
    return time.process_time() - began


@pytest.mark.parametrize("piece", HOSTILE)
def test_one_piece_over_and_over_costs_time_in_proportion(piece):
    """Four times the text costs about four times the time; sixteen would be quadratic. Short times say nothing."""
    whole = seconds(piece, 24_000)
    assert whole < 0.2 or whole < 9 * seconds(piece, 6_000)


def check_cost(text: str) -> None:
    find_calls(text, TOOLS)
    read_tool_response(text)
    for read in (
        lambda: read_assistant_text(text, tools_declared=frozenset({"find"}), tool_message_follows=True),
        lambda: read_transcript(text),
    ):
        try:
            read()
        except RecordError:
            continue
