"""The sample: generated files come out the same, frozen ones are unchanged, sums are right, every record renders."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sft_toolkit.chat import Rendered, Renderer
from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError
from sft_toolkit.formats import parse_record
from sft_toolkit.stages.mix.mixture_file import read_mixture

EFFORTS = ("none", "low", "medium", "high")
GENERATED = ("bakery_tools.jsonl", "general_chat.jsonl", "long_reports.jsonl.gz", "school_maths.jsonl")
FROZEN = {
    "agent_runs.jsonl": "c9ce799689b58cb8cf91361260f5c1f1987f34018ce01b646351ddcc73784d8d",
    "code_review.jsonl": "50733472d700d358d133df70de53ce1520c1dfc25e4174e94f1e121d1064508b",
    "handwritten.jsonl": "c3173c00518116c163c52a4ef436e7543af3fc784fa4614c1e8a4ab7ebee58b0",
    "letters.jsonl": "f756fa657a3144d492a282aa7a13d9375c4580dfdd21c1acb9e071f082b71679",
    "science_questions.jsonl": "d8e47edb1e73c5cb2692f2039819f99c5bc8999ed325ba472e7b50b64f14a50f",
}


def _content(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


@pytest.fixture(scope="module")
def raw(sample_data: Path) -> dict[str, list[dict[str, Any]]]:
    """The records of each file, as they stand there."""
    files = (*GENERATED, *FROZEN)
    return {name: [json.loads(line) for line in _content(sample_data / name).splitlines()] for name in files}


@pytest.fixture(scope="module")
def conversations(raw: dict[str, list[dict[str, Any]]]) -> list[Conversation]:
    return [parse_record(record) for records in raw.values() for record in records]


@pytest.fixture(scope="module")
def renderer(sample_data: Path) -> Renderer:
    return Renderer.from_folder(sample_data / "tokenizer")


@pytest.fixture(scope="module")
def rendered(renderer: Renderer, conversations: list[Conversation]) -> list[Rendered]:
    results = renderer.render_batch(conversations)
    assert not [result for result in results if isinstance(result, RecordError)]
    return [result for result in results if isinstance(result, Rendered)]


def test_the_generator_writes_the_files_again(sample_data: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, sample_data / "generate.py", tmp_path], check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(GENERATED)
    for name in GENERATED:
        assert _content(tmp_path / name) == _content(sample_data / name), name
    assert (sample_data / "long_reports.jsonl.gz").read_bytes()[4:8] == bytes(4), "a gzip header with a time"


@pytest.mark.parametrize("name", FROZEN)
def test_a_frozen_file_is_what_it_was(sample_data: Path, name: str) -> None:
    assert hashlib.sha256((sample_data / name).read_bytes()).hexdigest() == FROZEN[name]


def test_training_again_gives_the_same_tokenizer(sample_data: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, sample_data / "train_tokenizer.py", tmp_path], check=True)
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (sample_data / "tokenizer" / path.name).read_bytes(), path.name


def test_the_sample_is_large_enough_to_fit_edges_and_small_enough_to_ship(
    sample_data: Path, conversations: list[Conversation]
) -> None:
    reasoned: Counter[tuple[str | None, str | None]] = Counter()
    for conversation in conversations:
        for exchange in conversation.exchanges():
            group = (conversation.dataset, conversation.difficulty)
            reasoned[group] += any(conversation.messages[index].reasoning for index in exchange)
    sizes = [path.stat().st_size for path in sample_data.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert len(conversations) >= 400
    assert sum(count >= 100 for count in reasoned.values()) >= 5
    assert {difficulty for _, difficulty in reasoned} == {"easy", "medium", "hard"}
    assert sum(sizes) < 5e6 and max(sizes) < 1.5e6


def test_lengths_run_from_about_27_to_about_20000_tokens(
    renderer: Renderer, conversations: list[Conversation], rendered: list[Rendered]
) -> None:
    lengths = [len(result.input_ids) for result in rendered]
    shortest = replace(conversations[lengths.index(min(lengths))], effort="none")
    assert 25 <= len(renderer.render(shortest).input_ids) <= 30
    assert 18_000 <= max(lengths) <= 20_000


@pytest.mark.parametrize("name", ["3", "8", "short"])
def test_clusters_hold_every_data_set_once(name: str, sample_data: Path, conversations: list[Conversation]) -> None:
    mixture = read_mixture(sample_data / "clusters" / f"{name}.toml")
    if name.isdigit():
        assert len(mixture.ingredients) == int(name)
    assert {dataset: len(places) for dataset, places in mixture.by_dataset.items()} == {
        conversation.dataset: 1 for conversation in conversations
    }


def test_no_conversation_is_there_twice(conversations: list[Conversation]) -> None:
    asked = Counter(str([message.to_record() for message in conversation.messages]) for conversation in conversations)
    assert asked.most_common(1)[0][1] == 1


def test_the_forms_that_loaders_must_read_are_all_there(raw: dict[str, list[dict[str, Any]]]) -> None:
    records = [record for records in raw.values() for record in records]
    messages = [message for record in records for message in record.get("messages", ())]
    arguments = [call["function"]["arguments"] for message in messages for call in message.get("tool_calls", ())]
    assert {"messages", "conversations", "instruction", "functions", "tools"} <= {
        key for record in records for key in record
    }
    assert {"system", "developer", "user", "assistant", "tool", "function"} == {message["role"] for message in messages}
    assert {"reasoning", "reasoning_content", "thinking", "function_call"} <= {
        key for message in messages for key in message
    }
    assert {str, dict} == {type(given) for given in arguments}
    assert any(str(message["content"]).startswith("<think>") for message in messages)
    assert any(isinstance(message["content"], list) for message in messages)
    assert any("id" not in record for record in records)


def test_the_bakery_books_16_20_as_text_and_then_as_a_number(raw: dict[str, list[dict[str, Any]]]) -> None:
    first = raw["handwritten.jsonl"][0]
    calls = [call["function"] for message in first["messages"] for call in message.get("tool_calls", ())]
    assert calls == [
        {"name": "buche_einnahme", "arguments": {"betrag": "16.20"}},
        {"name": "buche_einnahme", "arguments": {"betrag": 16.2}},
    ]
    assert first["tools"][0]["function"]["parameters"]["properties"] == {"betrag": {"type": "number"}}


_UNITS = re.compile(r"(?<=\d)\s?(€|Euro|euros|mm|cm³|km|kg|mg|g|cm|m²|m|Ω|mA|V|h|min|ml)(?![\w/])|€(?=\d)")
_EXPRESSION = re.compile(r"[-+*/() \d.]*\d[-+*/() \d.]*")


def _value(text: str, language: str) -> Fraction | None:
    """The value of an arithmetic expression as the sample writes it; None for any other text."""
    text = _UNITS.sub("", text)
    text = text.replace(".", "").replace(",", ".") if language == "de" else text.replace(",", "")
    text = re.sub(r"(?<=\d) x (?=[\d(])", " * ", text).replace("·", "*").replace(" : ", " / ").strip()
    if not _EXPRESSION.fullmatch(text):
        return None
    exact = re.sub(r"\d+(\.\d+)?", lambda match: f"Fraction('{match[0]}')", text)
    try:
        return Fraction(eval(exact, {"Fraction": Fraction}))
    except (SyntaxError, TypeError):
        return None


def _equations(text: str, language: str) -> Iterator[tuple[str, bool]]:
    """Each `a = b` or `a ≈ b` of which both sides can be computed, and whether it holds (≈ to half the last place)."""
    for sentence in re.split(r"[;\n?]|[.,](?=\s|$)|(?<! ):(?=\s|$)|\*\*", text):
        sides = re.split(r" ([=≈]) ", sentence)
        for left, relation, right in zip(sides[::2], sides[1::2], sides[2::2], strict=False):
            first, second = _value(left, language), _value(right, language)
            if first is not None and second is not None:
                decimals = re.search(r"\d[.,](\d+)\D*$", right)
                place = Fraction(1, 10 ** len(decimals[1])) if decimals else Fraction(1)
                allowed = place / 2 if relation == "≈" else 0
                yield f"{left} {relation} {right}", abs(first - second) <= allowed


def test_every_sum_that_the_traces_write_out_is_right(raw: dict[str, list[dict[str, Any]]]) -> None:
    checked, wrong = 0, []
    for record in (*raw["school_maths.jsonl"], *raw["long_reports.jsonl.gz"]):
        for message in parse_record(record).messages:
            for equation, right in _equations(message.reasoning or "", record["language"]):
                checked += 1
                wrong += [] if right else [(record["id"], equation)]
    assert not wrong
    assert checked > 4000


@pytest.mark.parametrize("effort", EFFORTS)
def test_each_effort_writes_its_own_sentence_into_the_system_prompt(renderer: Renderer, effort: str) -> None:
    messages = [
        {"role": "system", "content": "Kurz."},
        {"role": "user", "content": "Ja?"},
        {"role": "assistant", "content": "Ja."},
    ]
    plain = renderer.render(parse_record({"messages": messages})).text
    text = renderer.render(parse_record({"messages": messages, "effort": effort})).text
    sentence = text.removeprefix("<|im_start|>system\nKurz.\n\n").split("<|im_end|>")[0]
    assert sentence.startswith(f"Reasoning effort: {effort}.")
    assert text.replace(f"\n\n{sentence}", "") == plain
    assert "Reasoning effort" not in plain


def test_reasoning_is_kept_in_every_turn_and_an_answer_without_any_gets_none(renderer: Renderer) -> None:
    messages = [
        {"role": "user", "content": "Eins?"},
        {"role": "assistant", "reasoning": "Ich zähle.", "content": "Eins."},
        {"role": "user", "content": "Zwei?"},
        {"role": "assistant", "content": "Zwei."},
    ]
    assert renderer.render(parse_record({"messages": messages})).text == (
        "<|im_start|>user\nEins?<|im_end|>\n"
        "<|im_start|>assistant\n<think>\nIch zähle.\n</think>\n\nEins.<|im_end|>\n"
        "<|im_start|>user\nZwei?<|im_end|>\n"
        "<|im_start|>assistant\nZwei.<|im_end|>\n"
    )


def test_template_and_tokenizer_work_in_transformers_as_they_do_here(
    sample_data: Path, conversations: list[Conversation], rendered: list[Rendered]
) -> None:
    """Text, tokens, and the generation tags against the traced spans, on every record that both must read alike.

    The two others: transformers reads `<|im_start|>` in a question as a control token, and leaves tool results in the
    order in which they came in.
    """
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(sample_data / "tokenizer")
    apart: Counter[str] = Counter()
    for conversation, result in zip(conversations, rendered, strict=True):
        record = json.loads(json.dumps(conversation.to_record(), default=float))
        given = {"conversation": record["messages"], "tools": record.get("tools")}
        text = tokenizer.apply_chat_template(**given, tokenize=False)
        named = {"control_text", "tool_results_reordered"} & result.notes.keys()
        apart.update(named)
        assert text == result.text or "tool_results_reordered" in named
        if not named:
            encoded = tokenizer.apply_chat_template(**given, return_dict=True, return_assistant_tokens_mask=True)
            assert np.array_equal(encoded["input_ids"], result.input_ids)
            assert np.array_equal(np.array(encoded["assistant_masks"], bool), result.loss_mask), conversation.id
    assert apart == {"control_text": 1, "tool_results_reordered": 1}
