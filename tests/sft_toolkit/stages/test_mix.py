"""Mixtures: what is asked and what is got, caps, copies, filters, and independence of order and blocks."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sft_toolkit.draws import keys
from sft_toolkit.errors import RecordError, ToolkitError, UsageError
from sft_toolkit.running.options import RunOptions, Summary
from sft_toolkit.running.runner import run_stage
from sft_toolkit.shards.shard_folder import ShardFolder
from sft_toolkit.stages.mix.choice import (
    AS_ASKED,
    FILTERED,
    NOT_IN_MIXTURE,
    NOTE,
    NOTHING_FITS,
    apportion,
    choose,
    occurrence,
)
from sft_toolkit.stages.mix.copy_ids import CopyIds
from sft_toolkit.stages.mix.mixing import MixOptions, run_mix
from sft_toolkit.stages.mix.mixture_file import Ingredient, Mixture, Range, read_mixture
from sft_toolkit.stages.mix.record_rows import GivenLengths, RenderedLengths
from sft_toolkit.stages.render import RenderStage
from tests.token_shards import Document, random_documents, write_token_folder


def notes_of(lengths: list[int], ingredient: int = 0, keys: list[int] | None = None, prompts: list[int] | None = None):
    notes = np.zeros(len(lengths), NOTE)
    notes["length"], notes["ingredient"] = lengths, ingredient
    notes["key"] = keys if keys is not None else range(len(lengths))
    notes["prompt"] = prompts if prompts is not None else range(len(lengths))
    return notes


def mixture_of(tokens: int | None = None, max_epochs: int = 1, **ingredients: Ingredient) -> Mixture:
    return Mixture(ingredients, tokens, max_epochs)


def mixed(
    mixture: Mixture, folder: Path, output: Path, seed: int = 0, **options: Any
) -> tuple[Summary, list[dict[str, Any]]]:
    """The summary and the rows of a mixture of token shards."""
    summary = run_mix(
        MixOptions(mixture, seed=seed), RunOptions(inputs=[str(folder)], output=str(output), workers=1, **options)
    )
    rows = [row for path in ShardFolder(output).paths for row in pa.ipc.open_file(path).read_all().to_pylist()]
    return summary, rows


def test_a_budget_stops_at_the_record_that_comes_nearest() -> None:
    # Sums in order of keys: 10, 30, 60, 100.
    for asked, got in ((44, 30), (45, 30), (46, 60), (100, 100)):
        (account,) = choose(notes_of([10, 20, 30, 40]), mixture_of(a=Ingredient(tokens=asked))).accounts
        assert (account.got, account.why) == (got, AS_ASKED)


def test_a_data_set_that_gets_no_record_is_not_as_asked() -> None:
    """Whether its budget is small, its share of the total rounds to nothing, or its weight is 0."""
    (small,) = choose(notes_of([10, 20]), mixture_of(a=Ingredient(tokens=4))).accounts
    assert (small.taken, small.why) == (0, "no record fits")
    notes = np.concatenate([notes_of([10] * 9), notes_of([10], ingredient=1)])
    for weight, why in ((0.0001, "no record fits"), (0, "weight 0"), (1, AS_ASKED)):
        mixture = mixture_of(20, a=Ingredient(weight=1), b=Ingredient(weight=weight))
        assert choose(notes, mixture).accounts[1].why == why


@pytest.mark.parametrize(
    ("temperature", "asked"),
    [(None, [500, 500]), (1, [900, 100]), (2, [750, 250]), (1e9, [500, 500]), (0.5, [988, 12])],
)
def test_a_temperature_multiplies_weights_by_size_to_the_power_of_its_inverse(
    temperature: float | None, asked: list[int]
) -> None:
    """Of 900 and 100 tokens: sqrt(9) is 3 to 1; 9^2 is 81 to 1; without one, equal weights are equal shares."""
    notes = np.concatenate([notes_of([10] * 90), notes_of([10] * 10, ingredient=1)])
    mixture = Mixture({"a": Ingredient(weight=1), "b": Ingredient(weight=1)}, 1000, 9, temperature)
    assert [account.asked for account in choose(notes, mixture).accounts] == asked


def test_a_temperature_and_weights_multiply() -> None:
    notes = np.concatenate([notes_of([10] * 90), notes_of([10] * 10, ingredient=1)])
    mixture = Mixture({"a": Ingredient(weight=1), "b": Ingredient(weight=3)}, 100, 9, 2.0)
    assert [account.asked for account in choose(notes, mixture).accounts] == [50, 50]


def test_a_temperature_is_read_checked_and_pinned(tmp_path: Path) -> None:
    file = tmp_path / "m.toml"
    file.write_text("temperature = 2\n[datasets.a]\nweight = 1\n")
    mixture = read_mixture(file)
    assert mixture.to_json()["temperature"] == 2
    with pytest.raises(UsageError, match="given twice"):
        mixture.tempered(3)
    with pytest.raises(UsageError, match="not changed by a `temperature`"):
        mixture.reweighted({"a": Fraction(1)})
    with pytest.raises(UsageError, match="no data set has one"):
        mixture_of(a=Ingredient(tokens=5)).tempered(2)
    with pytest.raises(UsageError, match="not a finite number above 0"):
        mixture_of(a=Ingredient(weight=1)).tempered(float("inf"))
    file.write_text("temperature = 0\n[datasets.a]\nweight = 1\n")
    with pytest.raises(UsageError, match="temperature"):
        read_mixture(file)


@pytest.mark.parametrize("folders", [False, True])
def test_a_mixture_of_a_mixture_gives_copies_ids_that_are_free(folders: bool, tmp_path: Path) -> None:
    """a0#2 exists already: the next copies of a0 are a0#3 and, where its block is another, still that."""
    cases = Path(__file__).parents[2] / "cases" / "mixtures" / "mix_of_mix"
    once, twice = (tmp_path / name for name in (("1", "2") if folders else ("1.jsonl", "2.jsonl")))
    for source, target, mixture in ((cases / "s.jsonl", once, "n1.toml"), (once, twice, "n2.toml")):
        options = MixOptions(read_mixture(cases / mixture), GivenLengths("n"))
        run_mix(options, RunOptions(inputs=[str(source)], output=str(target), workers=1, rows_per_shard=7))
    if folders:
        tables = (pa.ipc.open_file(path).read_all() for path in ShardFolder(twice).paths)
        ids = [name for table in tables for name in table.column("id").to_pylist()]
    else:
        ids = [json.loads(line)["id"] for line in twice.read_text().splitlines()]
    assert len(set(ids)) == len(ids) == 140
    assert {name for name in ids if name.startswith("a0")} == {"a0", "a0#2", "a0#3", "a0#2#2"}
    assert {name for name in ids if name.startswith("b0")} == {"b0", "b0#2", "b0#3"}


