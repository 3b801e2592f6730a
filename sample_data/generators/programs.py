"""Small Python functions with one fault each. Code review and agent runs take them; what they return is really run."""

from __future__ import annotations

import random
from collections.abc import Callable

from generators.program import Program
from generators.programs_of_lists import binary_search, highest, mean, median, merge_intervals, moving_sum, remove_all
from generators.programs_of_values import count_words, leap_year, palindrome, price_text, roman

MAKERS: tuple[Callable[[random.Random], Program], ...] = (
    mean,
    moving_sum,
    leap_year,
    count_words,
    binary_search,
    remove_all,
    highest,
    price_text,
    median,
    palindrome,
    roman,
    merge_intervals,
)
