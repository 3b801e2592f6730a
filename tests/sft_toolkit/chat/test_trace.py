"""Which characters each message wrote, for every way in which a template can go through its messages."""

from __future__ import annotations

from typing import Any

import pytest

from sft_toolkit.chat.span_trace import Traced
from sft_toolkit.chat.template import ChatTemplate
from sft_toolkit.errors import RecordError

MESSAGES = [
    {"role": "system", "content": "S"},
    {"role": "user", "content": "ja"},
    {"role": "assistant", "content": "ja"},
    {"role": "user", "content": "ja"},
    {"role": "assistant", "content": "nein"},
]
LINE = "{{ m.role[0] + ':' + m.content + ';' }}"


def trace(source: str, messages: list[dict[str, Any]] = MESSAGES) -> Traced:
    return ChatTemplate(source).trace(messages, None, {})


def said(traced: Traced, message: int) -> str:
    stretch = traced.of(message)
    return traced.text[stretch.begin : stretch.end]


@pytest.mark.parametrize(
    "source",
    [
        "{% for m in messages %}" + LINE + "{% endfor %}",
        "{% for m in messages[:1] %}" + LINE + "{% endfor %}{% for m in messages[1:] %}" + LINE + "{% endfor %}",
        "{% for m in messages[::-1] %}{% set x = m %}{% endfor %}{% for m in messages %}" + LINE + "{% endfor %}",
        "{% for m in messages %}" + LINE + "{% if m.role == 'user' %}{% continue %}{% endif %}{% endfor %}",
        "{% for m in messages %}" + LINE + "{% if loop.index == 5 %}{% break %}{% endif %}{% endfor %}",
        "{% for i in range(messages|length) %}{% set m = messages[i] %}" + LINE + "{% endfor %}",
        "{% macro line(m) %}" + LINE + "{% endmacro %}{% for x in messages %}{{ line(x) }}{% endfor %}",
        "{% macro all(ms) %}{% for m in ms %}" + LINE + "{% endfor %}{% endmacro %}{{ all(messages) }}",
        "{% macro next(ms) %}{% for m in ms[:1] %}" + LINE + "{% endfor %}{% if ms[1:] %}{{ next(ms[1:]) }}{% endif %}"
        "{% endmacro %}{{ next(messages) }}",
        "{% for m in messages recursive %}" + LINE + "{% endfor %}",
        "{% for role, ms in messages | groupby('role') %}{% endfor %}{% for m in messages %}" + LINE + "{% endfor %}",
        "{% for m in messages %}{% for later in messages[loop.index:] %}{% set x = later %}{% endfor %}" + LINE
        + "{% endfor %}",
        "{% for m in messages | selectattr('content') %}" + LINE + "{% endfor %}",
        "{% set out %}{% for m in messages %}" + LINE + "{% endfor %}{% endset %}{{ out }}",
        "{% for m in messages %}{% generation %}" + LINE + "{% endgeneration %}{% endfor %}",
    ],
)  # fmt: skip
def test_each_message_has_exactly_the_text_it_wrote(source: str) -> None:
    traced = trace(source)
    assert traced.text == "s:S;u:ja;a:ja;u:ja;a:nein;"
    assert [said(traced, index) for index in range(5)] == ["s:S;", "u:ja;", "a:ja;", "u:ja;", "a:nein;"]
    assert traced.of(2).begin == 9


def test_text_that_the_loop_writes_around_a_skipped_message_is_nobodys() -> None:
    traced = trace("{% for m in messages %}{% if m.role != 'system' %}" + LINE + "{% endif %}{% endfor %}")
    assert traced.stretches[0] == []
    with pytest.raises(RecordError, match="nowhere"):
        traced.of(0)


def test_a_message_inside_another_is_kept_apart() -> None:
    """As in Gemma 4: the results of a call are written where the call is, the tool messages themselves are skipped."""
    source = (
        "{% for m in messages %}{% if m.role == 'assistant' %}{{ 'call,' }}"
        "{% for i in range(loop.index, messages|length) %}{% set r = messages[i] %}{{ r.content }}{% endfor %}"
        "{{ ',end' }}{% elif m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}"
    )
    messages = [{"role": role, "content": role} for role in ("user", "assistant", "tool", "tool")]
    traced = trace(source, messages)
    stretch = traced.of(1)
    assert traced.text == "usercall,tooltool,end"
    assert [traced.text[inner.begin : inner.end] for inner in stretch.inner] == ["tool", "tool"]
    assert [inner.message for inner in stretch.inner] == [2, 3]


def test_a_message_at_two_places_is_refused() -> None:
    twice = "{% for m in messages %}" + LINE + "{% endfor %}"
    with pytest.raises(RecordError, match="at several places") as caught:
        trace(twice + twice).of(2)
    assert caught.value.reason == "message_not_traced"


def test_a_template_that_measures_its_own_output_is_refused() -> None:
    """The marks would be counted: the text is compared with a rendering without them."""
    source = "{% set out %}{% for m in messages %}" + LINE + "{% endfor %}{% endset %}{{ out | length }}{{ out }}"
    with pytest.raises(RecordError) as caught:
        trace(source)
    assert caught.value.reason == "untraceable_template"


def test_marks_in_a_message_are_not_taken_for_ours() -> None:
    forged = trace("{% for m in messages %}" + LINE + "{% endfor %}")
    assert forged.text.isascii()
    for mark in ("\U0010fffd(1;", "\U0010fffd)2;"):
        with pytest.raises(RecordError) as caught:
            trace("{% for m in messages %}" + LINE + "{% endfor %}", [{"role": "user", "content": mark}])
        assert caught.value.reason == "untraceable_template"


def test_equal_messages_are_told_apart_by_identity() -> None:
    message = {"role": "assistant", "content": "ja"}
    traced = trace("{% for m in messages %}" + LINE + "{% endfor %}", [dict(message), dict(message)])
    assert [traced.of(index).begin for index in (0, 1)] == [0, 5]


def test_generation_blocks_are_reported_and_keep_their_scope() -> None:
    source = (
        "{% for m in messages %}{% if m.role == 'assistant' %}{% set x = 1 %}{% generation %}{% set x = 2 %}"
        "{{ m.content }}{% endgeneration %}{{ x }}{% else %}{{ m.content }}{% endif %}{% endfor %}"
    )
    traced = trace(source)
    assert traced.text == "Sjaja1janein1"
    assert [traced.text[begin:end] for begin, end in traced.generated] == ["ja", "nein"]
