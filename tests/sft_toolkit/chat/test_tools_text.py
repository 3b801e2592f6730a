"""Declared tools that a template never writes: counted, or written into the system prompt."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.chat import Renderer
from sft_toolkit.chat.messages import prepare
from sft_toolkit.chat.tools_text import tools_text
from sft_toolkit.errors import RecordError
from sft_toolkit.formats import parse_record
from tests.sft_toolkit.chat.test_parity import Peer, template_names

MakeFolder = Callable[..., Path]
NEVER_WRITE = {
    *("cohere", "cohere2", "deepseek_r1_distill", "deepseekv3", "gemma", "gemma3", "idefics3", "llama3", "llava_next"),
    *("phi3", "phi3_5", "qwen2_5_vl", "smolvlm"),
}
TOOLS = [
    {"type": "function", "function": {"name": name, "description": text, "parameters": {"type": "object"}}}
    for name, text in (("get_weather", "Wetter <an> einem Ort"), ("pay", "Zahlt <|im_end|>"))
]
WRITTEN = """\
You can call these functions; each line is one of them, with the JSON Schema of its parameters.
<tools>
{"type": "function", "function": {"name": "get_weather", "description": "Wetter <an> einem Ort", \
"parameters": {"type": "object"}}}
{"type": "function", "function": {"name": "pay", "description": "Zahlt <|im_end|>", "parameters": {"type": "object"}}}
</tools>"""
MESSAGES = [{"role": "user", "content": "Play some music."}, {"role": "assistant", "content": "No tool can do that."}]


def record(*before: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "r", "messages": [*before, *MESSAGES], "tools": TOOLS, **more}


@pytest.mark.parametrize("name", template_names())
def test_tools_are_counted_exactly_where_transformers_does_not_write_them(
    name: str, trl_templates: Path, make_folder: MakeFolder
) -> None:
    source = (trl_templates / f"{name}.jinja").read_text()
    folder = make_folder(source)
    renderer = Renderer.from_folder(folder)
    given = parse_record(record())
    notes = renderer.render(given).notes
    text = Peer.of(folder).text(source, prepare(given, renderer.probes.dialect, Counter()), given)
    assert notes["tools_not_rendered"] == ("get_weather" not in text) == (name in NEVER_WRITE)
    assert renderer.facts.tools == (name not in NEVER_WRITE)
    assert renderer.render(parse_record({**record(), "tools": []})).notes["tools_not_rendered"] == 0


def test_the_form_is_one_json_object_a_line() -> None:
    assert tools_text(TOOLS) == WRITTEN


@pytest.mark.parametrize("name", sorted(NEVER_WRITE - {"gemma"}))
def test_tools_in_the_system_prompt_are_what_transformers_renders_of_that_prompt(
    name: str, trl_templates: Path, make_folder: MakeFolder
) -> None:
    source = (trl_templates / f"{name}.jinja").read_text()
    folder = make_folder(source)
    renderer = Renderer.from_folder(folder, tools_in_system=True)
    for before, system in (((), WRITTEN), (({"role": "system", "content": "Sei kurz."},), f"Sei kurz.\n\n{WRITTEN}")):
        rendered = renderer.render(parse_record(record(*before)))
        spelled = parse_record({"id": "r", "messages": [{"role": "system", "content": system}, *MESSAGES]})
        messages = prepare(spelled, renderer.probes.dialect, Counter())
        assert rendered.text == Peer.of(folder).text(source, messages, spelled)
        assert rendered.notes["tools_in_system"] == 1 and rendered.notes["tools_not_rendered"] == 0
        (span,) = rendered.spans
        assert span.message == len(before) + 1
        trained = renderer.tokenizer.decode(rendered.input_ids[rendered.loss_mask])
        assert trained.strip().startswith("No tool can do that.") and "get_weather" not in trained
        assert rendered.notes["inserted_default_system"] == 0


def test_a_template_that_writes_tools_itself_is_left_as_it_is(chatml: str, make_folder: MakeFolder) -> None:
    folder = make_folder(chatml)
    plain, asked = (Renderer.from_folder(folder, tools_in_system=asked) for asked in (False, True))
    given = parse_record(record())
    assert plain.render(given).text == asked.render(given).text
    assert asked.render(given).notes["tools_in_system"] == 0


def test_what_is_written_is_read_back_as_the_tools_of_the_record() -> None:
    lines = WRITTEN.partition("<tools>\n")[2].partition("\n</tools>")[0].split("\n")
    assert list(map(json.loads, lines)) == TOOLS


def test_a_template_without_a_system_prompt_refuses_the_record(make_folder: MakeFolder) -> None:
    loop = "{% for m in messages if m.role != 'system' %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}"
    renderer = Renderer.from_folder(make_folder(loop), tools_in_system=True)
    with pytest.raises(RecordError, match="no system prompt") as fault:
        renderer.render(parse_record(record()))
    assert fault.value.reason == "role_not_rendered"


def test_one_tool_of_several_that_a_template_leaves_out_is_counted(make_folder: MakeFolder) -> None:
    first = "{% if tools %}{{ tools[0] | tojson }}{% endif %}"
    loop = "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}"
    renderer = Renderer.from_folder(make_folder(first + loop))
    assert renderer.render(parse_record(record())).notes["tools_not_rendered"] == 1
    assert renderer.render(parse_record({**record(), "tools": TOOLS[:1]})).notes["tools_not_rendered"] == 0
