"""The options that all stage commands share, defined once, and the wrapper that every command runs in."""

from __future__ import annotations

import functools
import inspect
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sft_toolkit import choices
from sft_toolkit.cli.array_job import AUTO, array_task_of, part_of
from sft_toolkit.cli.flags import CLI_NAMES
from sft_toolkit.cli.guard import guarded
from sft_toolkit.cli.progress import clear_progress, progress_display
from sft_toolkit.cli.settings import ENV_PREFIX, read_config
from sft_toolkit.errors import UsageError

if TYPE_CHECKING:
    from sft_toolkit.formats import RecordReader
    from sft_toolkit.running.options import RunOptions
    from sft_toolkit.running.roster import ArrayTask

SHARED_PANEL = "Shared options"


def _option(*names: str, text: str, env: str | None = None, **more: Any) -> Any:
    variable = f"{ENV_PREFIX}_{env}" if env else None
    return typer.Option(*names, help=text, envvar=variable, show_envvar=False, rich_help_panel=SHARED_PANEL, **more)


Config = Annotated[
    Path | None,
    _option("--config", text="TOML file with defaults.", env="CONFIG", is_eager=True, callback=read_config),
]
Output = Annotated[
    str,
    typer.Option("-o", "--output", help="Folder for shards, FILE.jsonl[.gz|.zst], or - for JSONL on stdout."),
]
Inputs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="INPUT...", help="Files, globs, shard folders, hf:NAME[:SPLIT], URLs of JSONL, or - (stdin)."
    ),
]
Seed = Annotated[int, typer.Option(help="Random seed of every draw.", envvar=f"{ENV_PREFIX}_SEED", show_envvar=False)]
Quiet = Annotated[bool, _option("-q", "--quiet", text="No summary and no progress.", env="QUIET")]
Json = Annotated[bool, _option("--json", text="One JSON object, on stdout unless that carries data.", env="JSON")]
LoopPolicy = Annotated[
    choices.Policy | None,
    typer.Option("--loops", help="Find text that repeats itself. note: on the message; reject: the record."),
]
Progress = Annotated[
    choices.ProgressMode,
    _option("--progress", text="How far the run is; auto: not amid data.", env="PROGRESS"),
]
Debug = Annotated[bool, _option("--debug", text="Show tracebacks.", env="DEBUG")]
Workers = Annotated[int, _option("--workers", text="Worker processes; 0: one per processor.", env="WORKERS", min=0)]
Force = Annotated[bool, _option("--force", text="Replace what an earlier run wrote.")]
Resume = Annotated[bool, _option("--resume", text="Resume an unfinished shard folder.", env="RESUME")]
SourceFormat = Annotated[
    choices.SourceFormat, _option("--format", text="Of the input; auto: by its columns.", env="FORMAT")
]
Map = Annotated[
    list[str] | None,
    _option("--map", text="Read KEY of records from the column or path PATH. Repeatable.", metavar="KEY=PATH"),
]
MapFile = Annotated[Path | None, _option("--map-file", text="TOML file of KEY = PATH for --map.", env="MAP_FILE")]
Duplicates = Annotated[
    choices.Duplicates,
    _option(
        "--duplicates",
        text="Records that occur again: error where results depend on ids, drop exact repeats, or number (ID#1).",
        env="DUPLICATES",
    ),
]
OnError = Annotated[
    choices.OnError, _option("--on-error", text="Of a faulty record; quarantine: reject it.", env="ON_ERROR")
]
Checksums = Annotated[
    bool, _option("--checksums/--no-checksums", text="Compare input shards with their manifests.", env="CHECKSUMS")
]
DryRun = Annotated[bool, _option("-n", "--dry-run", text="Process the first rows, write nothing.")]


def _reading(
    context: typer.Context,
    inputs: Inputs = None,
    source_format: SourceFormat = "auto",
    map: Map = None,
    map_file: MapFile = None,
    duplicates: Duplicates = "error",
    workers: Workers = 0,
    on_error: OnError = "fail",
    config: Config = None,
    quiet: Quiet = False,
    json: Json = False,
    progress: Progress = "auto",
    debug: Debug = False,
) -> RunOptions:
    """The signature is the definition; the body gathers the values."""
    name = context.command_path.partition(" ")[2]
    to_stdout = context.params.get("output") == "-"
    display = progress_display(progress, silent=quiet or (json and to_stdout), name=name, to_stdout=to_stdout)
    from sft_toolkit.running.meter import Meter
    from sft_toolkit.running.options import RunOptions
    from sft_toolkit.running.row_reader import RowReader

    return RunOptions(
        inputs=inputs or ["-"],
        reader=RowReader(record_reader(map, map_file, source_format), duplicates, meter=display.meter or Meter()),
        workers=workers,
        quarantine=on_error == "quarantine",
        summary_format=summary_format(quiet, json),
        progress=display,
    )


