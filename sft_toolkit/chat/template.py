"""Chat templates as inference engines run them: Jinja in a sandbox, with the helpers that such templates expect."""

from __future__ import annotations

import copy
import json
import secrets
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from functools import cached_property
from typing import Any

import jinja2
from jinja2 import meta, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context, Macro

from sft_toolkit.chat.sandbox import Budget, Environment
from sft_toolkit.chat.span_trace import FILTERS, Traced, Tracer, instrument
from sft_toolkit.chat.template_files import template_digest
from sft_toolkit.errors import RecordError, ToolkitError

DEFAULT_DATE = date(2026, 1, 1)
"""Today's date, for a template that asks for it, unless the user gives another: two runs must agree."""

Messages = list[dict[str, Any]]
Tools = list[dict[str, Any]] | None


class ChatTemplate:
    """A compiled template. `special_tokens` are its variables bos_token, eos_token and the like.

    `variables` are given to it in every rendering. `reads` are the names of all variables that it could read.
    Raises ToolkitError where the source is not a template.
    """

    def __init__(
        self,
        source: str,
        special_tokens: Mapping[str, str] | None = None,
        today: date = DEFAULT_DATE,
        variables: Mapping[str, Any] | None = None,
    ) -> None:
        self.source = source
        self.special_tokens = dict(special_tokens or {})
        self.today = today
        self.variables = dict(variables or {})
        try:
            environment = Environment(today, _Generation)
            environment.filters |= {"tojson": tojson, **FILTERS}
            tree = environment.parse(source)
            self.reads = frozenset(meta.find_undeclared_variables(tree))
            self.readable = _readable(tree, self.reads)
            code = environment.compile(instrument(tree), "chat_template")
        except jinja2.TemplateError as fault:
            line = getattr(fault, "lineno", None)
            where = f" (line {line})" if line else ""
            raise ToolkitError(f"chat template{where}: {fault}", "it does not compile as Jinja") from fault
        except Exception as fault:  # of Python's compiler too, which limits how deeply blocks may nest
            said = "it nests too deeply" if isinstance(fault, (RecursionError, SyntaxError)) else type(fault).__name__
            raise ToolkitError(f"chat template: {said}", "it does not compile as Jinja") from fault
        self._template = jinja2.Template.from_code(environment, code, environment.make_globals(None))

    def with_variables(self, variables: Mapping[str, Any]) -> ChatTemplate:
        """The same template, given other variables in every rendering."""
        other = copy.copy(self)
        other.variables = dict(variables)
        return other

    @cached_property
    def digest(self) -> str:
        return template_digest(self.source)

    @property
    def asks_for_date(self) -> bool:
        return "strftime_now" in self.source

    def render(
        self, messages: Messages, tools: Tools, variables: Mapping[str, Any], generation_prompt: bool = False
    ) -> str:
        """The text. Raises RecordError `template_error` with what the template said."""
        return self._render({}, messages, tools, variables, generation_prompt)

    def trace(
        self,
        messages: Messages,
        tools: Tools,
        variables: Mapping[str, Any],
        generation_prompt: bool = False,
        before: Messages | None = None,
    ) -> Traced:
        """The text that `render` gives of `before` and `messages`, with the stretch that each of `messages` wrote.

        Raises RecordError: `template_error`, or `untraceable_template` where the marks would change the text.
        """
        tracer = Tracer(messages)
        all_messages = [*(before or ()), *messages]
        marked = self._render(tracer.variables, all_messages, tools, variables, generation_prompt)
        traced = tracer.read(marked)
        if tracer.captured and traced.text != self.render(all_messages, tools, variables, generation_prompt):
            raise RecordError("untraceable_template", "the chat template measures or cuts what its message loop wrote")
        return traced

    def _render(
        self,
        tracing: Mapping[str, Any],
        messages: Messages,
        tools: Tools,
        variables: Mapping[str, Any],
        generation_prompt: bool,
    ) -> str:
        given = {
            "documents": None,
            **self.special_tokens,
            **self.variables,
            **variables,
            "messages": messages,
            "tools": tools,
            "add_generation_prompt": generation_prompt,
        }
        try:
            budget = Budget(given)
            text = "".join(self._template.generate({**given, **tracing, **budget.variables}))
            budget.require_plain(text)
        except Exception as fault:  # a template can raise whatever Python can
            said = " ".join(str(fault).split()) or type(fault).__name__
            if isinstance(fault, RecursionError):
                said = "it calls itself without end"
            raise RecordError("template_error", f"the chat template refuses the conversation: {said}") from fault
        return text


_OF_THE_RECORD = frozenset({"messages", "tools", "add_generation_prompt"})


def _readable(tree: nodes.Template, reads: frozenset[str]) -> tuple[str, ...]:
    """The variables that a person may set: those that are read and never assigned, or assigned where not defined."""
    assigned = {name.name for name in tree.find_all(nodes.Name) if name.ctx == "store"}
    asked = {
        test.node.name
        for test in tree.find_all(nodes.Test)
        if test.name == "defined" and isinstance(test.node, nodes.Name)
    }
    return tuple(sorted((reads - assigned | reads & asked) - _OF_THE_RECORD))


class _Generation(Extension):
    """The `{% generation %}` block: a scope of its own, as in transformers, and its extent marked when tracing."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.CallBlock:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_block", [nodes.ContextReference()]), [], [], body, lineno=line)

    @staticmethod
    def _block(context: Context, caller: Macro) -> str:
        text = str(caller())
        tracer = Tracer.of(context)
        return text if tracer is None else tracer.generated(text)


class WrittenNumber(float):
    """A number that templates see as a float and that comes out, by whatever way, with the digits it was written in."""

    def __new__(cls, digits: Decimal) -> WrittenNumber:
        number = super().__new__(cls, digits)
        number._digits = str(digits)
        return number

    _digits: str

    def __repr__(self) -> str:
        return self._digits

    __str__ = __repr__


def with_written_numbers(value: Any) -> Any:
    """The value with each Decimal in it as a WrittenNumber."""
    kind = type(value)
    if kind is Decimal:
        return WrittenNumber(value)
    if kind is dict:
        return {key: with_written_numbers(item) for key, item in value.items()}
    return [with_written_numbers(item) for item in value] if kind is list else value


_DIGITS = f"digits:{secrets.token_hex(16)}:"


def tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """`json.dumps` with the defaults that chat templates rely on, except that a number keeps its digits (16.20)."""
    marked = _with_marked_digits(value)
    text = json.dumps(marked, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    if _DIGITS not in text:
        return text
    head, *others = text.split(f'"{_DIGITS}')
    return head + "".join(number + rest for number, _, rest in (other.partition('"') for other in others))


def _with_marked_digits(value: Any) -> Any:
    """Text that only this process can have written stands for each number, from which `tojson` takes the digits."""
    kind = type(value)
    if kind is WrittenNumber:
        return f"{_DIGITS}{value!r}"
    if kind is dict:
        return {key: _with_marked_digits(item) for key, item in value.items()}
    return [_with_marked_digits(item) for item in value] if kind is list or kind is tuple else value
