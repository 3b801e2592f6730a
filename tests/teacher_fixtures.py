"""A real server on loopback for each script, and small inputs."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SERVER = Path(__file__).with_name("misbehaving_server.py")


@dataclass
class Running:
    """A server under way; `requests()` is its log so far."""

    url: str
    log: Path
    process: subprocess.Popen

    def requests(self) -> list[dict]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def stop(self) -> int:
        """End the server; returns the most requests that it had under way at once."""
        output, _ = self.process.communicate(timeout=20)
        return int(output)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """`serve(script="…", …)` starts a server that follows the script, see misbehaving_server.py."""
    with contextlib.ExitStack() as stack:
        count = iter(range(100))

        def start(**script: object) -> Running:
            number = next(count)
            log, path = tmp_path / f"server{number}.log", tmp_path / f"server{number}.json"
            path.write_text(json.dumps({"open": "reasoning-field", "log": str(log), **script}))
            process = subprocess.Popen(
                [sys.executable, str(SERVER), str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            return Running(f"http://127.0.0.1:{int(process.stdout.readline())}/v1", log, process)

        yield start


@pytest.fixture
def prompts(tmp_path: Path) -> Callable[[int], Path]:
    """`prompts(n)`: a file of n prompts with ids p0, p1, …"""

    def write(count: int) -> Path:
        path = tmp_path / "prompts.jsonl"
        with path.open("w") as file:
            for index in range(count):
                record = {
                    "id": f"p{index}",
                    "domain": "math",
                    "messages": [{"role": "user", "content": f"Frage {index}"}],
                }
                file.write(json.dumps(record) + "\n")
        return path

    return write
