"""Runs of a coding agent, English: it lists, reads, edits and tests until the tests pass, not without mistakes.

A small workspace is simulated, so what the tools say is what happened. Every third run is in the legacy form
(`function_call`, role `function`); the others use `tool_calls`, with arguments as JSON text.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from generators import programs
from generators.common import distinct
from generators.program import Program

COUNT = 66
TOOLS = [
    {
        "name": "list_files",
        "description": "List the files of the project.",
        "parameters": {"type": "object", "properties": {}},
    },
    {
        "name": "read_file",
        "description": "Return the text of a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
    {
        "name": "edit_file",
        "description": "Replace a piece of text, which must occur once in the file.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "old": {"type": "string"}, "new": {"type": "string"}},
            "required": ["path", "old", "new"],
        },
    },
    {
        "name": "run_tests",
        "description": "Run the tests, all of them or those of one file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "verbose": {"type": "boolean"}}},
    },
]
SYSTEM = "You mend a Python project. Use the tools, change as little as you can, and say at the end what you did."
REQUESTS = (
    "The tests of this project fail. Please mend it.",
    "Someone reported wrong results. Find out why, and repair it.",
    "Make the test suite green, please, without touching the tests.",
)
MISHAPS = (
    "none",
    "unknown_tool",
    "wrong_argument",
    "missing_argument",
    "missing_file_twice",
    "stale_edit",
    "cut_off",
    "none",
)
ALIASES = ("reasoning_content", "reasoning", "thinking")


class Workspace:
    """Files, and tools that work on them. Each tool returns the text of its result."""

    def __init__(self, tasks: list[Program]) -> None:
        self.tasks = tasks
        self.files = {}
        for program in tasks:
            self.files[self.module(program)] = program.source
            self.files[self.tests(program)] = _test_source(program)

    @staticmethod
    def module(program: Program) -> str:
        return f"src/{program.name}_tools.py"

    @staticmethod
    def tests(program: Program) -> str:
        return f"tests/test_{program.name}.py"

    def list_files(self) -> str:
        return "\n".join(sorted(self.files))

    def read_file(self, path: str) -> str:
        return self.files.get(path, f"Error: no such file: {path}")

    def edit_file(self, path: str, old: str, new: str) -> str:
        count = self.files[path].count(old)
        if count != 1:
            return f"Error: the text occurs {count} times in {path}, nothing was changed"
        self.files[path] = self.files[path].replace(old, new)
        return f"edited {path}"

    def run_tests(self, path: str | None = None, verbose: bool = False) -> str:
        lines, failed, passed = [], 0, 0
        for program in self.tasks:
            if path not in (None, self.tests(program)):
                continue
            for place, case in enumerate(program.cases):
                want = program.outcome(program.fixed, case)
                got = program.outcome(self.files[self.module(program)], case)
                ok = got == want
                passed, failed = passed + ok, failed + (not ok)
                if not ok:
                    lines.append(
                        f"FAILED {self.tests(program)}::test_{place}\n    {program.call(case)}\n    expected {want}\n  "
                        f"  got      {got}"
                    )
                elif verbose:
                    lines.append(f"PASSED {self.tests(program)}::test_{place}")
        return "\n".join([*lines, f"{passed} passed, {failed} failed"])


def _test_source(program: Program) -> str:
    tests = [
        f"def test_{place}():\n    assert repr({program.call(case)}) == {program.outcome(program.fixed, case)!r}\n"
        for place, case in enumerate(program.cases)
    ]
    return f"from src.{program.name}_tools import {program.name}\n\n\n" + "\n\n".join(tests)


class Run:
    """The conversation as it grows: calls, results and what the agent says."""

    def __init__(self, index: int, draw: random.Random, workspace: Workspace) -> None:
        self.draw = draw
        self.workspace = workspace
        self.legacy = index % 3 == 2
        self.thinks = index % 3 == 1
        self.alias = draw.choice(ALIASES)
        self.messages: list[dict[str, Any]] = [
            {"role": "developer" if index % 7 == 3 else "system", "content": SYSTEM},
            {"role": "user", "content": draw.choice(REQUESTS)},
        ]
        self._calls = 0

    def call(self, thought: str, *calls: tuple[str, dict[str, Any] | str, str | None]) -> None:
        """Calls of one turn, each (tool, arguments or broken JSON text, result or None to ask the workspace)."""
        message: dict[str, Any] = {"role": "assistant", "content": None}
        if self.thinks:
            message[self.alias] = thought
        elif self.draw.random() < 0.3:
            message["content"] = thought
        self.messages.append(message)
        entries = []
        for name, arguments, result in calls:
            self._calls += 1
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            entries.append(
                (f"call_{self._calls}", name, text, self._result(name, arguments) if result is None else result)
            )
        if self.legacy and len(entries) == 1:
            _, name, text, result = entries[0]
            message["function_call"] = {"name": name, "arguments": text}
            self.messages.append({"role": "function", "name": name, "content": result})
            return
        message["tool_calls"] = [
            {"id": identity, "type": "function", "function": {"name": name, "arguments": text}}
            for identity, name, text, _ in entries
        ]
        self.messages += [
            {"role": "tool", "tool_call_id": identity, "content": result} for identity, _, _, result in entries
        ]

    def _result(self, name: str, arguments: Any) -> str:
        return str(getattr(self.workspace, name)(**arguments))

    def say(self, text: str, thought: str) -> None:
        self.messages.append({"role": "assistant", **({self.alias: thought} if self.thinks else {}), "content": text})


def records() -> Iterator[dict[str, Any]]:
    for index, record in enumerate(distinct("agent_runs", COUNT, _record)):
        yield {"id": f"agent_runs-{index:04d}", **record}


def _record(place: int, draw: random.Random) -> dict[str, Any]:
    count = draw.choice((1, 1, 1, 2, 2, 3, 5, 8))
    makers = draw.sample(programs.MAKERS, count)
    run = Run(place, draw, Workspace([maker(draw) for maker in makers]))
    _work(run, MISHAPS[place % len(MISHAPS)])
    tools = [{"type": "function", "function": tool} for tool in TOOLS]
    return {
        "dataset": "agent_runs",
        "domain": "tools",
        "difficulty": "easy" if count == 1 else "medium" if count <= 3 else "hard",
        "messages": run.messages,
        **({"functions": TOOLS} if run.legacy else {"tools": tools}),
    }


def _work(run: Run, mishap: str) -> None:
    tasks = run.workspace.tasks
    if mishap == "unknown_tool":
        run.call("Let me see what is there.", ("ls", {}, "Error: unknown tool: ls"))
    run.call("First I look at what there is and what fails.", ("list_files", {}, None), ("run_tests", {}, None))
    for place, program in enumerate(tasks):
        _mend(run, program, mishap if place == 0 else "none")
    run.call("Now everything together, to be sure.", ("run_tests", {"verbose": True}, None))
    done = " ".join(f"`{program.name}`: {program.fault['en']}" for program in tasks)
    run.say(
        f"All tests pass now. What was wrong: {done}", "The last run shows no failure, so I can report what I changed."
    )


def _mend(run: Run, program: Program, mishap: str) -> None:
    module, tests = run.workspace.module(program), run.workspace.tests(program)
    case = program.failing()[0]
    got, want = program.outcome(program.source, case), program.outcome(program.fixed, case)
    if mishap == "missing_file_twice":
        wrong = {"path": f"{program.name}.py"}
        run.call(f"The function is {program.name}, so I read its file.", ("read_file", wrong, None))
        run.call("That should be there. I try once more.", ("read_file", wrong, None))
    if mishap == "missing_argument":
        run.call("I read the file.", ("read_file", {}, "Error: read_file needs the argument path"))
    if mishap == "wrong_argument":
        run.call(
            "I run only the tests of this function.",
            ("run_tests", {"path": tests, "verbose": "yes"}, "Error: verbose must be true or false"),
        )
    run.call(
        f"The failing function is {program.name}; its code and its tests belong together.",
        ("read_file", {"path": module}, None),
        ("read_file", {"path": tests}, None),
    )
    thought = (
        f"{program.call(case)} gives {got} where {want} is expected. {program.fault['en']} I change that one place."
    )
    edit = {"path": module, "old": program.bad, "new": program.fix}
    if mishap == "stale_edit":
        remembered = {**edit, "old": program.bad.rstrip() + "  # TODO"}
        run.call("I replace the place, with the comment that I remember there.", ("edit_file", remembered, None))
    if mishap == "cut_off":
        text = json.dumps(edit)
        run.call(thought, ("edit_file", text[: len(text) * 2 // 3], "Error: the arguments are not JSON"))
    run.call(thought, ("edit_file", edit, None))
    run.call(f"The tests of {program.name} tell whether that was it.", ("run_tests", {"path": tests}, None))
