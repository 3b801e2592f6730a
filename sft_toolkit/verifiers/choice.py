"""`choice`: a letter, or the text of one option."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, ClassVar

from sft_toolkit.verifiers.plain_text import folded, phrase, without_article
from sft_toolkit.verifiers.regions import bold, boxed, marked, sentences
from sft_toolkit.verifiers.verdicts import NO_ANSWER, RIGHT, UNDECIDED, WRONG, Attempt, Verdict, references, strongest

_NEGATED = re.compile(
    r"(?<!\w)(?:nicht|kein\w*|weder|noch|statt|not|isn't|neither|nor|instead of|rather than|pas|ni|au lieu de)"
    r"(?:\s+(?:die|der|das|option|antwort|answer|the|la|le|l['’]))*[\s\"'*(]*$",
    re.IGNORECASE,
)
_WRONG_BEHIND = re.compile(
    r"^[\s\"'*).]*(?:ist|sind|is|are|est|sont|passt|scheidet|fällt|stimmt|does|kann|can|trifft|n['’]est)?\s*(?:also\s+|aber\s+)?"
    r"(?:falsch|wrong|incorrect|faux|fausse|nicht|not|pas|aus|weg)(?!\w)",
    re.IGNORECASE,
)
_CUE = re.compile(
    r"(?:antwort|option|lösung|richtig|wahl|buchstabe|möglichkeit|answer|choice|letter|correct|réponse|choix|lettre|also|so|ist|is|est|:|=)"
    r"\W*(?:ist|is|est|lautet|wäre|:)?\W*$",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"^\s*(?:ist|is|est|wäre|stimmt|passt|trifft|und|oder|and|or|et|ou|because|weil|da|denn|car|wins)(?!\w)", re.I
)


@dataclass(frozen=True)
class ChoiceVerifier:
    """The reference is the letter of an option, or its text."""

    name: ClassVar[str] = "choice"

    def verify(self, attempt: Attempt) -> Verdict:
        options = dict(attempt.options) or dict.fromkeys(ascii_uppercase[:10], "")
        keys = [_letter_of(key, options) for key in references(attempt.key)]
        given, why = _given(attempt.answer, options)
        if given is None:
            return Verdict(UNDECIDED if why != "no_choice" else NO_ANSWER, None, why)
        return strongest([_held(given, key) for key in keys])


def _held(given: str, key: str | None) -> Verdict:
    if key is None:
        return Verdict(UNDECIDED, given, "reference_is_no_option", given)
    return Verdict(RIGHT if given == key else WRONG, given, None, given)


def _letter_of(key: Any, options: Mapping[str, str]) -> str | None:
    text = str(key).strip().strip("().:")
    by_letter = next((letter for letter in options if letter.casefold() == text.casefold()), None)
    if by_letter is not None:
        return by_letter
    wanted = without_article(folded(str(key)))
    found = [letter for letter, option in options.items() if option and without_article(folded(option)) == wanted]
    return found[0] if len(found) == 1 else None


def _given(answer: str, options: Mapping[str, str]) -> tuple[str | None, str | None]:
    """The letter that an answer chooses, or why none can be named."""
    for region in _regions(answer):
        letters, texts, negated = _letters(region, options), *_texts(region, options)
        found = letters | texts
        if len(letters) > 1 or len(found) > 1:
            return None, "contradiction" if len(letters) == 1 else "several"
        if found:
            return found.pop(), None
        if negated:
            return None, "negated"
    return None, "no_choice"


def _regions(answer: str) -> list[str]:
    """Where to look, the first that names a choice counts."""
    box = boxed(answer)
    if box is not None:
        return [re.sub(r"\\text\w*\s*\{([^{}]*)\}", r"\1", box)]
    marker = marked(answer)
    strong = bold(answer)
    last = [text.replace("**", "") for text in reversed(sentences(answer))]
    return [*([marker] if marker else []), *strong[-1:], *last]


def _letters(region: str, options: Mapping[str, str]) -> set[str]:
    labels = "|".join(re.escape(label) for label in sorted(options, key=len, reverse=True))
    found = set()
    bare = folded(region)
    for label in options:
        if bare == label.casefold():
            return {label}
    for match in re.finditer(rf"(?<![\w'’.-])(\(?)({labels})(\)?)(?![\w'’-])", region, re.IGNORECASE):
        label = next(name for name in options if name.casefold() == match[2].casefold())
        before, behind = region[: match.start()], region[match.end() :]
        enclosed = bool(match[3])
        if (
            not enclosed
            and match[2] != label
            and not re.search(r"(?:option|answer|antwort|réponse|buchstabe)\W*$", before, re.I)
        ):
            continue
        if not enclosed and match[2] in "AI" and _is_word(before, behind):
            continue
        if _NEGATED.search(before) or _WRONG_BEHIND.search(behind):
            continue
        found.add(label)
    return found


def _is_word(before: str, behind: str) -> bool:
    """True for English A and I, before a word in small letters: "A dog", "I think"."""
    if _CUE.search(before) and not re.match(r"\s+[a-zà-ÿ]", behind):
        return False
    return bool(re.match(r"\s+[a-zà-ÿ]|['’]", behind)) and not _VERB.match(behind)


def _texts(region: str, options: Mapping[str, str]) -> tuple[set[str], bool]:
    """The options whose texts stand in a region, the longest first, and whether one of them is negated."""
    text = folded(region)
    found, negated = set(), False
    plain = {letter: without_article(folded(option)) for letter, option in options.items()}
    for letter, option in sorted(plain.items(), key=lambda item: (-len(item[1]), item[0])):
        if not option:
            continue
        for match in reversed(list(phrase(option).finditer(text))):
            refused = bool(_NEGATED.search(text[: match.start()]) or _WRONG_BEHIND.search(text[match.end() :]))
            negated |= refused
            if not refused:
                found.add(letter)
            text = f"{text[: match.start()]}□{text[match.end() :]}"
    return found, negated
