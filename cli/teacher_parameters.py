"""What goes into the body of each request: sampling, limits, fields that a server wants or must not get."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sft_toolkit.cli.template_options import template_variables
from sft_toolkit.errors import UsageError

_STREAM = "stream"
_VARIABLES = "chat_template_kwargs"
_ONE_REPLY = "a question gets one reply: ask for more with --samples or --votes"
_OF_THE_QUESTION = "the question decides it"
# Fields that would change what is asked, or how a reply comes, so that it would be paid for and not be read.
_REFUSED = {
    "messages": _OF_THE_QUESTION,
    "prompt": _OF_THE_QUESTION,
    "tools": _OF_THE_QUESTION,
    "model": "name it with --model",
    "n": _ONE_REPLY,
    "best_of": _ONE_REPLY,
    "echo": "the reply would begin with the question",
    "background": "replies are read as they come",
}


@dataclass(frozen=True)
class BodyFields:
    """`parameters` are sent, `left_out` must not be, `streamed` asks for replies in pieces."""

    parameters: dict[str, Any]
    left_out: tuple[str, ...]
    streamed: bool


def body_fields(*, further: list[str] | None, variables: list[str] | None, streamed: bool, **named: Any) -> BodyFields:
    """From the options that have a name of their own, `--parameter NAME=JSON` and `--template-variable KEY=VALUE`.

    Raises UsageError for what is no such pair, and for a field that would change the protocol.
    """
    parameters = {name: value for name, value in named.items() if value is not None}
    left_out = []
    for each in further or ():
        name, equals, text = each.partition("=")
        if not (name and equals):
            raise UsageError(f"--parameter {each}: not NAME=JSON", _EXAMPLE)
        if not text:
            left_out.append(name)
        else:
            parameters[name] = _value(each, text)
    _require_sensible(parameters, left_out)
    streamed = parameters.pop(_STREAM, False) is True or streamed
    given = template_variables(variables)
    if given:
        parameters[_VARIABLES] = {**parameters.get(_VARIABLES, {}), **given}
    return BodyFields(parameters, tuple(sorted(left_out)), streamed)


def _value(each: str, text: str) -> Any:
    from sft_toolkit.json_text import decode

    try:
        return decode(text)
    except ValueError as fault:
        raise UsageError(f"--parameter {each}: {fault}", _EXAMPLE) from fault


def _require_sensible(parameters: dict[str, Any], left_out: list[str]) -> None:
    from sft_toolkit.teachers.requests import limit_of

    for name, why in _REFUSED.items():
        given = parameters.get(name, False)
        if name in left_out or not (given is False or (given == 1 and given is not True)):
            raise UsageError(f"--parameter {name}: not for the asking", why)
    if not isinstance(parameters.get(_STREAM, False), bool):
        raise UsageError(f"--parameter {_STREAM}: neither true nor false", "--stream asks for replies in pieces")
    if not isinstance(parameters.get(_VARIABLES, {}), dict):
        raise UsageError(f"--parameter {_VARIABLES}: no object", "give --template-variable KEY=VALUE")
    both = sorted(set(left_out) & parameters.keys())
    if both:
        raise UsageError(f"{both[0]}: given, and left out by --parameter {both[0]}=", "keep one of the two")
    if len(limit_of(parameters)) > 1:
        raise UsageError("two limits of length", "give --max-tokens or --max-completion-tokens")


_EXAMPLE = 'as in --parameter top_k=20, text as "…", and --parameter seed= to leave it out'
