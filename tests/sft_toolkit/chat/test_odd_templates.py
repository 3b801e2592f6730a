"""Templates that go their own way: rendered right, or refused, never trained wrongly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.chat import Rendered, Renderer
from sft_toolkit.conversation import Conversation, Message
from sft_toolkit.errors import RecordError, ToolkitError
from sft_toolkit.formats import parse_record

RendererFor = Callable[..., Renderer]


def said(role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def render(renderer: Renderer, *messages: dict[str, Any]) -> Rendered:
    return renderer.render(parse_record({"messages": list(messages)}))


def trained(renderer: Renderer, rendered: Rendered) -> str:
    return renderer.tokenizer.decode(rendered.input_ids[rendered.loss_mask])


def test_a_template_for_one_exchange_renders_one_exchange(chatml: str, renderer_for: RendererFor) -> None:
    guard = "{% if messages | length > 2 %}{{ raise_exception('one exchange only') }}{% endif %}"
    renderer = renderer_for(guard + chatml)
    rendered = render(renderer, said("user", "Und?"), said("assistant", "Gut."))
    assert trained(renderer, rendered) == "Gut.<|im_end|>"


def test_no_header_is_trained_where_an_answer_lacks_the_end_of_it(
    trl_templates: Path, renderer_for: RendererFor
) -> None:
    """A prompt of Nemotron's ends in <think>, which the template leaves out of an answer that holds </think>."""
    renderer = renderer_for((trl_templates / "nemotron_3_nano.jinja").read_text())
    messages = [Message("user", "Und?"), Message("assistant", "So endet es: </think> ja")]
    rendered = renderer.render(Conversation("r", messages))
    assert trained(renderer, rendered) == "So endet es: </think> ja<|im_end|>"
    assert rendered.notes["turns_without_header"] == 1


CALLS = [{"id": f"call_{name}", "function": {"name": name, "arguments": {}}} for name in ("rufen", "rufen", "warten")]
CALLED = [said("user", "Und?"), said("assistant", "", tool_calls=CALLS)]


@pytest.mark.parametrize(
    "loop",
    [
        "(message.tool_calls or [] if tools else [])",
        "(message.tool_calls or [])[:2]",
        "(message.tool_calls or [])[-2:]",
    ],
)
def test_calls_that_a_template_writes_only_at_times_are_missed_where_it_does_not(
    chatml: str, renderer_for: RendererFor, loop: str
) -> None:
    """No probe asks for calls without declared tools, or for three in a turn."""
    template = chatml.replace("message.tool_calls or []", loop)
    assert template != chatml
    with pytest.raises(RecordError) as caught:
        render(renderer_for(template), *CALLED)
    assert caught.value.reason == "tool_calls_not_rendered"


def test_a_question_that_a_template_skips_is_missed(chatml: str, renderer_for: RendererFor) -> None:
    """One that two questions in a row make it skip, where each alone is written."""
    skipping = "{%- if loop.nextitem is not defined or loop.nextitem.role != message.role %}"
    start, end = "{%- for message in messages %}", "{{- '<|im_end|>\\n' }}\n{%- endfor %}\n{%- if add"
    assert start in chatml and end in chatml
    template = chatml.replace(start, start + skipping).replace(end, end.replace("{%- endfor", "{%- endif %}{%- endfor"))
    renderer = renderer_for(template)
    with pytest.raises(RecordError) as caught:
        render(renderer, said("user", "Hallo?"), said("user", "Und?"), said("assistant", "Gut."))
    assert caught.value.reason == "role_not_rendered"


