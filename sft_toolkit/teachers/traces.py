"""What became of a trace: the class by which it is kept or rejected."""

from __future__ import annotations

from sft_toolkit.teachers.replies import Reply

OK = "ok"
CLASSES = (
    OK,
    "drift",
    "repetitive",
    "too_short",
    "truncated",
    "no_think_close",
    "empty",
    "refused",
    "retry_exhausted",
    "parser_misfiled",
)
MAY_LOOP = (OK, "truncated", "no_think_close", "empty", "too_short")
"""Classes by form that a loop explains: caught in a repetition, a teacher reaches its limit and gives no answer."""


def classify(reply: Reply | None, opener: str | None, min_words: int) -> tuple[str, str]:
    """The class of a reply as far as its form decides it, and a sentence that says why; `ok` where nothing is wrong.

    What is decided first: whether there is a reply at all, whether it is whole, whether its thinking is where it
    should be, whether there is enough of it (`min_words` beside the opener).
    """
    if reply is None:
        return "retry_exhausted", "the teacher gave no usable reply; the same command asks again"
    if reply.refusal is not None:
        return "refused", f"the teacher refused: {reply.refusal}"
    if reply.is_empty:
        return "empty", "the reply holds neither reasoning nor an answer"
    if reply.misfiled:
        return "parser_misfiled", "marks of the thinking block are left in the reasoning or the answer"
    if reply.is_cut:
        return "truncated", "the reply ended at the limit of tokens"
    if not reply.thought_closed:
        return "no_think_close", "the thinking block was opened and never closed"
    if not (reply.content.strip() or reply.tool_calls):
        return "empty", "the reply thinks and gives no answer"
    words = len(reply.reasoning.removeprefix(opener or "").split())
    if words < min_words:
        return "too_short", f"the reasoning has {words} words, fewer than {min_words}"
    return OK, ""
