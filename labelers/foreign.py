"""Is a stretch of words in another language? Two witnesses must agree: fastText's lid.176 and closed-class words.

lid.176 alone takes about ten of a thousand plain German sentences amiss ("Also, was will man hier?" is English to it),
and so the false drift of a trace would grow with its length. A sentence that is English holds English articles,
pronouns and auxiliaries and hardly any German ones; a name, a title or a list of terms holds neither. So:

* words of the own language that the other has not (`own`) outweigh half as many of the other (`other`);
* two words of the other and lid.176's verdict make a stretch foreign; of short ones (under 20 letters, which lid.176
  cannot judge) half of the words must be such;
* with one or none, lid.176 must be sure, whatever the case of the letters, and none may be a word of the own language;
* a stretch most of whose words are capitalised is a name or a title, unless it is a whole sentence with its full stop.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property

from sft_toolkit.labelers.function_words import LISTED, function_words
from sft_toolkit.labelers.identifier import accepted_labels, identify

MIN_LETTERS = 20
MIN_PROBABILITY = 0.5

_SURE, _SURE_OF_ONE, _SURE_OF_CLAUSE, _SURE_WITHOUT_LIST = 0.9, 0.65, 0.95, 0.8
_LEAST, _LEAST_IN_CLAUSE = 4, 5  # words
_LEAST_IN_OTHER_SCRIPT, _FEW_LETTERS = 3, 12
_FIRST_IDEOGRAPH, _LETTERS_AN_IDEOGRAPH = "\u2e80", 3
_APOSTROPHE = re.compile("['’]")
_LATIN = re.compile(r"[A-Za-zÀ-ɏḀ-ỿ]")
# Articles and pronouns that lose their vowel: "l'homme", "dell'acqua".
_ELIDED = {
    language: frozenset(words.split())
    for language, words in {
        "fr": "l d j c n s qu m t jusqu lorsqu puisqu",
        "it": "l un d dell all dall nell sull quell c s",
    }.items()
}
# What names hold beside capitalised words: "Juan de la Cruz", "Ludwig van Beethoven".
_NAME_PARTICLES = """
    de la del las los el di da do dos das della du des le van der den het von of the and y e
    a an or for in on at to with from by un une une und et
"""
_IN_NAMES = frozenset(_NAME_PARTICLES.split())
# Whose closed-class words also are those of a dialect, or nearly: Low German "Dat is prima" is no Dutch.
_NEAR = {"de": ("nl",), "nl": ("de",), "es": ("pt", "it"), "pt": ("es", "it"), "it": ("es", "pt")}
_ONE_LETTER = frozenset(["i", "a", "y", "e", "o", "à", "è", "é"])
_OTHER_SCRIPTS = """
    am ar as be bg bn ckb cv dv dz el fa gu he hi hy ja ka kk km kn ko ky lo mk ml mn mr my ne or pa ps ru sa sd si ta
    te tg th ti tt ug uk ur yi zh
"""
_NOT_LATIN = frozenset(_OTHER_SCRIPTS.split())
_OWN_LETTERS = {
    "de": "äöüß",
    "en": "",
    "fr": "àâæçéèêëîïôœùûü",
    "es": "áéíñóúü",
    "it": "àèéìòù",
    "pt": "áâãàçéêíóôõú",
    "nl": "éëïóöü",
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """How many closed-class words of `language` a stretch holds (`other`), and how many of its own language's."""

    language: str
    other: int
    own: int


def letters(words: list[str]) -> int:
    """Letters of the words; an ideograph counts as three."""
    return sum(len(word) if word[0] < _FIRST_IDEOGRAPH else len(word) * _LETTERS_AN_IDEOGRAPH for word in words)