def _shared(
    context: typer.Context,
    inputs: Inputs = None,
    output: Output = "-",
    source_format: SourceFormat = "auto",
    map: Map = None,
    map_file: MapFile = None,
    duplicates: Duplicates = "error",
    workers: Workers = 0,
    rows_per_shard: Annotated[
        int, _option("--rows-per-shard", text="Input rows per shard.", env="ROWS_PER_SHARD", min=1)
    ] = 10_000,
    driver: Annotated[choices.Driver, _option("--driver", text="Where blocks run.", env="DRIVER")] = "local",
    ray_address: Annotated[
        str | None,
        _option(
            "--ray-address",
            text="With --driver ray: cluster to join, HOST:PORT or auto; else RAY_ADDRESS, else one is started.",
            env="RAY_ADDRESS",
        ),
    ] = None,
    shard: Annotated[
        str,
        _option(
            "--shard",
            text="Share of an array job. auto: tasks with one output share it, one alone does all. I/N: part I (from "
            "0) of N. none: all.",
            metavar="auto|I/N|none",
        ),
    ] = AUTO,
    on_error: OnError = "fail",
    quarantine: Annotated[
        str | None, _option("--quarantine", text="JSONL file for rejected records, with JSONL output.")
    ] = None,
    force: Force = False,
    resume: Resume = False,
    dry_run: DryRun = False,
    checksums: Checksums = True,
    config: Config = None,
    quiet: Quiet = False,
    json: Json = False,
    progress: Progress = "auto",
    debug: Debug = False,
) -> RunOptions:
    """As `_reading`, with what decides where output goes and what it holds."""
    if ray_address is not None and driver != "ray":
        raise UsageError("--ray-address without --driver ray", "add --driver ray")
    part, array = _share(shard, inputs or ["-"], output)
    if force and (part[1] > 1 or array):
        raise UsageError(
            "--force in an array job: each part would wipe out the others'",
            "empty the folder before it" if part[1] > 1 else "add --shard none where each task has its own output",
        )
    return replace(
        _reading(
            *(context, inputs, source_format, map, map_file, duplicates, workers, on_error),
            *(config, quiet, json, progress, debug),
        ),
        output=output,
        rows_per_shard=rows_per_shard,
        driver=driver,
        ray_address=ray_address,
        part=part,
        array=array,
        quarantine_file=quarantine,
        force=force,
        resume=resume,
        dry_run=dry_run,
        checksums=checksums,
        origins=_origins(context),
    )


# RunOptions is imported for type checkers alone: its module loads pyarrow.
_NAMES = {"RunOptions": Any}
_BEFORE_OWN = ("context", "inputs", "output")
_OF_RECORDS = ("source_format", "map", "map_file", "duplicates", "quarantine")
"""Options that say how records are read, or where rejected ones go beside JSONL."""


def stage_command(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes `run: RunOptions` first the INPUT argument and all shared options."""
    return _with_run(command, _shared)


def folder_command(inputs: Any, output: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `stage_command`, for a command that reads shard folders and writes one: `inputs` and `output` say which."""
    return functools.partial(
        _with_run, gather=_shared, without=_OF_RECORDS, instead={"inputs": inputs, "output": output}
    )


def reading_command(command: Callable[..., None]) -> Callable[..., None]:
    """As `stage_command`, for a command that reads records and writes none: only the options of reading."""
    return _with_run(command, _reading)


def _with_run(
    command: Callable[..., None],
    gather: Callable[..., RunOptions],
    without: tuple[str, ...] = (),
    instead: Mapping[str, Any] = {},
) -> Callable[..., None]:
    """Add the parameters of `gather`, which makes `run`, but those that the command goes `without`.

    `instead` are annotations of parameters that the command requires. One that it has itself takes the place of
    gather's.
    """
    signature = inspect.signature(command, eval_str=True, locals=_NAMES)
    own = list(signature.parameters.values())[1:]
    gathered = {
        name: parameter.replace(annotation=instead[name], default=parameter.empty) if name in instead else parameter
        for name, parameter in inspect.signature(gather, eval_str=True, locals=_NAMES).parameters.items()
        if name not in without
    }
    added = [parameter for name, parameter in gathered.items() if name not in signature.parameters]
    before = [parameter for parameter in added if parameter.name in _BEFORE_OWN]
    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in [*before, *own, *added[len(before) :]]
    ]

    @functools.wraps(command)
    def wrapper(**values: Any) -> None:
        from sft_toolkit.running.repeats import repeats_handled

        try:
            with repeats_handled(gather(**{name: values[name] for name in gathered})) as run:
                command(run, **{parameter.name: values[parameter.name] for parameter in own})
        finally:
            clear_progress()

    del wrapper.__wrapped__
    wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return guarded(wrapper)


def record_reader(lines: list[str] | None, file: Path | None, source_format: str = "auto") -> RecordReader:
    """What reads records as `--format`, `--map` and `--map-file` say. Raises UsageError for what they cannot."""
    from sft_toolkit.formats import RecordReader
    from sft_toolkit.formats.mapping import parse_mapping

    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")) if file is not None else None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise UsageError(f"--map-file {file}: not TOML: {fault}", 'write lines such as user = "COLUMN"') from fault
    except OSError as fault:
        raise UsageError(f"--map-file {file}: {fault.strerror}") from fault
    return RecordReader(source_format, parse_mapping(lines or (), table))


def summary_format(quiet: bool, json: bool) -> str:
    """The form of the summary: `RunOptions.summary_format`."""
    return "nothing" if quiet else "json" if json else "text"


def _share(shard: str, inputs: list[str], output: str) -> tuple[tuple[int, int], ArrayTask | None]:
    """An output that is one file is written by one process, whatever the environment says.

    So is what comes from a pipe: each task has its own.
    """
    if shard == AUTO and (output == "-" or output.endswith((".jsonl", ".gz", ".zst"))):
        return (0, 1), None
    from sft_toolkit.shards.opening import is_stream, plain_name

    piped = any(is_stream(plain_name(given)) for given in inputs)
    return part_of(shard), None if piped else array_task_of(shard)


def _origins(context: typer.Context) -> dict[str, str]:
    """Where each option's value came from, by the name that the option has below cli/."""
    found = {name: _origin(context, name) for name in context.params}
    return {**found, **{name: found[own] for name, own in CLI_NAMES.items() if own in found}}


def _origin(context: typer.Context, name: str) -> str:
    source = context.get_parameter_source(name)
    names = {"COMMANDLINE": "flag", "ENVIRONMENT": "environment", "DEFAULT_MAP": "config file"}
    return names.get(source.name if source else "", "default")
