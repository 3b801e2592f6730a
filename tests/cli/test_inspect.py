"""`kolibri-sft inspect` as a person runs it: golden text in a pipe, colour and pager on a terminal, pages."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.byte_tokenizer import write_byte_tokenizer
from tests.conftest import RunCli, cli_command
from tests.terminal import bare, on_terminal

WEATHER = {
    "id": "ulm",
    "dataset": "weather",
    "tools": [{"type": "function", "function": {"name": "get", "parameters": {"type": "object"}}}],
    "messages": [
        {"role": "user", "content": "Warm?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "got", "arguments": {"t": 16.20}}}],
            "weight": 0,
            "mask_reason": "unknown_tool",
            "mask_detail": "got is not declared",
        },
        {"role": "tool", "tool_call_id": "c1", "content": "Error"},
        {"role": "assistant", "reasoning": "Hm.\nNo tool.", "content": "No idea.\nSorry."},
    ],
}
AS_MESSAGES = """\
ulm
  from      {path}:1
  labels    dataset weather
  messages  4
  turns     1 trained, 1 masked (1)
  tools     get
  ⟦…⟧ carries loss

── 0 user
Warm?
── 1 assistant · weight 0 · unknown_tool: got is not declared
call got {{"t":16.2}} c1
── 2 tool · answers c1
Error
── 3 assistant
reasoning ⟦Hm.
No tool.⟧
⟦No idea.
Sorry.⟧
"""
# A token is a byte or a control token: message 0 has 1 + 5 + 5 + 1 + 1 (header, text, end, line break), message 1
# 1 + 10 + 6 + 41 + 1 + 1, message 3 1 + 10 and, with loss, 7 + 12 + 8 + 15 + 1, and a line break.
RENDERED = """\
ulm
  from         {path}:1
  labels       dataset weather
  messages     4
  turns        1 trained, 1 masked (1)
  tools        get
  tokens       141
  loss tokens  43 (30.5%)
  cost         19,881
  notes        tools_not_rendered 1
  ⟦…⟧ carries loss

