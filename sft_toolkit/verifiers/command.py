"""`command:'CMD'`: a program of the user judges each attempt, under limits of time and memory, outside any sandbox."""

from __future__ import annotations

import os
import resource
import shlex
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from sft_toolkit.errors import UsageError
from sft_toolkit.json_text import decode, encode
from sft_toolkit.verifiers.verdicts import UNDECIDED, VERDICTS, Attempt, Verdict

_KEPT_FROM_COMMANDS = "KOLIBRI_SFT_API_KEY"
_TAIL = 65_536


@dataclass(frozen=True)
class CommandVerifier:
    """`template` is split like a shell's words, and no shell runs it. `seconds` and `megabytes` bound one attempt.

    It gets `{"answer", "key", "language"}` as JSON on stdin, and prints on its last line a verdict, or an object with
    `verdict`, `extracted` and `why`. What hangs, fails or prints nothing leaves the attempt undecided.
    """

    template: str
    seconds: float = 10.0
    megabytes: int = 2048

    name: ClassVar[str] = "command"

    def __post_init__(self) -> None:
        try:
            words = shlex.split(self.template)
        except ValueError as error:
            raise UsageError(f"`verifier`: the command cannot be split into words: {error}") from error
        if not words:
            raise UsageError("`verifier`: the command is empty", "write command:'PROGRAM ARGUMENT'")

    def verify(self, attempt: Attempt) -> Verdict:
        calls = [call.to_record()["function"] for call in attempt.tool_calls]
        given = {"answer": attempt.answer, "key": attempt.key, "language": attempt.language, "tool_calls": calls}
        output, fault = self._run(encode(given))
        return Verdict(UNDECIDED, None, fault) if fault else _read(output)

    def _run(self, given: bytes) -> tuple[bytes, str | None]:
        environment = {name: value for name, value in os.environ.items() if name != _KEPT_FROM_COMMANDS}
        try:
            process = subprocess.Popen(
                shlex.split(self.template),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
                preexec_fn=self._limit,
            )
        except OSError as error:
            raise UsageError(f"`verifier`: cannot start {self.template}: {error.strerror}") from error
        try:
            output, _ = process.communicate(given, self.seconds)
        except subprocess.TimeoutExpired:
            return b"", "timeout"
        finally:
            _end_group(process)
        return output[-_TAIL:], None if process.returncode == 0 else "command_failed"

    def _limit(self) -> None:
        size = self.megabytes << 20
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill what still runs of the command, the processes that it started included."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


def _read(output: bytes) -> Verdict:
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    if not lines:
        return Verdict(UNDECIDED, None, "command_said_nothing")
    said: Any = lines[-1]
    if said.startswith("{"):
        try:
            said = decode(said)
        except ValueError:
            said = {}
    entry = said if isinstance(said, dict) else {"verdict": said}
    if entry.get("verdict") not in VERDICTS:
        return Verdict(UNDECIDED, None, "command_said_no_verdict")
    extracted = entry.get("extracted")
    text = None if extracted is None else str(extracted)
    return Verdict(entry["verdict"], text, entry.get("why"), text)
