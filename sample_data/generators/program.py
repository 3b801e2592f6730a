"""A small Python function with one fault, which can really be run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Program:
    """`fault` and `task` are in German and English; `fix` replaces `bad` in the source to make it right."""

    name: str
    source: str
    bad: str
    fix: str
    task: dict[str, str]
    fault: dict[str, str]
    cases: list[tuple[Any, ...]]

    @property
    def fixed(self) -> str:
        return self.source.replace(self.bad, self.fix)

    def outcome(self, source: str, case: tuple[Any, ...]) -> str:
        """What the function answers for a case, as Python shows it, or the exception that it raises."""
        scope: dict[str, Any] = {}
        exec(source, scope)  # sources written below
        arguments = [list(value) if isinstance(value, list) else value for value in case]
        try:
            return repr(scope[self.name](*arguments))
        except Exception as fault:
            return f"{type(fault).__name__}: {fault}"

    def call(self, case: tuple[Any, ...]) -> str:
        return f"{self.name}({', '.join(map(repr, case))})"

    def failing(self) -> list[tuple[Any, ...]]:
        return [case for case in self.cases if self.outcome(self.source, case) != self.outcome(self.fixed, case)]
