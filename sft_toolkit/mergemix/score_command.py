"""What scores a model: the protocol, and an evaluation command of the user, its score read from its last line."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, ClassVar, Protocol

from sft_toolkit import json_text
from sft_toolkit.errors import ToolkitError, UsageError

Scores = dict[str, float]
"""By metric; a command that prints one number has the one metric `score`."""

ONLY, LOSS = "score", "loss"
MODEL_VARIABLE = "KOLIBRI_SFT_MODEL"
"""Holds the model's folder in the environment of the command: what a shell's text can use as "$KOLIBRI_SFT_MODEL"."""

_KEPT_FROM_COMMANDS = "KOLIBRI_SFT_API_KEY"
_SHELLS = ("sh", "bash", "dash", "ksh", "zsh", "fish")
_TAIL = 1 << 20
"""Bytes of output that are looked at."""
_OBJECTS = 1_000
"""Beginnings of objects that are tried for one that holds the metric, from the last one on."""


class Scorer(Protocol):
    """`name` is equal only where scores mean the same; `is_loss`: lower scores are better."""

    @property
    def name(self) -> str: ...

    @property
    def is_loss(self) -> bool: ...

    def run(self, model: Path) -> Scores:
        """Score the model in this folder. Raises ToolkitError where it cannot, UsageError where no model could be."""


class Unreadable(ToolkitError):
    """A command ran and printed no score; `output` is the end of what it printed."""

    def __init__(self, message: str, hint: str, output: str = "") -> None:
        super().__init__(message, hint)
        self.output = output

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.hint, self.output)


@dataclass(frozen=True)
class ScoreCommand:
    """`template` is split like a shell's words, but no shell runs it; {model} stands for the folder. Seconds to run.

    Where `metric` names the score that counts, its output may hold text and other things beside it, see `find_scores`.
    The environment variable MODEL_VARIABLE holds the folder too, and a teacher's API key is not handed on.
    """

    template: str
    timeout: float | None = None
    metric: str | None = None
    is_loss: ClassVar[bool] = False

    def __post_init__(self) -> None:
        try:
            words = shlex.split(self.template)
        except ValueError as error:
            raise UsageError(f"the score command cannot be split into words: {error}") from error
        if not any("{model}" in word or MODEL_VARIABLE in word for word in words):
            raise UsageError(f"the score command does not name the model: {self.template}", "put {model} where it goes")
        if words[0].rpartition("/")[2] in _SHELLS and any("{model}" in text for text in _shell_texts(words)):
            raise UsageError(
                f"the score command puts {{model}} into the text of a shell, which would run a folder's name: "
                f"{self.template}",
                f'write "${MODEL_VARIABLE}" in its place',
            )

    @property
    def name(self) -> str:
        return self.template

    def run(self, model: Path) -> Scores:
        """Score one model. Raises ToolkitError where the command fails, takes too long or prints no score."""
        words = [word.replace("{model}", str(model)) for word in shlex.split(self.template)]
        shown = shlex.join(words)
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as talk:
            code = self._run(words, model, output, talk)
            if code:
                ended = f"exit code {code}" if code > 0 else signal.Signals(-code).name
                raise ToolkitError(
                    f"score command failed ({ended}): {shown}: {_last_line(_tail(talk)) or 'it said nothing'}"
                )
            if self.metric is None:
                return _kept_if_unreadable(output, lambda text: parse_scores(_last_line(text), shown))
            named = self.metric
            return _kept_if_unreadable(output, lambda text: find_scores(text, named, shown))

    def _run(self, words: list[str], model: Path, output: IO[bytes], talk: IO[bytes]) -> int:
        shown = shlex.join(words)
        environment = {name: value for name, value in os.environ.items() if name != _KEPT_FROM_COMMANDS}
        environment[MODEL_VARIABLE] = str(model)
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=talk,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(f"score command cannot start: {shown}: {error.strerror}") from error
        try:
            return process.wait(self.timeout)
        except subprocess.TimeoutExpired:
            fault = f"score command ran longer than {self.timeout:g} s: {shown}"
            raise ToolkitError(fault, "raise `timeout`") from None
        finally:
            _end_group(process)


def parse_scores(line: str, source: str) -> Scores:
    """Read a finite number or an object of such. Raises Unreadable that names `source`."""
    try:
        value = json_text.decode(line)
    except ValueError:
        raise Unreadable(
            f"no score on the last line of {source}: {line[:80]!r}",
            "print a number or JSON last, or name with `metric` the number that counts in JSON before it",
        ) from None
    entries = value if isinstance(value, dict) else {ONLY: value}
    try:
        scores = {name: _number(entry) for name, entry in entries.items()}
    except (TypeError, OverflowError):
        scores = {}
    if not scores:
        fault = f"the last line of {source} is neither a number nor an object of numbers: {line[:80]!r}"
        found = ", ".join(_numbers(value)) if isinstance(value, dict) else ""
        raise Unreadable(fault, f"name the number that counts with `metric`: {found}" if found else "")
    return scores


def find_scores(text: str, metric: str, source: str) -> Scores:
    """The numbers of the last JSON object in the output that holds `metric`, by their path: "gsm8k/acc,none".

    Text between, before and after objects is passed over, as are values that are no finite numbers. Of an object with
    `results`, as lm-eval prints and saves it, only these are read. Raises Unreadable where no object holds the metric.
    """
    seen: Scores = {}
    for match in reversed(list(re.finditer(r"^\s*\{", text, re.MULTILINE))[-_OBJECTS:]):
        try:
            value, _ = json.JSONDecoder().raw_decode(text, match.end() - 1)
        except (ValueError, RecursionError):
            continue
        found = _numbers(value["results"] if isinstance(value.get("results"), dict) else value)
        if matching(found, metric):
            return found
        seen = found | seen
    known = f"it prints {', '.join(sorted(seen))}" if seen else "print JSON that holds it"
    raise Unreadable(f"no metric {metric} in the output of {source}: {_last_line(text)[:80]!r}", known)


def metric_of(scores: Mapping[str, float], metric: str | None) -> float:
    """The score that counts: the one named, else the only one. Raises UsageError with those there are."""
    return scores[metric_name(scores, metric)]


def metric_name(scores: Mapping[str, float], metric: str | None) -> str:
    """The full name of the score that counts. A metric may be named by the end of its path, where only one ends so."""
    if metric is None and len(scores) == 1:
        return next(iter(scores))
    name = ONLY if metric is None else metric
    found = matching(scores, name)
    if len(found) != 1:
        fault = f"no metric {name}" if not found else f"several metrics {name}"
        raise UsageError(f"{fault} among {', '.join(found or sorted(scores))}", "choose one with `metric`")
    return found[0]


def matching(scores: Mapping[str, float], metric: str) -> list[str]:
    """The metrics that a name may mean: its own, else all whose path ends with it."""
    return [metric] if metric in scores else sorted(name for name in scores if name.endswith(f"/{metric}"))


def _numbers(value: Mapping[str, Any], path: str = "") -> Scores:
    """Every finite number of nested objects, by its path."""
    found: Scores = {}
    for name, entry in value.items():
        if isinstance(entry, dict):
            found |= _numbers(entry, f"{path}{name}/")
        elif hasattr(entry, "__float__") and not isinstance(entry, bool) and math.isfinite(float(entry)):
            found[f"{path}{name}"] = float(entry)
    return found


def _kept_if_unreadable(output: IO[bytes], read: Callable[[str], Scores]) -> Scores:
    text = _tail(output)
    try:
        return read(text)
    except Unreadable as fault:
        raise Unreadable(fault.message, fault.hint, text) from None


def _shell_texts(words: list[str]) -> list[str]:
    """What a shell reads as a program: the word after an option such as -c or -lc."""
    return [text for option, text in pairwise(words) if re.fullmatch(r"-[a-z]*c", option)]


def _number(value: object) -> float:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise TypeError
    number = float(value)
    if number in (float("inf"), float("-inf")):
        raise OverflowError
    return number


def _tail(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _TAIL))
    return file.read().decode(errors="replace")


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.split("\n")) if line.strip()), "")


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a command that still runs, with the processes that it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
