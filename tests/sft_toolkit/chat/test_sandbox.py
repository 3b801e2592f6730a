"""Templates by strangers: none hangs, fills the memory, ends a run or differs from run to run."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sft_toolkit.chat import Renderer
from sft_toolkit.chat.template import ChatTemplate
from sft_toolkit.errors import RecordError, ToolkitError
from sft_toolkit.formats import parse_record

MakeFolder = Callable[..., Path]
HOSTILE = Path(__file__).parents[2] / "cases" / "hostile"
LOOP = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
PAIR = [{"role": "user", "content": "Frage"}, {"role": "assistant", "content": "Antwort"}]


def render(source: str) -> str:
    return ChatTemplate(source).render(PAIR, None, {})


@pytest.mark.parametrize(
    "source",
    [
        *((HOSTILE / f"template_{name}.jinja").read_text() for name in ("parentheses", "nested_ifs", "nested_fors")),
        "{{ " + "[" * 400 + "]" * 400 + " }}",
        "{{ " + "not " * 3_000 + "1 }}",
    ],
)
def test_a_template_that_nests_too_deeply_does_not_compile(source: str) -> None:
    with pytest.raises(ToolkitError, match="chat template") as fault:
        render(source)
    assert "compile" in fault.value.hint and len(fault.value.message) < 200


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ((HOSTILE / "template_big_constant.jinja").read_text(), "digits|bits"),
        ((HOSTILE / "template_long_loop.jinja").read_text(), "steps"),
        ("{{ 9 ** (9 ** 9) }}", "bits"),
        ("{{ (2 ** 15000) * (2 ** 15000) }}", "bits"),
        ("{{ 'x' * 10 ** 10 }}", "repeats"),
        ("{{ [0] * 10 ** 10 }}", "repeats"),
        ("{{ 'x'.center(10 ** 10) }}", "repeats"),
        ("{{ 'x'.zfill(99999999999) }}", "repeats"),
        ("{{ 'x' | center(10 ** 10) }}", "repeats"),
        ("{{ 'a\\nb' | indent(10 ** 10) }}", "repeats"),
        ("{{ '%9999999999d' % 5 }}", "width"),
        ("{{ '%*d' % (10 ** 10, 5) }}", "repeats"),
        ("{{ '%9999999999d' | format(5) }}", "width"),
        ("{{ '{:>9999999999}'.format(5) }}", "width"),
        ("{{ '{:{}}'.format(5, 10 ** 10) }}", "repeats"),
        ("{% set s = 'x' * 100000 %}{{ s.replace('x', s) }}", "repeats"),
        ("{% set s = 'x' * 100000 %}{{ s | replace('x', s) }}", "repeats"),
        ("{% for i in range(10 ** 9) %}{% endfor %}", "range|Range"),
        ("{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}", "without end"),
        (
            "{% macro m0() %}{% endmacro %}"
            + "".join(f"{{% macro m{n + 1}() %}}{{{{ m{n}() }}}}{{{{ m{n}() }}}}{{% endmacro %}}" for n in range(40))
            + "{{ m40() }}",
            "steps",
        ),
        ("{% set n = namespace(s='x' * 1000) %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}", "keeps"),
        ("{% set n = namespace(s='x' * 1000) %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor %}", "keeps"),
        ("{% set n = namespace(s=[0] * 99) %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}", "keeps"),
        ("{% set s = 'x' * 9999999 %}{% for i in range(9999) %}{{ s }}{% endfor %}", "writes"),
        ("{{ lipsum() }}", "lipsum"),
        ("{{ messages[0].content.upper }}", "address"),
        ("{{ messages | map(attribute='role') }}", "address"),
        ("{{ 'x' ~ raise_exception }}", "address"),
        ((HOSTILE / "template_half_pair.jinja").read_text().replace("'bad'", "'Frage'"), "surrogate"),
    ],
)
def test_a_template_that_takes_too_much_or_is_not_the_same_twice_refuses_the_record(source: str, said: str) -> None:
    begin = time.process_time()
    with pytest.raises(RecordError, match=said) as fault:
        render(LOOP + source)
    assert fault.value.reason == "template_error"
    assert time.process_time() - begin < 5


def test_a_filter_that_draws_is_not_there() -> None:
    with pytest.raises(ToolkitError, match="random"):
        render("{{ [1, 2] | random }}")


def test_half_a_pair_ends_no_run(make_folder: MakeFolder) -> None:
    source = (HOSTILE / "template_half_pair.jinja").read_text()
    renderer = Renderer.from_folder(make_folder(source))
    bad = parse_record({"id": "b", "messages": [{"role": "user", "content": "bad"}, PAIR[1]]})
    good = parse_record({"id": "g", "messages": PAIR})
    first, second = renderer.render_batch([bad, good])
    assert isinstance(first, RecordError) and first.reason == "template_error"
    assert not isinstance(second, RecordError)


def test_what_a_rendering_may_take_grows_with_what_it_is_given() -> None:
    source = "{% for m in messages %}{% for letter in m.content %}{{ letter }}{% endfor %}{% endfor %}"
    messages = [{"role": "user", "content": "äbc " * 100_000}]
    assert ChatTemplate(source).render(messages, None, {}) == messages[0]["content"]


def test_the_address_of_an_object_in_a_message_is_text_of_it() -> None:
    messages = [{"role": "user", "content": "<function f at 0x7f00>"}]
    assert "<function f at 0x7f00>" in ChatTemplate(LOOP).render(messages, None, {})
