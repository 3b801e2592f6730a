"""The record cases on masks, templates and checks: each as it was found, with the answer that a user needs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.chat import Rendered, Renderer
from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError
from sft_toolkit.formats import parse_record
from sft_toolkit.reporting.templates_check import template_findings
from sft_toolkit.tool_calls.judge import Judge, Judgement
from tests.sft_toolkit.chat.test_tools_text import NEVER_WRITE

MakeFolder = Callable[..., Path]
PATH = Path(__file__).parents[2] / "cases" / "record_cases.jsonl"
CASES = {case["id"]: case for case in map(json.loads, PATH.read_text().splitlines())}


def read(name: str) -> Conversation:
    return parse_record(CASES[name]["input"])


def judged(name: str) -> Judgement:
    return Judge().judge(read(name))


@pytest.fixture
def renderer_of(trl_templates: Path, make_folder: MakeFolder) -> Callable[..., Renderer]:
    def make(template: str, **config: Any) -> Renderer:
        return Renderer.from_folder(make_folder((trl_templates / f"{template}.jinja").read_text(), **config))

    return make


def trained(renderer: Renderer, rendered: Rendered) -> list[str]:
    return [
        "".join(renderer.tokenizer.decode(rendered.input_ids[begin:end]) for begin, end in span.tokens)
        for span in rendered.spans
        if span.trained
    ]


@pytest.mark.parametrize("name", ["args-key-langchain", "args-key-parameters"])
def test_arguments_under_another_key_are_trained(name: str, chatml: str, make_folder: MakeFolder) -> None:
    renderer = Renderer.from_folder(make_folder(chatml))
    assert '"arguments": {"city": "Bonn"}' in trained(renderer, renderer.render(read(name)))[0]


@pytest.mark.parametrize("template", sorted(NEVER_WRITE))
def test_tools_not_rendered_nocall(template: str, renderer_of: Callable[..., Renderer]) -> None:
    renderer = renderer_of(template)
    assert renderer.render(read("tools-not-rendered-nocall")).notes["tools_not_rendered"] == 1
    assert {finding.subject: finding.level for finding in template_findings(renderer)}["tools"] == "warning"


def test_tools_not_rendered_deepseek(renderer_of: Callable[..., Renderer]) -> None:
    renderer = renderer_of("deepseekv3")
    assert renderer.render(read("tools-not-rendered-deepseek")).notes["tools_not_rendered"] == 1


def test_named_template_tool_use(chatml: str, make_folder: MakeFolder) -> None:
    without = chatml[chatml.index("{%- for message in messages %}") :]
    named = [{"name": "default", "template": without}, {"name": "tool_use", "template": chatml}]
    folder = make_folder(None, make_folder_tokenizer(make_folder(chatml)), chat_template=named)
    given = parse_record(CASES["named-template-tool-use"]["input"]["record"])
    rendered = Renderer.from_folder(folder).render(given)
    assert '"name": "get_weather"' in rendered.text and rendered.notes["tools_not_rendered"] == 0


def make_folder_tokenizer(folder: Path) -> dict[str, Any]:
    tokenizer: dict[str, Any] = json.loads((folder / "tokenizer.json").read_text())
    return tokenizer


def test_system_key_with_messages(chatml: str, make_folder: MakeFolder) -> None:
    rendered = Renderer.from_folder(make_folder(chatml)).render(read("system-key-with-messages"))
    assert rendered.text.startswith("<|im_start|>system\nAnswer in German only.<|im_end|>")


def test_loss_false_message(chatml: str, make_folder: MakeFolder) -> None:
    renderer = Renderer.from_folder(make_folder(chatml))
    assert trained(renderer, renderer.render(read("loss-false-message"))) == ["good<|im_end|>"]


def test_hermes_single_turn_tokens(renderer_of: Callable[..., Renderer]) -> None:
    renderer = renderer_of("qwen3")
    rendered = renderer.render(read("hermes-single-turn-tokens"))
    first = rendered.input_ids[rendered.loss_mask][0]
    assert first == renderer.tokenizer.control["<tool_call>"] and rendered.notes["control_text"] == 0


def test_anthropic_blocks() -> None:
    conversation = read("anthropic-blocks")
    (verdict,) = judged("anthropic-blocks").verdicts
    assert verdict.fault.reason == "unknown_tool"
    assert conversation.messages[verdict.turn].tool_calls[0].name == "no_such_tool"


@pytest.mark.parametrize(("name", "stop"), [("llama3", "<|eot_id|>"), ("qwen2-5-vl", "<|im_end|>")])
def test_assistant_first(name: str, stop: str, renderer_of: Callable[..., Renderer]) -> None:
    renderer = renderer_of(name.replace("-", "_"), bos_token="<|begin_of_text|>" if name == "llama3" else "<s>")
    rendered = renderer.render(read(f"assistant-first-{name}"))
    assert trained(renderer, rendered) == [f"Hello there.{stop}", f"Reply{stop}"]
    assert rendered.notes["inserted_default_system"] == (name == "qwen2-5-vl")


def test_nullable_true() -> None:
    assert not judged("nullable-true").verdicts


@pytest.mark.parametrize("name", ["xlam-flat-parameters", "python-types-optional"])
def test_types_as_python_writes_them_are_checked(name: str) -> None:
    (verdict,) = judged(name).verdicts
    assert verdict.fault.reason == "invalid_arguments"


def test_chat_template_kwargs(renderer_of: Callable[..., Renderer]) -> None:
    renderer = renderer_of("qwen3")
    rendered = renderer.render(read("chat-template-kwargs"))
    assert rendered.notes["template_variables"] == 1 and rendered.notes["template_variables_not_read"] == 0


def test_r1_distill_call_without_eos(renderer_of: Callable[..., Renderer]) -> None:
    renderer = renderer_of("deepseek_r1_distill", eos_token="<｜end▁of▁sentence｜>")
    assert renderer.render(read("r1-distill-call-without-eos")).notes["turns_without_stop"] == 1
    said = {finding.subject: (finding.level, finding.said) for finding in template_findings(renderer)}
    assert said["stop"] == ("ok", "<｜end▁of▁sentence｜> ends an answer, with loss")
    level, sentence = said["call stop"]
    assert level == "warning" and "one call ends in <｜tool▁call▁end｜>" in sentence and "eos_token" in sentence


def test_weight_text() -> None:
    with pytest.raises(RecordError, match='weight "0", which is text'):
        read("weight-text")


def test_closing_think_only() -> None:
    answer = read("closing-think-only").messages[1]
    assert (answer.reasoning, answer.content) == ("One and one is two.", "2")


def test_every_case_is_read_or_refused_in_a_sentence() -> None:
    outcomes: Counter[str] = Counter()
    for case in CASES.values():
        for given in case["input"] if isinstance(case["input"], list) else [case["input"]]:
            try:
                parse_record(given.get("record", given) if isinstance(given, dict) else given)
                outcomes["read"] += 1
            except RecordError as error:
                assert error.detail
                outcomes[error.reason] += 1
    assert outcomes["read"] >= len(CASES) - 3, outcomes
