"""Tool calls: decoding their arguments, comparing them, and judging which of them a model should not learn."""

from sft_toolkit.tool_calls.compare import same_call, same_calls

__all__ = ["same_call", "same_calls"]
