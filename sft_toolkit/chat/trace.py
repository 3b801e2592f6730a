"""Which stretch of the rendered text each message wrote, found by marks that the template itself emits.

The tree of the untouched template gets a begin and an end mark inside the body of every `for`. At run time a mark
appears only where the loop variable *is* (by identity) one of the messages, so slices, reversals, macros and recursion
need no special care. The marks are then stripped from the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jinja2 import nodes
from jinja2.runtime import Context
from jinja2.visitor import NodeTransformer

from sft_toolkit.errors import RecordError

_MARK = "\U0010fffd"
_MARKS = re.compile(f"{_MARK}([(){{}}])([0-9]+);")
_BEGIN, _ASSIGNED, _END, _GENERATED = (f"kolibri_{name}" for name in ("begin", "assigned", "end", "generated"))


@dataclass(slots=True)
class Stretch:
    """Characters [begin, end) that message `message` wrote; `inner` are those of other messages inside it."""

    message: int
    begin: int
    end: int
    inner: list[Stretch] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Traced:
    """Rendered text, the stretches that each message wrote (none is empty), and what `{% generation %}` blocks hold."""

    text: str
    stretches: list[list[Stretch]]
    generated: list[tuple[int, int]]

    def of(self, message: int) -> Stretch:
        """The one stretch of a message.

        Raises RecordError where the template writes the message nowhere, or at two places.
        """
        found = self.stretches[message]
        if len(found) > 1:
            found = [stretch for stretch in found if not self.text[stretch.begin : stretch.end].isspace()]
        if len(found) != 1:
            where = "at several places" if found else "nowhere that can be traced"
            raise RecordError("message_not_traced", f"the chat template writes message {message} {where}")
        return found[0]


@dataclass(frozen=True, slots=True)
class Hooks:
    """The functions that an instrumented template calls; each returns the text to emit."""

    begin: Callable[..., str]
    assigned: Callable[..., str]
    end: Callable[..., str]
    generated: Callable[[str], str]

    @classmethod
    def silent(cls) -> Hooks:
        return cls(_nothing, _nothing, _nothing, str)

    @classmethod
    def of(cls, context: Context) -> Hooks:
        return cls(*map(context.resolve, (_BEGIN, _ASSIGNED, _END, _GENERATED)))

    @property
    def variables(self) -> dict[str, Callable[..., str]]:
        return {_BEGIN: self.begin, _ASSIGNED: self.assigned, _END: self.end, _GENERATED: self.generated}


def _nothing(*_: Any) -> str:
    return ""


class Tracer:
    """Marks of one rendering. `captured` tells that a mark went into output which the template might look at."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self._indexes = {id(message): index for index, message in enumerate(messages)}
        self._iterations: list[int | None] = []
        self._emitted = 0
        self.captured = False

    def hooks(self) -> Hooks:
        return Hooks(self._begin, self._assigned, self._end, self._generated)

    def _begin(self, captured: bool, *values: Any) -> str:
        self._iterations.append(None)
        for value in values:
            if text := self._assigned(captured, value):
                return text
        return ""

    def _assigned(self, captured: bool, value: Any) -> str:
        """The first message that an iteration takes up is the one that it writes."""
        index = self._indexes.get(id(value))
        if index is None or self._iterations[-1] is not None:
            return ""
        self._iterations[-1] = index
        return self._mark("(", index, captured)

    def _end(self, captured: bool) -> str:
        index = self._iterations.pop()
        return "" if index is None else self._mark(")", index, captured)

    def _generated(self, text: str) -> str:
        return self._mark("{", 0, False) + text + self._mark("}", 0, False)

    def _mark(self, kind: str, index: int, captured: bool) -> str:
        self._emitted += 1
        self.captured |= captured
        return f"{_MARK}{kind}{index};"

    def read(self, marked: str) -> Traced:
        """Strip the marks. Raises RecordError where they do not nest, or where the messages held marks themselves."""
        reader = _Reader(len(self._indexes))
        pieces, last = [], 0
        for match in _MARKS.finditer(marked):
            pieces.append(marked[last : match.start()])
            reader.take(match[1], int(match[2]), len(pieces[-1]))
            last = match.end()
        pieces.append(marked[last:])
        if reader.open or reader.taken != self._emitted:
            raise _untraceable()
        return Traced("".join(pieces), reader.stretches, reader.generated)


class _Reader:
    """Puts marks, in the order of the text, together to stretches."""

    def __init__(self, messages: int) -> None:
        self.stretches: list[list[Stretch]] = [[] for _ in range(messages)]
        self.generated: list[tuple[int, int]] = []
        self.open: list[Stretch] = []
        self.taken = 0
        self._position = 0
        self._generation = 0

    def take(self, kind: str, index: int, distance: int) -> None:
        self.taken += 1
        self._position += distance
        if kind == "(":
            self.open.append(Stretch(index, self._position, self._position))
        elif kind == ")":
            self._close(index)
        elif kind == "{":
            self._generation = self._position
        else:
            self.generated.append((self._generation, self._position))

    def _close(self, index: int) -> None:
        if not self.open or self.open[-1].message != index:
            raise _untraceable()
        stretch = self.open.pop()
        stretch.end = self._position
        if stretch.end > stretch.begin:
            around = self.open[-1].inner if self.open else self.stretches[index]
            around.append(stretch)


def _untraceable() -> RecordError:
    return RecordError("untraceable_template", "the marks that trace messages do not come out as they went in")


def instrument(tree: nodes.Template) -> nodes.Template:
    """Add the calls of `Hooks` to the loops of a template's tree."""
    _Instrument().visit(tree)
    return tree


class _Instrument(NodeTransformer):
    """`captured` is static: whether the output of the place goes through a macro, a block assignment or a filter."""

    def __init__(self) -> None:
        self._captures = 0
        self._counting_loops: list[bool] = []

    def _visit_capture(self, node: nodes.Node) -> nodes.Node:
        loops, self._counting_loops = self._counting_loops, []
        self._captures += 1
        self.generic_visit(node)
        self._captures -= 1
        self._counting_loops = loops
        return node

    visit_Macro = visit_CallBlock = visit_FilterBlock = visit_AssignBlock = _visit_capture

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self._counting_loops.append(_counts(node.iter))
        self.generic_visit(node)
        self._counting_loops.pop()
        names = [name.name for name in (node.target, *node.target.find_all(nodes.Name)) if isinstance(name, nodes.Name)]
        node.body = [self._call(_BEGIN, *names), *node.body, self._call(_END)]
        return node

    def visit_Continue(self, node: nodes.Continue) -> list[nodes.Node]:
        return [self._call(_END), node]

    def visit_Break(self, node: nodes.Break) -> list[nodes.Node]:
        return [self._call(_END), node]

    def visit_Assign(self, node: nodes.Assign) -> list[nodes.Node] | nodes.Node:
        """A loop over `range(…)` takes its message up by an assignment."""
        if self._counting_loops and self._counting_loops[-1] and isinstance(node.target, nodes.Name):
            return [node, self._call(_ASSIGNED, node.target.name)]
        return node

    def _call(self, hook: str, *names: str) -> nodes.Output:
        arguments: list[nodes.Expr] = [nodes.Const(self._captures > 0), *(nodes.Name(name, "load") for name in names)]
        return nodes.Output([nodes.Call(nodes.Name(hook, "load"), arguments, [], None, None)])


def _counts(iterated: nodes.Node) -> bool:
    return isinstance(iterated, nodes.Call) and isinstance(iterated.node, nodes.Name) and iterated.node.name == "range"
