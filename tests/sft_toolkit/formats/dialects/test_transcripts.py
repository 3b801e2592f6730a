"""Transcripts and results in text: which markers cut a dialogue, what stays in a message, what is refused."""

from __future__ import annotations

import pytest

from sft_toolkit.errors import RecordError
from sft_toolkit.formats.dialects import read_tool_response, read_transcript

TALK = [("user", "Hi there."), ("assistant", "Hello!"), ("user", "Bye."), ("assistant", "See you.")]
STYLES = {
    "Guanaco": "### Human: Hi there.### Assistant: Hello!### Human: Bye.### Assistant: See you.",
    "Guanaco over lines": "### Human: Hi there.\n### Assistant: Hello!\n\n### Human:\nBye.\n### Assistant:\nSee you.\n",
    "ChatML": "<|im_start|>user\nHi there.<|im_end|>\n<|im_start|>assistant\nHello!<|im_end|>\n"
    "<|im_start|>user\nBye.<|im_end|>\n<|im_start|>assistant\nSee you.<|im_end|>",
    "Llama 2": "<s>[INST] Hi there. [/INST] Hello! </s><s>[INST] Bye. [/INST] See you. </s>",
    "Mistral": "<s>[INST]Hi there.[/INST]Hello!</s>[INST]Bye.[/INST]See you.</s>",
    "glaive": "USER: Hi there.\n\n\nASSISTANT: Hello! <|endoftext|>\n\n\nUSER: Bye.\n\n\nASSISTANT: See you.\n\n\n",
    "hh-rlhf": "\n\nHuman: Hi there.\n\nAssistant: Hello!\n\nHuman: Bye.\n\nAssistant: See you.",
    "Vicuna": "USER: Hi there. ASSISTANT: Hello!</s>USER: Bye. ASSISTANT: See you.</s>",
    "lines": "Human: Hi there.\nAssistant: Hello!\nHuman: Bye.\nAssistant: See you.",
}


@pytest.mark.parametrize("text", STYLES.values(), ids=STYLES)
def test_every_style_is_cut_at_its_markers(text):
    assert read_transcript(text) == TALK


def test_system_prompts_are_read_in_each_styles_place():
    assert read_transcript("<|im_start|>system\nBe brief.<|im_end|>\n" + STYLES["ChatML"]) == [
        ("system", "Be brief."),
        *TALK,
    ]
    inst = "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi there. [/INST] Hello! </s>"
    assert read_transcript(inst) == [("system", "Be brief."), *TALK[:2]]
    assert read_transcript(f"A chat between two. {STYLES['Vicuna']}") == [("system", "A chat between two."), *TALK]
    assert read_transcript(f"SYSTEM: Be brief.\n\n{STYLES['glaive']}") == [("system", "Be brief."), *TALK]
    assert read_transcript("SYSTEM: Only this.\nWith lines.") == [("system", "Only this.\nWith lines.")]
    assert read_transcript(f"### System: Be brief.\n{STYLES['Guanaco']}") == [("system", "Be brief."), *TALK]


def test_results_are_messages_of_the_tool():
    text = 'USER: q\n\n\nASSISTANT: <functioncall> {} <|endoftext|>\n\n\nFUNCTION RESPONSE: {"a": 1}\n\n\nASSISTANT: a'
    assert read_transcript(text) == [
        ("user", "q"),
        ("assistant", "<functioncall> {}"),
        ("tool", '{"a": 1}'),
        ("assistant", "a"),
    ]
    chatml = "<|im_start|>user\nq<|im_end|>\n<|im_start|>tool\n1<|im_end|>\n<|im_start|>assistant\na"
    assert read_transcript(chatml) == [("user", "q"), ("tool", "1"), ("assistant", "a")]


def test_markers_count_only_where_the_style_has_them():
    text = (
        "USER: What does ASSISTANT: mean?\n\nIt says Human: too.\n\nASSISTANT: A label.\n\nNote: USER: is one as well."
    )
    assert read_transcript(text) == [
        ("user", "What does ASSISTANT: mean?\n\nIt says Human: too."),
        ("assistant", "A label.\n\nNote: USER: is one as well."),
    ]
    quoted = "\n\nHuman: Quote it.\n\nAssistant: He wrote:\nHuman: hi"
    assert read_transcript(quoted) == [("user", "Quote it."), ("assistant", "He wrote:\nHuman: hi")]
    assert read_transcript("#### Human: x\n### Human: q### Assistant: a")[-2:] == [("user", "q"), ("assistant", "a")]


@pytest.mark.parametrize("text", ["", "The mill stood at the bend.", "Note: human: x", "a [inst] b", "Humans: us"])
def test_a_text_without_markers_is_refused(text):
    with pytest.raises(RecordError) as refusal:
        read_transcript(text)
    assert refusal.value.reason == "no_transcript"


def test_a_speaker_nobody_knows_is_refused_by_name():
    with pytest.raises(RecordError, match="narrator"):
        read_transcript("<|im_start|>user\nq<|im_end|>\n<|im_start|>narrator\nx<|im_end|>")


def test_an_empty_turn_of_the_assistant_stays_for_the_reader_to_judge():
    assert read_transcript("### Human: q### Assistant:") == [("user", "q"), ("assistant", "")]


@pytest.mark.parametrize(
    ("text", "results"),
    [
        ('<tool_response>\n{"t": 12}\n</tool_response>', ['{"t": 12}']),
        ("<tool_response>9</tool_response>", ["9"]),
        ("\n<tool_response>\n9\n</tool_response>\n<tool_response>\n-2\n</tool_response>\n", ["9", "-2"]),
        ("<tool_response>\n</tool_response>", [""]),
        ("<tool_response>a </tool_response> b</tool_response>", ["a </tool_response> b"]),
        ("<tool_response>a</tool_response> and more", None),
        ("It said <tool_response>a</tool_response>", None),
        ("<tool_response>a", None),
        ("12", None),
    ],
)
def test_results_are_taken_out_of_their_blocks_where_nothing_else_stands(text, results):
    assert read_tool_response(text) == results