def evidence(words: list[str], own: str) -> Evidence:
    """The closed-class words of the language, other than `own`, for which the words speak most.

    Words with a letter that one language writes and the other does not speak for it, too, unless they are capitalised.
    """
    lower = {word.lower() for word in words if len(word) > 1 or word.islower() or word == "I"}
    elided = {_APOSTROPHE.split(word)[0] for word in lower if _APOSTROPHE.search(word)}
    uncapitalised = [word for word in words if word[0].islower() and not word.isascii()]
    lower &= _of_any_list()
    if not lower and not elided and not uncapitalised:
        return Evidence(next(other for other in LISTED if other != own), 0, 0)
    found = []
    for other in LISTED:
        if other != own:
            theirs = _count(lower, elided, other, own) + _with_letters(uncapitalised, other, own)
            ours = _count(lower, elided, own, other) + _with_letters(uncapitalised, own, other)
            found.append(Evidence(other, theirs, ours))
    return max(found, key=lambda each: (each.other - each.own, each.other))


@dataclass(frozen=True, slots=True)
class Foreign:
    """A stretch in another language, lid.176's probability of it, and whether nothing but that language explains it."""

    language: str
    probability: float
    is_clear: bool


def foreign_language(words: list[str], own: str, is_sentence: bool = True, is_ended: bool = False) -> Foreign | None:
    """The other language that the words are in, None where they may be in `own`.

    `is_sentence`: they are a whole sentence, and not a clause of one or a window. `is_ended`: a full stop follows.
    """
    if sum(len(word) == 1 and word.lower() not in _ONE_LETTER for word in words) * 3 > len(words):
        return None
    reading = _Reading(words, own, is_sentence, is_ended)
    return Foreign(reading.language, reading.probability, reading.is_clear()) if reading.is_foreign() else None


