"""The Jinja that chat templates run in."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sft_toolkit.chat.template import ChatTemplate, tojson, with_written_numbers
from sft_toolkit.errors import RecordError, ToolkitError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
STYLES: list[dict[str, Any]] = [
    {},
    {"indent": 4},
    {"ensure_ascii": True},
    {"separators": (",", ":")},
    {"sort_keys": True, "indent": 2},
]


def render(source: str, **variables: Any) -> str:
    return ChatTemplate(source).render([], None, variables)


@given(JSON, st.sampled_from(STYLES))
def test_tojson_is_json_dumps_without_ascii_escapes(value: Any, style: dict[str, Any]) -> None:
    assert tojson(value, **style) == json.dumps(value, **{"ensure_ascii": False, **style})


@given(st.decimals(allow_nan=False, allow_infinity=False), st.text(), st.sampled_from(STYLES))
def test_a_number_keeps_its_digits_wherever_it_stands(number: Decimal, text: str, style: dict[str, Any]) -> None:
    written = tojson(with_written_numbers({"a": [number, text], "b": number}), **style)
    assert json.loads(written, parse_float=str, parse_int=str) == {"a": [str(number), text], "b": str(number)}


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ value | tojson }}", '{"betrag": 16.20}'),
        ("{{ value.betrag }}", "16.20"),
        ("{{ value }}", "{'betrag': 16.20}"),
        ("{{ value.betrag | string + '!' }}", "16.20!"),
        ("{{ value.betrag is float and value.betrag is number }}", "True"),
        ("{{ value.betrag * 2 }}", "32.4"),
    ],
)
def test_the_bakery_pays_16_20_in_whatever_way_a_template_writes_numbers(source: str, text: str) -> None:
    assert render(source, value=with_written_numbers({"betrag": Decimal("16.20")})) == text


def test_what_json_does_not_know_is_the_templates_error() -> None:
    with pytest.raises(RecordError, match="not JSON serializable"):
        render("{{ nothing | tojson }}")


def test_blocks_are_trimmed_as_transformers_trims_them() -> None:
    assert render("a\n  {% if true %}\nb\n  {% endif %}\nc") == "a\nb\nc"


def test_the_date_is_the_one_that_was_chosen() -> None:
    template = ChatTemplate("{{ strftime_now('%d %b %Y') }}", today=date(2024, 7, 26))
    assert template.render([], None, {}) == "26 Jul 2024"
    assert template.asks_for_date


def test_raise_exception_becomes_an_error_of_the_record() -> None:
    with pytest.raises(RecordError, match="no cats") as caught:
        render("{{ raise_exception('no cats') }}")
    assert caught.value.reason == "template_error"


@pytest.mark.parametrize("source", ["{{ missing.attribute }}", "{{ 'a' + 1 }}", "{{ 1 / 0 }}", "{{ ''.x.y }}"])
def test_whatever_a_template_does_wrong_is_an_error_of_the_record(source: str) -> None:
    with pytest.raises(RecordError) as caught:
        render(source)
    assert caught.value.reason == "template_error"


def test_a_template_that_does_not_compile_names_the_line() -> None:
    with pytest.raises(ToolkitError, match=r"chat template \(line 2\)"):
        ChatTemplate("{% if true %}\n{% endfor %}")


@pytest.mark.parametrize(
    "source",
    ["{{ messages.__class__.__mro__ }}", "{{ messages.append(1) }}", "{{ ''.__class__ }}{{ ''.format.__self__ }}"],
)
def test_the_sandbox_holds(source: str) -> None:
    try:
        assert render(source) == ""
    except RecordError as error:
        assert error.reason == "template_error"
