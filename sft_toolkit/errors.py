"""What can go wrong, by who can fix it: the caller, the environment, or one record."""

from __future__ import annotations


class ToolkitError(Exception):
    """The run cannot continue: `message` says what and where, `hint` what to do. Exit code 1."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[type[ToolkitError], tuple[str, str]]:
        return type(self), (self.message, self.hint)


class UsageError(ToolkitError):
    """The command line asks for something that makes no sense. Exit code 2."""

    exit_code = 2


class TryAgain(ToolkitError):
    """Nothing is wrong with the run itself; the same command finishes it later. Exit code 75."""

    exit_code = 75


class RecordError(Exception):
    """A fault of one record: `reason` is the snake_case word that is counted, `detail` the sentence for a person."""

    def __init__(self, reason: str, detail: str, hint: str = "") -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.hint = hint

    def __reduce__(self) -> tuple[type[RecordError], tuple[str, str, str]]:
        return type(self), (self.reason, self.detail, self.hint)