class _Reading:
    """What both witnesses say of a stretch. lid.176 is asked twice, for it takes capitals for another language's."""

    def __init__(self, words: list[str], own: str, is_sentence: bool, is_ended: bool) -> None:
        self.words, self.own, self.is_sentence, self.is_ended = words, own, is_sentence, is_ended
        self.found = evidence(words, own)
        self.other, self.against = self.found.other, self.found.own
        self.accepted = accepted_labels(own)
        self.is_in_other_script = own not in _NOT_LATIN and not any(_LATIN.search(word) for word in words)
        self.is_telling = own in LISTED or own in _NOT_LATIN
        self.own_words = sum(word.lower() in function_words(own) for word in words)

    @cached_property
    def verdicts(self) -> tuple[tuple[str, float], tuple[str, float]]:
        """lid.176's language and certainty of the words as they are written and in lower case."""
        text = " ".join(self.words)
        in_lower_case = identify(text.lower())
        is_shouted = all(word[0].isupper() for word in self.words)
        return (in_lower_case if is_shouted else identify(text), in_lower_case)

    @property
    def label(self) -> str | None:
        """The language on which both verdicts agree, if it is another."""
        (label, _), (in_lower_case, _) = self.verdicts
        return label if label == in_lower_case and label not in self.accepted else None

    @property
    def sure(self) -> float:
        return min(sure for _, sure in self.verdicts) if self.label else 0.0

    @property
    def language(self) -> str:
        label = self.verdicts[0][0]
        is_listed = self.other > 0 and (label in LISTED or label in self.accepted)
        return self.found.language if is_listed else label

    @property
    def probability(self) -> float:
        return self.verdicts[0][1]

    def is_clear(self) -> bool:
        """Whether several closed-class words say so, or lid.176 is sure and no word of the own language denies it."""
        if self.is_in_other_script or (self.other >= 3 and not self.against):
            return True
        if self.other >= 2 and not self.against:
            return self.is_ended or self.sure >= _SURE_WITHOUT_LIST
        if self.label not in LISTED:
            return self.sure >= _SURE_OF_CLAUSE and len(self.words) > _LEAST
        return self.sure >= _SURE and len(self.words) > _LEAST and not self.own_words

    def is_foreign(self) -> bool:
        if self.is_in_other_script:
            is_long = len(self.words) >= _LEAST_IN_OTHER_SCRIPT and letters(self.words) >= _FEW_LETTERS
            return self.language not in self.accepted and (is_long or letters(self.words) >= MIN_LETTERS)
        if self._is_name():
            return False
        if self.against and self.other <= 2 * self.against:
            return self._is_unlisted()
        if self.is_telling and self.other >= 3 and not self.against and 2 * self.other >= len(self.words):
            return True
        if any(label in self.accepted and sure >= MIN_PROBABILITY for label, sure in self.verdicts):
            return False
        if self.found.language in _NEAR.get(self.own, ()) and self.sure < _SURE_OF_ONE:
            return False
        return self._by_sentence() if letters(self.words) >= MIN_LETTERS else self._by_few_letters()

    def _by_few_letters(self) -> bool:
        """Half of the words are closed-class, or one is and lid.176 is sure of it."""
        count = len(self.words)
        is_whole = self.is_sentence and (count > 2 or (count == 2 and self.is_ended))
        if not is_whole or not self.is_telling or not self.other:
            return False
        if self.other >= 2:
            return 2 * self.other >= count
        return self.sure >= _SURE and self.label == self.found.language

    def _by_sentence(self) -> bool:
        if any(label in self.accepted for label, _ in self.verdicts):
            return False
        if self.other >= 2 and self.is_telling:
            return self.other >= 3 or max(sure for _, sure in self.verdicts) >= MIN_PROBABILITY
        if self.other == 1 and self.is_telling and self.label == self.found.language:
            if self.is_sentence:
                return self.sure >= _SURE_OF_ONE
            return self.sure >= _SURE_OF_CLAUSE and len(self.words) >= _LEAST_IN_CLAUSE and not self.own_words
        if self.label in LISTED:
            return self.is_sentence and self.sure >= _SURE and len(self.words) >= _LEAST and not self.own_words
        return self._is_unlisted()

    def _is_unlisted(self) -> bool:
        """Whether the stretch is in a language without a list here, whose words may look like some of any list."""
        if not self.is_sentence or len(self.words) < _LEAST or 5 * self.own_words > len(self.words):
            return False
        if self.label is None or self.label in LISTED:
            return False
        return self.sure >= (_SURE if self.own_words else _SURE_WITHOUT_LIST)

    def _is_name(self) -> bool:
        """Whether most words are capitalised, or all but the particles of names, and it is no sentence that ends."""
        lower = [word for word in self.words if not word[0].isupper() and len(word) > 1]
        is_title = len(lower) * 2 < len(self.words) or (
            len(lower) < len(self.words) and all(word in _IN_NAMES for word in lower)
        )
        is_sentence = self.is_ended and len(self.words) >= _LEAST and self._says_something()
        is_in_capitals = all(word.isupper() for word in self.words) and len(self.words) > _LEAST
        return is_title and not is_sentence and not (is_in_capitals and (self.is_ended or self.other >= 2))

    def _says_something(self) -> bool:
        """Whether a word like "is", "we" or "not" is among the closed-class ones, which titles do without."""
        lower = {word.lower() for word in self.words}
        telling = function_words(self.found.language) - function_words(self.own) - _IN_NAMES
        return self.other >= 2 and not telling.isdisjoint(lower)


@cache
def _of_any_list() -> frozenset[str]:
    return frozenset().union(*map(function_words, LISTED))


def _count(lower: set[str], elided: set[str], language: str, against: str) -> int:
    """Different words of `language` that are none of `against`; those of one letter only beside others."""
    longer, single = _exclusive(language, against)
    count = len(lower & longer) + len(elided & _ELIDED[language] if elided and language in _ELIDED else ())
    return count + len(lower & single) if count else 0


@cache
def _exclusive(language: str, against: str) -> tuple[frozenset[str], frozenset[str]]:
    """The closed-class words of `language` that are none of `against`: longer ones, and those of one letter."""
    words = function_words(language) - function_words(against)
    single = frozenset(word for word in words if len(word) == 1)
    return words - single, single


def _with_letters(words: list[str], language: str, against: str) -> int:
    """Words with a letter that `language` writes and `against`, a language with a list, does not."""
    if not words or against not in _OWN_LETTERS:
        return 0
    only = set(_OWN_LETTERS.get(language, "")) - set(_OWN_LETTERS[against])
    return sum(not only.isdisjoint(word) for word in words)