def test_numbers_of_copies_pass_over_all_that_are_taken() -> None:
    found = CopyIds(0)
    found.add(["a", "a#2", "a#4", "a#04", "a#x", "b", "b#1#2", "c#3"])
    occupied = found.occupied(keys(0, ["a", "b", "c"], "mix"), np.array([3, 3, 1], np.uint32))
    assert occupied == {0: frozenset({2, 4})}


def test_keys_not_places_decide_which_records_come_first() -> None:
    choice = choose(notes_of([1, 1, 1], keys=[9, 3, 5]), mixture_of(a=Ingredient(tokens=2)))
    assert choice.copies.tolist() == [0, 1, 1]


def test_a_budget_beyond_the_data_takes_whole_epochs_and_then_the_first_records_again() -> None:
    choice = choose(notes_of([10, 20, 30]), mixture_of(a=Ingredient(tokens=150, max_epochs=4)))
    assert choice.copies.tolist() == [3, 3, 2]  # 120, then 10 and 20
    (account,) = choice.accounts
    assert (account.got, account.taken, account.epochs) == (150, 8, 2.5)


def test_epochs_are_a_share_of_the_tokens_that_are_left_after_filters_and_caps() -> None:
    notes = notes_of([10] * 6, prompts=[1, 1, 1, 2, 2, 2])
    choice = choose(notes, mixture_of(a=Ingredient(epochs=1.5, max_per_prompt=2)))
    assert choice.copies.tolist() == [2, 2, 0, 1, 1, 0]
    assert choice.left_out == Counter(over_max_per_prompt=2)


