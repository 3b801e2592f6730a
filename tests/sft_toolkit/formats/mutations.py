"""Mutated records, and the one rule that holds for all of them: read, refused or counted, never lost in silence.

Every word of the cases is made twelve letters long or longer. After a record is read, each such word of it must be in
what was written, or the notes must say that something was left out. Run at length:

    python -m tests.sft_toolkit.formats.mutations 1000000 --seed 7
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

from sft_toolkit.errors import RecordError, UsageError
from sft_toolkit.formats import RecordReader
from sft_toolkit.formats.mapping import parse_mapping
from sft_toolkit.formats.paths import opened
from sft_toolkit.json_text import decode, encode_text
from tests.sft_toolkit.formats.schema_cases import cases

# Notes that say that text was left out, because it is no trace or because the mapping says so.
LEFT_OUT = frozenset(
    {
        "system_prompt_replaced_by_mapping",
        "reasoning_summary_left_out",
        "reasoning_encrypted",
        "reasoning_details_kept",
        "empty_last_message_left_out",
    }
)
_WORD = re.compile(r"(?<![A-Za-z\\])[A-Za-z]{12,}")
_SHORT = re.compile(r"(?<![A-Za-z_<|/=.\[◁:])[a-z]{4,11}(?![A-Za-z_>|=\]▷:])")
_FRAGMENTS = (
    *("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "[TOOL_CALLS]"),
    *("<function=f>", "</function>", "<|channel|>final<|message|>", "<|im_end|>", "</s>", "```", "`", "<tools>"),
    *("<TOOLCALL>[", "<|python_tag|>", "Thought: ", "Action: ", "USER:", "### Human:", '{"name": "', "[f("),
)
_VALUES: tuple[Any, ...] = (
    None,
    "",
    " ",
    [],
    {},
    0,
    1,
    0.5,
    True,
    False,
    "0",
    "on",
    "text",
    [None],
    {"text": "x"},
    10**30,
)
_FLAGS = ("weight", "loss", "train", "masked", "loss_mask", "train_detail")


def _vocabulary(value: Any) -> Iterator[str]:
    """Every key, and every value that names a thing rather than says something."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _vocabulary(inner)
            if key in ("role", "from", "type", "status", "effort", "speaker") and isinstance(inner, str):
                yield inner
    elif isinstance(value, list):
        for inner in value:
            yield from _vocabulary(inner)
    elif isinstance(value, str) and value[:1] in ("{", "["):
        try:
            yield from _vocabulary(json.loads(value))
        except ValueError:
            return


KEYS = sorted({text for case in cases() for text in _vocabulary(case["input"]) if len(text) < 30})
_MARKUP = frozenset({"functioncall", "functionDeclarations"})
_WORDS = frozenset(word.casefold() for text in KEYS for word in re.findall("[A-Za-z]+", text))
_KNOWN = _WORDS | frozenset(
    {
        "think",
        "thinking",
        "thought",
        "reasoning",
        "tool",
        "call",
        "function",
        "response",
        "invoke",
        "parameter",
        "calls",
    }
    | {"channel", "message", "analysis", "final", "commentary", "assistant", "user", "system", "none", "true", "false"}
    | {"action", "input", "answer", "output", "solution", "begin", "start", "json", "required", "default", "optional"}
    | {"them", "needed", "functions", "invoke", "string", "integer", "number", "boolean", "object", "array", "list"}
)


