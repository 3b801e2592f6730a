"""The options that say how a chat template renders records, shared by the commands that render."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sft_toolkit.errors import UsageError

if TYPE_CHECKING:
    from sft_toolkit.chat.effort_sentences import EffortSentences

ChatTemplate = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|NAME",
        help="Jinja file in place of the tokenizer's chat template, or the name of one of its templates.",
    ),
]
ToolsInSystem = Annotated[
    bool,
    typer.Option(
        "--tools-in-system", help="Write declared tools into the system prompt where the template leaves them out."
    ),
]
TemplateVariable = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="A variable for the chat template, as enable_thinking=false. VALUE is JSON, else text. Repeatable; "
        "a record's chat_template_kwargs and effort win over it.",
    ),
]

EffortSentencesFile = Annotated[
    Path | None,
    typer.Option(
        "--effort-sentences",
        metavar="FILE",
        help="TOML file with a sentence for the system prompt, and template variables, for each effort: "
        "[low] sentence = 'Think briefly.' variables = { reasoning_effort = 'low' }.",
    ),
]

_PYTHON = {"True": True, "False": False, "None": None}


def template_variables(given: list[str] | None) -> dict[str, Any]:
    """`KEY=VALUE` pairs by key. Raises UsageError for what is no such pair, and for a key that is given twice."""
    variables: dict[str, Any] = {}
    for pair in given or ():
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"--template-variable {pair}: no value", "write it as enable_thinking=false")
        if name in variables:
            raise UsageError(f"--template-variable {name}: given twice", "keep one of the two")
        variables[name] = _value(value)
    return variables


def effort_sentences_of(path: Path | None) -> EffortSentences | None:
    """Raises ToolkitError as `read_effort_sentences` does."""
    from sft_toolkit.chat.effort_sentences import read_effort_sentences

    return None if path is None else read_effort_sentences(path)


def _value(text: str) -> Any:
    """JSON where it is JSON; True, False and None as Python writes them; else the text itself."""
    from sft_toolkit.json_text import decode

    if text in _PYTHON:
        return _PYTHON[text]
    try:
        return decode(text)
    except ValueError:
        return text
