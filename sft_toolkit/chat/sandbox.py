"""Where chat templates run: Jinja's sandbox, without what is random, and with a bound on the work of each rendering.

A step is one iteration of a loop or one call of a macro. What a rendering may take grows with what it is given, so that
a verdict depends on template and record alone, never on time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date, datetime, time
from functools import wraps
from typing import Any, NoReturn

import jinja2
import msgspec
from jinja2 import pass_context
from jinja2.ext import Extension, loopcontrols
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

_STEPS = 100_000
_STEPS_A_BYTE = 20
_LETTERS = 10_000_000
_LETTERS_A_BYTE = 100
_BITS = 20_000
_BUDGET = "kolibri_budget"
_DICT_METHODS = frozenset(dir(dict))
_TAKE_A_WIDTH = ("center", "indent", "wordwrap", "truncate", "batch", "slice", "format", "replace", "round")
_WIDTHS = re.compile(r"[0-9]{7,}")
_ADDRESS = " at 0x"
_encode = msgspec.json.Encoder(enc_hook=str).encode


class TemplateBound(jinja2.TemplateRuntimeError):
    """A rendering takes more than it may."""


class Budget:
    """What one rendering may still take; `given` is all that the template is given."""

    def __init__(self, given: Any) -> None:
        self._given = _encode(given)
        size = len(self._given)
        self.most_steps = self._steps = _STEPS + _STEPS_A_BYTE * size
        self.most_letters = self._letters = _LETTERS + _LETTERS_A_BYTE * size

    @property
    def variables(self) -> dict[str, Any]:
        """What a template must be rendered with to be bounded."""
        return {_BUDGET: self}

    def step(self) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise TemplateBound(f"it takes more than {self.most_steps:,} steps")

    def write(self, length: int) -> None:
        self._letters -= length
        if self._letters < 0:
            raise TemplateBound(f"it writes more than {self.most_letters:,} characters")

    def require_plain(self, text: str) -> None:
        """Raises TemplateError for what differs from run to run, or is no text."""
        if _ADDRESS in text and _ADDRESS.encode() not in self._given:
            raise jinja2.TemplateRuntimeError("it writes the address of an object, which differs from run to run")
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                raise jinja2.TemplateRuntimeError("it writes half of a surrogate pair") from None


class Environment(ImmutableSandboxedEnvironment):
    """The sandbox. Products and powers go through it: none is worked out while a template compiles."""

    intercepted_binops = frozenset({"**", "*", "%"})

    def __init__(self, today: date, *extensions: type[Extension]) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=[*extensions, loopcontrols], finalize=_counted
        )
        del self.globals["lipsum"], self.filters["random"]
        self.filters |= {STEP: _step, KEPT: _kept}
        self.filters |= {name: _with_bounded_numbers(self.filters[name]) for name in _TAKE_A_WIDTH}
        self.globals["raise_exception"] = _raise
        self.globals["strftime_now"] = datetime.combine(today, time()).strftime

    def getattr(self, obj: Any, attribute: str) -> Any:
        """As Jinja's, which tries an attribute first and then a key; most of what templates read are keys."""
        if type(obj) is dict and attribute in obj and attribute not in _DICT_METHODS:
            return obj[attribute]
        return super().getattr(obj, attribute)

    def call(self, context: Context, called: Any, /, *arguments: Any, **named: Any) -> Any:
        """Raises TemplateBound for a method of a text that would pad or multiply it beyond all need."""
        text = getattr(called, "__self__", None)
        if isinstance(text, str):
            _require_bounded([*arguments, *named.values()])
            if called.__name__ == "replace" and len(arguments) > 1:
                _require_size(len(text) * len(str(arguments[1])))
            elif called.__name__ == "join" and arguments and isinstance(arguments[0], (list, tuple, str)):
                _require_size(len(text) * len(arguments[0]))
        return super().call(context, called, *arguments, **named)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        wrapped = super().wrap_str_format(value)
        if wrapped is None:
            return None
        text = str(value.__self__)

        def bounded(*arguments: Any, **named: Any) -> str:
            _require_widths(text)
            _require_bounded([*arguments, *named.values()])
            return wrapped(*arguments, **named)

        return bounded

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Raises TemplateBound for a number or a text of a size that no template needs."""
        if operator == "**" and isinstance(left, int) and isinstance(right, int):
            bits = max(left.bit_length(), 1) * max(right, 0)
        elif isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() + right.bit_length()
        else:
            if operator == "%" and isinstance(left, str):
                _require_widths(left)
                _require_bounded(right if isinstance(right, (list, tuple)) else [right])
            counts = [factor for factor in (left, right) if isinstance(factor, int)]
            pieces = [len(factor) for factor in (left, right) if isinstance(factor, (str, list, tuple))]
            bits = 0
            if operator == "*" and counts and pieces:
                _require_size(counts[0] * pieces[0])
        if bits > _BITS:
            raise TemplateBound(f"it works out a number of more than {_BITS:,} bits")
        return super().call_binop(context, operator, left, right)


def _require_size(length: int) -> None:
    if length > _LETTERS:
        raise TemplateBound(f"it repeats a text to more than {_LETTERS:,} characters")


def _require_bounded(arguments: Iterable[Any]) -> None:
    """No number among the arguments may be a width that fills the memory."""
    for argument in arguments:
        if isinstance(argument, int):
            _require_size(argument)


def _require_widths(text: str) -> None:
    for width in _WIDTHS.findall(text):
        raise TemplateBound(f"it formats to a width of {width[:20]}")


def _with_bounded_numbers(called: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(called)
    def bounded(*arguments: Any, **named: Any) -> Any:
        _require_bounded([*arguments[1:], *named.values()])
        if called.__name__ == "do_format":
            _require_widths(str(arguments[0]))
        elif called.__name__ == "do_replace" and len(arguments) > 3:
            _require_size(len(str(arguments[1])) * len(str(arguments[3])))
        return called(*arguments, **named)

    return bounded


def _raise(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


@pass_context
def _counted(context: Context, value: Any) -> Any:
    """Every value on its way into the text, or into a text that is captured."""
    budget = context.parent.get(_BUDGET)
    if budget is not None and isinstance(value, str):
        budget.write(len(value))
    return value


@pass_context
def _step(context: Context, value: Any) -> str:
    budget = context.parent.get(_BUDGET)
    if budget is not None:
        budget.step()
    return ""


@pass_context
def _kept(context: Context, value: Any) -> str:
    """A value that was assigned: one that doubles each time would fill the memory."""
    budget = context.parent.get(_BUDGET)
    if budget is not None and isinstance(value, (str, list, tuple)) and len(value) > budget.most_letters:
        raise TemplateBound(f"it keeps more than {budget.most_letters:,} characters in a variable")
    return ""


STEP, KEPT = "kolibri_step", "kolibri_kept"
"""Filters that `instrument` puts into a template's tree: at each step, and after each assignment."""