def test_questions_that_a_template_merges_are_no_loss(renderer_for: RendererFor) -> None:
    template = (
        "{% set ns = namespace(asked='') %}{% for m in messages %}{% if m.role == 'user' %}"
        "{% set ns.asked = ns.asked + ' ' + m.content | trim %}"
        "{% if loop.nextitem is not defined or loop.nextitem.role != 'user' %}<|user|>{{ ns.asked }}<|end|>"
        "{% set ns.asked = '' %}{% endif %}{% else %}<|assistant|>{{ m.content }}<|end|>{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    renderer = renderer_for(template)
    rendered = render(renderer, said("user", "Hallo?\n"), said("user", "Und?"), said("assistant", "Gut."))
    assert rendered.text == "<|user|> Hallo? Und?<|end|><|assistant|>Gut.<|end|>"
    assert trained(renderer, rendered) == "Gut.<|end|>"


def test_reasoning_is_missed_though_the_answer_says_the_same(trl_templates: Path, renderer_for: RendererFor) -> None:
    """Qwen 3 leaves the reasoning of the first exchange out."""
    renderer = renderer_for((trl_templates / "qwen3.jinja").read_text())
    exchange = (said("user", "Und?"), said("assistant", "Zwei, ja: zwei.", reasoning="zwei"))
    rendered = render(renderer, *exchange, *exchange)
    assert [span.reasoning for span in rendered.spans] == [False, True]
    assert rendered.notes["dropped_reasoning"] == 1


@pytest.mark.parametrize(
    "loop",
    [
        "{% for m in messages if m.role == 'assistant' %}[INST] {{ messages[2 * loop.index0].content }} [/INST]"
        "{{ m.content }}</s>{% endfor %}",
        "{% for i in range(0, messages | length, 2) %}{% set a = messages[i + 1] %}{% set u = messages[i] %}"
        "[INST] {{ u.content }} [/INST]{{ a.content if a }}</s>{% endfor %}",
        "[INST] {{ messages[0].content }} [/INST]{% for m in messages if m.role == 'assistant' %}{{ m.content }}</s>"
        "{% if not loop.last %}[INST] {{ messages[2 * loop.index].content }} [/INST]{% endif %}{% endfor %}",
    ],
)
def test_a_template_that_writes_questions_with_the_answers_is_refused(renderer_for: RendererFor, loop: str) -> None:
    """Whether the question is that before the answer or that after it."""
    prompt = "{% if add_generation_prompt %}[INST] {{ messages[-1].content }} [/INST]{% endif %}"
    with pytest.raises(ToolkitError, match="tell them apart"):
        renderer_for(loop + prompt)


def test_a_record_whose_results_a_template_writes_with_the_calls_is_refused(renderer_for: RendererFor) -> None:
    """The same without results is rendered."""
    template = (
        "{% for m in messages if m.role != 'tool' %}<|{{ m.role }}|>{{ m.content }}{% for call in m.tool_calls or [] %}"
        "[CALL]{{ call.function | tojson }}{% endfor %}{% if m.tool_calls %}[RESULTS]"
        "{{ messages | selectattr('role', 'eq', 'tool') | map(attribute='content') | join }}{% endif %}<|end|>"
        "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    renderer = renderer_for(template)
    call = said("assistant", "", tool_calls=CALLS[:1])
    with pytest.raises(RecordError) as caught:
        render(renderer, said("user", "Und?"), call, said("tool", "16"), said("assistant", "Gut."))
    assert caught.value.reason == "message_not_traced"
    rendered = render(renderer, said("user", "Und?"), said("assistant", "Gut."))
    assert trained(renderer, rendered) == "Gut.<|end|>"


def test_a_message_that_nests_too_deeply_is_a_fault_of_its_record(chatml: str, renderer_for: RendererFor) -> None:
    nested: Any = 1
    for _ in range(2000):
        nested = {"a": nested}
    renderer = renderer_for(chatml)
    with pytest.raises(RecordError) as caught:
        render(renderer, said("user", "Und?", metadata=nested), said("assistant", "Gut."))
    assert caught.value.reason == "nested_too_deeply"


def test_white_space_between_an_answer_and_the_appended_eos_is_trained(renderer_for: RendererFor) -> None:
    """Else a model that says no line breaks would never come to say EOS."""
    renderer = renderer_for(
        "{% for m in messages %}### {{ m.role }}\n{{ m.content }}\n\n{% endfor %}"
        "{% if add_generation_prompt %}### assistant\n{% endif %}"
    )
    exchange = (said("user", "Und?"), said("assistant", "Gut."))
    rendered = render(renderer, *exchange, *exchange)
    assert trained(renderer, rendered) == "Gut." + "Gut.\n\n</s>"


RUFEN = {"type": "function", "function": {"name": "rufen", "parameters": {"type": "object", "properties": {}}}}
ANSWERED = [*CALLED[:1], said("assistant", "", tool_calls=CALLS[:1]), said("tool", "16"), said("assistant", "Gut.")]


def test_results_are_asked_about_with_tools_declared(chatml: str, renderer_for: RendererFor) -> None:
    results = "messages | selectattr('role', 'eq', 'tool') | list"
    renderer = renderer_for(f"{{% if not tools and {results} %}}{{{{ raise_exception('?') }}}}{{% endif %}}{chatml}")
    rendered = renderer.render(parse_record({"messages": ANSWERED, "tools": [RUFEN]}))
    assert "<|im_start|>tool\n16<|im_end|>" in rendered.text


def test_a_template_that_writes_calls_and_no_results_is_found_out(chatml: str, renderer_for: RendererFor) -> None:
    renderer = renderer_for(chatml.replace("in messages %}", "in messages if message.role != 'tool' %}"))
    assert renderer.facts.tool_calls
    assert renderer.facts.roles == {"system": True, "developer": True, "user": True, "tool": False}
    with pytest.raises(RecordError) as caught:
        render(renderer, *ANSWERED)
    assert caught.value.reason == "role_not_rendered"


def test_an_effort_that_a_template_does_not_read_is_counted(chatml: str, renderer_for: RendererFor) -> None:
    exchange = [said("user", "Und?"), said("assistant", "Gut.")]
    record = parse_record({"messages": exchange, "effort": "high"})
    assert renderer_for(chatml).render(record).notes["effort_not_rendered"] == 1
    reading = renderer_for("{{ effort | default('') }}" + chatml)
    assert reading.facts.effort
    assert "effort_not_rendered" not in reading.render(record).notes
