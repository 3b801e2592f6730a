"""How a command ends: exit codes, signals, broken pipes, one line for an error."""

from __future__ import annotations

import functools
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

from sft_toolkit.cli.console import print_error
from sft_toolkit.cli.flags import source_of
from sft_toolkit.cli.stopped import print_stopped
from sft_toolkit.errors import RecordError, ToolkitError, UsageError

INTERRUPTED, TERMINATED, BROKEN_PIPE = 130, 143, 141
_SECONDS_TO_END = 1.8


class _Terminated(BaseException):
    """SIGTERM, as an exception, so that files under way are cleaned up."""


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Run a command so that every way it can end has its exit code and, for a person, one line on stderr."""

    @functools.wraps(command)
    def run(*args: Any, **values: Any) -> None:
        signal.signal(signal.SIGTERM, _terminate)
        _leave_soon_after_ctrl_c()
        # Arrow's own allocator keeps what it has freed: over many shards that would add up.
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
        debug = bool(values.get("debug")) or "KOLIBRI_SFT_DEBUG" in os.environ
        try:
            code = _exit_code(functools.partial(_run_here, command, args, values), debug)
        except KeyboardInterrupt:
            code = INTERRUPTED
            print_stopped("interrupted", values)
        except _Terminated:
            code = TERMINATED
            print_stopped("stopped by SIGTERM", values)
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # an exception while Python shuts down would be printed
        if code:
            _leave(code)

    return run


def _run_here(command: Callable[..., None], args: tuple[Any, ...], values: dict[str, Any]) -> None:
    """Run a command, unless it is to write where nothing is written: a URL would become a folder of that name."""
    from sft_toolkit.shards.remote import require_local

    for name in ("output", "journal", "quarantine"):
        require_local(str(values.get(name) or ""), name)
    command(*args, **values)


def _exit_code(command: Callable[[], None], debug: bool) -> int:
    from sft_toolkit.shards.jsonl import ReaderGone, flush_stdout

    try:
        command()
        sys.stdout.flush()
        flush_stdout()
    except ReaderGone:
        return BROKEN_PIPE
    except (ToolkitError, RecordError) as error:
        if debug:
            raise
        message = error.message if isinstance(error, ToolkitError) else error.detail
        source = source_of(message) if isinstance(error, UsageError) else ""
        print_error(f"{message} (from {source})" if source else message, error.hint)
        return error.exit_code if isinstance(error, ToolkitError) else 1
    except BrokenPipeError as fault:
        if _nobody_reads_stdout():
            return BROKEN_PIPE
        print_error(f"connection lost: {fault}")
        return 1
    except OSError as fault:
        if debug:
            raise
        place = f"{fault.filename}: " if fault.filename else ""
        print_error(f"{place}{fault.strerror or fault}")
        return 1
    except MemoryError:
        print_error("out of memory", "try fewer --workers")
        return 1
    return 0


def _nobody_reads_stdout() -> bool:
    """True where stdout is a pipe whose reader is gone: that breaks a `print`, and is no fault of a socket."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _leave_soon_after_ctrl_c() -> None:
    """Let a thread end the process where Ctrl-C has no effect in time: native code may run long before Python goes on.

    The interpreter writes a signal's number to the pipe at once, whatever the main thread does.
    """
    import threading

    look, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)

    def watch() -> None:
        while number := os.read(look, 1):
            if number[0] == signal.SIGINT:
                import multiprocessing

                time.sleep(_SECONDS_TO_END)
                for worker in multiprocessing.active_children():
                    worker.kill()
                os._exit(INTERRUPTED)

    threading.Thread(target=watch, daemon=True).start()


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise _Terminated


def _leave(code: int) -> NoReturn:
    """Exit without the complaint that Python prints when it cannot flush a pipe nobody reads."""
    if code == BROKEN_PIPE:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
