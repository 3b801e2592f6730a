"""How fast the client asks, and what it keeps in memory: tiny replies from a server on loopback.

    python benchmarks/teachers.py [PROMPTS]

Runs the real command against the server of the tests, in processes of their own, and prints replies per second of the
whole command (start, asking, judging, shards), the client's processor time, and its resident memory
a tenth of the way in and at the end of asking.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

SERVER = Path(__file__).parents[1] / "tests" / "misbehaving_server.py"
CONCURRENCY = 64
MIB = 1 << 20


def main() -> None:
    prompts = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_prompts(folder / "prompts.jsonl", prompts)
        (folder / "script.json").write_text(json.dumps({"open": "reasoning-field"}))
        with subprocess.Popen(
            [sys.executable, str(SERVER), str(folder / "script.json")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as server:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            measure(folder, port, prompts)
            server.kill()


def write_prompts(path: Path, count: int) -> None:
    with path.open("w") as file:
        for index in range(count):
            record = {"id": f"p{index}", "messages": [{"role": "user", "content": f"Frage {index}"}]}
            file.write(json.dumps(record) + "\n")


def measure(folder: Path, port: int, prompts: int) -> None:
    script = Path(sys.executable).with_name("kolibri-sft")
    options = ["--teacher", f"http://127.0.0.1:{port}/v1", "--model", "m", "--concurrency", str(CONCURRENCY), "-q"]
    begun = time.perf_counter()
    client = psutil.Popen([str(script), "distill", "prompts.jsonl", "-o", "out", *options], cwd=folder)
    early = late = 0
    processor_seconds = 0.0
    asked_all = 0.0
    while client.poll() is None:
        replies = count_replies(folder)
        if replies >= prompts // 10 and not early:
            early = resident(client)
        if replies < prompts:
            late = resident(client) or late
            processor_seconds = sum(client.cpu_times()[:2]) or processor_seconds
        elif not asked_all:
            asked_all = time.perf_counter() - begun
        time.sleep(0.5)
    whole = time.perf_counter() - begun
    assert client.returncode == 0
    print(f"{prompts:,} replies, {CONCURRENCY} at once, {os.cpu_count()} processors shared with the server")
    print(f"asking: {asked_all:.1f} s, {prompts / asked_all:,.0f} replies/s; the whole command: {whole:.1f} s")
    print(f"asking took {processor_seconds:.1f} s of processor: {processor_seconds / prompts * 1000:.2f} ms a reply")
    print(f"memory of the client: {early / MIB:,.0f} MiB after a tenth, {late / MIB:,.0f} MiB at the end of asking")


def count_replies(folder: Path) -> int:
    """Lines of the journal so far."""
    return sum(path.read_bytes().count(b"\n") for path in (folder / "out.journal").glob("replies-*.jsonl"))


def resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


if __name__ == "__main__":
    main()
