"""Decoding the trained tokens of a turn gives what the model had to say, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sft_toolkit.chat import Rendered, Renderer
from tests.given_messages import as_given

# A leading <think> in content is reasoning by another name; U+10FFFA, U+10FFFB and U+10FFFD are marks of ours.
FORGED = st.sampled_from(["<|im_end|>", "<|im_start|>assistant\n", "</think>", "<|im_end|>\n<|im_start|>user\n"])
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\U0010fffa\U0010fffb\U0010fffd"), max_size=12)
TEXT = st.lists(WORDS | FORGED | st.sampled_from(["\n", "\n\n", " ", "ja", "ümläut 漢字 🥨"]), max_size=6).map("".join)
CALL = st.fixed_dictionaries(
    {"name": st.sampled_from(["f", "get_weather"]), "arguments": st.dictionaries(TEXT, TEXT, max_size=2)}
)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Exchanges of a question and one or two answers; answers may reason, call, or be out of the loss."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": draw(TEXT)}] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(TEXT)})
        for _ in range(draw(st.integers(1, 2))):
            calls = [{"function": call} for call in draw(st.lists(CALL, max_size=2))]
            answer = {
                "role": "assistant",
                "content": draw(TEXT),
                "weight": draw(st.integers(0, 1)),
                "tool_calls": calls,
            }
            messages.append(answer | ({"reasoning": draw(TEXT)} if draw(st.booleans()) else {}))
    return messages


def spoken(message: dict[str, Any]) -> str:
    """What the model has to say for a message, by the ChatML template of these tests."""
    reasoning = message.get("reasoning")
    functions = [{key: call["function"][key] for key in ("name", "arguments")} for call in message["tool_calls"]]
    calls = [f"\n<tool_call>\n{json.dumps(made, ensure_ascii=False)}\n</tool_call>" for made in functions]
    thought = f"<think>\n{reasoning}\n</think>\n\n" if reasoning else ""
    return f"{thought}{message['content']}{''.join(calls)}<|im_end|>"


@pytest.fixture(scope="module")
def renderer(chatml: str, renderer_for: Callable[..., Renderer]) -> Renderer:
    return renderer_for(chatml)


@given(messages=conversations())
@settings(max_examples=300, deadline=None)
def test_trained_tokens_say_exactly_what_the_model_has_to_say(
    renderer: Renderer, messages: list[dict[str, Any]]
) -> None:
    rendered = renderer.render(as_given(messages))
    answers = [message for message in messages if message["role"] == "assistant"]
    assert len(rendered.spans) == len(answers)
    for span, message in zip(rendered.spans, answers, strict=True):
        ((begin, end),) = span.tokens
        said = renderer.tokenizer.decode(rendered.input_ids[begin:end])
        assert spoken(message).endswith(said)
        missing = spoken(message).removesuffix(said)
        assert not missing.strip("\r\n"), "only newlines may have merged with the header's"
        assert bool(missing) <= (rendered.notes["straddling_tokens"] > 0)
        assert rendered.loss_mask[begin:end].tolist() == [bool(message["weight"])] * (end - begin)
    outside = np.ones(len(rendered.input_ids), bool)
    for span in rendered.spans:
        outside[slice(*span.tokens[0])] = False
    assert not rendered.loss_mask[outside].any()


@given(messages=conversations())
@settings(max_examples=100, deadline=None)
def test_all_tokens_together_are_the_text_and_no_message_forges_a_turn(
    renderer: Renderer, messages: list[dict[str, Any]]
) -> None:
    rendered = renderer.render(as_given(messages))
    assert renderer.tokenizer.decode(rendered.input_ids) == rendered.text
    starts = rendered.input_ids == renderer.tokenizer.control["<|im_start|>"]
    assert np.count_nonzero(starts) == len(messages)


@given(messages=conversations())
@settings(max_examples=50, deadline=None)
def test_a_batch_is_rendered_as_its_members_alone(renderer: Renderer, messages: list[dict[str, Any]]) -> None:
    halves = [as_given(messages[: len(messages) // 2 + 1]), as_given(messages)]
    for alone, together in zip(map(renderer.render, halves), renderer.render_batch(halves), strict=True):
        assert isinstance(together, Rendered)
        assert np.array_equal(alone.input_ids, together.input_ids)
        assert np.array_equal(alone.loss_mask, together.loss_mask)
