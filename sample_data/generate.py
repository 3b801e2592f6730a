"""Write the generated files of the sample: `python generate.py [FOLDER]`, by default beside this script.

Every draw comes from a seed that is the name of the data set and the number of the record, so the files come out the
same on every machine.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from generators import bakery_tools, general_chat, long_reports, school_maths

FILES: dict[str, Callable[[], Iterable[dict[str, Any]]]] = {
    "bakery_tools.jsonl": bakery_tools.records,
    "general_chat.jsonl": general_chat.records,
    "long_reports.jsonl.gz": long_reports.records,
    "school_maths.jsonl": school_maths.records,
}


def lines(records: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


def main(folder: Path) -> None:
    for name, records in FILES.items():
        content = lines(records())
        if name.endswith(".gz"):
            content = gzip.compress(content, mtime=0)
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
