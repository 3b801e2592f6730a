"""The effort stage: measuring lengths, fitting over blocks, the artefact, and what a label lies on."""

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from sft_toolkit.conversation import Conversation, Message
from sft_toolkit.errors import RecordError, ToolkitError, UsageError
from sft_toolkit.labelers.effort import Edges, EdgeTable
from sft_toolkit.running.options import RunOptions
from sft_toolkit.stage import Counters, Outcome
from sft_toolkit.stages.effort.apply import EffortStage
from sft_toolkit.stages.effort.edges import FittedEdges, read_edges
from sft_toolkit.stages.effort.fit import HISTOGRAM_SCHEMA, Histogram, fit_edges
from sft_toolkit.stages.effort.label import fit_and_label
from sft_toolkit.stages.effort.lengths import CountedLengths, GivenLengths, length_source
from sft_toolkit.stages.effort.report import lopsided_groups
from sft_toolkit.stages.effort.store import LengthStore, RememberedLengths


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory) -> Path:
    """One token per word; it would cut at 8 tokens, pad to 8 and add [CLS], none of which a length may show."""
    words = Tokenizer(models.WordLevel({"[UNK]": 0, "[CLS]": 1}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.post_processor = processors.TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 1)])
    words.enable_truncation(8)
    words.enable_padding(length=8)
    folder = tmp_path_factory.mktemp("words")
    words.save(str(folder / "tokenizer.json"))
    return folder


def user(text="Frage"):
    return Message("user", text)


def assistant(words=0, **fields):
    return Message("assistant", "Antwort", reasoning=" ".join(["wort"] * words) or None, **fields)


def conversation(*messages, name="r", **fields):
    return Conversation(name, list(messages), **fields)


def given_lengths(lengths, name="r", **fields):
    """A record with one exchange per length, measured by its key `n`."""
    messages = [message for _ in lengths for message in (user(), assistant())]
    return conversation(*messages, name=name, extra={"n": lengths}, **fields)


def edges_200_800(**levels):
    table = {"group": {}, "dataset": {}, "median": {}, "all": {(): Edges(100, 200.0, 800.0)}, **levels}
    return FittedEdges(EdgeTable(table), {"column": "n"}, 100, 0)


def labelled(batch, edges=None, seed=0, quarantine=False):
    outcome = Outcome(quarantine)
    stage = EffortStage(GivenLengths("n"), edges or edges_200_800(), seed)
    return list(stage.process(batch, outcome)), outcome


def test_lengths_sum_the_reasoning_of_an_exchange_and_nothing_else(tokenizer):
    record = conversation(
        Message("system", "one two three"),
        assistant(5),
        user("a b c d"),
        assistant(20),
        Message("tool", "result of many words"),
        assistant(3),
        user(),
        user(),
        assistant(),
        user(),
    )
    assert list(CountedLengths(str(tokenizer)).measure([record])) == [[23, 0, 0]]


def test_blank_reasoning_is_none(tokenizer):
    record = conversation(user(), Message("assistant", "Antwort", reasoning=" \n"))
    assert list(CountedLengths(str(tokenizer)).measure([record])) == [[0]]


def test_lengths_are_the_same_in_one_batch_or_many_and_beyond_the_texts_held_at_once(tokenizer):
    records = [conversation(user(), assistant(words), user(), assistant(1)) for words in (1, 250_000, 0, 3, 200_000)]
    lengths = CountedLengths(str(tokenizer))
    assert list(lengths.measure(records)) == [[1, 1], [250_000, 1], [0, 1], [3, 1], [200_000, 1]]
    assert [next(lengths.measure([record])) for record in records] == list(lengths.measure(records))