@pytest.mark.parametrize(
    ("cap", "got", "why"),
    [
        ({}, 60, "max_epochs"),
        ({"max_epochs": 3}, 90 + 60, "as asked"),
        ({"max_records": 2}, 30, "max_records"),
        ({"max_tokens": 59}, 30, "max_tokens"),
        ({"max_tokens": 60}, 60, "max_epochs"),
        ({"max_epochs": 2, "max_tokens": 100}, 90, "max_tokens"),
    ],
)
def test_caps_are_never_exceeded_and_named_where_they_stop_a_budget(cap: dict[str, int], got: int, why: str) -> None:
    mixture = mixture_of(a=Ingredient(tokens=150 if cap.get("max_epochs") == 3 else 120, **cap))
    (account,) = choose(notes_of([10, 20, 30]), mixture).accounts
    assert (account.got, account.why) == ((150, AS_ASKED) if got == 150 else (got, why))


def test_a_total_is_shared_by_weight_after_fixed_budgets() -> None:
    notes = np.concatenate([notes_of([1] * 100, place) for place in range(3)])
    mixture = mixture_of(70, a=Ingredient(weight=2), b=Ingredient(weight=1), c=Ingredient(tokens=10))
    assert [account.got for account in choose(notes, mixture).accounts] == [40, 20, 10]


def test_without_a_total_weights_are_kept_and_the_scarcest_is_used_up() -> None:
    notes = np.concatenate([notes_of([1] * 30, 0), notes_of([1] * 100, 1)])
    mixture = mixture_of(a=Ingredient(weight=0.5), b=Ingredient(weight=1))
    assert [(account.got, account.why) for account in choose(notes, mixture).accounts] == [
        (30, AS_ASKED),
        (60, AS_ASKED),
    ]
    repeated = mixture_of(max_epochs=2, a=Ingredient(weight=0.5), b=Ingredient(weight=2))
    assert [account.got for account in choose(notes, repeated).accounts] == [50, 200]


def test_fixed_budgets_over_the_total_and_empty_ingredients_are_refused() -> None:
    notes = np.concatenate([notes_of([1, 1], place) for place in range(2)])
    with pytest.raises(UsageError, match="fixed budgets of 9 tokens exceed the total of 5"):
        choose(notes, mixture_of(5, a=Ingredient(tokens=9), b=Ingredient(weight=1)))
    with pytest.raises(ToolkitError, match="b: nothing to take: no record of x, y is left"):
        choose(notes[:2], mixture_of(a=Ingredient(epochs=1), b=Ingredient(weight=1, sources=["x", "y"])))


@given(st.integers(0, 10**6), st.lists(st.fractions(0, 10, max_denominator=50), min_size=1, max_size=6))
def test_apportioned_parts_sum_to_the_whole_and_are_off_by_less_than_one(total: int, given: list[Fraction]) -> None:
    weights = {str(place): weight for place, weight in enumerate(given)}
    whole = sum(given)
    if not whole:
        return
    parts = apportion(total, weights)
    assert sum(parts.values()) == total
    assert all(abs(parts[name] - total * weight / whole) < 1 for name, weight in weights.items())


@given(st.lists(st.integers(0, 3), max_size=30))
def test_occurrence_counts_equal_values_before_each(values: list[int]) -> None:
    assert occurrence(np.array(values, np.uint64)).tolist() == [values[:i].count(v) for i, v in enumerate(values)]


