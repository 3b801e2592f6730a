"""Which number an answer gives, or why none can be named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sft_toolkit.verifiers.numbers import Number, blanked, find_numbers, plain
from sft_toolkit.verifiers.regions import bold, boxed, is_question, marked, sentences
from sft_toolkit.verifiers.units import factor_between, is_known

_CUES = re.compile(
    r"[=≈]|(?<!\w)(?:also|somit|damit|daher|folglich|demnach|insgesamt|ergibt|ergeben|macht|machen|bleiben|bleibt|richtig|beträgt|"
    r"betragen|lautet|sondern|kosten|kostet|wiegen|wiegt|dauert|dauern|fasst|braucht|brauchen|so|thus|hence|therefore|makes|make|"
    r"equals|equal|gives|leaves|cost|costs|weigh|weighs|takes|holds|totals|donc|ainsi|soit|fait|font|reste|restent|vaut|"
    r"coûte|coûtent|pèse|dure|égale|correct|but|sind es|ist|sind|is|are|est|sont|was|were|war|waren)(?!\w)",
    re.IGNORECASE,
)
_MODIFIERS = re.compile(
    r"(?:in|im|nach|pro|je|jeweils|mit|von|vom|für|aus|bei|zu|zum|an|am|ab|seit|vor|ohne|"
    r"gegen|durch|der|die|den|dem|des|alle|allen|diese|dieser|diesen|um|by|jede|jeder|"
    r"jedem|jeden|beide|at|of|for|from|with|per|each|after|every|within|the|all|these|"
    r"those|en|par|pour|avec|dans|après|chaque|les|ces|aux|à)",
    re.IGNORECASE,
)
_STRONG = re.compile(
    r"(?:liegt bei|liegen bei|beläuft sich auf|est de|sont de|comes to|amounts to|kommt auf|kommen auf)\s*$",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"(?<!\w)(?:nicht|kein|keine|keinen|not|isn't|never|pas|statt|anstatt|instead of|rather than|"
    r"au lieu de|non|weder|noch)"
    r"(?:\s+(?:mehr|auf|bei|etwa|the|die|der|um|de|à))?\s*$",
    re.IGNORECASE,
)
_NEGATED_BEHIND = re.compile(
    r"^\W*(?:ist|sind|is|are|wäre|wären|was|were)?\s*(?:falsch|wrong|incorrect|faux|nicht richtig)", re.I
)
_BOUND = re.compile(
    r"(?<!\w)(?:mehr als|weniger als|größer als|kleiner als|über|unter|more than|less than|fewer than|greater than|"
    r"over|under|"
    r"plus de|moins de|supérieur à|inférieur à|[<>≤≥])\s*$",
    re.IGNORECASE,
)
_ALTERNATIVE = re.compile(r"(?<!\w)(?:oder|or|ou|bzw\.?|beziehungsweise|respectively)(?!\w)", re.IGNORECASE)
_OTHER_ROOT = re.compile(r"^\W*(?:und|and|et|,|;)?\s*[a-zA-Z](?:_?\{?\d\}?|[₁₂₃])?\s*=\s*$")
_RANGE = re.compile(r"^\s*(?:bis(?:\s+zu)?|to|à|[-–—]|\.\.\.?|…)\s*(?:[€$£])?\s*$", re.IGNORECASE)
_BETWEEN = re.compile(r"(?<!\w)(?:zwischen|between|entre)(?!\w)\W*$", re.IGNORECASE)
_AND = re.compile(r"^\s*(?:und|and|et|,)?\s*$", re.IGNORECASE)
_CHECK = re.compile(r"^\W*(?:probe|kontrolle|check|vérification|verify|verification)\b", re.IGNORECASE)
_OPERATORS_BEFORE = re.compile(r"(?:[+*·×÷⋅^√±∓]|(?<=[\d)])\s*[-−–:/]|√\(|[a-zA-Z]\^|(?<!\w)(?:pi|π))\s*\(?\s*$")
_OPERATORS_BEHIND = re.compile(
    r"^\s*(?:[+*·×÷⋅^√±]|!\s*[=·*/+)]|[-−–:/]\s*[\d(√π]|[²³⁴]|π|pi(?!\w)|\(\s*\d|(?:mal|plus|minus|times)\s+\d)|^\s?[a-zA-Z](?:\^|²|\s*[-+=]|(?![\w/]))"
)
_PERIODIC = re.compile(r"^(?:\\overline|\u0305)")
_NUMBER_WORD = re.compile(
    r"(?<!\w)(?:null|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|\w*(?:zehn|zig|ßig|hundert|tausend)|zero|two|three|four|five|"
    r"six|seven|eight|nine|ten|eleven|twelve|\w+teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:-\w+)?|hundred|thousand|zéro|deux|"
    r"trois|quatre|cinq|sept|huit|neuf|dix|onze|douze|treize|quatorze|quinze|seize|vingt|trente|quarante|cinquante|soixante|mille|"
    r"dutzend|dozen|douzaine|hälfte|half|moitié|doppelt)(?!\w)",
    re.IGNORECASE,
)
_HEADING = re.compile(r":\s*$")


@dataclass(frozen=True, slots=True)
class Given:
    """The number that an answer gives; or `why` there is none, where `nothing`: because no number was named."""

    number: Number | None = None
    why: str | None = None
    nothing: bool = False


NOTHING = Given(why="no_number", nothing=True)


def read_number(text: str, language: str) -> Given:
    """The number that `text` gives as its answer, read as `language` writes numbers."""
    box = boxed(text)
    if box is not None:
        return _of_sentences(box, language)
    marker = marked(text)
    if marker is not None:
        found = _of_sentences(_unbolded(marker), language)
        if not found.nothing:
            return found
    for region in reversed(bold(text)):
        found = _of_sentences(region, language)
        if not found.nothing and not _HEADING.search(region):
            return found
    return _of_sentences(_unbolded(text), language)


def _unbolded(text: str) -> str:
    return text.replace("**", "").replace("__", "")


def _of_sentences(text: str, language: str) -> Given:
    """By the last sentence with numbers; a check of the result and a question give none."""
    worded = None
    for sentence in reversed(sentences(plain(text))):
        cleaned = blanked(sentence)
        numbers = find_numbers(cleaned, language)
        if numbers and (_CHECK.match(cleaned) or is_question(cleaned)):
            continue
        if numbers:
            return worded or _chosen(cleaned, numbers)
        if _NUMBER_WORD.search(cleaned) and "□" not in cleaned:
            worded = worded or Given(why="number_word")
        elif re.search(r"[√π]", cleaned):
            worded = worded or Given(why="formula")
    return worded or NOTHING


def _chosen(sentence: str, numbers: Sequence[Number]) -> Given:
    candidates = [number for number in numbers if not _is_negated(sentence, number)]
    candidates = [number for number in candidates if not _in_brackets(sentence, number)] or candidates
    if not candidates:
        return Given(why="negated")
    number = _answering(sentence, candidates)
    if number is None:
        return Given(why="several")
    return _sound(sentence, list(numbers), number)


def _is_negated(sentence: str, number: Number) -> bool:
    return bool(_NEGATED.search(sentence[: number.start]) or _NEGATED_BEHIND.search(sentence[number.end :]))


def _in_brackets(sentence: str, number: Number) -> bool:
    return sentence.rfind("(", 0, number.start) > sentence.rfind(")", 0, number.start)


def _answering(sentence: str, candidates: list[Number]) -> Number | None:
    """Of several numbers the one behind the last cue, else the only one that is no detail; None where that is open."""
    if len(candidates) == 1:
        return candidates[0]
    values = {number.value_text for number in candidates}
    if len(values) == 1:
        return candidates[-1]
    free = [number for number in candidates if not _is_modified(sentence, number)]
    cues = [cue.end() for cue in _CUES.finditer(sentence) if cue.end() <= candidates[-1].start]
    if cues:
        behind = [number for number in candidates if number.start >= cues[-1]]
        open_ones = [number for number in behind if number in free] or behind
        return open_ones[0]
    strong = [number for number in candidates if _STRONG.search(sentence[: number.start])]
    if len(strong) == 1:
        return strong[0]
    if len(free) == 1:
        return free[0]
    joined = all(_fault_between(sentence, first, second) for first, second in pairwise(free))
    return free[-1] if free and joined else None


def _is_modified(sentence: str, number: Number) -> bool:
    if _STRONG.search(sentence[: number.start]):
        return False
    word = re.search(r"([^\W\d_]+)\s*$", sentence[: number.start])
    return bool(word and _MODIFIERS.fullmatch(word[1]))


def _sound(sentence: str, numbers: list[Number], number: Number) -> Given:
    """The number, unless what stands around it makes it part of something else."""
    before, behind = sentence[: number.start], sentence[number.end :]
    place = numbers.index(number)
    if not number.values:
        return Given(why="no_number_of_this_kind")
    for first, second in ((place - 1, place), (place, place + 1)):
        if first >= 0 and second < len(numbers):
            fault = _fault_between(sentence, numbers[first], numbers[second])
            if fault:
                return Given(why=fault)
    if _OPERATORS_BEFORE.search(before) or _PERIODIC.search(behind) or _is_formula_behind(behind, number):
        return Given(why="formula")
    if _BOUND.search(before):
        return Given(why="bound")
    if _NUMBER_WORD.search(_behind_unit(behind)):
        return Given(why="number_word")
    return Given(number)


def _behind_unit(behind: str) -> str:
    """What follows the clause of the number: number words in it may be details of the same quantity."""
    return (
        behind
        if re.match(r"\W*(?:\w+\W+){0,2}?(?:und|oder|and|or|et|ou|sondern|bis|to)\b", behind, re.I)
        else behind[1:]
    )


def _is_formula_behind(behind: str, number: Number) -> bool:
    if number.percent or (number.words and is_known(number.words[0]) and not re.match(r"\s*[+*·×÷^!²³]", behind)):
        return False
    return bool(_OPERATORS_BEHIND.search(behind))


def _fault_between(sentence: str, first: Number, second: Number) -> str | None:
    between = sentence[first.end : second.start]
    bare = between
    for word in re.findall(r"[^\W\d_]+|[%€$£°²³]", between)[:1]:
        if first.words or first.percent:
            bare = (
                between.replace(word, "", 1)
                if not re.fullmatch(r"(?i)und|and|et|oder|or|ou|bis|to|à", word)
                else between
            )
    if _RANGE.match(between) or _RANGE.match(bare):
        return "range"
    if _AND.match(bare) and _BETWEEN.search(sentence[: first.start]) and re.search(r"\w", bare):
        return "range"
    if len(between) < 40 and _ALTERNATIVE.search(between):
        return "alternatives"
    if _OTHER_ROOT.match(between) and re.search(r"=\s*$", sentence[: first.start]):
        return "alternatives"
    if first.unit and second.unit and _AND.match(bare.rstrip(".")) and first.unit != second.unit:
        return "compound" if factor_between(first.unit, second.unit) is not None else None
    return None
