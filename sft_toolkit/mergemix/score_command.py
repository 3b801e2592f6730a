"""What scores a model: the protocol, and an evaluation command of the user, its score read from its last line."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, ClassVar, Protocol

from sft_toolkit import json_text
from sft_toolkit.errors import ToolkitError, UsageError

Scores = dict[str, float]
"""By metric; a command that prints one number has the one metric `score`."""

ONLY, LOSS = "score", "loss"
MODEL_VARIABLE = "KOLIBRI_SFT_MODEL"
"""Holds the model's folder in the environment of the command: what a shell's text can use as "$KOLIBRI_SFT_MODEL"."""

_KEPT_FROM_COMMANDS = "KOLIBRI_SFT_API_KEY"
_SHELLS = ("sh", "bash", "dash", "ksh", "zsh", "fish")
_TAIL = 65_536
"""Bytes of output that are looked at."""


class Scorer(Protocol):
    """`name` is equal only where scores mean the same; `is_loss`: lower scores are better."""

    @property
    def name(self) -> str: ...

    @property
    def is_loss(self) -> bool: ...

    def run(self, model: Path) -> Scores:
        """Score the model in this folder. Raises ToolkitError where it cannot, UsageError where no model could be."""


@dataclass(frozen=True)
class ScoreCommand:
    """`template` is split like a shell's words, but no shell runs it; {model} stands for the folder. Seconds to run.

    The environment variable MODEL_VARIABLE holds the folder too, and a teacher's API key is not handed on.
    """

    template: str
    timeout: float | None = None
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
                raise ToolkitError(f"score command failed ({ended}): {shown}: {_last_line(talk) or 'it said nothing'}")
            return parse_scores(_last_line(output), shown)

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
    """Read a finite number or an object of such. Raises ToolkitError that names `source`."""
    try:
        value = json_text.decode(line)
    except ValueError:
        raise ToolkitError(f"no score on the last line of {source}: {line[:80]!r}", "print a number or JSON") from None
    entries = value if isinstance(value, dict) else {ONLY: value}
    try:
        scores = {name: _number(entry) for name, entry in entries.items()}
    except (TypeError, OverflowError):
        scores = {}
    if not scores:
        raise ToolkitError(f"the last line of {source} is neither a number nor an object of numbers: {line[:80]!r}")
    return scores


def metric_of(scores: Mapping[str, float], metric: str | None) -> float:
    """The score that counts: the one named, else the only one. Raises UsageError with those there are."""
    if metric is None and len(scores) == 1:
        return next(iter(scores.values()))
    name = ONLY if metric is None else metric
    if name not in scores:
        raise UsageError(f"no metric {name} among {', '.join(sorted(scores))}", "choose one with `metric`")
    return scores[name]


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


def _last_line(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _TAIL))
    lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a command that still runs, with the processes that it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