── 0 user · 13 tokens
<|im_start|>user
Warm?<|im_end|>
── 1 assistant · weight 0 · unknown_tool: got is not declared · 60 tokens
<|im_start|>assistant
<call>{{"name": "got", "arguments": {{"t": 16.2}}}}<|im_end|>
── 2 tool · 13 tokens
<|im_start|>tool
Error<|im_end|>
── 3 assistant · 55 tokens, 43 with loss
<|im_start|>assistant
⟦<think>Hm.
No tool.</think>No idea.
Sorry.<|im_end|>⟧
"""
HOSTILE = {
    "id": "<img src=x>\x1b[2J",
    "messages": [
        {"role": "user", "content": "<script>alert(1)</script>\x1b]0;owned\x07 \u202eevil\r\x9b1m"},
        {"role": "assistant", "content": "</pre><b>x</b>&amp;\x1b[31mred\x00"},
    ],
}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_byte_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_records(tmp_path_factory.mktemp("records") / "r.jsonl", WEATHER, talk("a-1"), talk("a-2"), HOSTILE)


@pytest.fixture(scope="module")
def shards(records: Path, tokenizer: Path, run_cli: RunCli) -> Path:
    """Folders of the same records: R records, T tokens, P packed into sequences of 200 tokens."""
    folder = records.parent
    for arguments in (
        ("convert", records, "-o", folder / "R"),
        ("render", records, "--tokenizer", tokenizer, "-o", folder / "T"),
        ("pack", folder / "T", "--capacity", "200", "--no-shuffle", "-o", folder / "P"),
    ):
        done = run_cli(*arguments)
        assert done.returncode == 0, done.stderr
    return folder


def talk(identity: str) -> dict[str, Any]:
    question, answer = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": f"é {identity}"}
    return {"id": identity, "messages": [question, answer]}


def write_records(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def body(output: bytes) -> str:
    """What stands below the head."""
    return output.decode().partition("\n\n")[2]


def test_messages_stand_in_brackets_where_they_carry_loss(run_cli: RunCli, records: Path) -> None:
    done = run_cli("inspect", records, "ulm")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == AS_MESSAGES.format(path=records)


def test_a_rendered_record_brackets_exactly_its_loss_tokens(run_cli: RunCli, records: Path, tokenizer: Path) -> None:
    done = run_cli("inspect", records, "ulm", "--tokenizer", tokenizer)
    assert done.stdout.decode() == RENDERED.format(path=records)


def test_of_a_record_with_several_efforts_each_document_that_render_makes_is_shown(
    run_cli: RunCli, tmp_path: Path, sample_data: Path
) -> None:
    messages = [
        {"role": "user", "content": "Why?", "effort": "high"},
        {"role": "assistant", "reasoning": "Let us see.", "content": "So."},
        {"role": "user", "content": "And?", "effort": "low"},
        {"role": "assistant", "reasoning": "Hm.", "content": "Thus."},
    ]
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"id": "r", "messages": messages}) + "\n")
    rendered = ("inspect", path, "r", "--tokenizer", sample_data / "tokenizer")
    last, first = (run_cli(*rendered, *more).stdout.decode() for more in ((), ("--document", "0")))
    assert last.startswith("r#1\n") and "Reasoning effort: low" in last and "So." not in last.split("⟦", 2)[2]
    assert first.startswith("r#0\n") and "Reasoning effort: high" in first and "And?" not in first
    assert "this is r#1; choose another with --document (0: r#0)" in last
    refused = run_cli(*rendered, "--document", "2")
    assert refused.returncode == 2
    assert refused.stderr == b"error: record 'r' gives 2 documents, from 0: there is no 2\n"


def test_without_an_id_the_first_row_is_shown_and_rows_count_from_0(run_cli: RunCli, records: Path) -> None:
    assert run_cli("inspect", records).stdout == run_cli("inspect", records, "ulm").stdout
    assert body(run_cli("inspect", records, "--row", "2").stdout) == "── 0 user\nHi\n── 1 assistant\n⟦é a-2⟧\n"


def test_records_come_from_stdin_too(run_cli: RunCli) -> None:
    done = run_cli("inspect", "-", "a-1", stdin=json.dumps(talk("a-1")).encode() + b"\n")
    assert body(done.stdout) == "── 0 user\nHi\n── 1 assistant\n⟦é a-1⟧\n"


def test_a_record_folder_shows_what_its_source_shows(run_cli: RunCli, shards: Path, records: Path) -> None:
    for arguments in (["a-2"], ["--row", "2"]):
        done = run_cli("inspect", shards / "R", *arguments)
        assert body(done.stdout) == body(run_cli("inspect", records, "a-2").stdout)


def test_tokens_apart_show_every_boundary_and_line_break(run_cli: RunCli, records: Path, tokenizer: Path) -> None:
    done = run_cli("inspect", records, "a-1", "--tokenizer", tokenizer, "--tokens")
    assert body(done.stdout) == (
        "── 0 user · 10 tokens\n"
        "<|im_start|>│u│s│e│r│↵\n"
        "│H│i│<|im_end|>│↵\n"
        "── 1 assistant · 19 tokens, 7 with loss\n"
        "<|im_start|>│a│s│s│i│s│t│a│n│t│↵\n"
        "⟦é││ │a│-│1│<|im_end|>⟧↵\n"
    )


def test_a_token_shard_decodes_to_the_rendered_text(run_cli: RunCli, shards: Path, tokenizer: Path) -> None:
    shown = body(run_cli("inspect", shards / "T", "a-1", "--tokenizer", tokenizer).stdout)
    assert shown == (
        "── document 0 a-1 · 29 tokens, 7 with loss\n"
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n⟦é a-1<|im_end|>⟧\n"
    )
    assert shown == body(run_cli("inspect", shards / "T", "--row", "1", "--tokenizer", tokenizer).stdout)
    single = run_cli("inspect", shards / "T" / "part-00000.arrow", "a-1", "--tokenizer", tokenizer)
    assert shown == body(single.stdout)


def test_a_character_of_two_tokens_is_shown_where_it_ends(run_cli: RunCli, shards: Path, tokenizer: Path) -> None:
    done = run_cli("inspect", shards / "T", "a-1", "--tokenizer", tokenizer, "--tokens")
    assert "│↵\n⟦│é│ │a│-│1│<|im_end|>⟧↵\n" in body(done.stdout)


def test_a_packed_sequence_shows_its_documents_and_totals(run_cli: RunCli, shards: Path, tokenizer: Path) -> None:
    done = run_cli("inspect", shards / "P", "--row", "0", "--tokenizer", tokenizer)
    head, _, text = done.stdout.decode().partition("\n\n")
    documents = re.findall(r"── document (\d) (\S+) · (\d+) tokens", text)
    assert documents == [("0", "ulm", "141"), ("1", "a-1", "29"), ("2", "a-2", "29")]
    facts = dict(line.strip().split(maxsplit=1) for line in head.splitlines()[1:-1] if "loss" not in line)
    assert facts["documents"] == "3"
    assert facts["tokens"] == "199"
    assert facts["cost"] == f"{141**2 + 29**2 + 29**2:,}"


def test_an_id_picks_one_document_out_of_a_packed_sequence(run_cli: RunCli, shards: Path, tokenizer: Path) -> None:
    done = run_cli("inspect", shards / "P", "a-1", "--tokenizer", tokenizer)
    assert body(done.stdout).startswith("── document 1 a-1 · 29 tokens, 7 with loss\n<|im_start|>user\nHi")
    assert "document 0" not in body(done.stdout)
    assert "shown        document 1; --row shows all" in done.stdout.decode()


def test_token_ids_are_shown_where_no_tokenizer_is_given(run_cli: RunCli, shards: Path) -> None:
    shown = run_cli("inspect", shards / "T", "a-1").stdout.decode()
    assert "warning: token ids are shown; add --tokenizer to see text" in shown
    first, _, rest = body(shown.encode()).splitlines()[1].partition(" ")
    assert first == "256"
    assert len(re.findall(r"\d+", rest)) == 28


def test_a_tokenizer_that_did_not_make_the_tokens_is_warned_of(run_cli: RunCli, shards: Path, tmp_path: Path) -> None:
    other = write_byte_tokenizer(tmp_path, control=("<|im_end|>", "<|im_start|>"))
    shown = run_cli("inspect", shards / "P", "--row", "0", "--tokenizer", other).stdout.decode()
    assert "warning: made with another tokenizer" in shown


@pytest.mark.parametrize("what", ["r.jsonl", "R", "T", "P"])
def test_a_missing_id_is_an_error_that_names_near_ones(run_cli: RunCli, shards: Path, what: str) -> None:
    done = run_cli("inspect", shards / what, "a-7")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == f"error: {shards / what}: no id 'a-7' among 4; near it: a-1, a-2\n"


def test_a_number_that_is_no_id_is_told_of_rows(run_cli: RunCli, records: Path) -> None:
    assert "--row 2 shows the row of that number" in run_cli("inspect", records, "2").stderr.decode()


@pytest.mark.parametrize("what", ["r.jsonl", "R", "T"])
def test_a_row_beyond_the_last_is_an_error(run_cli: RunCli, shards: Path, what: str) -> None:
    done = run_cli("inspect", shards / what, "--row", "4")
    assert done.returncode == 1
    assert done.stderr.decode() == f"error: {shards / what}: no row 4, it holds 4; rows count from 0\n"


@pytest.mark.parametrize(
    ("what", "options", "said"),
    [
        ("r.jsonl", ["ulm", "--row", "1"], "both say what to show"),
        ("r.jsonl", ["--tokens"], "--tokens needs --tokenizer"),
        ("r.jsonl", ["--chat-template", "x.jinja"], "--chat-template needs --tokenizer"),
        ("T", ["--tokenizer", ".", "--chat-template", "x.jinja"], "inspect the records instead"),
        ("nowhere", [], "no such file or folder"),
    ],
)
def test_options_that_contradict_each_other_are_wrong_use(
    run_cli: RunCli, shards: Path, what: str, options: list[str], said: str
) -> None:
    done = run_cli("inspect", shards / what, *options)
    assert done.returncode == 2
    assert said in done.stderr.decode()


def test_a_record_that_a_template_cannot_carry_is_named_with_the_reason(
    run_cli: RunCli, records: Path, tmp_path: Path
) -> None:
    mute = (
        "{% for message in messages %}{{ '<|im_start|>' + message.role + message.content + '<|im_end|>' }}{% endfor %}"
    )
    done = run_cli("inspect", records, "ulm", "--tokenizer", write_byte_tokenizer(tmp_path, mute))
    assert done.returncode == 1
    assert "record 'ulm'" in done.stderr.decode() and "tool calls" in done.stderr.decode()


def test_escape_sequences_in_data_never_reach_the_terminal(run_cli: RunCli, records: Path, tokenizer: Path) -> None:
    for options in ([], ["--tokenizer", tokenizer], ["--tokenizer", tokenizer, "--tokens"]):
        done = run_cli("inspect", records, "--row", "3", *options)
        shown = done.stdout.decode()
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown)
        assert shown.startswith("<img src=x>␛[2J\n")
    assert (
        "<script>alert(1)</script>␛]0;owned␇ ⟨U+202E⟩evil␍⟨U+009B⟩1m"
        in run_cli("inspect", records, "--row", "3").stdout.decode()
    )


class _Page(HTMLParser):
    """Tags as a browser sees them, with what they hold and what they would fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.marked = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attributes if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.tags[-1:] == ["mark"]:
            self.marked += data

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(f"/{tag}")