def test_a_column_gives_one_length_per_exchange_or_one_for_one():
    records = [given_lengths([3, 0]), conversation(user(), assistant(), extra={"n": Decimal("12.0")})]
    assert list(GivenLengths("n").measure(records)) == [[3, 0], [12]]


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        (None, "n is missing or null"),
        ([None], "n is missing or null"),
        (float("nan"), "n is nan, not a whole number"),
        (float("inf"), "n is inf, not a whole number"),
        (-1, "n is -1, not a whole number"),
        (Decimal("1.5"), "n is 1.5, not a whole number"),
        (Decimal("1e999"), "n is 1E+999, not a whole number"),
        (True, "n is True, not a whole number"),
        ("12", "n is 12, not a whole number"),
        ([1, 2], "n holds 2 lengths for 1 exchanges"),
        ([], "n holds 0 lengths for 1 exchanges"),
    ],
)
def test_a_length_that_is_none_is_a_fault_of_its_record(value, detail):
    (error,) = GivenLengths("n").measure([conversation(user(), assistant(), extra={"n": value})])
    assert isinstance(error, RecordError)
    assert error.reason == "bad_length"
    assert error.detail.startswith(detail)


def test_lengths_come_from_exactly_one_place():
    for both_or_none in ((None, None), (Path("tok"), "n")):
        with pytest.raises(UsageError, match="exactly one source"):
            length_source(*both_or_none)


def stored(folder, records, source):
    store = LengthStore()
    measured = [found for found in source.measure(records) if isinstance(found, list)]
    store.add([record.id for record, found in zip(records, measured, strict=True)], measured)
    return store.save(folder, source)


@given(data=st.data())
def test_remembered_lengths_are_those_of_their_source_in_any_order(data, tmp_path_factory):
    lengths = data.draw(st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=9))
    records = [given_lengths(found, f"id{index}") for index, found in enumerate(lengths)]
    remembered = stored(tmp_path_factory.mktemp("store"), records, GivenLengths("n"))
    batch = data.draw(st.permutations(records))
    assert list(remembered.measure(batch)) == [record.extra["n"] for record in batch]
    assert remembered.identity == {"column": "n"}


def test_remembered_lengths_are_not_counted_again(tokenizer, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "tokenizer.json").write_bytes((tokenizer / "tokenizer.json").read_bytes())
    records = [conversation(user(), assistant(words), name=f"id{words}") for words in (3, 1, 2)]
    stored(tmp_path, records, CountedLengths(str(copy)))
    (copy / "tokenizer.json").unlink()
    remembered = RememberedLengths(CountedLengths(str(copy)), str(tmp_path))
    assert list(remembered.measure(records)) == [[3], [1], [2]]


def test_what_was_not_remembered_is_measured_by_the_source(tmp_path):
    records = [given_lengths([index], f"id{index}") for index in range(6)]
    remembered = stored(tmp_path, records[::2], GivenLengths("n"))
    faulty = given_lengths([-1], "faulty")
    *sound, error = remembered.measure([*records, faulty])
    assert sound == [[0], [1], [2], [3], [4], [5]]
    assert isinstance(error, RecordError)


def test_an_id_that_was_there_before_is_not_remembered():
    store = LengthStore()
    store.add(["a", "b"], [[1], [2]])
    with pytest.raises(ToolkitError, match="'b' occurs more than once"):
        store.add(["c", "b"], [[3], [4]])


@pytest.mark.parametrize(("content", "message"), [(None, "No such file"), ("{}", "not a tokenizer")])
def test_a_folder_without_a_tokenizer_is_refused(tmp_path, content, message):
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ToolkitError, match=message):
        list(CountedLengths(str(tmp_path)).measure([conversation(user(), assistant(2))]))


def test_the_label_lies_on_the_user_message_and_the_last_one_on_the_record():
    (record,), _ = labelled([given_lengths([1600, 0, 400])])
    assert [message.effort for message in record.messages] == ["high", None, "none", None, "medium", None]
    assert record.effort == "medium"


def test_consecutive_user_messages_are_one_turn_and_its_first_message_bears_the_label():
    (record,), _ = labelled([conversation(user(), user(), assistant(), extra={"n": [400]})])
    assert [message.effort for message in record.messages] == ["medium", None, None]


def test_labels_that_the_input_brought_along_are_replaced():
    stale = given_lengths([400], effort="high")
    stale.messages[1].effort = "high"
    (record,), _ = labelled([stale])
    assert (record.effort, record.messages[0].effort, record.messages[1].effort) == ("medium", "medium", None)


