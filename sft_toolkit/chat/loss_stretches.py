"""Stretches of what an assistant says that carry no loss, followed from the message into the rendered text.

    {"role": "assistant", "content": "…", "loss_spans": [{"begin": 12, "end": 40, "weight": 0}]}

`begin` and `end` count characters of the content, or of the reasoning where the stretch says `"of": "reasoning"`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from sft_toolkit.chat.control_text import ALIASES
from sft_toolkit.chat.template import Messages
from sft_toolkit.conversation import LOSS_SPANS, Message
from sft_toolkit.errors import RecordError

Range = tuple[int, int]
_MARK = "\U0010fff8"
_KEYS = {"content": ("content",), "reasoning": ("reasoning", *ALIASES)}


def untrained_ranges(
    given: list[Message], messages: Messages, render: Callable[[Messages], str], text: str
) -> list[Range]:
    """Where the stretches that the messages name stand in the rendered `text`, in its order.

    `messages` are the given ones as the template takes them. They are rendered once more with each stretch between
    two marks. Raises RecordError `bad_loss_spans`, or `loss_spans_not_traced` where the template takes a stretch apart.
    """
    named = {index: _named(index, message) for index, message in enumerate(given) if message.extra.get(LOSS_SPANS)}
    if not any(named.values()):
        return []
    for keep_edges in (False, True):
        marked = [_marked(message, named.get(index, {}), keep_edges) for index, message in enumerate(messages)]
        pieces = render(marked).split(_MARK)
        if "".join(pieces) == text and len(pieces) % 2:
            ends, position = [], 0
            for piece in pieces[:-1]:
                position += len(piece)
                ends.append(position)
            return [(begin, end) for begin, end in zip(ends[::2], ends[1::2], strict=True) if begin < end]
    raise RecordError(
        "loss_spans_not_traced", "the chat template takes a text apart that loss_spans divide", "leave it whole"
    )


def _named(index: int, message: Message) -> dict[str, list[Range]]:
    """Stretches by what they are of, in order. Raises RecordError where they are not as the form has it."""
    spans = message.extra[LOSS_SPANS]
    found: dict[str, list[Range]] = {"content": [], "reasoning": []}
    for span in spans if isinstance(spans, list) else [None]:
        if not isinstance(span, dict) or span.keys() - {"begin", "end", "weight", "of"}:
            raise _bad(index, 'a stretch is written {"begin": 0, "end": 5, "weight": 0}')
        begin, end, of = span.get("begin"), span.get("end"), span.get("of", "content")
        if span.get("weight", 0) != 0 or of not in found:
            raise _bad(index, "a stretch has the weight 0, and is of content or reasoning")
        length = len(message.text if of == "content" else message.reasoning or "")
        if type(begin) is not int or type(end) is not int or not 0 <= begin <= end <= length:
            raise _bad(index, f"a stretch lies from {begin} to {end} in a {of} of {length} characters")
        found[of].append((begin, end))
    for ranges in found.values():
        ranges.sort()
        if any(earlier[1] > later[0] for earlier, later in pairwise(ranges)):
            raise _bad(index, "two stretches lie over each other")
    return found


def _marked(message: dict[str, Any], named: dict[str, list[Range]], keep_edges: bool) -> dict[str, Any]:
    marked = dict(message)
    for of, ranges in named.items():
        for key in _KEYS[of] if ranges else ():
            value = marked.get(key)
            if isinstance(value, str):
                marked[key] = _with_marks(value, ranges, keep_edges)
            elif isinstance(value, list) and len(value) == 1:
                marked[key] = [{**value[0], "text": _with_marks(value[0]["text"], ranges, keep_edges)}]
    return marked


def _with_marks(text: str, ranges: list[Range], keep_edges: bool) -> str:
    """`keep_edges`: no mark stands outside white space at the text's edges, which a template may strip."""
    first = len(text) - len(text.lstrip()) if keep_edges else 0
    last = len(text.rstrip()) if keep_edges else len(text)
    places = [min(max(place, first), max(first, last)) for bounds in ranges for place in bounds]
    pieces = [text[begin:end] for begin, end in zip([0, *places], [*places, len(text)], strict=True)]
    return _MARK.join(pieces)


def _bad(index: int, what: str) -> RecordError:
    return RecordError("bad_loss_spans", f"{LOSS_SPANS} of message {index}: {what}")