def lengthened(text: str) -> str:
    """The text with every short word of no special meaning made twelve letters long, equal words alike."""

    def longer(match: re.Match[str]) -> str:
        word = match.group()
        if word in _KNOWN:
            return word
        number = zlib.crc32(word.encode())
        tail = "".join(chr(ord("a") + number // 26**place % 26) for place in range(8))
        return (word + tail)[:12] if len(word) < 12 else word

    return _SHORT.sub(longer, text)


def planted(value: Any) -> Any:
    """The value with the words of all its texts lengthened."""
    if isinstance(value, dict):
        return {key: inner if key in ("role", "from", "type") else planted(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [planted(inner) for inner in value]
    return lengthened(value) if isinstance(value, str) else value


class Mutator:
    """Mutated copies of the cases' records, by a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._sources = [
            ([planted(record) for record in case["input"]], [] if case["how"] == "auto" else case["how"])
            for case in cases()
        ]

    def record(self) -> tuple[Any, list[str], bool]:
        """(record, mapping lines, whether it is read as a row of a table)."""
        records, lines = self._random.choice(self._sources)
        record = decode(encode_text(self._random.choice(records)))
        if self._random.random() < 0.2:
            record.update(decode(encode_text(self._random.choice(self._random.choice(self._sources)[0]))))
        for _ in range(self._random.choice((0, 1, 1, 2, 3, 5))):
            record = self._mutated(record)
        if self._random.random() < 0.2:
            lines = [*lines, f"{self._random.choice(('weight', 'effort', 'system', 'tools', 'reasoning', 'id'))}="]
        return record, lines, self._random.random() < 0.2

    def _mutated(self, value: Any, depth: int = 0) -> Any:
        """One change somewhere inside."""
        pick = self._random
        if isinstance(value, dict) and value and (depth == 0 or pick.random() < 0.8):
            key = pick.choice(list(value))
            if pick.random() < 0.75:
                return {**value, key: self._mutated(value[key], depth + 1)}
            return self._changed_object(value, key)
        if isinstance(value, list) and value and pick.random() < 0.8:
            place = pick.randrange(len(value))
            if pick.random() < 0.7:
                return [*value[:place], self._mutated(value[place], depth + 1), *value[place + 1 :]]
            return self._changed_list(value, place)
        return self._changed_leaf(value)

    def _changed_object(self, value: dict[str, Any], key: str) -> dict[str, Any]:
        pick = self._random
        rest = {name: inner for name, inner in value.items() if name != key}
        match pick.randrange(4):
            case 0:
                return rest
            case 1:
                return {**rest, pick.choice(KEYS): value[key]}
            case 2:
                return {**value, pick.choice((*KEYS, *_FLAGS)): pick.choice((*_VALUES, value[key]))}
            case _:
                other = pick.choice(list(value))
                return {**value, key: value[other], other: value[key]}

    def _changed_list(self, value: list[Any], place: int) -> list[Any]:
        match self._random.randrange(4):
            case 0:
                return [*value[:place], *value[place + 1 :]]
            case 1:
                return [*value, value[place]]
            case 2:
                return [*value[:place], *reversed(value[place:])]
            case _:
                return [*value[:place], self._random.choice(_VALUES), *value[place:]]

    def _changed_leaf(self, value: Any) -> Any:
        pick = self._random
        if isinstance(value, str) and pick.random() < 0.7:
            place = pick.randrange(len(value) + 1)
            return pick.choice(
                (
                    value[:place] + pick.choice(_FRAGMENTS) + value[place:],
                    value[:place],
                    value[place:],
                    value + value,
                    pick.choice(KEYS),
                    [{"type": "text", "text": value}],
                    {"text": value},
                )
            )
        if isinstance(value, dict | list) and pick.random() < 0.5:
            return pick.choice((encode_text(value), [value], {"role": "user", "content": value}))
        return pick.choice((*_VALUES, pick.choice(KEYS), [value]))


def words_of(value: Any) -> set[str]:
    """The long words of all texts inside a value, those in JSON text included, keys apart."""
    value = opened(value)
    if isinstance(value, str):
        return set(_WORD.findall(value)) - _MARKUP
    if isinstance(value, dict):
        return set().union(*map(words_of, value.values())) if value else set()
    return set().union(*map(words_of, value)) if isinstance(value, list) and value else set()


def problem(record: Any, lines: list[str], padded: bool) -> tuple[str, str]:
    """What became of the record (`read`, or the reason of the refusal), and what is wrong with that, or ""."""
    try:
        conversations = RecordReader(mapping=parse_mapping(lines)).read(record, padded)
        written = [encode_text(conversation.to_record()) for conversation in conversations]
    except UsageError:
        return "usage", ""
    except RecordError as error:
        return error.reason, "" if "\n" not in error.detail else f"a line break in {error.detail!r}"
    if any(not LEFT_OUT.isdisjoint(conversation.notes) for conversation in conversations):
        return "read", ""
    blob = "".join(written)
    lost = sorted(word for word in words_of(record) if word not in blob)
    return "read", f"lost {lost}" if lost else ""


def run(count: int, seed: int, stop: bool = True) -> Counter[str]:
    """Outcomes of so many mutated records. Raises AssertionError at the first that loses text, with the record."""
    mutator, outcomes = Mutator(seed), Counter[str]()
    for number in range(count):
        record, lines, padded = mutator.record()
        try:
            outcome, wrong = problem(record, lines, padded)
        except Exception as fault:
            outcome, wrong = "traceback", f"{type(fault).__name__}: {fault}"
        outcomes[outcome] += 1
        if wrong:
            outcomes["wrong"] += 1
            said = f"record {number} of seed {seed}: {wrong}\n{lines} {padded} {encode_text(record)}"
            if stop:
                raise AssertionError(said)
            print(said, file=sys.stderr)
    return outcomes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Read mutated records and report what became of them.")
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for name, records in run(given.count, given.seed, stop=False).most_common():
        print(f"{records:9,}  {name}")