INGREDIENTS = st.builds(
    Ingredient,
    tokens=st.integers(1, 400),
    max_epochs=st.none() | st.integers(1, 4),
    max_tokens=st.none() | st.integers(1, 400),
    max_records=st.none() | st.integers(1, 30),
    max_per_prompt=st.none() | st.integers(1, 3),
)
ROWS = st.tuples(st.integers(1, 30), st.sampled_from([0, 1, FILTERED, NOT_IN_MIXTURE]), st.integers(0, 4))


@given(a=INGREDIENTS, b=INGREDIENTS, rows=st.lists(ROWS, min_size=1, max_size=40), data=st.data())
def test_the_account_is_exact_and_no_cap_is_ever_exceeded(a: Ingredient, b: Ingredient, rows: list[Any], data: Any):
    lengths, ingredients, prompts = (list(column) for column in zip(*rows, strict=True))
    keys = data.draw(st.permutations(range(len(rows))))
    notes = notes_of([*lengths, 7, 7], 0, [*keys, 100, 101], [*prompts, 9, 9])
    notes["ingredient"] = [*ingredients, 0, 1]
    choice = choose(notes, mixture_of(a=a, b=b))
    taken = choice.copies.astype(int)
    assert len(notes) == np.count_nonzero(taken) + sum(choice.left_out.values())
    for place, (ingredient, account) in enumerate(zip((a, b), choice.accounts, strict=True)):
        own = notes["ingredient"] == place
        assert account.got == (taken * notes["length"])[own].sum()
        assert account.taken == taken[own].sum()
        assert taken[own].max() <= (ingredient.max_epochs or 1)
        assert account.got <= (ingredient.max_tokens or account.got)
        assert account.taken <= (ingredient.max_records or account.taken)
        for prompt in set(prompts):
            assert np.count_nonzero(taken[own & (notes["prompt"] == prompt)]) <= (ingredient.max_per_prompt or 99)
        if account.why == AS_ASKED:
            assert abs(account.got - account.asked) <= max(notes["length"][own]) / 2
        else:
            assert account.got < account.asked + max(notes["length"][own])


@given(data=st.data())
def test_the_order_of_the_input_changes_nothing(data: Any) -> None:
    lengths = data.draw(st.lists(st.integers(1, 50), min_size=1, max_size=30))
    order = data.draw(st.permutations(range(len(lengths))))
    mixture = mixture_of(a=Ingredient(tokens=data.draw(st.integers(1, 900)), max_epochs=2, max_per_prompt=2))
    notes = notes_of(lengths, prompts=[length % 3 for length in lengths])
    assert choose(notes[order], mixture).copies.tolist() == choose(notes, mixture).copies[order].tolist()


def test_more_tokens_keep_the_records_that_fewer_had() -> None:
    notes = notes_of([3, 5, 2, 8, 1], keys=[4, 2, 5, 1, 3])
    taken = [choose(notes, mixture_of(a=Ingredient(tokens=n, max_epochs=3))).copies for n in range(1, 57)]
    assert all((after >= before).all() for before, after in pairwise(taken))


