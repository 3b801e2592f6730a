"""The journal: nothing that was appended is lost, and torn ends do no harm."""

import json
import os
import subprocess
import sys

import pytest

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.teachers.journal import Journal, Replies
from sft_toolkit.teachers.journal_config import claim, read_config
from sft_toolkit.teachers.key_index import KeyIndex
from sft_toolkit.teachers.requests import Asking, Request
from sft_toolkit.teachers.teacher import RawReply


def key(number):
    return f"{number:016x}" * 2


def reply(text):
    return RawReply(200, json.dumps({"choices": [{"text": text}]}).encode())


def test_replies_are_found_again_by_whoever_opens_the_journal_next(tmp_path):
    journal = Journal(tmp_path)
    for number in range(100):
        journal.append(key(number), reply(f"Antwort {number}"))
    journal.close()
    for replies in (Replies.scan(tmp_path), Replies.load(tmp_path, (0, 1))):
        assert json.loads(replies.get(key(42)).body) == {"choices": [{"text": "Antwort 42"}]}
        assert replies.get(key(100)) is None
        assert key(99) in replies


@pytest.mark.parametrize("cut", [1, 2, 20, 60])
def test_a_torn_tail_is_cut_and_only_its_reply_is_missing(tmp_path, cut):
    journal = Journal(tmp_path)
    for number in range(3):
        journal.append(key(number), reply("x" * 50))
    journal.close()
    (path,) = tmp_path.glob("replies-*.jsonl")
    os.truncate(path, path.stat().st_size - cut)
    again = Journal(tmp_path)
    assert [key(number) in again.replies for number in range(3)] == [True, True, False]
    again.append(key(2), reply("once more"))
    again.close()
    assert b"once more" in Replies.load(tmp_path, (0, 1)).get(key(2)).body
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_a_reply_of_several_lines_becomes_one_line_with_its_digits(tmp_path):
    journal = Journal(tmp_path)
    journal.append(key(1), RawReply(200, b'{\r\n  "choices": [{"text": "a"}],\n  "cost": 16.20\n}'))
    journal.close()
    assert b"16.20" in Replies.scan(tmp_path).get(key(1)).body


def test_two_parts_of_a_job_write_their_own_files_and_read_each_others(tmp_path):
    first, second = Journal(tmp_path, (0, 2)), Journal(tmp_path, (1, 2))
    first.append(key(1), reply("eins"))
    second.append(key(2), reply("zwei"))
    first.close()
    second.close()
    replies = Replies.scan(tmp_path)
    assert b"eins" in replies.get(key(1)).body
    assert b"zwei" in replies.get(key(2)).body
    third = Journal(tmp_path, (0, 1))
    assert key(1) in third.replies
    assert key(2) in third.replies
    third.append(key(3), reply("drei"))
    third.close()
    assert b"drei" in Replies.load(tmp_path, (0, 1)).get(key(3)).body


def test_a_second_writer_of_the_same_file_is_refused(tmp_path):
    code = f"from sft_toolkit.teachers.journal import Journal; import pathlib; Journal(pathlib.Path({str(tmp_path)!r}))"
    journal = Journal(tmp_path)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    journal.close()
    assert "another run is writing it" in found.stderr


def test_a_changed_configuration_is_refused_by_name_and_taken_with_force(tmp_path):
    config = {"stage": "distill", "prefill": "none", "model": "a", "parameters": {"temperature": 0.7}, "seed": 0}
    claim(tmp_path, config, force=False)
    claim(tmp_path, config, force=False)
    with pytest.raises(UsageError, match=r"was begun with another model$"):
        claim(tmp_path, {**config, "model": "b"}, force=False)
    claim(tmp_path, {**config, "model": "b"}, force=True)
    assert read_config(tmp_path)["model"] == "b"


@pytest.mark.parametrize("other", ['{"model_type": "qwen3"}', "[]", "{}"])
def test_the_folder_of_something_else_is_no_journal_and_is_left_alone(tmp_path, other):
    (tmp_path / "config.json").write_text(other)
    with pytest.raises(ToolkitError, match="not what a journal holds"):
        claim(tmp_path, {"stage": "distill", "prefill": "none"}, force=True)
    assert (tmp_path / "config.json").read_text() == other


@pytest.mark.parametrize("damage", ["garbage", '{"key":"zz"}', '{"key":"zz","status":200,"reply":{}}', "", "\0" * 50])
def test_a_line_that_is_none_is_passed_over(tmp_path, damage):
    journal = Journal(tmp_path)
    for number in range(3):
        journal.append(key(number), reply("x"))
    journal.close()
    (path,) = tmp_path.glob("replies-*.jsonl")
    first, _, third = path.read_text().splitlines()
    path.write_text(f"{first}\n{damage}\n{third}\n")
    again = Journal(tmp_path)
    assert [key(number) in again.replies for number in range(3)] == [True, False, True]
    again.close()


def test_a_line_that_is_damaged_within_its_reply_is_told_by_its_place(tmp_path):
    journal = Journal(tmp_path)
    journal.append(key(1), reply("eins"))
    journal.close()
    (path,) = tmp_path.glob("replies-*.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"eins"', b'"ei\x00ns'))
    with pytest.raises(ToolkitError, match=r"replies-.*: the line at byte 0 is damaged"):
        Replies.scan(tmp_path).get(key(1))


def test_a_damaged_configuration_is_an_error_that_names_the_file(tmp_path):
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ToolkitError, match=r"config\.json: not JSON"):
        read_config(tmp_path)


def test_the_index_finds_each_of_many_keys_and_the_first_of_two_places(tmp_path):
    index = KeyIndex()
    keys = [f"{number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128:032x}" for number in range(1, 150_001)]
    for place, each in enumerate(keys):
        index.add(each, place)
    index.add(keys[7], 999_999)
    index.save(tmp_path / "index.npy")
    for found in (index, KeyIndex.load(tmp_path / "index.npy")):
        assert all(found.find(each) == place for place, each in enumerate(keys[:500]))
        assert found.find(keys[-1]) == len(keys) - 1
        assert found.find(key(5)) is None
        assert len(found) == len(keys)


def test_the_key_hangs_on_question_sample_opener_model_and_parameters_and_on_nothing_else():
    asking = Asking("m", "completions", {"temperature": 0.5, "top_p": 1})
    request = Request([{"role": "user", "content": "Frage"}], 0, "Gegeben ist:")
    same = Asking("m", "completions", {"top_p": 1, "temperature": 0.5})
    assert asking.key(request) == same.key(Request([{"role": "user", "content": "Frage"}], 0, "Gegeben ist:"))
    others = [
        asking.key(Request([{"role": "user", "content": "Frage!"}], 0, "Gegeben ist:")),
        asking.key(Request([{"role": "user", "content": "Frage"}], 1, "Gegeben ist:")),
        asking.key(Request([{"role": "user", "content": "Frage"}], 0, "Gesucht ist:")),
        asking.key(Request([{"role": "user", "content": "Frage"}], 0, None)),
        Asking("n", "completions", {"temperature": 0.5, "top_p": 1}).key(request),
        Asking("m", "completions", {"temperature": 0.6, "top_p": 1}).key(request),
        Asking("m", "completions", {"temperature": 0.5, "top_p": 1}, seed=1).key(request),
        Asking("m", "content", {"temperature": 0.5, "top_p": 1}).key(request),
    ]
    assert len({asking.key(request), *others}) == 9
