"""Control tokens inside messages: kept inert wherever the template puts them, refused where it takes them apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sft_toolkit.chat import Rendered, Renderer
from sft_toolkit.chat.tokens import Located
from sft_toolkit.errors import RecordError
from sft_toolkit.formats import parse_record
from tests.given_messages import as_given


@pytest.mark.parametrize(
    ("name", "answers"), [("qwen3", ["foo </think> bar"]), ("deepseekv3", ["foo </think> bar", "foo </think> bar"])]
)
def test_an_answer_that_a_template_divides_at_a_control_token_is_refused(
    trl_templates: Path, renderer_for: Callable[..., Renderer], name: str, answers: list[str]
) -> None:
    """Qwen 3 takes what precedes </think> for reasoning and writes a </think> of its own, which is no plain text."""
    renderer = renderer_for((trl_templates / f"{name}.jinja").read_text() + "{#- </think> -#}")
    messages = [
        {"role": role, "content": content}
        for answer in answers
        for role, content in (("user", "Und?"), ("assistant", answer))
    ]
    with pytest.raises(RecordError) as caught:
        renderer.render(as_given(messages))
    assert caught.value.reason == "control_text"


def metaspace_tokenizer() -> dict[str, Any]:
    """As of Llama 2 and TinyLlama: spaces are ▁, and one stands before a text, not before what follows a token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="first")
    letters = list("abcdefghijklmnopqrstuvwxyz<>|_/?. \n")
    trainer = trainers.BpeTrainer(
        vocab_size=120,
        special_tokens=["<s>", "</s>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=letters,
        show_progress=False,
    )
    tokenizer.train_from_iterator(["what is that? assistant user\n"] * 9, trainer)
    return json.loads(tokenizer.to_str())


def test_a_stretch_with_control_text_is_tokenised_as_in_the_whole_text(
    make_folder: Callable[..., Path], chatml: str
) -> None:
    """No space comes before it that the tokenizer puts before a text alone."""
    renderer = Renderer.from_folder(make_folder(chatml, metaspace_tokenizer()))
    messages = [{"role": "user", "content": "what is <|im_end|>?"}, {"role": "assistant", "content": "that <|im_end|>"}]
    rendered = renderer.render(parse_record({"messages": messages}))
    assert renderer.tokenizer.decode(rendered.input_ids) == rendered.text
    assert renderer.tokenizer.decode(rendered.input_ids[rendered.loss_mask]) == "that <|im_end|><|im_end|>"
    assert np.count_nonzero(rendered.input_ids == renderer.tokenizer.control["<|im_end|>"]) == 2


def test_the_guard_of_plain_text_is_no_way_around_it(chatml: str, renderer_for: Callable[..., Renderer]) -> None:
    messages = [{"role": "user", "content": "<|im_end|>\U0010fffa"}, {"role": "assistant", "content": "that"}]
    with pytest.raises(RecordError) as caught:
        renderer_for(chatml).render(parse_record({"messages": messages}))
    assert caught.value.reason == "control_text"


def test_content_parts_that_spell_a_control_token_together_are_refused(renderer_for: Callable[..., Renderer]) -> None:
    """Each of them alone is rendered, also where it holds a control token."""
    renderer = renderer_for(
        "{% for m in messages %}<|im_start|>{{ m.role }}{% for part in m.content %}{{ part.text }}{% endfor %}"
        "<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant{% endif %}"
    )

    def render(*texts: str) -> Rendered:
        parts = [{"type": "text", "text": text} for text in texts]
        answer = {"role": "assistant", "content": "Gut."}
        return renderer.render(as_given([{"role": "user", "content": parts}, answer]))

    stop = renderer.tokenizer.control["<|im_end|>"]
    assert np.count_nonzero(render("<|im_", "<|im_end|>", "end|").input_ids == stop) == 2
    with pytest.raises(RecordError) as caught:
        render("<|im_", "end|>")
    assert caught.value.reason == "control_text"


def test_tokens_are_found_by_character_as_the_encoding_finds_them(
    chatml: str, renderer_for: Callable[..., Renderer]
) -> None:
    """Letters of several tokens, and a space that some tokenizers leave uncovered."""
    text = "é 漢🥨<|im_end|>\n a"
    encoding = renderer_for(chatml).tokenizer.encode([text])[0]
    located = Located.of(encoding)
    assert [located.char_to_token(char) for char in range(len(text))] == [
        encoding.char_to_token(char) for char in range(len(text))
    ]
    apart = Located(np.arange(3, dtype=np.int32), np.array([(0, 1), (2, 3), (2, 3)], np.int32))
    assert [apart.char_to_token(char) for char in range(4)] == [0, None, 1, None]
