"""DeepSeek's calls: names and arguments between control tokens (V3 and R1, V3.1).

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME    V3, R1
    ```json
    {…}
    ```<｜tool▁call▁end｜>…<｜tool▁calls▁end｜>
    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{…}<｜tool▁call▁end｜><｜tool▁calls▁end｜>    V3.1

Copies with plain | and _ are read as well; the outer tokens may be missing (R1 distillates). Templates: those of
DeepSeek-V3 and of the R1 distillates, as `trl` ships them; V3.1's tokenizer_config.json.
"""

from __future__ import annotations

import re

from sft_toolkit.formats.dialects.call_objects import read_arguments
from sft_toolkit.formats.dialects.literals import read_value
from sft_toolkit.formats.dialects.markup import Block, Call, CallDialect, Source, Unreadable


def _token(words: str) -> str:
    return rf"<[｜|]{words.replace(' ', '[▁_]')}[｜|]>"


_BEGIN = re.compile(rf"\s*+(?:{_token('tool calls begin')}\s*+)?{_token('tool call begin')}\s*+")
_SEPARATOR = re.compile(_token("tool sep"))
_HEAD = re.compile(
    rf"(?:function\s*+{_token('tool sep')}\s*+([^\n<`{{]++)|(?!function\s*+<)([^\n<`{{]++){_token('tool sep')})\s*+"
)
_FENCE = re.compile(r"```(?:json)?[ \t]*+\n\s*+")
_END = re.compile(rf"\s*+(?:```\s*+)?{_token('tool call end')}")
_LAST = re.compile(rf"\s*+{_token('tool calls end')}")
_FOLLOWS = re.compile(rf"\s*+(?:```\s*+)?(?:{_token('tool calls? (?:begin|end)')}|\Z)")
_CALL_END = re.compile(_token("tool call end"))


def _read(source: Source, at: int) -> Block:
    calls: list[Call] = []
    end = at
    while begin := _BEGIN.match(source.text, end):
        read = _call(source.text, begin.end())
        if read is None:
            break
        calls.append(read[0])
        end = read[1]
    if not calls:
        raise Unreadable("no <｜tool▁call▁begin｜> with a name before <｜tool▁sep｜> follows")
    last = _LAST.match(source.text, end)
    return Block(calls, last.end() if last else end)


def _call(text: str, at: int) -> tuple[Call, int] | None:
    """The call and the index behind it; None where it has no name."""
    head = _HEAD.match(text, at)
    name = (head[1] or head[2] or "").strip() if head else ""
    if not head or not name:
        return None
    fence = _FENCE.match(text, head.end())
    begin = fence.end() if fence else head.end()
    try:
        end = read_value(text, begin)[1]
    except ValueError:
        end = begin
    behind = _END.match(text, end)
    if end > begin and (behind or _FOLLOWS.match(text, end)):
        return Call(name, read_arguments(text[begin:end])), behind.end() if behind else end
    ending = _CALL_END.search(text, begin)
    raw = text[begin : ending.start() if ending else len(text)].strip()
    raw = raw.removesuffix("```").strip() if fence else raw
    return Call(name, read_arguments(raw)), ending.end() if ending else len(text)


DEEPSEEK = CallDialect(
    "<｜tool▁calls▁begin｜>",
    "DeepSeek-V3, R1 and its distillates, V3.1",
    (_token("tool calls begin"), _token("tool call begin")),
    _read,
)
