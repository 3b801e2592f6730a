"""The options that all commands with a teacher share, defined once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sft_toolkit.choices import Prefill
from sft_toolkit.cli.options import Seed, stage_command
from sft_toolkit.cli.teacher_access import KEY_VARIABLE, LOCAL, open_teacher, require_endpoint, require_model
from sft_toolkit.cli.teacher_parameters import body_fields
from sft_toolkit.errors import UsageError

if TYPE_CHECKING:
    from sft_toolkit.running.options import RunOptions
    from sft_toolkit.teachers.conductor import TeacherOptions
    from sft_toolkit.teachers.requests import Asking

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


def choose_teacher(
    run: RunOptions,
    teacher: Annotated[
        str | None, _option("--teacher", text="URL of an OpenAI-compatible endpoint, or local:FOLDER, local:FILE.gguf.")
    ] = None,
    model: Annotated[str, _option("--model", text="Name of the model at the endpoint.")] = "",
    prefill: Annotated[
        Prefill,
        _option("--prefill", text="How an opener is sent; auto: in the form that the teacher turns out to understand."),
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
        Path | None, _option("--api-key-file", metavar="FILE", text=f"File with the key; else {KEY_VARIABLE}.")
    ] = None,
    journal: Annotated[
        Path | None, _option("--journal", metavar="DIR", text="Where replies are kept; else OUTPUT.journal.")
    ] = None,
    price_in: Annotated[float, _option("--price-in", text="Price of a million input tokens.", min=0)] = 0.0,
    price_out: Annotated[float, _option("--price-out", text="Price of a million output tokens.", min=0)] = 0.0,
    batch: Annotated[
        bool, _option("--batch", text="Ask by the endpoint's batch API (/files, /batches) and wait for the replies.")
    ] = False,
    batch_file: Annotated[
        Path | None,
        _option("--batch-file", metavar="OUT", text="Write the questions that are missing to a batch file, and stop."),
    ] = None,
    batch_replies: Annotated[
        list[Path] | None,
        _option("--batch-replies", metavar="IN", text="Take over the replies of a batch, then judge. Repeatable."),
    ] = None,
    batch_poll: Annotated[
        float, _option("--batch-poll", text="Seconds between two looks at a batch under way.", min=0)
    ] = 60.0,
    rejudge: Annotated[
        bool, _option("--rejudge", text="Make no requests: judge the replies in the journal again; needs no --teacher.")
    ] = False,
    seed: Seed = 0,
) -> TeacherChoice:
    """The signature is the definition; the body gathers the values."""
    from sft_toolkit.teachers.ask_then_judge import default_journal
    from sft_toolkit.teachers.conductor import BatchOptions, TeacherOptions
    from sft_toolkit.teachers.http_client import Timeouts
    from sft_toolkit.teachers.pace import Patience
    from sft_toolkit.teachers.requests import Asking

    _require_one(batch, batch_file, batch_replies, rejudge)
    if teacher is None and not (batch_file or batch_replies or rejudge):
        raise UsageError("--teacher is missing", "name an endpoint, local:FOLDER or local:FILE.gguf")
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
        asking=_asking(given, teacher, replies, writes=batch_file is not None),
        journal=str(replies),
        options=TeacherOptions(
            open=functools.partial(open_teacher, teacher or "", timeouts, api_key_file, tokenizer, body.streamed),
            concurrency=concurrency,
            patience=Patience(attempts, backoff, give_up=give_up_after),
            price_in=price_in,
            price_out=price_out,
            rejudge=rejudge or bool(batch_replies),
            batch=BatchOptions(batch, batch_file, tuple(batch_replies or ()), batch_poll),
            has_endpoint=teacher is not None,
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
    _, *teacher = inspect.signature(choose_teacher, eval_str=True, locals=_NAMES).parameters.values()
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [run, *(parameter.replace(kind=keyword) for parameter in [*own, *teacher])]

    @functools.wraps(command)
    def wrapper(run: RunOptions, **values: Any) -> None:
        given = {parameter.name: values[parameter.name] for parameter in teacher}
        without = optional and not any(given[name] for name in _SOURCES)
        if not without and run.to_folder and run.array is not None:
            raise UsageError(
                "a teacher in an array job: questions are shared before it is known who shares them",
                f"add --shard {run.array.number - run.array.first}/{run.array.slots} where tasks share one output, "
                "--shard none where each has its own",
            )
        choice = None if without else choose_teacher(run, **given)
        command(run, choice, **{parameter.name: values[parameter.name] for parameter in own})

    del wrapper.__wrapped__
    wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return stage_command(wrapper)


# Any of these says where replies come from, or questions go.
_SOURCES = ("teacher", "rejudge", "batch_file", "batch_replies")


def _require_one(batch: bool, file: Path | None, replies: list[Path] | None, rejudge: bool) -> None:
    """Raises UsageError where a run is to do two things at once."""
    given = {"--batch": batch, "--batch-file": file, "--batch-replies": replies, "--rejudge": rejudge}
    named = [name for name, value in given.items() if value]
    if len(named) > 1:
        raise UsageError(f"{named[0]} and {named[1]} together", "one run does one of them, the next the other")


def _asking(given: Asking, teacher: str | None, journal: Path, writes: bool) -> Asking:
    """`given`, completed by what follows from the teacher, or else by the `journal` of replies that are judged anew.

    `writes`: questions are only written down, so that no teacher is needed where the form of prefill is named.
    """
    from sft_toolkit.teachers.ask_then_judge import kept_asking
    from sft_toolkit.teachers.prefill import AUTO, COMPLETIONS
    from sft_toolkit.teachers.requests import limit_of

    prefill = None if given.prefill == AUTO else given.prefill
    if teacher is None:
        if writes and prefill:
            require_model(given.model)
            return given
        if writes:
            raise UsageError(
                "--batch-file without --teacher: nothing to shake hands with", "name a form with --prefill"
            )
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
    if not teacher.startswith(LOCAL):
        require_endpoint(teacher, given.model)
        return given
    return replace(given, model=given.model or teacher.removeprefix(LOCAL), prefill=prefill or COMPLETIONS)
