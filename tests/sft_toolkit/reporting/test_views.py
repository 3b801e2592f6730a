"""Views against what they are of: no character lost, none added, loss where the mask says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from sft_toolkit.chat import Renderer
from sft_toolkit.conversation import Conversation, Message
from sft_toolkit.reporting.find import Document, Sequence
from sft_toolkit.reporting.record_view import record_view, rendered_view
from sft_toolkit.reporting.shard_view import read_tokenizer, sequence_view
from sft_toolkit.reporting.view import View, token_pieces
from tests.byte_tokenizer import CHATML, CONTROL, write_byte_tokenizer

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
TURNS = st.lists(st.tuples(TEXT, TEXT, st.sampled_from([None, 0, 1])), min_size=1, max_size=4)


@pytest.fixture(scope="module")
def renderer(tmp_path_factory: pytest.TempPathFactory) -> Renderer:
    return Renderer.from_folder(write_byte_tokenizer(tmp_path_factory.mktemp("tokenizer")))


def conversation(turns: list[tuple[str, str, int | None]]) -> Conversation:
    messages = []
    for question, answer, weight in turns:
        messages += [Message("user", question), Message("assistant", answer, weight=weight)]
    return Conversation("x", messages)


def shown(view: View, trained: bool | None = None) -> str:
    pieces = [piece for section in view.sections for piece in section.pieces]
    return "".join(piece.text for piece in pieces if trained is None or piece.trained == trained)


@given(TURNS, st.booleans())
def test_a_rendered_view_is_the_rendered_text_with_its_loss(
    renderer: Renderer, turns: list[tuple[str, str, int | None]], apart: bool
) -> None:
    rendered = renderer.render(conversation(turns))
    view = rendered_view(conversation(turns), renderer, apart)
    assert shown(view) == rendered.text
    assert shown(view, trained=True) == "".join(f"{answer}<|im_end|>" for _, answer, weight in turns if weight != 0)
    if apart:
        assert sum(len(section.pieces) for section in view.sections) == len(rendered.input_ids)


@given(TURNS, st.booleans())
def test_a_decoded_view_is_the_rendered_text_with_its_loss(
    renderer: Renderer, turns: list[tuple[str, str, int | None]], apart: bool
) -> None:
    rendered = renderer.render(conversation(turns))
    document = Document("x", rendered.input_ids, rendered.loss_mask)
    view = sequence_view(Sequence("s:row 0", {}, [document], None, None), renderer.tokenizer, apart)
    assert shown(view) == rendered.text
    assert shown(view, trained=True) == shown(rendered_view(conversation(turns), renderer, apart), trained=True)


def test_words_decoded_one_by_one_keep_the_spaces_that_a_decoder_takes_off(tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.WordLevel({"?": 0, "▁warm": 1, "▁today": 2}, unk_token="?"))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    document = Document("x", np.array([1, 2, 2], np.int32), np.array([False, True, True]))
    sequence = Sequence("s:row 0", {}, [document], None, None)
    view = sequence_view(sequence, read_tokenizer(tmp_path), tokens_apart=True)
    assert [piece.text for piece in view.sections[0].pieces] == ["warm", " today", " today"]


def test_a_bos_that_only_the_tokenizer_writes_is_shown_once(tmp_path: Path) -> None:
    folder = write_byte_tokenizer(tmp_path, CHATML, (*CONTROL, "<s>"), bos_token="<s>", add_bos_token=True)
    renderer = Renderer.from_folder(folder)
    for apart in (False, True):
        view = rendered_view(conversation([("?", "!", None)]), renderer, apart)
        assert shown(view) == "<s><|im_start|>user\n?<|im_end|>\n<|im_start|>assistant\n!<|im_end|>\n"
        assert view.sections[0].remarks == ["10 tokens"]


def test_an_appended_eos_is_shown_with_its_loss(tmp_path: Path) -> None:
    open_ended = "{% for message in messages %}<|im_start|>{{ message.role }}:{{ message.content }}{% endfor %}"
    folder = write_byte_tokenizer(
        tmp_path, open_ended + "{% if add_generation_prompt %}<|im_start|>assistant:{% endif %}"
    )
    renderer = Renderer.from_folder(folder)
    for apart in (False, True):
        view = rendered_view(conversation([("?", "!", None)]), renderer, apart)
        assert shown(view, trained=True) == "!<|im_end|>"


def test_pieces_join_tokens_alike_in_loss_and_kind() -> None:
    mask, control = np.array([0, 0, 1, 1, 1], bool), np.array([1, 0, 0, 0, 1], bool)
    pieces = token_pieces(lambda first, after: f"{first}-{after}", 0, 5, mask, control, apart=False)
    assert [(piece.text, piece.trained, piece.annotation) for piece in pieces] == [
        ("0-1", False, True),
        ("1-2", False, False),
        ("2-4", True, False),
        ("4-5", True, True),
    ]
    assert len(token_pieces(lambda first, after: "", 1, 5, mask, control, apart=True)) == 4


def test_calls_that_stand_in_an_answer_or_its_reasoning_as_text_are_named() -> None:
    answer = Message(
        "assistant", 'It writes\n```\n<tool_call>{"name": "f", "arguments": {}}</tool_call>\n```\nand waits.'
    )
    answer.reasoning = 'So {"name": "g", "arguments": {"a": 1}} it is.'
    view = record_view(Conversation("x", [Message("user", "<invoke name='h'></invoke>"), answer]))
    assert view.sections[0].remarks == []
    assert view.sections[1].remarks == [
        "content holds calls as text: f (<tool_call>)",
        "reasoning holds calls as text: g (object)",
    ]
