"""What carries loss with real templates that end their turns in different ways, spelled out by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.chat import Rendered, Renderer
from tests.sft_toolkit.chat.test_parity import read

CALL = {"id": "call_1", "type": "function", "function": {"name": "wetter", "arguments": {"ort": "Ulm"}}}
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "Und?"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "16"},
    {"role": "assistant", "content": "16 Grad."},
    {"role": "user", "content": "Danke!"},
    {"role": "assistant", "content": "Gern.", "reasoning": "Höflich."},
]


@pytest.fixture
def render(trl_templates: Path, renderer_for: Callable[..., Renderer]) -> Callable[..., tuple[Renderer, Rendered]]:
    def run(name: str, messages: list[dict[str, Any]] = MESSAGES) -> tuple[Renderer, Rendered]:
        renderer = renderer_for((trl_templates / f"{name}.jinja").read_text())
        return renderer, renderer.render(read({"messages": messages}))

    return run


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "qwen3",
            [
                '<tool_call>\n{"name": "wetter", "arguments": {"ort": "Ulm"}}\n</tool_call><|im_end|>',
                "16 Grad.<|im_end|>",
                "<think>\nHöflich.\n</think>\n\nGern.<|im_end|>",
            ],
        ),
        (
            "glm4moe",
            [
                "\n<tool_call>wetter\n<arg_key>ort</arg_key>\n<arg_value>Ulm</arg_value>\n</tool_call><|observation|>",
                "\n16 Grad.<|user|>",
                "\n<think>Höflich.</think>\nGern.</s>",
            ],
        ),
        (
            "gptoss",
            [
                ' to=functions.wetter<|channel|>commentary json<|message|>{"ort": "Ulm"}<|call|>',
                "<|channel|>final<|message|>16 Grad.",
                "<|channel|>analysis<|message|>Höflich.<|end|><|start|>assistant"
                "<|channel|>final<|message|>Gern.<|return|>",
            ],
        ),
        (
            "llama3_1",
            ['{"name": "wetter", "parameters": {"ort": "Ulm"}}<|eot_id|>', "16 Grad.<|eot_id|>", "Gern.<|eot_id|>"],
        ),
    ],
)
def test_each_turn_is_trained_from_its_first_word_to_the_token_that_ends_it(
    render: Callable[..., tuple[Renderer, Rendered]], name: str, expected: list[str]
) -> None:
    renderer, rendered = render(name)
    decode = renderer.tokenizer.decode
    said = ["".join(decode(rendered.input_ids[slice(*piece)]) for piece in span.tokens) for span in rendered.spans]
    assert said == expected
    assert decode(rendered.input_ids[rendered.loss_mask]) == "".join(expected)


def test_a_template_that_writes_results_inside_the_calling_turn_trains_around_them(
    render: Callable[..., tuple[Renderer, Rendered]],
) -> None:
    """Gemma 4: the model stops at <|tool_response>; the response itself is the environment's."""
    renderer, rendered = render("gemma4_v5", MESSAGES[:4])
    said = renderer.tokenizer.decode(rendered.input_ids[rendered.loss_mask])
    assert said.startswith("<|tool_call>call:wetter{") and "<tool_call|><|tool_response>" in said
    assert "response:" not in said and "16 Grad.<turn|>" in said
    assert "response:wetter" in rendered.text


@pytest.mark.parametrize(
    ("name", "note", "count"),
    [("glm4moe", "eos_appended", 1), ("gptoss", "history_stop_left_out", 1), ("qwen3", "eos_appended", 0)],
)
def test_unusual_endings_are_counted(
    render: Callable[..., tuple[Renderer, Rendered]], name: str, note: str, count: int
) -> None:
    _, rendered = render(name)
    assert rendered.notes[note] == count
    assert rendered.notes["turns_without_stop"] == 0


def test_an_empty_answer_still_trains_its_stop_token(render: Callable[..., tuple[Renderer, Rendered]]) -> None:
    messages = [MESSAGES[0], {"role": "assistant", "content": ""}, MESSAGES[4], {"role": "assistant", "content": ""}]
    for name, stops in (("llama3", ["<|eot_id|>"] * 2), ("glm4moe", ["<|user|>", "</s>"])):
        renderer, rendered = render(name, messages)
        said = [renderer.tokenizer.decode(rendered.input_ids[slice(*span.tokens[0])]) for span in rendered.spans]
        assert said == stops


def test_a_conversation_that_ends_in_a_question_gets_no_eos(
    render: Callable[..., tuple[Renderer, Rendered]],
) -> None:
    renderer, rendered = render("glm4moe", MESSAGES[:5])
    assert rendered.notes["eos_appended"] == 0
    assert renderer.tokenizer.decode(rendered.input_ids) == rendered.text
