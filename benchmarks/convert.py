"""Time of `convert` on generated tool conversations, beside a bare JSON decode (the limit) and `datasets` (a peer).

Each is timed in a process of its own, one worker, best of three, and given as a ratio to `convert`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

RECORDS = 20_000
RUNS = 3
CODE = {
    "bare decode": """
import msgspec
for line in open({path!r}, "rb"):
    msgspec.json.decode(line)
""",
    "convert": """
import sys
from sft_toolkit.cli.main import run
sys.argv = ["kolibri-sft", "convert", {path!r}, "-o", {out!r}, "--force", "--quiet", "--workers", "1"]
run()
""",
    "datasets": """
import datasets
datasets.load_dataset("json", data_files={path!r}, cache_dir={out!r}, download_mode="force_redownload")
""",
}
WORDS = ("Mehl", "Wasser", "Salz", "Hefe", "Ofen", "Teig", "Brot", "kneten", "backen", "ruhen", "wiegen", "Gramm")


def write_records(path: Path) -> None:
    from sft_toolkit.json_text import encode

    with path.open("wb") as file:
        for number in range(RECORDS):
            text = " ".join(WORDS[(number + place) % len(WORDS)] for place in range(50 + number % 400))
            call = {"type": "function", "function": {"name": "wiege", "arguments": {"gramm": number}}}
            messages = [
                {"role": "user", "content": text},
                {"role": "assistant", "content": None, "reasoning": text, "tool_calls": [call]},
                {"role": "tool", "content": "ok"},
                {"role": "assistant", "content": text},
            ]
            file.write(encode({"id": f"r{number}", "messages": messages}) + b"\n")


def seconds(code: str) -> float:
    best = float("inf")
    for _ in range(RUNS):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        best = min(best, time.perf_counter() - begun)
    return best


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "in.jsonl")
        write_records(path)
        size = path.stat().st_size / 2**20
        times = {name: seconds(code.format(path=str(path), out=f"{folder}/{name}")) for name, code in CODE.items()}
    for name, taken in times.items():
        print(f"{name:12} {taken:6.2f} s  {size / taken:6.0f} MiB/s  {taken / times['convert']:5.2f} of convert")


if __name__ == "__main__":
    main()
