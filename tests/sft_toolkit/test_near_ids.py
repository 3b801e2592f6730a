"""Ids that a mistyped one may have meant."""

from __future__ import annotations

from sft_toolkit.near_ids import NearIds


def hint(wanted: str, ids: list[str]) -> str:
    near = NearIds(wanted)
    for identity in ids:
        near.add(identity)
    return near.hint()


def test_the_most_alike_come_first_and_no_more_than_three() -> None:
    ids = [f"maths-{number}" for number in range(2000)]
    assert hint("maths-17x", ids) == "near it: maths-17, maths-170, maths-171"


def test_case_and_a_letter_amid_are_forgiven() -> None:
    assert hint("Airline_12", ["hotel-7", "airline-12"]) == "near it: airline-12"


def test_where_none_is_alike_one_shows_what_ids_look_like() -> None:
    assert hint("zzz", ["airline-12"]) == "an id there is airline-12"


def test_nothing_is_near_in_an_empty_input() -> None:
    assert hint("a", []) == "it holds no records"