@pytest.mark.parametrize("tokens", [[], ["--tokens"]])
def test_a_page_shows_a_hostile_record_as_plain_text(
    run_cli: RunCli, records: Path, tokenizer: Path, tmp_path: Path, tokens: list[str]
) -> None:
    file = tmp_path / "page.html"
    done = run_cli("inspect", records, "--row", "3", "--tokenizer", tokenizer, *tokens, "--html", file)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", f"wrote {file}\n".encode())
    page = _Page(file.read_text())
    assert {"script", "b", "img"} & set(page.tags) == set()
    assert page.links == []
    assert "url(" not in file.read_text() and "@import" not in file.read_text()
    assert "<script>alert(1)</script>␛]0;owned␇" in page.text
    assert page.marked == "marked text</pre><b>x</b>&amp;␛[31mred␀<|im_end|>"
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", file.read_text())


def test_a_terminal_shows_loss_in_green_and_wraps_words(records: Path, tokenizer: Path) -> None:
    code, seen = on_terminal(["inspect", records, "ulm", "--tokenizer", tokenizer, "--no-pager"], NO_COLOR="")
    assert code == 0
    assert "\x1b[32m<think>Hm.\x1b[0m\x1b[2m↵\x1b[0m\n\x1b[32mNo tool.</think>No idea.\x1b[0m" in seen
    assert "\x1b[32mSorry.\x1b[0m\x1b[1;32m<|im_end|>\x1b[0m\n" in seen
    assert "⟦" not in seen
    assert "\x1b[1;33m── 1 assistant\x1b[0m\x1b[33m · weight 0 · unknown_tool: got is not declared · 60 tokens" in seen
    assert max(map(len, bare(seen).splitlines())) == 80