def test_a_record_without_a_user_turn_has_no_label_and_is_counted():
    (record,), outcome = labelled([conversation(assistant(), effort="low", extra={"n": []})])
    assert record.effort is None
    assert outcome.counters.notes == {"records_without_user_turn": 1}


@given(st.lists(st.lists(st.integers(0, 3000), min_size=1, max_size=3), min_size=1, max_size=12), st.data())
def test_a_label_hangs_on_seed_id_and_exchange_alone(lengths, data):
    def labels(order, cuts):
        records = [given_lengths(lengths[index], name=f"id{index}") for index in order]
        batches = [records[start:end] for start, end in zip([0, *cuts], [*cuts, len(records)], strict=True)]
        out = [record for batch in batches for record in labelled(batch, seed=7)[0]]
        return {record.id: [message.effort for message in record.messages] for record in out}

    straight = list(range(len(lengths)))
    shuffled = data.draw(st.permutations(straight))
    cuts = sorted(data.draw(st.sets(st.sampled_from(straight))))
    assert labels(straight, []) == labels(shuffled, cuts)


def test_exchanges_of_one_record_and_runs_of_another_seed_draw_on_their_own():
    at_an_edge = [given_lengths([800] * 20, name=f"id{index}") for index in range(50)]
    one, other = (
        np.array(
            [[message.effort for message in record.messages[::2]] for record in labelled(at_an_edge, seed=seed)[0]]
        )
        for seed in (0, 1)
    )
    assert {"medium", "high"} == set(one.ravel())
    for first, second in ((one[:, 0], one[:, 1]), (one, other)):
        assert 0.3 < (first == second).mean() < 0.7


def test_a_bad_length_stops_the_run_or_is_rejected_and_its_neighbours_keep_their_labels():
    batch = [given_lengths([400], "a"), given_lengths([-1], "b"), given_lengths([0], "c")]
    with pytest.raises(RecordError, match=r"record b.* -1"):
        labelled(batch)
    records, outcome = labelled(batch, quarantine=True)
    assert [(record.id, record.effort) for record in records] == [("a", "medium"), ("c", "none")]
    assert outcome.counters.rejected == {"bad_length": 1}


def test_the_summary_counts_the_split_per_group_the_levels_and_the_degenerate_groups():
    edges = edges_200_800(
        group={("d", "easy"): Edges(20, 10.0, 10.0), ("d", "hard"): Edges(19, 5.0, 6.0)},
        dataset={("d",): Edges(199, 200.0, 800.0)},
    )
    batch = [
        given_lengths([9, 11, 0], "a", dataset="d", difficulty="easy"),
        given_lengths([400], "b", dataset="d", difficulty="hard"),
        given_lengths([1600], "c"),
    ]
    _, outcome = labelled(batch, edges)
    assert outcome.counters.splits == {
        "d / easy": {"low": 1, "high": 1, "none": 1},
        "d / hard": {"medium": 1},
        "- / -": {"high": 1},
    }
    assert outcome.counters.notes == {
        "exchanges_with_reasoning": 4,
        "exchanges_without_reasoning": 1,
        "edges_of_group": 2,
        "degenerate_edges": 2,
        "edges_of_dataset": 1,
        "edges_of_all": 1,
    }


def run_over(tmp_path, records, **options):
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(record.to_record()) + "\n" for record in records))
    return RunOptions(inputs=[str(path)], **options)


def some_records(count=600):
    rng = np.random.default_rng(1)
    return [
        given_lengths(rng.integers(0, 900, 2).tolist(), f"r{index}", dataset="ab"[index % 2], difficulty="easy")
        for index in range(count)
    ]


def test_edges_are_the_percentiles_of_each_groups_reasoned_exchanges(tmp_path):
    records = some_records()
    edges, counters = fit_edges(GivenLengths("n"), run_over(tmp_path, records))
    lengths = [length for record in records[::2] for length in record.extra["n"] if length]
    own = edges.table.levels["group"]["a", "easy"]
    assert [own.l30, own.l70] == pytest.approx(np.percentile(lengths, [30, 70]))
    assert own.n == len(lengths)
    assert edges.reasoned + edges.without_reasoning == 1200
    assert counters.records_in == 600


