"""What real chat templates write is read back: reasoning and calls of every template in trl that writes calls."""

from __future__ import annotations

from itertools import product, takewhile
from pathlib import Path

import pytest

from sft_toolkit.chat.messages import Dialect, prepare
from sft_toolkit.chat.template import ChatTemplate
from sft_toolkit.conversation import Conversation, Message, ToolCall
from sft_toolkit.errors import RecordError
from sft_toolkit.formats.dialects import read_assistant_text

PROPERTIES = {
    "city": {"type": "string"},
    "rooms": {"type": "integer"},
    "balcony": {"type": "boolean"},
    "near": {"type": "string"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "limits": {"type": "object"},
    "note": {"type": ["string", "null"]},
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "search",
            "description": "Flats",
            "parameters": {"type": "object", "properties": PROPERTIES},
        },
    },
    {
        "type": "function",
        "function": {"name": "now", "description": "Time", "parameters": {"type": "object", "properties": {}}},
    },
]
CALLS = {
    "one": [("search", {"city": "Ghent", "rooms": 2})],
    "types": [("search", {"city": "Łódź", "rooms": 3, "balcony": True, "near": "04109", "tags": ["quiet", "old one"]})],
    "nested": [("search", {"city": "Rome", "limits": {"a": {"b": [1, 2, {"c": "}"}]}, "x": None, "y": True}})],
    "none": [("now", {})],
    "two": [("search", {"city": "true", "balcony": False}), ("now", {})],
    "quotes": [("search", {"city": 'O\'Hare "x" <b> & `tick` {', "near": "line\nline", "note": None})],
    "marks": [("search", {"city": "</tool_call>", "near": " padded ", "tags": ["a'b", 'c"d']})],
}
# What a template writes otherwise than its model would: not the dialect's doing.
CALLS_FIRST = {"gemma4_v2"}
WRITE_ONE, REFUSE_TWO = {"gptoss"}, {"llama3_1", "llama3_2"}
CONTENT_AS_REASONING = {"gptoss"}
WRITERS = [
    *(
        "deepseek_r1_distill",
        "deepseekv3",
    ),
    *("diffusion_gemma",),
    *(
        "gemma4",
        "gemma4_v2",
        "gemma4_v3",
        "gemma4_v4",
        "gemma4_v5",
    ),
    *("glm4moe",),
    *("gptoss",),
    *(
        "lfm2_2_5",
        "lfm2_2_5_v2",
        "lfm2_2_5_vl",
        "lfm2_v2",
    ),
    *(
        "llama3_1",
        "llama3_2",
    ),
    *("muse_glimmer",),
    *(
        "nemotron_3_5_lightning",
        "nemotron_3_nano",
        "nemotron_3_super",
        "nemotron_3_ultra",
    ),
    *(
        "qwen2_5",
        "qwen3",
        "qwen3_5_nothink",
        "qwen3_5_think",
        "qwen3_6",
        "qwen3_8",
        "qwen3_instruct_2507",
        "qwen3_vl",
    ),
]


@pytest.fixture(scope="module")
def templates() -> Path:
    return Path(pytest.importorskip("trl").__file__).parent / "chat_templates"


def written(template: ChatTemplate, reasoning: str | None, content: str | None, calls) -> str:
    """What the template writes for the assistant's turn, without its header and what follows."""
    made = [ToolCall(name, arguments, f"abcdefgh{number}") for number, (name, arguments) in enumerate(calls)]
    turn = Message("assistant", content, reasoning, tool_calls=made)
    results = [Message("tool", "RESULT", tool_call_id=call.id) for call in made]
    conversation = Conversation("x", [Message("user", "QUESTION"), turn, *results], TOOLS)
    for dialect in (Dialect(null_content=content is None), Dialect(null_content=content is None, text_arguments=True)):
        try:
            whole = template.render(prepare(conversation, dialect, _Ignored()), TOOLS, {})
            break
        except RecordError:
            if dialect.text_arguments:
                raise
    asked = template.render([{"role": "user", "content": "QUESTION"}], TOOLS, {}, True)
    header, turn_text = asked.partition("QUESTION")[2], whole.partition("QUESTION")[2]
    common = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(header, turn_text, strict=False)))
    header = common[: max(common.rfind(mark) + len(mark) for mark in ("\n", ">", "assistant") if mark in common)]
    return turn_text.removeprefix(header).partition("RESULT")[0]


class _Ignored(dict):
    def __missing__(self, key):
        return 0


STOPS = (
    "<|im_end|>",
    "<|eot_id|>",
    "<|observation|>",
    "<|start|>functions",
    "<|start|>tool",
    "<｜tool▁outputs▁begin｜>",
)
STOPS += ("<turn|>", "<|tool_response>", "<|call|>", "<｜tool▁output▁begin｜>")


@pytest.mark.parametrize("name", WRITERS)
def test_what_a_template_writes_is_read_back(templates, name):
    template = ChatTemplate(
        (templates / f"{name}.jinja").read_text(), {"bos_token": "<BOS>", "eos_token": "<｜end▁of▁sentence｜>"}
    )
    # R1's distillates write calls only where the content is null; some others write null as a word.
    empty = None if name == "deepseek_r1_distill" else ""
    contents = (empty,) if name in CALLS_FIRST | CONTENT_AS_REASONING or empty is None else (empty, "I look.")
    for given, reasoning, content in product(CALLS.values(), (None, "I think.\nTwo lines."), contents):
        if len(given) > 1 and name in REFUSE_TWO:
            continue
        text = written(template, reasoning, content, given)
        for stop in STOPS:
            text = text.partition(stop)[0]
        names = frozenset({"search", "now"})
        read = read_assistant_text(text, tools_declared=names, tool_message_follows=True, tools=TOOLS)
        calls = given[:1] if name in WRITE_ONE else given
        assert [(call.name, call.arguments) for call in read.calls] == calls, text
        assert read.content == (content if content and content in text else ""), text
        assert read.reasoning == (reasoning if reasoning and reasoning in text else None), text


def test_every_template_that_writes_calls_is_tried(templates):
    writers = {
        path.stem
        for path in templates.glob("*.jinja")
        if "tool_call" in path.read_text() and not path.stem.endswith("_training")
    }
    assert writers == set(WRITERS)
