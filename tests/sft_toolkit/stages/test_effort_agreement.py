"""What a document trains and the effort that its prompt states agree: counted in packed shards by another script."""

from __future__ import annotations

import importlib.util
import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from sft_toolkit.running.options import RunOptions
from sft_toolkit.running.runner import run_stage
from sft_toolkit.stages.effort.label import fit_and_label
from sft_toolkit.stages.effort.lengths import CountedLengths
from sft_toolkit.stages.pack.two_passes import PackOptions, run_pack
from sft_toolkit.stages.render import RenderStage
from tests.effort_under_sentences import count, read_records

LEVELS = ("none", "low", "medium", "high")
SAMPLES = ("school_maths", "bakery_tools", "handwritten", "code_review")

QWEN3 = "".join(f"[{level}]\nsentence = 'Denkaufwand: {level}.'\n" for level in LEVELS)
QWEN3 = QWEN3.replace("[none]", "[none]\nvariables = { enable_thinking = false }")
HARMONY = ("start", "message", "channel", "end", "return", "call")
GPT_OSS = "".join(f"[{level}]\nvariables = {{ reasoning_effort = '{level}' }}\n" for level in LEVELS[1:])


@dataclass(frozen=True)
class Display:
    """A template with what states the effort in it, and where that stands in a document."""

    folder: Path
    template: Path | None
    sentences: Path | None
    stated: Callable[[str], str | None]

    def counted(self, records: Path, folder: Path, **options: Any) -> tuple[Counter[str], Counter[str]]:
        """The count of the script, and the notes of `render`."""
        folder = folder / "out"
        shutil.rmtree(folder, ignore_errors=True)
        stage = RenderStage(
            str(self.folder),
            None if self.template is None else str(self.template),
            effort_sentences=None if self.sentences is None else str(self.sentences),
            **options,
        )
        common = {"workers": 1, "quarantine": True}
        rendered = run_stage(stage, RunOptions(inputs=[str(records)], output=str(folder / "tokens"), **common))
        run_pack(
            PackOptions(capacity=1 << 16), RunOptions(inputs=[str(folder / "tokens")], output=str(folder / "packed"))
        )
        tokenizer = Tokenizer.from_file(str(self.folder / "tokenizer.json"))
        found = count(folder / "packed", read_records(records), tokenizer, self.stated)
        return found, rendered.counters.notes


def matched(pattern: str) -> Callable[[str], str | None]:
    def stated(text: str) -> str | None:
        found = re.search(pattern, text)
        return found and found[1]

    return stated


@pytest.fixture(scope="module")
def displays(sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Display]:
    found = importlib.util.find_spec("trl")
    if found is None or found.origin is None:
        pytest.skip("trl is not installed")
    templates = Path(found.origin).parent / "chat_templates"
    folder = tmp_path_factory.mktemp("displays")
    harmony = folder / "harmony"
    shutil.copytree(sample_data / "tokenizer", harmony)
    tokenizer = Tokenizer.from_file(str(harmony / "tokenizer.json"))
    tokenizer.add_special_tokens([f"<|{name}|>" for name in HARMONY])
    tokenizer.save(str(harmony / "tokenizer.json"))
    for name, text in (("qwen3", QWEN3), ("gptoss", GPT_OSS)):
        (folder / f"{name}.toml").write_text(text)
    plain = sample_data / "tokenizer"
    return {
        "sample": Display(plain, None, None, matched(r"Reasoning effort: (\w+)\.")),
        "qwen3": Display(plain, templates / "qwen3.jinja", folder / "qwen3.toml", matched(r"Denkaufwand: (\w+)\.")),
        "gptoss": Display(harmony, templates / "gptoss.jinja", folder / "gptoss.toml", matched(r"Reasoning: (\w+)\n")),
    }


