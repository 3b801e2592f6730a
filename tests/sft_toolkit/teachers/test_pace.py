"""The pace of asking: bounded, halved by complaints, together patient, and not for ever."""

import asyncio
import time

import pytest

from sft_toolkit.errors import TryAgain
from sft_toolkit.teachers.pace import Pace, Patience


def test_the_window_doubles_per_round_until_the_first_complaint_then_grows_by_one_per_round():
    async def run():
        pace = Pace(64, Patience(backoff=0.0))
        sizes = [pace.window]
        for _ in range(3):
            for _ in range(sizes[-1]):
                pace.answered()
            sizes.append(pace.window)
        pace.refused_for_now("slow down", None)
        sizes.append(pace.window)
        for _ in range(17):
            pace.answered()
        return [*sizes, pace.window]

    assert asyncio.run(run()) == [4, 8, 16, 32, 16, 17]


def test_the_window_never_exceeds_its_bound():
    async def run():
        pace = Pace(6, Patience())
        for _ in range(100):
            pace.answered()
        return pace.window

    assert asyncio.run(run()) == 6


def test_no_more_questions_are_under_way_than_the_window_holds():
    async def run():
        pace, seen = Pace(8, Patience()), []

        async def question():
            async with pace.turn():
                seen.append(pace.under_way <= pace.window)
                await asyncio.sleep(0.001)
            pace.answered()

        await asyncio.gather(*(question() for _ in range(100)))
        return seen

    assert all(asyncio.run(run()))


def test_a_pause_holds_for_everyone_as_long_as_the_server_asked():
    async def run():
        pace = Pace(8, Patience())
        pace.refused_for_now("slow down", 0.3)
        begun = time.monotonic()
        async with pace.turn():
            return time.monotonic() - begun

    assert asyncio.run(run()) >= 0.29


def test_complaints_of_one_moment_halve_the_window_once():
    async def run():
        pace = Pace(64, Patience())
        for _ in range(60):
            pace.answered()
        for _ in range(10):
            pace.refused_for_now("slow down", 0.5)
        return pace.window

    assert asyncio.run(run()) == 32


def test_after_twelve_setbacks_in_a_row_one_question_at_a_time_is_let_through_until_one_is_answered():
    async def run():
        pace = Pace(8, Patience(backoff=0.0))
        sizes = []
        for _ in range(12):
            pace.failed("500")
            sizes.append(pace.window)
        pace.answered()
        return sizes, pace.window

    sizes, after = asyncio.run(run())
    assert sizes[:11] == [4] * 11
    assert sizes[11] == 1
    assert after > 1


def test_trouble_without_an_answer_ends_in_try_again():
    async def run():
        pace = Pace(8, Patience(give_up=0.05))
        pace.failed("HTTP 500")
        await asyncio.sleep(0.1)
        pace.failed("HTTP 500")

    with pytest.raises(TryAgain, match="has not answered"):
        asyncio.run(run())


def test_an_answer_ends_the_trouble():
    async def run():
        pace = Pace(8, Patience(give_up=0.05))
        pace.failed("HTTP 500")
        await asyncio.sleep(0.1)
        pace.answered()
        pace.failed("HTTP 500")

    asyncio.run(run())


def test_a_server_that_wants_to_be_left_alone_for_long_is_taken_at_its_word():
    async def run():
        Pace(8, Patience(give_up=60)).refused_for_now("quota", 3600)

    with pytest.raises(TryAgain, match="left alone for 3600 s"):
        asyncio.run(run())


def test_delays_double_with_jitter_up_to_the_longest():
    patience = Patience(backoff=1, longest=8)
    for setbacks, base in [(1, 1), (2, 2), (3, 4), (4, 8), (5, 8), (100, 8)]:
        drawn = [patience.delay(setbacks) for _ in range(50)]
        assert base / 2 <= min(drawn) <= max(drawn) <= base
        assert len(set(drawn)) > 1
