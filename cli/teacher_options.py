"""The options that all commands with a teacher share, defined once."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from sft_toolkit.cli.options import ENV_PREFIX, Seed, require_choice, stage_command
from sft_toolkit.cli.teacher_parameters import body_fields
from sft_toolkit.errors import ToolkitError, UsageError

if TYPE_CHECKING:
    from sft_toolkit.running.options import RunOptions
    from sft_toolkit.teachers.ask_then_judge import TeacherOptions
    from sft_toolkit.teachers.requests import Asking
    from sft_toolkit.teachers.teacher import Teacher

_KEY_VARIABLE = f"{ENV_PREFIX}_API_KEY"
_LOCAL = "local:"
_PANEL = "Teacher"


def _option(*names: str, text: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=_PANEL, **more)


@dataclass(frozen=True)
class TeacherChoice:
    """Which teacher is asked, how, and where its replies are kept."""

    asking: Asking
    journal: str
    options: TeacherOptions

    @property
    def plain_asking(self) -> Asking:
        """For questions that are asked without opener: nothing to prefill, no hands to shake."""
        return replace(self.asking, prefill="none")


def _choice(
    run: RunOptions,
    teacher: Annotated[
        str | None, _option("--teacher", text="URL of an OpenAI-compatible endpoint, or local:FOLDER, local:FILE.gguf.")
    ] = None,
    model: Annotated[str, _option("--model", text="Name of the model at the endpoint.")] = "",
    prefill: Annotated[
        str,
        _option(
            "--prefill",
            text="How an opener is sent: auto, none, or a form: completions, reasoning-field, reasoning-prefix, "
            "thinking-part, opener-alone, content, prefix-flag.",
        ),
    ] = "auto",
    tokenizer: Annotated[
        Path | None,
        _option("--tokenizer", metavar="DIR", text="Folder with the teacher's tokenizer and chat template."),
    ] = None,
    temperature: Annotated[float | None, _option("--temperature", text="Sampling temperature.", min=0)] = None,
    top_p: Annotated[float | None, _option("--top-p", text="Top-p (nucleus) sampling.", min=0, max=1)] = None,
    max_tokens: Annotated[
        int | None,
        _option("--max-tokens", text="Maximum tokens of a reply; raised, only cut replies are asked again.", min=1),
    ] = None,
    max_completion_tokens: Annotated[
        int | None,
        _option("--max-completion-tokens", text="The same, where a server wants it by this name.", min=1),
    ] = None,
    parameter: Annotated[
        list[str] | None,
        _option(
            "--parameter",
            metavar="NAME=JSON",
            text="An extra field for each request's body; NAME= leaves a field out. Repeatable.",
        ),
    ] = None,
    template_variable: Annotated[
        list[str] | None,
        _option(
            "--template-variable",
            metavar="KEY=VALUE",
            text="A variable for the teacher's chat template, as enable_thinking=true. Repeatable.",
        ),
    ] = None,
    stream: Annotated[
        bool, _option("--stream", text="Take replies in pieces, where a server or gateway wants that.")
    ] = False,
    concurrency: Annotated[int, _option("--concurrency", text="Maximum number of concurrent requests.", min=1)] = 32,
    attempts: Annotated[int, _option("--attempts", text="Maximum attempts per question.", min=1)] = 6,
    backoff: Annotated[
        float, _option("--backoff", text="Seconds before a second attempt; doubles from there.", min=0)
    ] = 0.5,
    give_up_after: Annotated[
        float, _option("--give-up-after", text="Seconds without any answer that end the run with exit code 75.")
    ] = 300.0,
    connect_timeout: Annotated[float, _option("--connect-timeout", text="Seconds to connect.")] = 10.0,
    read_timeout: Annotated[
        float, _option("--read-timeout", text="Seconds without a byte; replies are not streamed.")
    ] = 3600.0,
    total_timeout: Annotated[float, _option("--total-timeout", text="Maximum seconds of a whole reply.")] = 3600.0,
    api_key_file: Annotated[
        Path | None, _option("--api-key-file", metavar="FILE", text=f"File with the key; else {_KEY_VARIABLE}.")
    ] = None,
    journal: Annotated[
        Path | None, _option("--journal", metavar="DIR", text="Where replies are kept; else OUTPUT.journal.")
    ] = None,
    price_in: Annotated[float, _option("--price-in", text="Price of a million input tokens.", min=0)] = 0.0,
    price_out: Annotated[float, _option("--price-out", text="Price of a million output tokens.", min=0)] = 0.0,
    rejudge: Annotated[
        bool, _option("--rejudge", text="Make no requests: judge the replies in the journal again; needs no --teacher.")
    ] = False,
    seed: Seed = 0,
) -> TeacherChoice:
    """The signature is the definition; the body gathers the values."""
    from sft_toolkit.teachers.ask_then_judge import TeacherOptions, default_journal
    from sft_toolkit.teachers.http_client import Timeouts
    from sft_toolkit.teachers.pace import Patience
    from sft_toolkit.teachers.prefill import MODES
    from sft_toolkit.teachers.requests import Asking

    require_choice("--prefill", prefill, MODES)
    body = body_fields(
        temperature=temperature,
        top_p=top_p,
        max_tokens=max_tokens,
        max_completion_tokens=max_completion_tokens,
        further=parameter,
        variables=template_variable,
        streamed=stream,
    )
    given = Asking(model, prefill, body.parameters, seed, body.left_out)
    replies = journal or default_journal(run.output)
    timeouts = Timeouts(connect_timeout, read_timeout, total_timeout)
    return TeacherChoice(
        asking=_asking(given, teacher, replies if rejudge else None),
        journal=str(replies),
        options=TeacherOptions(
            open=functools.partial(_open, teacher or "", timeouts, api_key_file, tokenizer, body.streamed),
            concurrency=concurrency,
            patience=Patience(attempts, backoff, give_up=give_up_after),
            price_in=price_in,
            price_out=price_out,
            rejudge=rejudge,
        ),
    )


_NAMES = {"RunOptions": Any, "TeacherChoice": Any}


def teacher_command(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes `run` and `teacher: TeacherChoice` first all teacher and shared options."""
    return _with_teacher(command, optional=False)