@pytest.fixture(scope="module")
def labelled(sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some records of each of four samples, with drawn labels."""
    folder = tmp_path_factory.mktemp("labelled")
    inputs = []
    for name in SAMPLES:
        lines = (sample_data / f"{name}.jsonl").read_text().splitlines(keepends=True)[:25]
        (folder / f"{name}.jsonl").write_text("".join(lines))
        inputs.append(str(folder / f"{name}.jsonl"))
    output = folder / "labelled.jsonl"
    run = RunOptions(inputs=inputs, output=str(output), workers=1)
    fit_and_label(CountedLengths(str(sample_data / "tokenizer")), run)
    return output


@pytest.mark.parametrize("name", ["sample", "qwen3", "gptoss"])
@pytest.mark.parametrize("options", [{}, {"history": "both"}])
def test_no_reasoning_of_the_sample_data_is_trained_under_another_effort(
    name: str, options: dict[str, Any], displays: dict[str, Display], labelled: Path, tmp_path: Path
) -> None:
    found, notes = displays[name].counted(labelled, tmp_path, **options)
    assert found["own"] > 2_000
    assert found["other"] == found["unknown"] == 0
    if name == "sample":
        assert found["other_answers"] == 0
        assert notes["effort_split"] > 10


def test_splitting_trains_all_of_the_reasoning_and_masking_takes_some_out(
    displays: dict[str, Display], labelled: Path, tmp_path: Path
) -> None:
    split, notes = displays["sample"].counted(labelled, tmp_path)
    single, _ = displays["sample"].counted(labelled, tmp_path, per_exchange=True)
    masked, masked_notes = displays["sample"].counted(labelled, tmp_path, effort_mismatch="mask")
    assert split == single
    assert masked["own"] < split["own"]
    assert notes["tokens_rendered_again"] > 0 and masked_notes["tokens_rendered_again"] == 0


def test_the_script_would_see_reasoning_under_another_effort(
    displays: dict[str, Display], labelled: Path, tmp_path: Path
) -> None:
    text = labelled.read_text().replace('"effort":"low"', '"effort":"x"').replace('"effort":"high"', '"effort":"low"')
    records = [json.loads(line) for line in text.replace('"effort":"x"', '"effort":"high"').splitlines()]
    display = displays["sample"]
    display.counted(labelled, tmp_path)
    tokenizer = Tokenizer.from_file(str(display.folder / "tokenizer.json"))
    found = count(tmp_path / "out" / "packed", records, tokenizer, display.stated)
    assert found["other"] > 2_000 and found["own"] > 1_000


def test_a_record_whose_reasoning_the_template_drops_from_history_is_not_split(
    displays: dict[str, Display], labelled: Path, tmp_path: Path
) -> None:
    _, notes = displays["qwen3"].counted(labelled, tmp_path)
    assert notes["effort_split"] == 0 and notes["dropped_reasoning"] > 0


def several_exchanges(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Records of one to five exchanges: any labels, none without reasoning, greetings, prompts, calls, masked turns."""
    draw = random.Random(seed)
    for number in range(count):
        messages: list[dict[str, Any]] = []
        if draw.random() < 0.4:
            messages.append({"role": draw.choice(["system", "developer"]), "content": f"Du bist Kolibri {number}."})
        if draw.random() < 0.2:
            messages.append({"role": "assistant", "content": f"Guten Tag {number}."})
        for exchange in range(draw.randint(1, 5)):
            messages += _exchange(draw, f"{number}-{exchange}")
        record: dict[str, Any] = {"id": f"r{number}", "messages": messages}
        if draw.random() < 0.7:
            record["effort"] = next(m["effort"] for m in reversed(messages) if "effort" in m)
        function = {"name": "suche", "description": "Sucht.", "parameters": {"type": "object", "properties": {}}}
        tools = [{"type": "function", "function": function}]
        yield {**record, "tools": tools}


def _exchange(draw: random.Random, name: str) -> Iterator[dict[str, Any]]:
    level = draw.choice(LEVELS)
    yield {"role": "user", "content": f"Frage {name}?", "effort": level}
    if draw.random() < 0.2:
        yield {"role": "user", "content": f"Und noch etwas zu {name}."}

    def thought(step: str) -> dict[str, Any]:
        text = f"Gedanke {step} {name}: " + "so und so " * draw.randint(1, 8)
        return {"reasoning": text.strip()} if level != "none" else {}

    weight = {"weight": 0} if draw.random() < 0.2 else {}
    if draw.random() < 0.4:
        call = {"id": f"c{name}", "type": "function", "function": {"name": "suche", "arguments": {"wort": name}}}
        yield {"role": "assistant", "content": "", "tool_calls": [call], **thought("vorher"), **weight}
        yield {"role": "tool", "tool_call_id": f"c{name}", "content": f"Ergebnis {name}"}
        if draw.random() < 0.3:
            return
    yield {"role": "assistant", "content": f"Antwort {name}.", **thought("danach"), **weight}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("sample", {}),
        ("sample", {"effort_mismatch": "mask"}),
        ("sample", {"history": "drop"}),
        ("sample", {"history": "both"}),
        ("sample", {"history": "drop", "effort_mismatch": "mask"}),
        ("sample", {"per_exchange": True, "history": "drop"}),
        ("sample", {"train": "last"}),
        ("sample", {"train": "last", "per_exchange": True}),
        ("qwen3", {}),
        ("qwen3", {"history": "drop"}),
        ("qwen3", {"effort_mismatch": "mask"}),
        ("gptoss", {}),
        ("gptoss", {"history": "both"}),
        ("gptoss", {"per_exchange": True}),
    ],
)
def test_no_reasoning_of_records_of_several_exchanges_is_trained_under_another_effort(
    name: str, options: dict[str, Any], displays: dict[str, Display], tmp_path: Path
) -> None:
    records = tmp_path / "records.jsonl"
    records.write_text("".join(json.dumps(record) + "\n" for record in several_exchanges(80, seed=7)))
    found, notes = displays[name].counted(records, tmp_path, **options)
    assert found["own"] > 300
    assert found["other"] == found["unknown"] == 0
    if name == "sample":
        assert found["other_answers"] == 0
        assert (notes["effort_masked"] > 0) == (options.get("effort_mismatch") == "mask")
