"""Conversations that an answer opens: neither header nor BOS nor a template's own system prompt carries loss."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.chat import Rendered, Renderer
from sft_toolkit.errors import RecordError
from sft_toolkit.formats import parse_record
from tests.sft_toolkit.chat.test_parity import TOOLS, call, result, template_names, turn

MakeFolder = Callable[..., Path]
QUESTION = {"role": "user", "content": "Question"}
SYSTEM = {"role": "system", "content": "Sei kurz."}
REST = [QUESTION, turn("Reply")]
OPENINGS: dict[str, list[dict[str, Any]]] = {
    "answer": [turn("Hello there.")],
    "reasoned": [turn("Hello there.", reasoning="Begrüßen.")],
    "call": [turn(None, call(1, ort="Ulm")), result(1), turn("Hello there.")],
    "call with content": [turn("Ich sehe nach.", call(1, ort="Ulm")), result(1), turn("Hello there.")],
}
REFUSES = {"cohere", "cohere2", "gemma", "gemma3"}


def said(rendered: Rendered, turns: int) -> list[str]:
    return ["".join(rendered.text[begin:end] for begin, end in span.pieces).strip() for span in rendered.spans[:turns]]


@pytest.mark.parametrize("name", template_names())
def test_an_opening_answer_carries_loss_on_what_it_would_say_to_a_question(
    name: str, trl_templates: Path, make_folder: MakeFolder
) -> None:
    renderer = Renderer.from_folder(make_folder((trl_templates / f"{name}.jinja").read_text()))
    compared = 0
    for kind, opening in OPENINGS.items():
        tools = TOOLS if "call" in kind else []
        for before in ([], [SYSTEM]):
            record = {"id": "r", "tools": tools}
            (opened, asked) = renderer.render_batch(
                [
                    parse_record({**record, "messages": [*before, *opening, *REST]}),
                    parse_record({**record, "messages": [*before, QUESTION, *opening, *REST]}),
                ]
            )
            if isinstance(opened, RecordError) or isinstance(asked, RecordError):
                assert isinstance(opened, RecordError) or kind == "reasoned", (kind, asked)
                continue
            compared += 1
            turns = len(opening) - ("call" in kind)
            assert said(opened, turns) == said(asked, turns), (kind, before)
    assert (compared == 0) == (name in REFUSES)


def trained(renderer: Renderer, *messages: dict[str, Any]) -> list[str]:
    rendered = renderer.render(parse_record({"id": "r", "messages": list(messages)}))
    return [
        "".join(renderer.tokenizer.decode(rendered.input_ids[begin:end]) for begin, end in span.tokens)
        for span in rendered.spans
        if span.trained
    ]


def test_hand_worked_bos_and_default_system_prompt_inside_the_first_stretch(
    trl_templates: Path, make_folder: MakeFolder
) -> None:
    for name, stop in (("llama3", "<|eot_id|>"), ("qwen2_5_vl", "<|im_end|>")):
        renderer = Renderer.from_folder(make_folder((trl_templates / f"{name}.jinja").read_text()))
        opened = [turn("Hello there."), *REST]
        assert trained(renderer, *opened) == [f"Hello there.{stop}", f"Reply{stop}"]
        notes = renderer.render(parse_record({"id": "r", "messages": opened})).notes
        assert notes["turns_without_header"] == 0
        assert notes["inserted_default_system"] == (name == "qwen2_5_vl")


LOOP = (
    "{% for m in messages %}BEFORE{{ '<|' + m.role + '|>' }}AFTER{{ m.content + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


@pytest.mark.parametrize(
    "before",
    [
        "{% if loop.first %}{{ bos_token }}{% endif %}",
        "{% if loop.first and m.role != 'system' %}Du hilfst. <|assistant|> sagt viel.<|end|>{% endif %}",
        "{% if loop.first and tools %}{{ tools | tojson }}<|end|>{% endif %}",
        "{% if loop.first %}\n\n{% endif %}",
    ],
)
def test_whatever_stands_before_the_header_of_an_opening_answer_is_not_trained(
    before: str, make_folder: MakeFolder
) -> None:
    renderer = Renderer.from_folder(make_folder(LOOP.replace("BEFORE", before).replace("AFTER", "")))
    assert trained(renderer, turn("Hallo <|assistant|> du."), *REST) == [
        "Hallo <|assistant|> du.<|end|>",
        "Reply<|end|>",
    ]


def test_a_header_that_nothing_gives_is_not_trained_where_a_template_has_none(make_folder: MakeFolder) -> None:
    loop = "{% for m in messages %}{% if loop.first %}Du hilfst. {% endif %}{{ m.content + '</s>' }}{% endfor %}"
    assert trained(Renderer.from_folder(make_folder(loop)), turn("Hallo."), *REST) == ["Hallo.</s>", "Reply</s>"]


@pytest.mark.parametrize(
    "after",
    [
        "{% if loop.index == 2 and messages[0].role == 'system' %}{{ messages[0].content }}{% endif %}",
        "{% if loop.first %}Du: {% endif %}",
    ],
)
def test_a_template_that_writes_other_text_into_an_opening_answer_refuses_the_record(
    after: str, make_folder: MakeFolder
) -> None:
    renderer = Renderer.from_folder(make_folder(LOOP.replace("BEFORE", "").replace("AFTER", after)))
    opening = [turn("Hallo.")] if "first" in after else [SYSTEM, turn("Hallo.")]
    with pytest.raises(RecordError, match="other text") as fault:
        trained(renderer, *opening, *REST)
    assert fault.value.reason == "message_not_traced"