def test_edges_depend_on_neither_order_nor_blocks_nor_workers(tmp_path):
    records = some_records()
    texts = {
        fit_edges(GivenLengths("n"), run_over(tmp_path, order, rows_per_shard=rows, workers=workers))[0].to_text()
        for order, rows, workers in ((records, 10_000, 1), (records, 7, 1), (records[::-1], 100, 2))
    }
    assert len(texts) == 1


def test_a_histogram_that_was_folded_many_times_counts_as_one_that_never_was():
    rng = np.random.default_rng(2)
    frames = [
        pl.DataFrame(
            {"dataset": "d", "difficulty": "easy", "length": rng.integers(1, 2**20, 400_000), "count": 1},
            schema_overrides=HISTOGRAM_SCHEMA,
        )
        for _ in range(8)
    ]
    histogram = Histogram()
    for frame in frames:
        histogram.add(frame)
    at_once = pl.concat(frames)["length"].value_counts().sort("length")
    folded = histogram.folded().sort("length")
    assert folded["length"].to_list() == at_once["length"].to_list()
    assert folded["count"].to_list() == at_once["count"].to_list()


def test_the_artefact_reads_back_as_it_was_written(tmp_path):
    edges, _ = fit_edges(GivenLengths("n"), run_over(tmp_path, some_records()))
    edges.write(tmp_path / "edges.json")
    assert read_edges(tmp_path / "edges.json") == edges
    assert json.loads((tmp_path / "edges.json").read_text())["edges"][0] == {
        "level": "group",
        "dataset": "a",
        "difficulty": "easy",
        **edges.table.levels["group"]["a", "easy"]._asdict(),
    }


def test_a_record_without_data_set_and_difficulty_is_a_group_of_its_own(tmp_path):
    edges, _ = fit_edges(GivenLengths("n"), run_over(tmp_path, [given_lengths([5], "r")]))
    edges.write(tmp_path / "edges.json")
    assert read_edges(tmp_path / "edges.json").groups == {("", ""): Edges(1, 5.0, 5.0)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda file: file.update(schema="something else"), "something else"),
        (lambda file: file.update(schema_version=3), "schema_version"),
        (lambda file: file.update(min_group=0), "min_group"),
        (lambda file: file.pop("lengths"), "lengths"),
        (lambda file: file.update(percentiles=[20, 80]), "percentiles"),
        (lambda file: file["edges"][0].update(l30="200"), r"edges\[0\]\.l30"),
        (lambda file: file["edges"][0].update(l30=900.0), "l30 is above l70"),
        (lambda file: file["edges"][0].update(l30=0), ">= 1"),
        (lambda file: file["edges"][0].update(n=0), ">= 1"),
        (lambda file: file["edges"][0].update(dataset="d"), "level all takes the keys: none"),
        (lambda file: file["edges"].append(file["edges"][0]), "occurs twice"),
        (lambda file: file["edges"].clear(), "no edges of level all"),
    ],
)
def test_a_malformed_artefact_is_refused_saying_what_is_wrong(tmp_path, change, message):
    file = json.loads(edges_200_800().to_text())
    change(file)
    (tmp_path / "edges.json").write_text(json.dumps(file))
    with pytest.raises(ToolkitError, match=message):
        read_edges(tmp_path / "edges.json")


def test_edges_of_version_1_label_small_data_sets_by_their_own_lengths(tmp_path):
    file = json.loads(edges_200_800().to_text())
    del file["min_group"]
    rows = [
        {"level": "group", "dataset": "d", "difficulty": "easy", "n": 20, "l30": 5, "l70": 9},
        {"level": "group", "dataset": "e", "difficulty": "easy", "n": 3, "l30": 50, "l70": 90},
        {"level": "dataset", "dataset": "e", "n": 3, "l30": 50, "l70": 90},
        {"level": "difficulty", "difficulty": "easy", "n": 500, "l30": 1, "l70": 2},
    ]
    (tmp_path / "edges.json").write_text(json.dumps({**file, "schema_version": 1, "edges": [*rows, *file["edges"]]}))
    table = read_edges(tmp_path / "edges.json").table
    assert table.find("d", "easy") == ("group", Edges(20, 5.0, 9.0))
    assert table.find("e", "easy") == ("median", Edges(3, 50.0, 90.0))
    assert table.find("new", "easy") == ("all", Edges(100, 200.0, 800.0))


