"""Results of tools in <tool_response> blocks, as Hermes and Qwen put them into user or tool messages.

<tool_response>
TEXT
</tool_response>        one block a result; nothing but blocks in the message
"""

from __future__ import annotations

import re

_BLOCK = re.compile(r"\s*+<tool_response>(.*?)</tool_response>(?=\s*+(?:<tool_response>|\Z))\s*+", re.DOTALL)


def read_tool_response(text: str) -> list[str] | None:
    """The texts of the blocks that the text consists of, trimmed; None where it is anything else."""
    if "<tool_response>" not in text:
        return None
    found: list[str] = []
    at = 0
    while block := _BLOCK.match(text, at):
        found.append(block[1].strip())
        at = block.end()
    return found if found and at == len(text) else None
