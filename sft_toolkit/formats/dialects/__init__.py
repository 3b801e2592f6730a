"""Dialects: how models and data sets write reasoning, calls, results and whole dialogues into plain text.

`registry.py` holds the table; each dialect is a module with its grammar.
More than 20 modules, because there are as many dialects.
"""

from __future__ import annotations

from sft_toolkit.formats.dialects.markup import Call
from sft_toolkit.formats.dialects.reading import Reading, read_assistant_text, read_call_text
from sft_toolkit.formats.dialects.searching import FoundCall, FoundObject, find_calls, find_objects
from sft_toolkit.formats.dialects.tool_responses import read_tool_response
from sft_toolkit.formats.dialects.transcripts import read_transcript

__all__ = [
    "Call",
    "FoundCall",
    "FoundObject",
    "Reading",
    "find_calls",
    "find_objects",
    "read_assistant_text",
    "read_call_text",
    "read_tool_response",
    "read_transcript",
]