def test_another_min_group_is_kept_in_the_artefact_and_holds_where_it_is_applied(tmp_path):
    records = [given_lengths([number + 1], f"r{number}", dataset="d", difficulty="easy") for number in range(30)]
    for few, level in ((30, "group"), (31, "median")):
        edges, _ = fit_edges(GivenLengths("n"), run_over(tmp_path, records), min_group=few)
        edges.write(tmp_path / "edges.json")
        assert read_edges(tmp_path / "edges.json").table.find("d", "easy")[0] == level


def counted(**splits):
    counters = Counters()
    counters.splits = {group: Counter(split) for group, split in splits.items()}
    return counters


@pytest.mark.parametrize(
    ("split", "named"),
    [
        ({"high": 20}, True),
        ({"high": 19, "none": 50}, False),
        ({"medium": 13, "low": 4, "high": 3}, True),
        ({"medium": 12, "low": 4, "high": 4}, False),
        ({"low": 50, "medium": 25, "high": 24}, False),  # 99 exchanges
        ({"low": 50, "medium": 25, "high": 25}, True),
        ({"low": 44, "medium": 30, "high": 26}, False),
        ({"low": 10, "medium": 45, "high": 45}, True),
    ],
)
def test_groups_far_from_30_40_30_are_named(split, named):
    assert list(lopsided_groups(counted(g=split))) == ["g"] * named


def test_small_groups_are_weighed_together():
    small = {f"g{number}": {"medium": 1} for number in range(30)}
    assert lopsided_groups(counted(**small)) == {
        "all 30 groups of fewer than 20": "0% low, 100% medium, 0% high of 30 exchanges with reasoning"
    }
    assert lopsided_groups(counted(**dict(list(small.items())[:19]))) == {}


def test_opening_prompts_with_two_or_more_lengths_are_counted(tmp_path):
    asked = [("p", 5), ("p", 5), ("q", 5), (" q ", 7), ("r", 1), ("s", 0), ("s", 3), ("s", 3), ("t", 9)]
    records = []
    for number, (question, length) in enumerate(asked):
        messages = [user(question), assistant(), user("Und dann?"), assistant()]
        records.append(conversation(*messages, name=f"r{number}", extra={"n": [length, number]}))
    records.append(conversation(assistant(), name="greets", extra={"n": []}))
    expected = {"distinct": 5, "repeated": 3, "contrasted": 2}  # q and s
    for rows in (10_000, 2):
        run = run_over(tmp_path, records, output=str(tmp_path / f"out{rows}.jsonl"), rows_per_shard=rows, workers=1)
        summary, _ = fit_and_label(GivenLengths("n"), run)
        assert summary.facts["opening_prompts"] == expected


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[]", b'{"schema": NaN}'])
def test_what_is_no_artefact_at_all_is_refused(tmp_path, content):
    (tmp_path / "edges.json").write_bytes(content)
    with pytest.raises(ToolkitError, match=r"edges\.json: not a file of edges: "):
        read_edges(tmp_path / "edges.json")


def test_edges_of_another_tokenizer_are_refused(tokenizer, tmp_path):
    (tmp_path / "tokenizer.json").write_text((tokenizer / "tokenizer.json").read_text() + "\n")
    fitted = FittedEdges(edges_200_800().table, CountedLengths(str(tmp_path)).identity, 100, 0)
    with pytest.raises(ToolkitError, match="fitted with tokenizer"):
        EffortStage(CountedLengths(str(tokenizer)), fitted)


def test_options_hash_changes_with_seed_edges_and_lengths():
    stages = [
        EffortStage(GivenLengths("n"), edges_200_800()),
        EffortStage(GivenLengths("n"), edges_200_800(), seed=1),
        EffortStage(GivenLengths("m"), edges_200_800()),
        EffortStage(GivenLengths("n"), edges_200_800(dataset={("d",): Edges(100, 1.0, 2.0)})),
    ]
    assert len({stage.options_hash for stage in stages}) == len(stages)
