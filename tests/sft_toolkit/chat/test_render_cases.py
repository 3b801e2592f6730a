"""Inputs that broke other tools: every `render.*` case of tests/cases, checked in full."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sft_toolkit.chat import Rendered, Renderer
from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError
from sft_toolkit.formats import parse_record
from sft_toolkit.stage import Outcome
from sft_toolkit.stages.render import RenderStage
from tests.conftest import CASES

MISTRAL = """{{ bos_token }}{% for message in messages %}{% if message.role == 'user' %}{{ '[INST] ' + message.content +
'[/INST]' }}{% elif message.role == 'tool' %}{{ '[TOOL_RESULTS] ' + message.tool_call_id + message.content +
'[/TOOL_RESULTS]' }}{% elif message.tool_calls is defined %}{{ '[TOOL_CALLS]' }}{% for call in message.tool_calls %}
{% if call.id|length != 9 %}{{ raise_exception('Tool call IDs should be alphanumeric strings with length 9!') }}
{% endif %}{{ call | tojson }}{% endfor %}{{ eos_token }}{% else %}{{ ' ' + message.content + eos_token }}{% endif %}
{% endfor %}"""
TAGGED = """{% for message in messages %}{% if message.role == 'assistant' %}{% generation %}{{ message.content }}
{%- endgeneration %}{% else %}{{ message.content }}{% endif %}{% endfor %}"""
WITH_BOS = """{{ bos_token }}
{%- for message in messages %}{{ message.role + ": " + message.content + "</s>" }}{% endfor %}
{%- if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"""


@dataclass
class Bench:
    """What a check needs: the case, and ways to render it."""

    case: dict[str, Any]
    renderer_for: Callable[..., Renderer]
    make_folder: Callable[..., Path]
    trl: Path
    chatml: str

    @property
    def conversation(self) -> Conversation:
        return parse_record({"id": self.case["id"], **self.case["input"]})

    def template(self, name: str | None = None) -> str:
        return (self.trl / (name or self.case["input"]["template"])).read_text()

    def render(self, template: str | None = None, **options: Any) -> Rendered:
        return self.renderer_for(template or self.chatml, **options).render(self.conversation)

    def error(self, template: str) -> RecordError:
        with pytest.raises(RecordError) as caught:
            self.renderer_for(template).render(self.conversation)
        return caught.value

    def stage(self, **options: Any) -> tuple[list[dict[str, Any]], Outcome]:
        outcome = Outcome(quarantine=True)
        stage = RenderStage(tokenizer=str(self.make_folder(self.chatml)), **options)
        return list(stage.process([self.conversation], outcome)), outcome

    def decode(self, rendered: Rendered, template: str | None = None) -> list[str]:
        """Text of each run of trained tokens."""
        tokenizer = self.renderer_for(template or self.chatml).tokenizer
        edges = np.flatnonzero(np.diff(np.concatenate([[0], rendered.loss_mask.view(np.int8), [0]])))
        return [tokenizer.decode(rendered.input_ids[a:b]) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def arguments_are_decoded_once(bench: Bench) -> None:
    rendered = bench.render()
    assert bench.case["expect"]["must_contain"] in rendered.text
    assert bench.case["expect"]["must_not_contain"] not in rendered.text
    record = json.loads(json.dumps(bench.case["input"]))
    function = record["messages"][1]["tool_calls"][0]["function"]
    function["arguments"] = json.loads(function["arguments"])
    same = bench.renderer_for(bench.chatml).render(parse_record(record))
    assert np.array_equal(rendered.input_ids, same.input_ids) and np.array_equal(rendered.loss_mask, same.loss_mask)


def a_template_that_concatenates_gets_json_text(bench: Bench) -> None:
    rendered = bench.render(bench.template())
    assert '```json\n{"city": "Ulm"}\n```' in rendered.text
    assert rendered.notes["template_wants_string_arguments"] == 1


def there_is_exactly_one_bos(bench: Bench) -> None:
    tokens = bench.renderer_for(WITH_BOS).tokenizer
    bos = tokens.control["<s>"]
    processor = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [bos], "tokens": ["<s>"]}},
    }
    for template in (WITH_BOS, WITH_BOS.replace("{{ bos_token }}", "")):
        plain = json.loads((bench.make_folder(template) / "tokenizer.json").read_text())
        for adds in (True, False):
            tokenizer = {**plain, "post_processor": processor if adds else None}
            rendered = Renderer.from_folder(bench.make_folder(template, tokenizer)).render(bench.conversation)
            expected = 1 if adds or template == WITH_BOS else 0
            assert np.count_nonzero(rendered.input_ids == bos) == expected
            assert (rendered.input_ids[0] == bos) == bool(expected)
            assert tokens.decode(rendered.input_ids[rendered.loss_mask]) == "b</s>"


def the_boundary_comes_from_one_tokenisation(bench: Bench) -> None:
    template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    renderer = bench.renderer_for(template)
    rendered = renderer.render(bench.conversation)
    assert rendered.text == "howow now"
    assert rendered.input_ids[:-1].tolist() == renderer.tokenizer.encode(["howow now"])[0].ids
    offsets = renderer.offsets(rendered)
    assert rendered.loss_mask.tolist() == [begin >= 3 for begin, _ in offsets]


def a_newline_that_merges_is_masked_and_counted(bench: Bench) -> None:
    renderer = bench.renderer_for(bench.chatml)
    rendered = renderer.render(bench.conversation)
    assert rendered.input_ids.tolist() == renderer.tokenizer.encode([rendered.text])[0].ids
    straddling = [(a, b) for a, b in renderer.offsets(rendered) if rendered.text[a:b] == "\n\n"]
    assert len(straddling) == 1, "the small tokenizer is to have a token of two newlines"
    assert rendered.notes["straddling_tokens"] == 1
    assert bench.decode(rendered) == ["b<|im_end|>"]


def dropped_calls_are_an_error(bench: Bench) -> None:
    assert bench.error(bench.template()).reason == "tool_calls_not_rendered"
    assert bench.error(bench.template("lfm2.jinja")).reason == "tool_calls_not_rendered"
    assert bench.error(bench.template("gemma3.jinja")).reason == "template_error"


def parallel_calls_are_refused_by_a_template_of_single_calls(bench: Bench) -> None:
    error = bench.error(bench.template("llama3_1.jinja"))
    assert error.reason == "template_error" and "only supports single tool-calls" in error.detail
    silent = bench.error(bench.template("gptoss.jinja"))
    assert silent.reason == "tool_calls_not_rendered" and "message 1" in silent.detail


def every_turn_ends_in_a_trained_stop_token(bench: Bench) -> None:
    rendered = bench.render()
    stop = bench.renderer_for(bench.chatml).tokenizer.control["<|im_end|>"]
    assert bench.decode(rendered) == ["b<|im_end|>", "d<|im_end|>"]
    assert [rendered.input_ids[span.token_end - 1] for span in rendered.spans] == [stop, stop]


def last_only_leaves_no_stop_token_of_history(bench: Bench) -> None:
    assert bench.decode(bench.render(train="last")) == ["d<|im_end|>"]


def a_stop_token_that_is_also_padding_is_trained(bench: Bench) -> None:
    folder = bench.make_folder(bench.chatml, eos_token="<|im_end|>", pad_token="<|im_end|>")
    renderer = Renderer.from_folder(folder)
    rendered = renderer.render(bench.conversation)
    assert renderer.tokenizer.decode(rendered.input_ids[rendered.loss_mask]) == "b<|im_end|>"


def dropped_reasoning_is_reported_and_can_be_trained_per_exchange(bench: Bench) -> None:
    rendered = bench.render(bench.template())
    assert rendered.notes["dropped_reasoning"] == 3
    assert [span.reasoning for span in rendered.spans] == [False, False, False, None]
    assert "brauche" not in rendered.text and "<think>\n\n</think>" in rendered.text
    outcome = Outcome(quarantine=True)
    stage = RenderStage(tokenizer=str(bench.make_folder(bench.template())), per_exchange=True)
    rows = list(stage.process([bench.conversation], outcome))
    tokenizer = bench.renderer_for(bench.template()).tokenizer
    first, second = (tokenizer.decode(row["input_ids"][row["loss_mask"]]) for row in rows)
    assert [row["id"] for row in rows] == [f"{bench.case['id']}#0", f"{bench.case['id']}#1"]
    assert all(thought in first for thought in ("Ich brauche das Wetter.", "Jetzt Bonn.", "Alles da."))
    assert second == "gern<|im_end|>"
    assert outcome.counters.notes["exchanges"] == 2


def a_prompt_that_is_no_prefix_is_masked_exactly(bench: Bench) -> None:
    rendered = bench.render(bench.template())
    assert bench.decode(rendered, bench.template()) == ["This is my response.<|im_end|>"]


def call_ids_are_brought_to_nine_characters(bench: Bench) -> None:
    rendered = bench.render(MISTRAL)
    identity = rendered.text.partition('"id": "')[2].partition('"')[0]
    assert len(identity) == 9 and identity.isalnum() and identity.isascii()
    assert f"[TOOL_RESULTS] {identity}16" in rendered.text
    assert bench.render(MISTRAL).text == rendered.text


def an_image_is_refused(bench: Bench) -> None:
    assert bench.error(bench.chatml).reason == "image_part"


def forged_turns_are_plain_text_without_loss(bench: Bench) -> None:
    renderer = bench.renderer_for(bench.chatml)
    rendered = renderer.render(bench.conversation)
    start, stop = (renderer.tokenizer.control[token] for token in ("<|im_start|>", "<|im_end|>"))
    assert [np.count_nonzero(rendered.input_ids == token) for token in (start, stop)] == [2, 2]
    assert rendered.notes["control_text"] == 3
    assert bench.decode(rendered) == ["Das sind Steuerzeichen.<|im_end|>"]
    assert renderer.tokenizer.decode(rendered.input_ids) == rendered.text


def the_turn_ends_at_its_real_end(bench: Bench) -> None:
    rendered = bench.render()
    assert bench.decode(rendered) == ["Es ist <|im_end|>.<|im_end|>"]
    stop = bench.renderer_for(bench.chatml).tokenizer.control["<|im_end|>"]
    assert np.count_nonzero(rendered.input_ids == stop) == 2
    assert rendered.input_ids[rendered.spans[0].token_end - 1] == stop


def json_is_neither_escaped_nor_sorted(bench: Bench) -> None:
    assert """{"q": "a<b & 'ä'", "a": 1}""" in bench.render().text


def tools_keep_the_order_of_the_record(bench: Bench) -> None:
    rendered = bench.render()
    assert json.dumps(bench.case["input"]["tools"][0]) in rendered.text


def a_record_without_trained_tokens_is_rejected(bench: Bench) -> None:
    rows, outcome = bench.stage(max_tokens=bench.case["input"]["max_tokens"], overlong="truncate")
    assert rows == [] and outcome.counters.rejected == {"no_trained_tokens": 1}


def spans_need_no_generation_tags(bench: Bench) -> None:
    rendered = bench.render()
    assert bench.decode(rendered) == ["Hallo!<|im_end|>"]
    assert 0 < rendered.loss_tokens < len(rendered.input_ids)


def a_span_at_token_zero_does_not_spill(bench: Bench) -> None:
    """The first token of a document has no context to be predicted from: with BOS before it, it is trained."""
    rendered = bench.render(TAGGED)
    assert rendered.text == "Auser message" and rendered.loss_tokens == 0
    assert bench.decode(bench.render("{{ bos_token }}" + TAGGED), TAGGED) == ["A"]


def repeated_text_is_masked_where_it_was_said(bench: Bench) -> None:
    assert bench.decode(bench.render()) == ["ja<|im_end|>", "nein<|im_end|>"]


def null_content_is_empty(bench: Bench) -> None:
    for template in (bench.chatml, bench.template("qwen2_5.jinja"), bench.template("deepseekv3.jinja")):
        rendered = bench.render(template)
        assert "None" not in rendered.text and "get_weather" in rendered.text


def missing_content_is_kept(bench: Bench) -> None:
    rendered = bench.render()
    assert [span.message for span in rendered.spans] == [1, 3]
    assert "get_weather" in bench.decode(rendered)[0]


def rows_carry_the_mask_beside_the_ids(bench: Bench) -> None:
    """Labels (-100 where masked) are written by `pack --labels`; here: what they are made of."""
    (row,), _ = bench.stage()
    labels = np.where(row["loss_mask"], row["input_ids"], -100)
    assert row["loss_mask"].shape == row["input_ids"].shape and row["loss_mask"].dtype == np.bool_
    assert row["loss_tokens"] == np.count_nonzero(labels != -100) > 0


def the_mask_is_of_targets_unshifted(bench: Bench) -> None:
    rendered = bench.render()
    renderer = bench.renderer_for(bench.chatml)
    assert renderer.tokenizer.decode(rendered.input_ids[rendered.loss_mask]) == "b<|im_end|>"
    assert not rendered.loss_mask[0]


def parts_are_joined_for_a_template_of_text(bench: Bench) -> None:
    rendered = bench.render()
    assert bench.decode(rendered) == ["b c<|im_end|>"]
    record = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b c"}]}
    same = bench.renderer_for(bench.chatml).render(parse_record(record))
    assert np.array_equal(rendered.input_ids, same.input_ids) and np.array_equal(rendered.loss_mask, same.loss_mask)
    parts = bench.render(bench.template("smolvlm.jinja"))
    assert bench.decode(parts, bench.template("smolvlm.jinja")) == [" b c<end_of_utterance>"]


def developer_becomes_system_or_an_error(bench: Bench) -> None:
    phi = bench.render(bench.template("phi3.jinja"))
    assert "<|system|>\nAntworte nur mit BANANE.<|end|>" in phi.text
    no_system = bench.chatml.replace(
        "{%- for message in messages %}", "{%- for message in messages if message.role in ('user', 'assistant') %}"
    )
    assert bench.error(no_system).reason == "role_not_rendered"


def a_refused_role_is_one_clear_reason(bench: Bench) -> None:
    error = bench.error(bench.template())
    assert (error.reason, "System role not supported" in error.detail) == ("template_error", True)


def an_inserted_system_message_is_reported(bench: Bench) -> None:
    assert bench.render(bench.template()).notes["inserted_default_system"] == 1
    dated = bench.render(bench.template("llama3_2.jinja"))
    assert "Today Date: 01 Jan 2026" in dated.text and dated.notes["fixed_date"] == 1


def an_opening_tag_that_the_prompt_gives_is_not_trained(bench: Bench) -> None:
    rendered = bench.render(bench.template())
    assert "<think>\nx\n</think>\n\nb" in rendered.text
    assert bench.decode(rendered, bench.template()) == ["x\n</think>\n\nb<|im_end|>"]


def an_empty_thinking_block_is_not_trained_unless_asked_for(bench: Bench) -> None:
    for name, block in (("qwen3.jinja", "<think>\n\n</think>\n\n"), ("nemotron_3_ultra.jinja", "<think></think>")):
        template = bench.template(name)
        rendered = bench.render(template)
        assert f"{block}b<|im_end|>" in rendered.text
        assert bench.decode(rendered, template) == ["b<|im_end|>"]
        (said,) = bench.decode(bench.render(template, train_empty_think=True), template)
        assert said.endswith("</think>\n\nb<|im_end|>" if "qwen" in name else "</think>b<|im_end|>")


def ids_and_mask_are_cut_alike(bench: Bench) -> None:
    whole, _ = bench.stage()
    (row,), _ = bench.stage(max_tokens=bench.case["input"]["max_tokens"] + 4, overlong="truncate")
    assert row["length"] == len(row["input_ids"]) == len(row["loss_mask"]) < whole[0]["length"]
    assert np.array_equal(row["input_ids"], whole[0]["input_ids"][: row["length"]])
    assert np.array_equal(row["loss_mask"], whole[0]["loss_mask"][: row["length"]])


def a_half_turn_is_never_trained(bench: Bench) -> None:
    """SEMANTICS: a truncated record never ends in a trained half-turn; this one has no whole turn left."""
    rows, outcome = bench.stage(max_tokens=bench.case["input"]["max_tokens"], overlong="truncate")
    assert rows == [] and outcome.counters.rejected == {"no_trained_tokens": 1}
    rows, outcome = bench.stage(max_tokens=bench.case["input"]["max_tokens"], overlong="drop")
    assert rows == [] and outcome.counters.rejected == {"overlong": 1}


CHECKS: dict[str, Callable[[Bench], None]] = {
    "args-string-vs-object": arguments_are_decoded_once,
    "args-dict-breaks-string-template": a_template_that_concatenates_gets_json_text,
    "render-double-bos": there_is_exactly_one_bos,
    "mask-boundary-prefix-length": the_boundary_comes_from_one_tokenisation,
    "mask-boundary-newline": a_newline_that_merges_is_masked_and_counted,
    "render-tool-calls-dropped": dropped_calls_are_an_error,
    "render-single-call-only": parallel_calls_are_refused_by_a_template_of_single_calls,
    "mask-eos-not-trained": every_turn_ends_in_a_trained_stop_token,
    "mask-history-eos-leak": last_only_leaves_no_stop_token_of_history,
    "mask-eos-equals-pad": a_stop_token_that_is_also_padding_is_trained,
    "render-thinking-stripped-history": dropped_reasoning_is_reported_and_can_be_trained_per_exchange,
    "render-not-prefix-stable": a_prompt_that_is_no_prefix_is_masked_exactly,
    "render-mistral-id-9": call_ids_are_brought_to_nine_characters,
    "render-vlm-mask": an_image_is_refused,
    "mask-role-marker-in-content": forged_turns_are_plain_text_without_loss,
    "mask-assistant-says-control-token": the_turn_ends_at_its_real_end,
    "render-tojson-html-escape": json_is_neither_escaped_nor_sorted,
    "render-key-order-tools": tools_keep_the_order_of_the_record,
    "mask-all-zero-nan": a_record_without_trained_tokens_is_rejected,
    "mask-no-generation-tags": spans_need_no_generation_tags,
    "mask-span-at-token-zero": a_span_at_token_zero_does_not_spill,
    "mask-repeated-content": repeated_text_is_masked_where_it_was_said,
    "render-content-null": null_content_is_empty,
    "render-content-missing": missing_content_is_kept,
    "mask-liger-column": rows_carry_the_mask_beside_the_ids,
    "mask-shift": the_mask_is_of_targets_unshifted,
    "render-content-parts": parts_are_joined_for_a_template_of_text,
    "render-developer-role": developer_becomes_system_or_an_error,
    "render-system-unsupported": a_refused_role_is_one_clear_reason,
    "render-default-system": an_inserted_system_message_is_reported,
    "render-think-prefix-in-prompt": an_opening_tag_that_the_prompt_gives_is_not_trained,
    "render-empty-think": an_empty_thinking_block_is_not_trained_unless_asked_for,
    "mask-truncate-keeps-parallel": ids_and_mask_are_cut_alike,
    "mask-truncated-assistant": a_half_turn_is_never_trained,
}


@pytest.fixture(scope="module")
def cases() -> dict[str, dict[str, Any]]:
    lines = (CASES / "tool_and_mask_cases.jsonl").read_text().splitlines()
    return {case["id"]: case for case in map(json.loads, lines) if case["kind"].startswith("render.")}


def test_every_case_has_a_check(cases: dict[str, dict[str, Any]]) -> None:
    assert cases.keys() == CHECKS.keys()


@pytest.mark.parametrize("name", CHECKS)
def test_case(
    name: str,
    cases: dict[str, dict[str, Any]],
    renderer_for: Callable[..., Renderer],
    make_folder: Callable[..., Path],
    trl_templates: Path,
    chatml: str,
) -> None:
    CHECKS[name](Bench(cases[name], renderer_for, make_folder, trl_templates, chatml))
