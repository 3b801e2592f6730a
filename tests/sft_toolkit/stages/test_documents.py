"""Which documents a record becomes: labels that differ, reasoning that history drops, and what each costs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.chat import Renderer
from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError
from sft_toolkit.formats import parse_record
from sft_toolkit.stage import Outcome
from sft_toolkit.stages.documents import Document, DocumentRules

DROPS_HISTORY = """{{ '[' ~ (effort or '') ~ ']' }}{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}
{%- if m.reasoning and loop.last %}{{ '<think>' + m.reasoning + '</think>' }}{% endif %}
{{- m.content + '<|im_end|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
SHOWS_NONE = DROPS_HISTORY.replace("{{ '[' ~ (effort or '') ~ ']' }}", "").replace(" and loop.last", "")


@pytest.fixture(scope="module")
def keeps(sample_data: Path) -> Renderer:
    return Renderer.from_folder(sample_data / "tokenizer")


@pytest.fixture(scope="module")
def drops(sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Renderer:
    return renderer_of(DROPS_HISTORY, sample_data, tmp_path_factory)


@pytest.fixture(scope="module")
def shows_none(sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Renderer:
    return renderer_of(SHOWS_NONE, sample_data, tmp_path_factory)


def renderer_of(template: str, sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Renderer:
    path = tmp_path_factory.mktemp("template") / "template.jinja"
    path.write_text(template)
    return Renderer.from_folder(sample_data / "tokenizer", path)


def record(*efforts: str | None, masked: tuple[int, ...] = (), **more: Any) -> Conversation:
    """One exchange per effort, with reasoning unless that is none; `masked` exchanges carry no loss."""
    messages: list[dict[str, Any]] = []
    for number, effort in enumerate(efforts):
        messages.append({"role": "user", "content": f"Frage {number}", **({"effort": effort} if effort else {})})
        thought = {} if effort == "none" else {"reasoning": f"Gedanke {number}."}
        weight = {"weight": 0} if number in masked else {}
        messages.append({"role": "assistant", "content": f"Antwort {number}", **thought, **weight})
    return parse_record({"id": "r", "messages": messages, **more})


def documents(rules: DocumentRules, conversation: Conversation) -> tuple[list[Document], Counter[str]]:
    outcome = Outcome(quarantine=False)
    found = rules.documents(conversation, outcome)
    return found, outcome.counters.notes


def outline(found: list[Document]) -> list[tuple[str, str | None, str]]:
    """Id, effort, and a letter a message: q, a (an answer with loss), h (one without); upper case where it reasons."""
    letters = []
    for document in found:
        marks = ("q" if m.role == "user" else "a" if m.trained else "h" for m in document.conversation.messages)
        reasoned = (bool(message.reasoning) for message in document.conversation.messages)
        letters.append("".join(mark.upper() if r else mark for mark, r in zip(marks, reasoned, strict=True)))
    return [(d.conversation.id, d.conversation.effort, said) for d, said in zip(found, letters, strict=True)]


@pytest.mark.parametrize(
    ("efforts", "expected"),
    [
        (("low",), [("r", "low", "qA")]),
        (("low", "low"), [("r", "low", "qAqA")]),
        (("low", "high"), [("r#0", "low", "qA"), ("r#1", "high", "qHqA")]),
        (("none", "high"), [("r#0", "none", "qa"), ("r#1", "high", "qhqA")]),
        (("high", "none"), [("r#0", "high", "qA"), ("r#1", "none", "qHqa")]),
        (
            ("low", "low", "high", "high", "low"),
            [("r#0", "low", "qAqA"), ("r#2", "high", "qHqHqAqA"), ("r#4", "low", "qHqHqHqHqA")],
        ),
        (("low", None, "low"), [("r#0", "low", "qA"), ("r#1", None, "qHqA"), ("r#2", "low", "qHqHqA")]),
    ],
)
def test_each_run_of_exchanges_of_one_label_becomes_a_document(
    efforts: tuple[str | None, ...], expected: list[tuple[str, str | None, str]], keeps: Renderer
) -> None:
    found, notes = documents(DocumentRules(keeps), record(*efforts))
    assert outline(found) == expected
    assert notes["effort_split"] == (len(expected) > 1)
    assert [document.repeated for document in found] == [True] * (len(found) - 1) + [False]


def test_exchanges_without_loss_split_nothing_and_the_prompt_states_what_is_trained(keeps: Renderer) -> None:
    assert outline(documents(DocumentRules(keeps), record("low", "high", "low", masked=(1,)))[0]) == [
        ("r", "low", "qAqHqA")
    ]
    assert outline(documents(DocumentRules(keeps), record("low", "high", masked=(1,)))[0]) == [("r", "low", "qAqH")]
    assert outline(documents(DocumentRules(keeps), record("low", "high", masked=(0, 1)))[0]) == [("r", None, "qHqH")]


def test_a_greeting_belongs_to_the_first_document_and_a_follow_up_question_to_its_exchange(keeps: Renderer) -> None:
    both = record("low", "high").to_record()["messages"]
    messages = [
        {"role": "assistant", "content": "Hallo"},
        both[0],
        {"role": "user", "content": "Noch etwas"},
        *both[1:],
    ]
    found, _ = documents(DocumentRules(keeps), parse_record({"id": "r", "messages": messages}))
    assert outline(found) == [("r#0", "low", "aqqA"), ("r#1", "high", "hqqHqA")]


def test_the_effort_of_a_record_without_labels_is_that_of_all_its_exchanges(keeps: Renderer) -> None:
    assert outline(documents(DocumentRules(keeps), record(None, None, effort="low"))[0]) == [("r", "low", "qAqA")]
    found, notes = documents(DocumentRules(keeps), record("high", "high", effort="low"))
    assert outline(found) == [("r", "high", "qAqA")]
    assert notes == {"effort_of_record_differs": 1}


def test_masking_keeps_one_document_and_trains_what_agrees_with_the_last_exchange(keeps: Renderer) -> None:
    rules = DocumentRules(keeps, effort_mismatch="mask")
    found, notes = documents(rules, record("low", "high", "low", "high"))
    assert outline(found) == [("r", "high", "qHqAqHqA")]
    assert notes == {"effort_masked": 2}


def test_a_mismatch_can_be_an_error_that_lists_the_labels(keeps: Renderer) -> None:
    rules = DocumentRules(keeps, effort_mismatch="error")
    assert len(documents(rules, record("low", "low"))[0]) == 1
    with pytest.raises(RecordError, match=r"different efforts \(0: low, 1: high, 2: no label\)") as fault:
        documents(rules, record("low", "high", None))
    assert fault.value.reason == "effort_mismatch"


def test_labels_that_the_template_does_not_show_split_nothing(shows_none: Renderer) -> None:
    assert outline(documents(DocumentRules(shows_none), record("low", "high"))[0]) == [("r", "high", "qAqA")]


def test_reasoning_that_the_template_drops_from_history_is_under_no_sentence(drops: Renderer) -> None:
    found, notes = documents(DocumentRules(drops), record("low", "high", "none"))
    assert outline(found) == [("r", "none", "qAqAqa")]
    assert notes == {}


def test_history_can_be_dropped_and_what_it_would_have_trained_gets_a_document(keeps: Renderer) -> None:
    rules = DocumentRules(keeps, history="drop")
    found, notes = documents(rules, record("high", "high", "high"))
    assert outline(found) == [("r#0", "high", "qA"), ("r#1", "high", "qhqA"), ("r#2", "high", "qhqhqA")]
    assert notes == {"history_split": 1, "history_dropped": 2}
    assert outline(documents(rules, record("none", "none"))[0]) == [("r", "none", "qaqa")]
    masked = DocumentRules(keeps, history="drop", effort_mismatch="mask")
    found, notes = documents(masked, record("high", "high", "low", "high"))
    assert outline(found) == [("r", "high", "qhqhqhqA")]
    assert notes == {"history_masked": 2, "effort_masked": 1, "history_dropped": 1}


def test_both_drops_history_by_a_draw_of_seed_and_id(keeps: Renderer) -> None:
    named = [parse_record({**record("high", "high").to_record(), "id": f"r{number}"}) for number in range(400)]

    def dropped(seed: int) -> list[bool]:
        rules = DocumentRules(keeps, history="both", seed=seed)
        return [documents(rules, each)[1]["history_dropped"] == 1 for each in named]

    assert dropped(0) == dropped(0) != dropped(1)
    assert 160 < sum(dropped(0)) < 240
    found, notes = documents(DocumentRules(keeps, history="both"), named[dropped(0).index(False)])
    assert len(found) == 1 and notes == {"history_kept": 1}


def test_per_exchange_drops_history_too(keeps: Renderer) -> None:
    rules = DocumentRules(keeps, history="drop", per_exchange=True)
    found, notes = documents(rules, record("low", "low"))
    assert outline(found) == [("r#0", "low", "qA"), ("r#1", "low", "qhqA")]
    assert notes == {"exchanges": 2, "history_dropped": 1}


@pytest.mark.parametrize("mismatch", ["split", "mask", "error"])
@pytest.mark.parametrize("name", ["keeps", "drops", "shows_none"])
def test_trained_reasoning_under_none_is_an_error_of_the_record(
    mismatch: str, name: str, request: pytest.FixtureRequest
) -> None:
    rules = DocumentRules(request.getfixturevalue(name), effort_mismatch=mismatch)
    wrong = record("low", "low")
    wrong.messages[0].effort = "none"
    with pytest.raises(RecordError, match="exchange 0 is labelled none and trains reasoning") as fault:
        documents(rules, wrong)
    assert fault.value.reason == "reasoning_under_none"
    wrong.messages[1].weight = 0
    assert len(documents(rules, wrong)[0]) == 1
    with pytest.raises(RecordError, match="the record is labelled none"):
        answer = {"role": "assistant", "content": "Hallo", "reasoning": "Gruß"}
        documents(rules, parse_record({"id": "r", "effort": "none", "messages": [answer]}))
    blank = record("none")
    blank.messages[1].reasoning = " \n"
    assert len(documents(rules, blank)[0]) == 1


def test_only_the_final_message_counts_where_it_alone_is_trained(keeps: Renderer) -> None:
    rules = DocumentRules(keeps, last=True)
    assert outline(documents(rules, record("low", "high"))[0]) == [("r", "high", "qAqA")]
    wrong = record("low", "high")
    wrong.messages[0].effort = "none"
    assert len(documents(rules, wrong)[0]) == 1
