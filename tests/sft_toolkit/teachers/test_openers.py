"""Openers: the packaged lists, a user's own, and the draw."""

from collections import Counter

import pytest

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.teachers.openers import packaged_openers, parse_openers


@pytest.mark.parametrize("domain", ["maths", "code", "science", "tools", "writing", "general"])
def test_every_packaged_domain_has_twelve_or_more_distinct_phrases(domain):
    phrases = packaged_openers("de").phrases[domain]
    assert len(set(phrases)) == len(phrases) >= 12
    assert all(phrase == phrase.strip() for phrase in phrases)


def test_a_draw_hangs_on_seed_record_and_sample_alone_and_reaches_every_phrase():
    openers = packaged_openers("de")
    drawn = [openers.draw(7, f"p{index}", 0, "math") for index in range(1000)]
    assert drawn == [openers.draw(7, f"p{index}", 0, "maths") for index in range(1000)]
    assert set(drawn) == set(openers.phrases["maths"])
    assert max(Counter(drawn).values()) < 2 * 1000 / len(openers.phrases["maths"])
    assert drawn != [openers.draw(8, f"p{index}", 0, "math") for index in range(1000)]
    assert drawn != [openers.draw(7, f"p{index}", 1, "math") for index in range(1000)]


def test_the_draw_is_fixed_for_good():
    openers = parse_openers("a\nb\nc\nd\n", "list")
    assert "".join(openers.draw(0, f"p{index}", 0, None) for index in range(12)) == "bcbbdbdbbacb"


def test_an_unknown_domain_takes_from_general():
    openers = parse_openers("Los:\n[code]\nDie Funktion\n", "list")
    assert openers.draw(0, "p", 0, "cooking") == "Los:"
    assert openers.draw(0, "p", 0, "Coding") == "Die Funktion"


def test_a_list_without_general_phrases_is_refused():
    with pytest.raises(ToolkitError, match="no phrases for"):
        parse_openers("# nothing\n[code]\nDie Funktion\n", "list")


def test_a_language_without_packaged_openers_says_what_to_do():
    with pytest.raises(UsageError, match="no openers for fr"):
        packaged_openers("fr")