def optional_teacher_command(command: Callable[..., None]) -> Callable[..., None]:
    """As `teacher_command`, for a command that can do without: it is given None where --teacher is."""
    return _with_teacher(command, optional=True)


def _with_teacher(command: Callable[..., None], *, optional: bool) -> Callable[..., None]:
    signature = inspect.signature(command, eval_str=True, locals=_NAMES)
    run, _, *own = signature.parameters.values()
    _, *teacher = inspect.signature(_choice, eval_str=True, locals=_NAMES).parameters.values()
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [run, *(parameter.replace(kind=keyword) for parameter in [*own, *teacher])]

    @functools.wraps(command)
    def wrapper(run: RunOptions, **values: Any) -> None:
        given = {parameter.name: values[parameter.name] for parameter in teacher}
        without = optional and given["teacher"] is None and not given["rejudge"]
        choice = None if without else _choice(run, **given)
        command(run, choice, **{parameter.name: values[parameter.name] for parameter in own})

    del wrapper.__wrapped__
    wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return stage_command(wrapper)


def _asking(given: Asking, teacher: str | None, journal: Path | None) -> Asking:
    """`given`, completed by what follows from the teacher, or else by the `journal` of replies that are judged anew."""
    from sft_toolkit.teachers.ask_then_judge import kept_asking
    from sft_toolkit.teachers.prefill import AUTO, COMPLETIONS
    from sft_toolkit.teachers.requests import limit_of

    prefill = None if given.prefill == AUTO else given.prefill
    if teacher is None:
        if journal is None:
            raise UsageError("--teacher is missing", "name an endpoint, or local:FOLDER")
        kept = kept_asking(journal)
        earlier = kept.limited_by({}).parameters if limit_of(given.parameters) else kept.parameters
        parameters = {**earlier, **given.parameters}
        return replace(
            kept,
            model=given.model or kept.model,
            prefill=prefill or kept.prefill,
            parameters=parameters,
            seed=given.seed,
            left_out=given.left_out or kept.left_out,
        )
    if not teacher.startswith(_LOCAL):
        _require_endpoint(teacher, given.model)
        return given
    return replace(given, model=given.model or teacher.removeprefix(_LOCAL), prefill=prefill or COMPLETIONS)


def _open(teacher: str, timeouts: Any, api_key_file: Path | None, tokenizer: Path | None, streamed: bool) -> Teacher:
    if teacher.startswith(_LOCAL):
        from sft_toolkit.teachers.local_teacher import LocalTeacher

        return LocalTeacher(teacher.removeprefix(_LOCAL))
    from sft_toolkit.teachers.http_teacher import HttpTeacher

    template = None
    if tokenizer is not None:
        from sft_toolkit.teachers.rendering import TeacherTemplate

        template = TeacherTemplate(tokenizer)
    return HttpTeacher(teacher, timeouts, key=_api_key(api_key_file), template=template, streamed=streamed)


def _api_key(file: Path | None) -> str | None:
    """The key, from the file or the environment. Raises ToolkitError where the file holds none, or what is no key."""
    if file is None:
        where, key = _KEY_VARIABLE, os.environ.get(_KEY_VARIABLE, "").strip()
        if not key:
            return None
    else:
        where, key = str(file), _text_of(file).strip()
    if not (key and key.isascii() and key.isprintable()) or " " in key:
        raise ToolkitError(f"{where}: holds no key", "one line with the key and nothing else")
    return key


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as fault:
        raise ToolkitError(f"{file}: cannot be read", "--api-key-file takes a text file with the key") from fault


def _require_endpoint(teacher: str, model: str) -> None:
    parts = urlsplit(teacher)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"--teacher {teacher.partition('@')[2] or teacher}: not a URL", "as in https://host/v1")
    if parts.username or parts.password or parts.query:
        raise UsageError("--teacher: a URL is no place for keys", f"use --api-key-file or {_KEY_VARIABLE}")
    if not model:
        raise UsageError("--model is missing", "name the model as the endpoint does")
