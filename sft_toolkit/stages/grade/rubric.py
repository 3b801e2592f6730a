"""How a teacher is asked for the difficulty of a prompt: the rubric, worked examples, and the prompt itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

Examples: TypeAlias = tuple[tuple[str, str], ...]
"""Prompts and their levels."""

_RUBRIC = """\
You grade how difficult a request to an assistant is. Do not answer the request.
Judge how much reasoning, knowledge and care a correct answer takes: how many steps, how easily one goes wrong, how \
rare the knowledge is. Length alone does not make a request difficult.
The levels, from the easiest to the hardest: {levels}.
Reply with one of these words and nothing else."""
_REQUEST = "Grade this request:\n\n<request>\n{prompt}\n</request>"
_MOST_CHARACTERS = 20_000

_HARD = "Prove that there are infinitely many primes of the form 4k + 3."
_MIDDLING = "A shirt costs 40 euros and is reduced by 15 %. What does it cost now?"
_EASY = "What is the capital of France?"


def default_rubric(levels: Sequence[str]) -> str:
    """The instructions to the teacher, unless the user words them."""
    return _RUBRIC.format(levels=", ".join(levels))


def default_examples(levels: Sequence[str]) -> Examples:
    """A prompt of the hardest, one of the middle (where there is one) and one of the easiest level, in this order.

    A small teacher answers the request instead of grading it until it has seen how a reply looks, and leans towards
    the level that it saw last and towards the word "hard"; with the easiest last the two balance.
    """
    middle = ((_MIDDLING, levels[len(levels) // 2]),) if len(levels) % 2 else ()
    return ((_HARD, levels[-1]), *middle, (_EASY, levels[0]))


def question(prompt: str) -> str:
    """How a prompt is put before the teacher."""
    return _REQUEST.format(prompt=prompt[:_MOST_CHARACTERS])


def messages(prompt: str, rubric: str, examples: Examples) -> list[dict[str, Any]]:
    """The rubric, the examples as earlier turns, the prompt."""
    turns = [
        turn
        for shown, level in examples
        for turn in ({"role": "user", "content": question(shown)}, {"role": "assistant", "content": level})
    ]
    return [{"role": "system", "content": rubric}, *turns, {"role": "user", "content": question(prompt)}]
