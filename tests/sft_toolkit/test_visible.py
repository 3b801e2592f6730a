"""Text made fit to be shown."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.visible import one_line, visible


def test_control_characters_become_their_pictures() -> None:
    assert visible("\x00\x07\x1b[31m\r\x7f") == "␀␇␛[31m␍␡"


def test_what_turns_or_hides_text_becomes_its_code_point() -> None:
    assert visible("a\u202eb\u200bc\x9bd\U000e0041") == "a⟨U+202E⟩b⟨U+200B⟩c⟨U+009B⟩d⟨U+E0041⟩"


def test_line_breaks_tabs_and_joined_emoji_stay() -> None:
    text = "a\tb\n👩\u200d🚀 Grüße नमस्ते"
    assert visible(text) == text


def test_one_line_runs_white_space_together() -> None:
    assert one_line(" a\n\n\tb\x1b ") == "a b␛"


@given(st.text(st.characters(codec=None), max_size=50))
def test_nothing_shown_is_a_control_character_and_all_of_it_can_be_encoded(text: str) -> None:
    shown = visible(text)
    shown.encode()
    assert all(letter in "\n\t" or unicodedata.category(letter) != "Cc" for letter in shown)


@given(st.text(st.characters(categories=("L", "N", "P", "S", "Zs")), max_size=50))
def test_letters_and_signs_are_left_alone(text: str) -> None:
    assert visible(text) == text