def test_a_terminal_without_colour_gets_brackets(records: Path, tokenizer: Path) -> None:
    _, seen = on_terminal(["inspect", records, "a-1", "--tokenizer", tokenizer, "--no-pager"], NO_COLOR="1")
    assert "⟦é a-1<|im_end|>⟧" in bare(seen)
    assert "\x1b[32m" not in seen


def test_the_pager_is_what_the_environment_names(records: Path) -> None:
    code, seen = on_terminal(["inspect", records, "a-1"], PAGER="sed s/^/paged:/", NO_COLOR="1")
    assert code == 0
    assert "paged:⟦é a-1⟧" in bare(seen)


@pytest.mark.skipif(shutil.which("less") is None, reason="less is not installed")
def test_colours_pass_through_less_whatever_its_options(records: Path) -> None:
    code, seen = on_terminal(["inspect", records, "a-1"], PAGER="less", LESS="-FX", NO_COLOR="")
    assert code == 0
    assert "\x1b[32mé a-1" in seen
    assert "ESC[" not in seen


def test_leaving_the_pager_early_is_no_error(records: Path, tmp_path: Path) -> None:
    long = write_records(tmp_path / "long.jsonl", {**talk("x"), "messages": talk("x")["messages"] * 20_000})
    code, seen = on_terminal(["inspect", long], PAGER="head -n 1")
    assert code == 0
    assert "Traceback" not in seen


@pytest.mark.parametrize("pager", ["no-such-pager", "less '"])
def test_a_pager_that_is_not_there_is_done_without(records: Path, pager: str) -> None:
    code, seen = on_terminal(["inspect", records, "a-1"], PAGER=pager, NO_COLOR="1")
    assert code == 0 and "a-1" in seen


def test_a_reader_that_stops_early_ends_with_141(records: Path, tmp_path: Path) -> None:
    long = write_records(tmp_path / "long.jsonl", {**talk("x"), "messages": talk("x")["messages"] * 20_000})
    process = subprocess.Popen(cli_command("inspect", long), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=60) == 141
