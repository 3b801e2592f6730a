"""Which stretch of the rendered text each message wrote, found by marks that the template itself emits.

The tree of the untouched template gets a begin and an end mark inside the body of every `for`. At run time a mark
appears only where the loop variable *is* (by identity) one of the messages, so slices, reversals, macros and recursion
need no special care. The marks are then stripped from the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from jinja2 import nodes, pass_context
from jinja2.runtime import Context
from jinja2.visitor import NodeTransformer

from sft_toolkit.chat.sandbox import KEPT, STEP
from sft_toolkit.errors import RecordError

_MARK = "\U0010fffd"
_MARKS = re.compile(f"{_MARK}([(){{}}])([0-9]+);")
_TRACER = "kolibri_tracer"
_BEGIN, _ASSIGNED, _END = "kolibri_begin", "kolibri_assigned", "kolibri_end"


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

    @property
    def written(self) -> set[int]:
        """The messages that wrote something, be it inside the stretch of another."""
        waiting = [stretch for found in self.stretches for stretch in found]
        written = set()
        while waiting:
            stretch = waiting.pop()
            written.add(stretch.message)
            waiting += stretch.inner
        return written

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


class Tracer:
    """Marks of one rendering. `captured` says that a mark went into output which the template might look at."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self._indexes = {id(message): index for index, message in enumerate(messages)}
        self._iterations: list[int | None] = []
        self._emitted = 0
        self.captured = False

    @property
    def variables(self) -> dict[str, Any]:
        """What an instrumented template must be rendered with to be traced."""
        return {_TRACER: self}

    @staticmethod
    def of(context: Context) -> Tracer | None:
        """The tracer of a rendering, None where it is not traced."""
        return context.parent.get(_TRACER)

    def begin(self, captured: bool, values: tuple[Any, ...]) -> str:
        """An iteration begins with these loop variables."""
        self._iterations.append(None)
        for value in values:
            if text := self.assigned(captured, value):
                return text
        return ""

    def assigned(self, captured: bool, value: Any) -> str:
        """The first message that an iteration takes up is the one that it writes."""
        index = self._indexes.get(id(value))
        if index is None or self._iterations[-1] is not None:
            return ""
        self._iterations[-1] = index
        return self._mark("(", index, captured)

    def end(self, captured: bool) -> str:
        index = self._iterations.pop()
        return "" if index is None else self._mark(")", index, captured)

    def generated(self, text: str) -> str:
        """The text of a `{% generation %}` block with marks around it."""
        return self._mark("{", 0, False) + text + self._mark("}", 0, False)

    def _mark(self, kind: str, index: int, captured: bool) -> str:
        self._emitted += 1
        self.captured |= captured
        return f"{_MARK}{kind}{index};"

    def read(self, marked: str) -> Traced:
        """Strip the marks. Raises RecordError where they do not nest, or where the messages held marks themselves."""
        pieces = _MARKS.split(marked)
        if len(pieces) != 3 * self._emitted + 1:
            raise _untraceable()
        stretches: list[list[Stretch]] = [[] for _ in self._indexes]
        generated: list[tuple[int, int]] = []
        open_stretches: list[Stretch] = []
        position = generation = 0
        for text, kind, digits in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=False):
            position += len(text)
            if kind == "(":
                open_stretches.append(Stretch(int(digits), position, position))
            elif kind == ")":
                _close(open_stretches, int(digits), position, stretches)
            elif kind == "{":
                generation = position
            else:
                generated.append((generation, position))
        if open_stretches:
            raise _untraceable()
        return Traced("".join(pieces[::3]), stretches, generated)


def _close(open_stretches: list[Stretch], index: int, position: int, stretches: list[list[Stretch]]) -> None:
    if not open_stretches or open_stretches[-1].message != index:
        raise _untraceable()
    stretch = open_stretches.pop()
    stretch.end = position
    if position > stretch.begin:
        around = open_stretches[-1].inner if open_stretches else stretches[index]
        around.append(stretch)


def _untraceable() -> RecordError:
    return RecordError("untraceable_template", "the marks that trace messages do not come out as they went in")


@pass_context
def _begin(context: Context, value: Any, captured: bool, *others: Any) -> str:
    tracer = Tracer.of(context)
    return "" if tracer is None else tracer.begin(captured, (value, *others))


@pass_context
def _assigned(context: Context, value: Any, captured: bool) -> str:
    tracer = Tracer.of(context)
    return "" if tracer is None else tracer.assigned(captured, value)


@pass_context
def _end(context: Context, captured: bool) -> str:
    tracer = Tracer.of(context)
    return "" if tracer is None else tracer.end(captured)


# Filters, not functions: a sandbox inspects each call of a function.
FILTERS = {_BEGIN: _begin, _ASSIGNED: _assigned, _END: _end}


def instrument(tree: nodes.Template) -> nodes.Template:
    """Put the marks of a tracer, by way of `FILTERS`, into the loops of a template's tree."""
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

    visit_CallBlock = visit_FilterBlock = _visit_capture

    def visit_Macro(self, node: nodes.Macro) -> nodes.Node:
        self._visit_capture(node)
        node.body = [_step(), *node.body]
        return node

    def visit_AssignBlock(self, node: nodes.AssignBlock) -> list[nodes.Node]:
        return [self._visit_capture(node), *_kept(node.target)]

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self._counting_loops.append(_counts(node.iter))
        self.generic_visit(node)
        self._counting_loops.pop()
        targets = [name for name in (node.target, *node.target.find_all(nodes.Name)) if isinstance(name, nodes.Name)]
        node.body = [_step(), self._begin(targets), *node.body, self._end()]
        return node

    def visit_Continue(self, node: nodes.Continue) -> list[nodes.Node]:
        return [self._end(), node]

    def visit_Break(self, node: nodes.Break) -> list[nodes.Node]:
        return [self._end(), node]

    def visit_Assign(self, node: nodes.Assign) -> list[nodes.Node]:
        """A loop over `range(…)` takes its message up by an assignment."""
        if self._counting_loops and self._counting_loops[-1] and isinstance(node.target, nodes.Name):
            return [node, _emit(_ASSIGNED, [_loaded(node.target), self._captured]), *_kept(node.target)]
        return [node, *_kept(node.target)]

    def _begin(self, targets: list[nodes.Name]) -> nodes.Output:
        first, *others = map(_loaded, targets)
        return _emit(_BEGIN, [first, self._captured, *others])

    def _end(self) -> nodes.Output:
        return _emit(_END, [self._captured])

    @property
    def _captured(self) -> nodes.Expr:
        return nodes.Const(self._captures > 0)


def _step() -> nodes.Output:
    return _emit(STEP, [nodes.Const(0)])


def _kept(target: nodes.Node) -> list[nodes.Node]:
    """What looks at the value that a name, or an attribute of a namespace, was just assigned."""
    if isinstance(target, nodes.Name):
        return [_emit(KEPT, [_loaded(target)])]
    if isinstance(target, nodes.NSRef):
        return [_emit(KEPT, [nodes.Getattr(nodes.Name(target.name, "load"), target.attr, "load")])]
    return []


def _loaded(name: nodes.Name) -> nodes.Expr:
    return nodes.Name(name.name, "load")


def _emit(name: str, arguments: list[nodes.Expr]) -> nodes.Output:
    return nodes.Output([nodes.Filter(arguments[0], name, arguments[1:], [], None, None)])


def _counts(iterated: nodes.Node) -> bool:
    return isinstance(iterated, nodes.Call) and isinstance(iterated.node, nodes.Name) and iterated.node.name == "range"