def test_a_mixture_file_says_what_it_takes(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(
        """
        tokens = 1_000
        max_epochs = 4
        [datasets.maths]
        weight = 2
        where = { difficulty = ["medium", "hard"], length = { min = 3, max = 5 }, checked = true }
        [datasets.agents]
        from = ["tau", "swe"]
        tokens = 10
        """
    )
    mixture = read_mixture(tmp_path / "m.toml")
    assert (mixture.tokens, mixture.max_epochs, mixture.weights) == (1000, 4, {"maths": Fraction(2)})
    assert mixture.by_dataset == {"maths": [0], "tau": [1], "swe": [1]}
    admits = mixture.ingredients["maths"].admits
    good = {"difficulty": "hard", "length": 5, "checked": True}
    assert admits(good.get)
    for change in ({"difficulty": "easy"}, {"difficulty": None}, {"length": 6}, {"length": 2}, {"checked": 1}):
        assert not admits({**good, **change}.get)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[datasets.a]", "give one of weight, tokens, epochs; it has none"),
        ("[datasets.a]\nweight=1\nepochs=2", "it has weight and epochs"),
        ("[datasets.a]\nweight=-1", "Expected `float` >= 0.0 - at `$.datasets[...].weight`"),
        ("[datasets.a]\nweight=inf", "finite"),
        ("[datasets.a]\ntoken=1", "unknown field `token`"),
        ("[datasets.a]\ntokens=0", "Expected `int` >= 1"),
        ("[datasets.a]\nepochs=1\nmax_epochs=2", "leave out max_epochs"),
        ("[datasets.a]\nepochs=1\nwhere={n={}}", "a range needs min or max"),
        ("tokens=5\n[datasets.a]\nepochs=1", "tokens is shared out by weight, and no data set has one"),
        ("datasets={}", "Expected `object` of length >= 1"),
        ("[datasets", "not TOML"),
    ],
)
def test_a_file_that_is_no_mixture_is_refused_with_the_reason(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "m.toml").write_text(text)
    with pytest.raises(UsageError) as refusal:
        read_mixture(tmp_path / "m.toml")
    assert message in refusal.value.message


def test_a_range_holds_numbers_alone() -> None:
    assert Range(min=1).holds(1) and not Range(min=1).holds(0.5)
    assert not any(Range(max=9).holds(value) for value in (None, "3", True))


def test_token_rows_come_out_whole_in_input_order_with_numbered_copies(tmp_path: Path) -> None:
    documents = random_documents(60, longest=50)
    folder = write_token_folder(tmp_path / "T", documents, shards=2, tokenizer="t1", chat_template="c1")
    mixture = mixture_of(maths=Ingredient(epochs=2.4), tools=Ingredient(epochs=0.5, where={"length": Range(max=20)}))
    summary, rows = mixed(mixture, folder, tmp_path / "M")
    by_id = {document.id: document for document in documents}
    places = [list(by_id).index(row["id"].split("#")[0]) for row in rows]
    assert places == sorted(places)
    for row in rows:
        original = by_id[row["id"].split("#")[0]].row()
        assert row["input_ids"] == original["input_ids"].tolist() and row["loss_mask"] == original["loss_mask"].tolist()
        assert {**row, "id": 0} == {**original, "id": 0, "input_ids": row["input_ids"], "loss_mask": row["loss_mask"]}
    copies = Counter(row["id"].split("#")[0] for row in rows if row["dataset"] == "maths")
    assert set(copies.values()) == {2, 3}
    repeated = next(name for name, count in copies.items() if count == 3)
    assert [row["id"] for row in rows if row["id"].split("#")[0] == repeated] == [
        repeated, f"{repeated}#2", f"{repeated}#3",
    ]  # fmt: skip
    accounts = {account["name"]: account for account in summary.facts["mixture"]}
    for name in ("maths", "tools"):
        own = [row for row in rows if row["dataset"] == name]
        assert (accounts[name]["got"], accounts[name]["taken"]) == (sum(row["length"] for row in own), len(own))
    assert all(row["length"] <= 20 for row in rows if row["dataset"] == "tools")
    counters = summary.counters
    assert counters.records_in - counters.rejected.total() + counters.notes["copies"] == counters.records_out
    manifest = ShardFolder(tmp_path / "M", "tokens").manifest
    assert (manifest["tokenizer"], manifest["chat_template"]) == ("t1", "c1")
    assert json.loads((tmp_path / "M" / "manifest.json").read_text())["accounts"] == summary.facts["mixture"]


