"""The render stage: rows, lengths, exchanges, and what becomes of records that do not fit."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sft_toolkit.chat import Renderer
from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError, ToolkitError, UsageError
from sft_toolkit.formats import parse_record
from sft_toolkit.running.options import RunOptions, Summary
from sft_toolkit.running.runner import run_stage
from sft_toolkit.shards.schemas import TOKENS, record_batch
from sft_toolkit.stage import Outcome
from sft_toolkit.stages.render import RenderStage

DROPS_HISTORY = """{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}
{%- if m.reasoning and loop.last %}{{ '<think>' + m.reasoning + '</think>' }}{% endif %}
{{- m.content + '<|im_end|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""


@pytest.fixture(scope="module")
def tokenizer(sample_data: Path) -> str:
    return str(sample_data / "tokenizer")


@pytest.fixture
def outcome() -> Outcome:
    return Outcome(quarantine=True)


def say(role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def conversation(*messages: dict[str, Any], **more: Any) -> Conversation:
    return parse_record({"id": "r", "messages": list(messages), **more})


TWO = (
    say("user", "Erste Frage?", effort="high"),
    say("assistant", "Erste Antwort.", reasoning="Gedanke eins."),
    say("user", "Zweite Frage?", effort="high"),
    say("assistant", "Zweite Antwort.", reasoning="Gedanke zwei."),
)


def run(stage: RenderStage, outcome: Outcome, *records: Conversation) -> list[dict[str, Any]]:
    return list(stage.process(list(records), outcome))


def trained(stage: RenderStage, row: dict[str, Any]) -> str:
    renderer = Renderer.from_folder(stage.tokenizer)
    return renderer.tokenizer.decode(row["input_ids"][row["loss_mask"]])


def test_a_row_holds_ids_mask_and_counts(tokenizer: str, outcome: Outcome) -> None:
    stage = RenderStage(tokenizer)
    (row,) = run(stage, outcome, conversation(*TWO, dataset="d", effort="high"))
    assert (row["id"], row["dataset"], row["effort"]) == ("r", "d", "high")
    assert row["length"] == len(row["input_ids"]) == len(row["loss_mask"])
    assert row["loss_tokens"] == np.count_nonzero(row["loss_mask"])
    assert trained(stage, row) == (
        "<think>\nGedanke eins.\n</think>\n\nErste Antwort.<|im_end|>"
        "<think>\nGedanke zwei.\n</think>\n\nZweite Antwort.<|im_end|>"
    )
    batch = record_batch(TOKENS, [row])
    assert batch.schema == stage.schema and batch["input_ids"].type == pa.list_(pa.int32())


def test_the_effort_of_the_record_reaches_the_template(tokenizer: str, outcome: Outcome) -> None:
    stage = RenderStage(tokenizer)
    pair = (say("user", "Frage?"), say("assistant", "Antwort."))
    low, none = run(stage, outcome, conversation(*pair, effort="low"), conversation(*pair))
    decode = Renderer.from_folder(tokenizer).tokenizer.decode
    assert "Reasoning effort: low." in decode(low["input_ids"])
    assert "Reasoning effort" not in decode(none["input_ids"])


def test_a_turn_of_weight_0_stays_in_the_context_without_loss(tokenizer: str, outcome: Outcome) -> None:
    stage = RenderStage(tokenizer)
    first = {**TWO[1], "weight": 0}
    (row,) = run(stage, outcome, conversation(TWO[0], first, *TWO[2:]))
    assert trained(stage, row) == "<think>\nGedanke zwei.\n</think>\n\nZweite Antwort.<|im_end|>"
    (whole,) = run(stage, outcome, conversation(*TWO))
    assert np.array_equal(row["input_ids"], whole["input_ids"])


def test_train_last_trains_the_final_message_alone(tokenizer: str, outcome: Outcome) -> None:
    stage = RenderStage(tokenizer, train="last")
    rows = run(stage, outcome, conversation(*TWO), conversation(*TWO[:3]))
    assert [trained(stage, row) for row in rows] == ["<think>\nGedanke zwei.\n</think>\n\nZweite Antwort.<|im_end|>"]
    assert outcome.counters.rejected == {"no_trained_tokens": 1}


def test_per_exchange_trains_each_exchange_as_if_it_were_the_last(
    tokenizer: str, outcome: Outcome, tmp_path: Path
) -> None:
    template = tmp_path / "template.jinja"
    template.write_text(DROPS_HISTORY)
    record = conversation(say("system", "S"), {**TWO[0], "effort": "low"}, *TWO[1:])
    whole = RenderStage(tokenizer, str(template))
    (row,) = run(whole, outcome, record)
    assert "Gedanke eins" not in trained(whole, row)
    assert outcome.counters.notes["dropped_reasoning"] == 1
    stage = RenderStage(tokenizer, str(template), per_exchange=True)
    rows = run(stage, outcome, record)
    assert [(row["id"], row["effort"]) for row in rows] == [("r#0", "low"), ("r#1", "high")]
    assert [trained(stage, row) for row in rows] == [
        "<think>Gedanke eins.</think>Erste Antwort.<|im_end|>",
        "<think>Gedanke zwei.</think>Zweite Antwort.<|im_end|>",
    ]
    assert outcome.counters.notes["exchanges"] == 2


def test_per_exchange_trains_a_greeting_once_and_counts_only_what_it_trains(
    tokenizer: str, outcome: Outcome, tmp_path: Path
) -> None:
    template = tmp_path / "template.jinja"
    template.write_text(DROPS_HISTORY)
    stage = RenderStage(tokenizer, str(template), per_exchange=True)
    rows = run(stage, outcome, conversation(say("assistant", "Hallo."), *TWO))
    assert [trained(stage, row) for row in rows] == [
        "Hallo.<|im_end|><think>Gedanke eins.</think>Erste Antwort.<|im_end|>",
        "<think>Gedanke zwei.</think>Zweite Antwort.<|im_end|>",
    ]
    assert outcome.counters.notes == {"exchanges": 2, "effort_not_rendered": 2, "tokens_rendered_again": 29}


def test_per_exchange_leaves_a_conversation_without_questions_whole(tokenizer: str, outcome: Outcome) -> None:
    stage = RenderStage(tokenizer, per_exchange=True)
    (row,) = run(stage, outcome, conversation(say("assistant", "Hallo.")))
    assert row["id"] == "r"


def test_an_overlong_document_is_an_error_that_names_both_lengths(tokenizer: str) -> None:
    record = conversation(*TWO)
    with pytest.raises(RecordError, match=r"record r: \d+ tokens, more than 20"):
        run(RenderStage(tokenizer, max_tokens=20), Outcome(quarantine=False), record)


def test_a_document_of_exactly_max_tokens_fits(tokenizer: str, outcome: Outcome) -> None:
    (row,) = run(RenderStage(tokenizer), outcome, conversation(*TWO))
    assert len(run(RenderStage(tokenizer, max_tokens=row["length"]), outcome, conversation(*TWO))) == 1
    assert run(RenderStage(tokenizer, max_tokens=row["length"] - 1), outcome, conversation(*TWO)) == []
    assert outcome.counters.rejected == {"overlong": 1}


def test_truncation_keeps_whole_turns_and_cuts_ids_and_mask_alike(tokenizer: str, outcome: Outcome) -> None:
    (whole,) = run(RenderStage(tokenizer), outcome, conversation(*TWO))
    stage = RenderStage(tokenizer, max_tokens=whole["length"] - 2, overlong="truncate")
    (row,) = run(stage, outcome, conversation(*TWO))
    assert trained(stage, row) == "<think>\nGedanke eins.\n</think>\n\nErste Antwort.<|im_end|>"
    assert row["loss_mask"][-1], "nothing follows the last turn that is kept"
    for column in ("input_ids", "loss_mask"):
        assert np.array_equal(row[column], whole[column][: row["length"]])
    assert outcome.counters.notes["truncated"] == 1


def test_truncation_that_leaves_no_whole_turn_rejects_the_record(tokenizer: str, outcome: Outcome) -> None:
    stage = RenderStage(tokenizer, max_tokens=10, overlong="truncate")
    assert run(stage, outcome, conversation(*TWO)) == []
    assert outcome.counters.rejected == {"no_trained_tokens": 1}


def test_faulty_records_are_rejected_and_the_others_keep_their_order(tokenizer: str, outcome: Outcome) -> None:
    image = conversation(say("user", "x"), say("assistant", "y"))
    image.messages[0].content = [{"type": "image"}]
    records = [conversation(*TWO), image, conversation(*TWO[:2])]
    rows = run(RenderStage(tokenizer), outcome, *records)
    assert [row["loss_tokens"] > 0 for row in rows] == [True, True]
    assert rows[0]["length"] > rows[1]["length"]
    assert outcome.counters.rejected == {"image_part": 1}


def test_a_stage_goes_to_a_worker_and_renders_the_same(tokenizer: str, outcome: Outcome) -> None:
    stage = RenderStage(tokenizer)
    sent = pickle.loads(pickle.dumps(stage))
    ((here,), (there,)) = (run(each, outcome, conversation(*TWO)) for each in (stage, sent))
    assert np.array_equal(here["input_ids"], there["input_ids"])
    assert sent.options_hash == stage.options_hash


def test_the_options_hash_hangs_on_contents_not_on_paths(tokenizer: str, tmp_path: Path, sample_data: Path) -> None:
    stage = RenderStage(tokenizer)
    template = tmp_path / "copy.jinja"
    template.write_text((sample_data / "tokenizer" / "chat_template.jinja").read_text())
    assert RenderStage(tokenizer, str(template)).options_hash == stage.options_hash
    template.write_text(DROPS_HISTORY)
    assert RenderStage(tokenizer, str(template)).options_hash != stage.options_hash
    assert RenderStage(tokenizer, train="last").options_hash != stage.options_hash


def test_options_that_make_no_sense_are_refused_at_once(tokenizer: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs a length"):
        RenderStage(tokenizer, overlong="drop")
    with pytest.raises(UsageError, match="not a date"):
        RenderStage(tokenizer, date="today")
    with pytest.raises(ToolkitError, match=r"tokenizer\.json: No such file"):
        RenderStage(str(tmp_path))


SPLIT = [{**TWO[0], "effort": "low"}, *TWO[1:]]


def written(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize("output", ["out", "out.jsonl"])
def test_a_document_of_a_split_record_never_shares_its_id_with_another_record(
    tokenizer: str, tmp_path: Path, output: str
) -> None:
    """Where record r becomes r#0 and r#1, a record r#1 in another block is an error that names both; r#2 is none."""

    def render(*others: dict[str, Any]) -> Summary:
        path = written(tmp_path / "in.jsonl", {"id": "r", "messages": SPLIT}, *others)
        target = str(tmp_path / f"{len(others)}-{output}")
        options = RunOptions(inputs=[str(path)], output=target, workers=1, force=True, rows_per_shard=1)
        return run_stage(RenderStage(tokenizer), options)

    whole = list(TWO)
    assert render({"id": "r#2", "messages": whole}).counters.records_out == 3
    with pytest.raises(ToolkitError, match=r"in.jsonl:2: id 'r#1' occurs more than once: .* document or copy of 'r'"):
        render({"id": "r#1", "messages": whole})
    with pytest.raises(ToolkitError, match=r"in.jsonl:3: record id 'r' occurs more than once, first at .*in.jsonl:1"):
        render({"id": "s", "messages": whole}, {"id": "r", "messages": SPLIT})


def test_the_summary_of_documents_as_lines_counts_tokens_and_loss_as_that_of_shards_does(
    tokenizer: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "in.jsonl", {"id": "r", "messages": SPLIT})
    shards, lines = (
        run_stage(RenderStage(tokenizer), RunOptions(inputs=[str(path)], output=str(tmp_path / name), workers=1))
        for name in ("out", "out.jsonl")
    )
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert (lines.tokens, lines.loss_tokens) == (shards.tokens, shards.loss_tokens)
    assert lines.loss_tokens == sum(sum(row["loss_mask"]) for row in rows) > 0
    assert lines.tokens == sum(len(row["input_ids"]) for row in rows)
