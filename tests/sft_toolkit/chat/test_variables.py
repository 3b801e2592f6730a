"""Variables of the run and of a record reach the template as transformers' apply_chat_template passes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.chat import Renderer
from sft_toolkit.chat.messages import prepare
from sft_toolkit.chat.variables import record_variables
from sft_toolkit.cli.template_options import template_variables
from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError, UsageError
from sft_toolkit.formats import parse_record
from tests.sft_toolkit.chat.test_parity import Peer

MESSAGES = [
    {"role": "user", "content": "1+1?"},
    {"role": "assistant", "content": "2", "reasoning": "Eins und eins."},
    {"role": "user", "content": "2+2?"},
    {"role": "assistant", "content": "4"},
]
REAL = [
    ("qwen3", {"enable_thinking": False}),
    ("glm4moe", {"enable_thinking": False}),
    ("gptoss", {"reasoning_effort": "low", "model_identity": "Ich bin ein Kolibri, und ein langer Text dazu."}),
    ("llama3_1", {"date_string": "1 Jan 2030"}),
    ("nemotron_3_nano", {"truncate_history_thinking": False}),
    ("nemotron_3_super", {"low_effort": True}),
    ("gemma4_v2", {"enable_thinking": True}),
    ("qwen3_8", {"reasoning_effort": "low", "preserve_thinking": True}),
    ("lfm2_2_5", {"preserve_thinking": True}),
    ("muse_glimmer", {"reasoning_strength": "high"}),
]


def conversation(messages: list[dict[str, Any]] = MESSAGES, **more: Any) -> Conversation:
    return parse_record({"id": "r", "messages": messages, **more})


@pytest.mark.parametrize(("name", "variables"), REAL)
def test_the_text_with_variables_is_that_of_transformers_whether_the_run_or_the_record_gives_them(
    name: str, variables: dict[str, Any], trl_templates: Path, make_folder: Callable[..., Path]
) -> None:
    source = (trl_templates / f"{name}.jinja").read_text()
    folder = make_folder(source)
    plain = Renderer.from_folder(folder, today=date.today())
    given = conversation()
    messages = prepare(given, plain.probes.dialect, Counter())
    wanted = Peer.of(folder).tokenizer.apply_chat_template(messages, chat_template=source, tokenize=False, **variables)
    of_the_run = Renderer.from_folder(folder, today=date.today(), variables=variables).render(given)
    of_the_record = plain.render(conversation(chat_template_kwargs=variables))
    assert of_the_run.text == of_the_record.text == wanted
    assert of_the_run.loss_mask.tolist() == of_the_record.loss_mask.tolist()
    assert [of_the_run.text[span.begin : span.header_end] for span in of_the_run.spans if span.message == 3] == [
        of_the_record.text[span.begin : span.header_end] for span in of_the_record.spans if span.message == 3
    ]


def test_some_variable_of_each_kind_changes_the_text(trl_templates: Path, make_folder: Callable[..., Path]) -> None:
    folder = make_folder((trl_templates / "gptoss.jinja").read_text())
    texts = {
        Renderer.from_folder(folder, variables=variables).render(conversation()).text
        for variables in ({}, {"reasoning_effort": "low"}, {"model_identity": "Kolibri"})
    }
    assert len(texts) == 3


def test_a_header_that_only_a_records_own_variable_makes_carries_no_loss(make_folder: Callable[..., Path]) -> None:
    template = (
        "{% for m in messages %}{{ '<|' + m.role + '|>' }}"
        "{% if m.role == 'assistant' and mode == 'fast' %}{{ 'QUICK:' }}{% endif %}"
        "{{ m.content + '<|end|>' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% if mode == 'fast' %}{{ 'QUICK:' }}{% endif %}{% endif %}"
    )
    renderer = Renderer.from_folder(make_folder(template))
    pair = MESSAGES[2:]
    for kwargs, header in (({}, "<|assistant|>"), ({"mode": "fast"}, "<|assistant|>QUICK:")):
        rendered = renderer.render(conversation(pair, chat_template_kwargs=kwargs))
        (span,) = rendered.spans
        assert rendered.text[span.begin : span.header_end] == header
        assert renderer.tokenizer.decode(rendered.input_ids[rendered.loss_mask]) == "4<|end|>"


def test_the_record_wins_over_the_run_and_its_effort_over_both(make_folder: Callable[..., Path]) -> None:
    template = (
        "{{ a }}/{{ effort }}{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}"
    )
    renderer = Renderer.from_folder(make_folder(template), variables={"a": "run", "effort": "run"})
    for record, beginning in (
        ({}, "run/run<|user|>"),
        ({"chat_template_kwargs": {"a": "record", "effort": "x"}}, "record/x<|user|>"),
        ({"chat_template_kwargs": {"a": None}, "effort": "low"}, "run/low<|user|>"),
        ({"chat_template_kwargs": '{"a": 16.20}'}, "16.20/run<|user|>"),
        ({"chat_template_kwargs": ""}, "run/run<|user|>"),
    ):
        assert renderer.render(conversation(**record)).text.startswith(beginning)


def test_a_records_variables_are_counted_and_so_are_those_that_the_template_does_not_read(
    chatml: str, make_folder: Callable[..., Path]
) -> None:
    renderer = Renderer.from_folder(make_folder(chatml + "{{ suffix }}"))
    notes = renderer.render(conversation(chat_template_kwargs={"suffix": "", "enable_thinking": False})).notes
    assert notes["template_variables"] == 1 and notes["template_variables_not_read"] == 1
    assert "template_variables" not in renderer.render(conversation()).notes


@pytest.mark.parametrize(
    "given", [["a"], "a", "{", 5, {"messages": []}, {"tools": []}, {"add_generation_prompt": True}]
)
def test_variables_of_a_record_that_make_no_sense_are_its_fault(
    given: Any, chatml: str, make_folder: Callable[..., Path]
) -> None:
    with pytest.raises(RecordError, match="chat_template_kwargs"):
        Renderer.from_folder(make_folder(chatml)).render(conversation(chat_template_kwargs=given))


@pytest.mark.parametrize("name", ["messages", "tools", "no-name", "", "enable_thinkng"])
def test_a_variable_of_the_run_that_no_template_reads_is_a_usage_error(
    name: str, chatml: str, make_folder: Callable[..., Path]
) -> None:
    with pytest.raises(UsageError, match="template variable"):
        Renderer.from_folder(make_folder(chatml + "{{ enable_thinking }}"), variables={name: True})


def test_padding_of_a_column_of_objects_is_no_variable() -> None:
    given = conversation(chat_template_kwargs={"enable_thinking": False, "xml_tools": None})
    assert record_variables(given) == {"enable_thinking": False}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("false", False),
        ("False", False),
        ("None", None),
        ("26 Jul 2024", "26 Jul 2024"),
        ('"true"', "true"),
        ("", ""),
        ("007", "007"),
        ("12345678901234567890", 12345678901234567890),
        ('["a", 1]', ["a", 1]),
        ("a=b", "a=b"),
    ],
)
def test_a_value_is_json_or_text(text: str, value: Any) -> None:
    assert template_variables([f"key={text}"]) == {"key": value}


@pytest.mark.parametrize("given", [["key"], ["a=1", "a=2"]])
def test_a_pair_without_a_value_and_a_key_given_twice_are_usage_errors(given: list[str]) -> None:
    with pytest.raises(UsageError, match="--template-variable"):
        template_variables(given)
