"""Efforts stated by sentences and variables of a file, in templates that have no words for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.chat import Renderer
from sft_toolkit.chat.effort_sentences import EffortSentences, read_effort_sentences
from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.formats import parse_record

PAIR = [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2", "reasoning": "Eins und eins."}]
BRIEF = EffortSentences(sentences={"low": "Denke kurz."})


def conversation(*before: dict[str, Any], **more: Any) -> Conversation:
    return parse_record({"id": "r", "messages": [*before, *PAIR], "effort": "low", **more})


def system(content: Any, role: str = "system") -> dict[str, Any]:
    return {"role": role, "content": content}


@pytest.mark.parametrize(
    ("position", "before", "prompt"),
    [
        ("end", [], "system\nDenke kurz."),
        ("front", [], "system\nDenke kurz."),
        ("end", [system("Du bist nett.")], "system\nDu bist nett.\n\nDenke kurz."),
        ("front", [system("Du bist nett.")], "system\nDenke kurz.\n\nDu bist nett."),
        ("end", [system("Du bist nett.", "developer")], "developer\nDu bist nett.\n\nDenke kurz."),
        ("end", [system([{"type": "text", "text": "Du bist nett."}])], "system\nDu bist nett.\n\nDenke kurz."),
        ("front", [system([{"type": "text", "text": "Du bist nett."}])], "system\nDenke kurz.\n\nDu bist nett."),
        ("end", [system("  ")], "system\nDenke kurz."),
    ],
)
def test_the_sentence_stands_in_the_system_prompt_and_a_record_without_one_gets_one(
    position: Any, before: list[dict[str, Any]], prompt: str, chatml: str, make_folder: Callable[..., Path]
) -> None:
    sentences = EffortSentences(position, BRIEF.sentences)
    renderer = Renderer.from_folder(make_folder(chatml), effort_sentences=sentences)
    given = conversation(*before)
    ((same, rendered),) = renderer.render_each([given])
    assert same is given
    assert rendered.text.startswith(f"<|im_start|>{prompt}<|im_end|>\n<|im_start|>user\n1+1?")
    assert [span.message for span in rendered.spans] == [len(before) + 1]
    trained = renderer.tokenizer.decode(rendered.input_ids[rendered.loss_mask])
    assert trained == "<think>\nEins und eins.\n</think>\n\n2<|im_end|>"
    assert "effort_not_rendered" not in rendered.notes


def test_a_level_without_a_sentence_is_counted_as_not_shown(chatml: str, make_folder: Callable[..., Path]) -> None:
    renderer = Renderer.from_folder(make_folder(chatml), effort_sentences=BRIEF)
    assert renderer.effort.unstated == ["none", "medium", "high"]
    rendered = renderer.render(parse_record({"id": "r", "messages": PAIR, "effort": "high"}))
    assert rendered.notes["effort_not_rendered"] == 1
    assert rendered.text.startswith("<|im_start|>user")


def test_control_text_of_a_sentence_is_plain_text(chatml: str, make_folder: Callable[..., Path]) -> None:
    sentences = EffortSentences(sentences={"low": "Denke <|im_end|> kurz."})
    renderer = Renderer.from_folder(make_folder(chatml), effort_sentences=sentences)
    rendered = renderer.render(conversation())
    ends = [index for index in rendered.input_ids if index == renderer.tokenizer.control["<|im_end|>"]]
    assert len(ends) == 3 and rendered.notes["control_text"] == 1


def test_the_prompt_of_ours_takes_the_place_of_a_templates_own(
    trl_templates: Path, make_folder: Callable[..., Path]
) -> None:
    folder = make_folder((trl_templates / "qwen2_5.jinja").read_text())
    plain = Renderer.from_folder(folder).render(conversation())
    stated = Renderer.from_folder(folder, effort_sentences=BRIEF).render(conversation())
    assert plain.notes["inserted_default_system"] == 1 and "inserted_default_system" not in stated.notes
    assert "<|im_start|>system\nDenke kurz.<|im_end|>" in stated.text


def test_variables_of_a_level_reach_the_template_and_win_over_those_of_the_record(
    trl_templates: Path, make_folder: Callable[..., Path]
) -> None:
    folder = make_folder((trl_templates / "gptoss.jinja").read_text())
    levels = EffortSentences(variables={level: {"reasoning_effort": level} for level in ("low", "medium", "high")})
    renderer = Renderer.from_folder(folder, effort_sentences=levels)
    given = conversation(chat_template_kwargs={"reasoning_effort": "high", "model_identity": "Ich bin Kolibri."})
    text = renderer.render(given).text
    assert "Reasoning: low\n" in text and "Ich bin Kolibri." in text
    assert renderer.effort.unstated == ["none"]
    assert renderer.effort.shown("none") == renderer.effort.shown("medium") == renderer.effort.shown(None)


def test_thinking_off_for_none_alone_tells_it_from_the_others_by_its_generation_prompt(
    trl_templates: Path, make_folder: Callable[..., Path]
) -> None:
    folder = make_folder((trl_templates / "qwen3.jinja").read_text())
    off = EffortSentences(variables={"none": {"enable_thinking": False}})
    renderer = Renderer.from_folder(folder, effort_sentences=off)
    assert renderer.effort.shown("low") == renderer.effort.shown("high") != renderer.effort.shown("none")
    answer = [PAIR[0], {"role": "assistant", "content": "2"}]
    rendered = renderer.render(parse_record({"id": "r", "messages": answer, "effort": "none"}))
    assert "<think>\n\n</think>" in rendered.text
    assert renderer.tokenizer.decode(rendered.input_ids[rendered.loss_mask]) == "2<|im_end|>"


def test_a_template_without_system_messages_is_refused_at_once(
    trl_templates: Path, make_folder: Callable[..., Path]
) -> None:
    users_alone = "{% for m in messages if m.role != 'system' %}{{ m.role + ': ' + m.content + '</s>' }}{% endfor %}"
    with pytest.raises(UsageError, match="does not write the sentence of low"):
        Renderer.from_folder(make_folder(users_alone), effort_sentences=BRIEF)


def test_a_variable_that_the_template_does_not_read_is_refused(chatml: str, make_folder: Callable[..., Path]) -> None:
    typed = EffortSentences(variables={"none": {"enabel_thinking": False}})
    with pytest.raises(UsageError, match="template variable enabel_thinking: the chat template reads no such name"):
        Renderer.from_folder(make_folder(chatml), effort_sentences=typed)


def test_a_file_gives_sentences_and_variables_by_level(tmp_path: Path) -> None:
    path = tmp_path / "efforts.toml"
    path.write_text(
        'position = "front"\n[none]\nvariables = { enable_thinking = false }\n'
        '[low]\nsentence = " Denke kurz.\\n"\n[high]\n'
    )
    assert read_effort_sentences(path) == EffortSentences(
        "front", {"low": "Denke kurz."}, {"none": {"enable_thinking": False}}
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("position = 'top'", "Invalid enum value 'top'"),
        ("[lo]\nsentence = 'x'", "unknown field `lo`"),
        ("[low]\nsentense = 'x'", "unknown field `sentense`"),
        ("[low]\nsentence = 5", r"Expected `str`, got `int` - at `\$.low.sentence`"),
        ("[low", "not|Expected"),
        ("", "states no level"),
        ("[low]\nsentence = ' '", "states no level"),
    ],
)
def test_a_file_that_is_none_is_refused_with_what_is_wrong(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "efforts.toml"
    path.write_text(text)
    with pytest.raises(ToolkitError, match=message) as fault:
        read_effort_sentences(path)
    assert str(path) in fault.value.message and "[low] sentence" in fault.value.hint
    with pytest.raises(ToolkitError, match="No such file"):
        read_effort_sentences(tmp_path / "other.toml")