def test_blocks_workers_and_shards_of_the_input_change_neither_rows_nor_their_order(tmp_path: Path) -> None:
    documents = random_documents(500, longest=60)
    mixture = mixture_of(3000, maths=Ingredient(weight=1), tools=Ingredient(weight=2))
    found = []
    for shards, options in ((1, {}), (4, {"rows_per_shard": 37}), (3, {"rows_per_shard": 100})):
        folder = write_token_folder(tmp_path / f"T{shards}", documents, shards)
        _, rows = mixed(mixture, folder, tmp_path / f"M{shards}", **options)
        found.append(rows)
    assert found[0] == found[1] == found[2]
    _, other = mixed(mixture, tmp_path / "T1", tmp_path / "other", seed=1)
    assert {row["id"] for row in other} != {row["id"] for row in found[0]}


def test_shards_are_filled_however_little_is_taken(tmp_path: Path) -> None:
    folder = write_token_folder(tmp_path / "T", random_documents(300, longest=20), shards=3)
    mixed(mixture_of(maths=Ingredient(epochs=0.1)), folder, tmp_path / "M", rows_per_shard=30)
    assert len(ShardFolder(tmp_path / "M").paths) == 1


def test_the_prompt_of_a_document_is_what_precedes_its_first_trained_token(tmp_path: Path) -> None:
    documents = [
        Document(f"{prompt}{sample}", [prompt, 9, sample, sample], [False, False, True, True])
        for prompt in range(3)
        for sample in range(5)
    ]
    folder = write_token_folder(tmp_path / "T", documents)
    _, rows = mixed(mixture_of(maths=Ingredient(epochs=1, max_per_prompt=2)), folder, tmp_path / "M")
    assert Counter(row["input_ids"][0] for row in rows) == {0: 2, 1: 2, 2: 2}


def test_a_filter_on_a_column_that_tokens_lack_is_refused(tmp_path: Path) -> None:
    folder = write_token_folder(tmp_path / "T", random_documents(3))
    with pytest.raises(UsageError, match="difficulty: not a column of token shards"):
        mixed(mixture_of(maths=Ingredient(epochs=1, where={"difficulty": "hard"})), folder, tmp_path / "M")


def records(path: Path, rows: list[dict[str, Any]]) -> Path:
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    path.write_text("".join(json.dumps({"messages": messages, **row}) + "\n" for row in rows))
    return path


def test_records_are_mixed_by_a_column_of_lengths_and_filtered_by_any_key(tmp_path: Path) -> None:
    rows = [
        {"id": f"r{n}", "dataset": "d", "difficulty": ("easy", "hard")[n % 2], "n": 10, "score": n / 10}
        for n in range(10)
    ]
    path = records(tmp_path / "in.jsonl", rows)
    ingredient = Ingredient(epochs=1, where={"difficulty": "hard", "score": Range(min=0.3), "length": 10})
    run = RunOptions(inputs=[str(path)], output=str(tmp_path / "out.jsonl"), workers=1)
    summary = run_mix(MixOptions(mixture_of(d=ingredient), GivenLengths("n")), run)
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["id"] for row in written] == ["r3", "r5", "r7", "r9"]
    assert written[0]["provenance"][-1]["stage"] == "mix"
    assert summary.tokens == 40
    assert summary.to_json()["mixture"][0]["got_loss"] is None


def test_faulty_lengths_stop_the_run_or_are_rejected_and_counted(tmp_path: Path) -> None:
    rows = [{"id": f"r{n}", "dataset": "d", "n": length} for n, length in enumerate([5, -1, None, 2.5, 7])]
    path = records(tmp_path / "in.jsonl", rows)
    options = MixOptions(mixture_of(d=Ingredient(epochs=1)), GivenLengths("n"))
    with pytest.raises(RecordError, match=r"in.jsonl:2: record r1: n is -1, not a number of tokens"):
        run_mix(options, RunOptions(inputs=[str(path)], output=str(tmp_path / "M"), workers=1))
    run = RunOptions(inputs=[str(path)], output=str(tmp_path / "Q"), workers=1, quarantine=True)
    summary = run_mix(options, run)
    assert summary.counters.rejected == Counter(bad_length=3)
    assert summary.tokens == 12
    rejected = (tmp_path / "Q" / "quarantine" / "part-00000.jsonl").read_text().splitlines()
    assert [json.loads(line)["record"]["id"] for line in rejected] == ["r1", "r2", "r3"]


