"""Stretches inside a turn that carry no loss: exact in characters and tokens, the same after every stage."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.chat import Renderer
from sft_toolkit.errors import RecordError
from sft_toolkit.formats import parse_record
from tests.conftest import RunCli
from tests.sft_toolkit.chat.test_parity import template_names

MakeFolder = Callable[..., Path]
CONTENT = "Der Himmel ist grün. Nein, blau. Grün war falsch: grün."
WRONG = "ist grün."
REASONING = "Erst raten. Dann prüfen."


def record(spans: Any, content: Any = CONTENT, **more: Any) -> dict[str, Any]:
    answer = {"role": "assistant", "content": content, "loss_spans": spans, **more}
    return {"id": "r", "messages": [{"role": "user", "content": "Farbe?"}, answer]}


def stretch(part: str, whole: str = CONTENT, **more: Any) -> dict[str, Any]:
    begin = whole.index(part)
    return {"begin": begin, "end": begin + len(part), "weight": 0, **more}


def trained(renderer: Renderer, given: dict[str, Any]) -> str:
    rendered = renderer.render(parse_record(given))
    return renderer.tokenizer.decode(rendered.input_ids[rendered.loss_mask])


@pytest.mark.parametrize("name", template_names())
def test_exactly_the_stretches_lose_their_loss_with_every_template(
    name: str, trl_templates: Path, make_folder: MakeFolder
) -> None:
    renderer = Renderer.from_folder(make_folder((trl_templates / f"{name}.jinja").read_text()))
    whole = renderer.render(parse_record(record([])))
    spans = [stretch("falsch: "), stretch(WRONG)]
    part = renderer.render(parse_record(record(spans)))
    assert part.text == whole.text and part.input_ids.tolist() == whole.input_ids.tolist()
    lost = {
        place
        for place, (begin, _) in enumerate(renderer.offsets(whole).tolist())
        for said in (WRONG, "falsch: ")
        if whole.text.index(said) <= begin < whole.text.index(said) + len(said)
    }
    expected = [carries and place not in lost for place, carries in enumerate(whole.loss_mask.tolist())]
    assert lost and part.loss_mask.tolist() == expected
    assert part.notes["untrained_stretches"] == 2


def test_hand_worked_content_and_reasoning(chatml: str, make_folder: MakeFolder) -> None:
    renderer = Renderer.from_folder(make_folder(chatml))
    spans = [stretch("Erst raten. ", REASONING, of="reasoning"), {"begin": 0, "end": 21}]
    assert trained(renderer, record(spans, reasoning=REASONING)) == (
        "<think>\nDann prüfen.\n</think>\n\nNein, blau. Grün war falsch: grün.<|im_end|>"
    )
    whole = [{"begin": 0, "end": len(CONTENT)}]
    assert trained(renderer, record(whole)) == "<|im_end|>"
    assert trained(renderer, record(whole, weight=0)) == ""


def test_parts_of_different_weight_are_stretches(chatml: str, make_folder: MakeFolder) -> None:
    renderer = Renderer.from_folder(make_folder(chatml))
    parts = [
        {"type": "text", "text": "Falsch. ", "weight": 0},
        {"type": "text", "text": "Richtig."},
        {"type": "text", "text": " Egal.", "weight": False},
    ]
    given = record(None, parts)  # null, as columns of objects are padded
    conversation = parse_record(given)
    assert conversation.messages[1].content == "Falsch. Richtig. Egal."
    assert conversation.messages[1].extra["loss_spans"] == [
        {"begin": 0, "end": 8, "weight": 0},
        {"begin": 16, "end": 22, "weight": 0},
    ]
    assert trained(renderer, given) == "Richtig.<|im_end|>"


def test_white_space_at_an_edge_that_a_template_strips_is_no_obstacle(make_folder: MakeFolder) -> None:
    loop = "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content | trim + '<|end|>' }}{% endfor %}"
    prompt = "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
    renderer = Renderer.from_folder(make_folder(loop + prompt))
    assert trained(renderer, record([{"begin": 0, "end": 5}], "  abc def ")) == " def<|end|>"
    assert trained(renderer, record([{"begin": 6, "end": 10}], "  abc def ")) == "abc <|end|>"


@pytest.mark.parametrize(
    "spans",
    [
        {"begin": 0, "end": 3},
        [[0, 3]],
        [{"begin": 0, "end": 99}],
        [{"begin": 3, "end": 2}],
        [{"begin": -1, "end": 2}],
        [{"begin": True, "end": 2}],
        [{"begin": 0}],
        [{"begin": 0, "end": 3, "weight": 1}],
        [{"begin": 0, "end": 3, "of": "tool_calls"}],
        [{"begin": 0, "end": 3, "of": "reasoning"}],
        [{"begin": 0, "end": 3}, {"begin": 2, "end": 4}],
        [{"begin": 0, "end": 3, "loss": 0}],
    ],
)
def test_stretches_that_are_not_as_the_form_has_them_are_a_fault_of_the_record(
    spans: Any, chatml: str, make_folder: MakeFolder
) -> None:
    with pytest.raises(RecordError, match="loss_spans of message 1") as fault:
        trained(Renderer.from_folder(make_folder(chatml)), record(spans))
    assert fault.value.reason == "bad_loss_spans"


def test_a_template_that_takes_the_text_apart_refuses_the_record(make_folder: MakeFolder) -> None:
    loop = "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content | replace('Himmel ist', 'X') + '<|end|>' }}"
    renderer = Renderer.from_folder(make_folder(loop + "{% endfor %}"))
    with pytest.raises(RecordError, match="loss_spans divide") as fault:
        trained(renderer, record([stretch("Himmel ")]))
    assert fault.value.reason == "loss_spans_not_traced"


def test_characters_of_a_text_that_reading_divides_are_refused() -> None:
    with pytest.raises(RecordError, match="loss_spans count characters") as fault:
        parse_record(record([{"begin": 0, "end": 3}], "<think>Hm.</think>\n\nJa."))
    assert fault.value.reason == "bad_loss_spans"


@pytest.mark.parametrize(
    "stages", [("convert",), ("mask",), ("convert", "mask"), ("convert", "effort label", "mask")], ids=str
)
def test_stretches_survive_the_stages_of_records(
    stages: tuple[str, ...], run_cli: RunCli, sample_data: Path, tmp_path: Path
) -> None:
    spans = [stretch(WRONG), stretch("raten", REASONING, of="reasoning")]
    line = json.dumps({**record(spans, reasoning=REASONING), "dataset": "d"}).encode() + b"\n"
    for stage in stages:
        options = ("--tokenizer", sample_data / "tokenizer") if "effort" in stage else ()
        done = run_cli(*stage.split(), "-", "-o", "-", "-q", *options, stdin=line)
        assert done.returncode == 0, done.stderr.decode()
        line = done.stdout
    assert json.loads(line)["messages"][1]["loss_spans"] == spans
    shards = run_cli("convert", "-", "-o", tmp_path / "shards", "-q", stdin=line)
    again = run_cli("convert", tmp_path / "shards", "-o", "-", "-q")
    assert shards.returncode == again.returncode == 0
    assert json.loads(again.stdout)["messages"][1]["loss_spans"] == spans
