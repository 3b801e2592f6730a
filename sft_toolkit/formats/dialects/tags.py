"""Calls between an opening and a closing mark, and what may stand there: one table of marks, one of bodies.

    MARK body [MARK]        the closing mark may be missing where the text ends, or the next call begins

What a body is shows in how it begins, so that every mark may hold every kind: models mix them. A body in a code fence
is taken out of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from sft_toolkit.formats.dialects import function_tags, invokes, python_calls
from sft_toolkit.formats.dialects.argument_keys import read_argument_keys
from sft_toolkit.formats.dialects.call_objects import read_objects
from sft_toolkit.formats.dialects.markup import Block, Call, CallDialect, Source, Unreadable

Body = Callable[[Source, int, int, bool], Block]

# Opening mark, closing mark (where there is none, an end token or the text's end does), and who writes them.
MARKS = (
    ("<tool_call>", "</tool_call>", "Hermes, Qwen2.5 to 3.5, GLM-4.5, Nemotron 3, Granite 4, SmolLM3"),
    ("<seed:tool_call>", "</seed:tool_call>", "Seed-OSS"),
    ("<tool_calls>", "</tool_calls>", "Jamba, Hunyuan, MiniMax-M1"),
    ("<TOOLCALL>", "</TOOLCALL>", "Llama-Nemotron, When2Call"),
    ("<functioncall>", "</functioncall>", "glaive-function-calling v1 and v2"),
    ("<function_call>", "</function_call>", "Granite 20B FunctionCalling"),
    ("<|tool_call|>", "<|/tool_call|>", "Granite 3, Phi-4-mini"),
    ("<|tool_call_start|>", "<|tool_call_end|>", "LFM2"),
    ("<|python_tag|>", "<|eom_id|>", "Llama 3.1, 3.2, 3.3"),
    ("<|python_start|>", "<|python_end|>", "Llama 4"),
    ("<minimax:tool_call>", "</minimax:tool_call>", "MiniMax-M2"),
    ("<function_calls>", "</function_calls>", "OLMo 3 (Dolci), Anthropic"),
    ("<atem:function_calls>", "</atem:function_calls>", "Muse Glimmer"),
    ("<｜DSML｜function_calls>", "</｜DSML｜function_calls>", "DeepSeek-V3.2"),
    ("<|START_ACTION|>", "<|END_ACTION|>", "Command R7B, Command A"),
    ("<|action_start|><|plugin|>", "<|action_end|>", "InternLM 2.5"),
)
_INNER = MARKS[0][:2]
_FENCE = re.compile(r"```\w*[ \t]*\n")


def _nested(source: Source, at: int) -> Block:
    """Marks in marks: <tool_calls> around several <tool_call>s, as Hunyuan has them."""
    calls: list[Call] = []
    end = at
    while source.text.startswith(_INNER[0], at):
        try:
            block = read_marked(*_INNER, source, at)
        except Unreadable:
            if calls:
                break
            raise
        calls += block.calls
        end, at = block.end, source.skip(block.end)
    return Block(calls, end)


def _fenced(source: Source, fence: re.Match[str], stop: int) -> Block:
    """What a code fence holds, with the fence."""
    end = source.find("```", fence.end())
    block = read_body(source, source.skip(fence.end()), min(end, stop), end <= stop)
    return Block(block.calls, source.closed("```", block.end))


# The first that a body matches reads it.
_BODIES: tuple[tuple[re.Pattern[str], Body], ...] = (
    (python_calls.LIST, python_calls.read_python_list),
    (re.compile(r"[{\[]"), read_objects),
    (re.compile(function_tags.OPENING), function_tags.read_functions),
    (re.compile(invokes.OPENING), invokes.read_invokes),
    (python_calls.LINE, python_calls.read_python_calls),
    (re.compile(""), read_argument_keys),
)


def read_body(source: Source, at: int, stop: int, closed: bool) -> Block:
    """The calls of whichever body begins at `at`. Raises Unreadable."""
    read = next(read for begins, read in _BODIES if begins.match(source.text, at))
    return read(source, at, stop, closed)


def read_marked(opening: str, closing: str, source: Source, at: int) -> Block:
    """The calls behind the opening mark that stands at `at`, with the closing mark. Raises Unreadable."""
    begin = source.skip(at + len(opening))
    closed = source.find(closing, begin)
    stop = min(closed, source.find(opening, begin))
    if opening != _INNER[0] and source.text.startswith(_INNER[0], begin):
        block = _nested(source, begin)
    elif fence := _FENCE.match(source.text, begin):
        block = _fenced(source, fence, stop)
    else:
        block = read_body(source, begin, stop, closed == stop < len(source.text))
    return Block(block.calls, source.closed(closing, block.end))


def _bare(read: Body, source: Source, at: int) -> Block:
    """A body without a mark around it, as Qwen3-Coder and Llama 3.1 write <function=…>."""
    return read(source, at, len(source.text), False)


TAGGED = (
    *(
        CallDialect(opening, writers, (re.escape(opening),), partial(read_marked, opening, closing))
        for opening, closing, writers in MARKS
    ),
    CallDialect(
        "<function=…>",
        "Llama 3.1; Qwen3-Coder where it leaves out <tool_call>",
        (r"<function=(?=[^<>\n]+>)",),
        partial(_bare, function_tags.read_functions),
    ),
    CallDialect(
        "<invoke>",
        "MiniMax-M2 and Anthropic without the mark around it",
        (rf"{invokes.OPENING}(?=\s+name=)",),
        partial(_bare, invokes.read_invokes),
    ),
)