def test_a_record_that_becomes_several_documents_is_taken_and_weighs_what_they_weigh(
    tmp_path: Path, sample_data: Path
) -> None:
    """Loss included: what the account says is what `render` makes of the mixture."""
    messages = [
        message
        for effort in ("low", "high")
        for message in (
            {"role": "user", "content": "Wie viel ist 3 mal 4?", "effort": effort},
            {"role": "assistant", "reasoning": "3 mal 4 ist 12.", "content": "12"},
        )
    ]
    path = records(tmp_path / "in.jsonl", [{"id": f"r{n}", "dataset": "d", "messages": messages} for n in range(3)])
    stage = RenderStage(str(sample_data / "tokenizer"))
    mixed = RunOptions(inputs=[str(path)], output=str(tmp_path / "mixed.jsonl"), workers=1)
    summary = run_mix(MixOptions(mixture_of(d=Ingredient(epochs=2)), RenderedLengths(stage)), mixed)
    rendered = run_stage(stage, RunOptions(inputs=[mixed.output], output=str(tmp_path / "tokens"), workers=1))
    assert (summary.counters.records_out, rendered.counters.records_out) == (6, 12)
    assert (summary.tokens, summary.loss_tokens) == (rendered.tokens, rendered.loss_tokens)
    assert summary.to_json()["mixture"][0]["got_loss"] == rendered.loss_tokens > 0


def test_two_records_of_one_id_are_refused(tmp_path: Path) -> None:
    twice = records(tmp_path / "twice.jsonl", [{"id": "x", "dataset": "d", "n": 1}] * 2)
    options = MixOptions(mixture_of(d=Ingredient(epochs=2)), GivenLengths("n"))
    with pytest.raises(ToolkitError, match="'x' occurs more than once"):
        run_mix(options, RunOptions(inputs=[str(twice)], output=str(tmp_path / "out.jsonl"), workers=1))


def test_a_resumed_mixture_writes_what_is_missing_and_refuses_another_one(tmp_path: Path) -> None:
    folder = write_token_folder(tmp_path / "T", random_documents(200, longest=20))
    mixture = mixture_of(maths=Ingredient(epochs=1), tools=Ingredient(epochs=1))
    _, whole = mixed(mixture, folder, tmp_path / "whole", rows_per_shard=50)
    for part in ((0, 2), (1, 2)):
        summary = run_mix(
            MixOptions(mixture),
            RunOptions(inputs=[str(folder)], output=str(tmp_path / "M"), workers=1, rows_per_shard=50, part=part),
        )
    assert summary.complete
    rows = [row for path in ShardFolder(tmp_path / "M").paths for row in pa.ipc.open_file(path).read_all().to_pylist()]
    assert rows == whole
    with pytest.raises(UsageError, match="begun from other inputs or options"):
        mixed(mixture_of(maths=Ingredient(epochs=0.5)), folder, tmp_path / "M", rows_per_shard=50, resume=True)


@settings(max_examples=25, deadline=None)
@given(asked=st.integers(1, 4000), seed=st.integers(0, 5))
def test_a_budget_is_met_within_half_a_record_for_each_data_set(asked: int, seed: int, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.getbasetemp() / "budget"
    if not folder.exists():
        write_token_folder(folder, random_documents(120, longest=90), shards=2)
    mixture = mixture_of(2 * asked, max_epochs=9, maths=Ingredient(weight=1), tools=Ingredient(weight=1))
    run = RunOptions(inputs=[str(folder)], output="-", workers=1, dry_run=True)
    for account in run_mix(MixOptions(mixture, seed=seed), run).facts["mixture"]:
        assert account["why"] == (AS_ASKED if account["taken"] else NOTHING_FITS)
        assert abs(account["got"] - account["asked"]) <= 45
