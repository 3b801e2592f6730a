"""Reasoning in text: what opens the content is taken out, the answer's wrapper goes, and mentions stay."""

from __future__ import annotations

import pytest

from sft_toolkit.errors import RecordError
from sft_toolkit.formats.dialects import read_assistant_text

TAGS = {
    "<think>": "</think>",
    "<seed:think>": "</seed:think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|channel>thought\n": "<channel|>",
}


def read(text: str, names: frozenset[str] | None = None):
    return read_assistant_text(text, tools_declared=names, tool_message_follows=False)


def parts(text: str, names: frozenset[str] | None = None):
    found = read(text, names)
    return found.reasoning, found.content


@pytest.mark.parametrize(("opening", "closing"), TAGS.items(), ids=list(TAGS))
def test_what_opens_the_content_is_reasoning(opening, closing):
    for before, inside, between, content in [
        ("", "Why.", "", "So."),
        ("\n \n", "\n\nWhy.\n\nAnd why.\n", "\n\n", "So.\n\nThus.\n"),
        ("", " Why \n", " ", "So."),
        ("", "a < b, {x}, [y], `z`\n```\ncode\n```", "\n", "```\ncode\n```"),
    ]:
        assert parts(f"{before}{opening}{inside}{closing}{between}{content}") == (inside.strip(), content)
    assert parts(f"{opening.upper()}Why.{closing.upper()}So.") == ("Why.", "So.")
    assert parts(f"{opening}\n\n{closing}\n\nSo.") == (None, "So.")
    assert parts(f"{opening}Why.{closing}") == ("Why.", "")
    assert parts(f"{opening}Why.{closing}\n\n    indented") == ("Why.", "    indented")


@pytest.mark.parametrize(("opening", "closing"), TAGS.items(), ids=list(TAGS))
def test_a_block_that_never_closes_refuses_the_record_and_one_amid_text_is_text(opening, closing):
    for text in (f"{opening}\nWhy", f" {opening} the tag `{closing}` closes it", f"{opening}"):
        with pytest.raises(RecordError) as refusal:
            read(text)
        assert refusal.value.reason == "unclosed_think"
        assert opening.strip() in refusal.value.detail
    assert parts(f"He said: {opening}x{closing} and left.") == (None, f"He said: {opening}x{closing} and left.")
    assert parts(f"`{opening}` opens, `{closing}` closes.") == (None, f"`{opening}` opens, `{closing}` closes.")


def test_a_closing_tag_alone_ends_the_reasoning_that_the_prompt_began():
    assert parts("Three by four.\n</think>\n\n0.75") == ("Three by four.", "0.75")
    assert parts("</think>\n\n0.75") == (None, "0.75")
    assert parts("Because `x` and\n```\ny\n```\n</THINK>Z") == ("Because `x` and\n```\ny\n```", "Z")
    assert parts("amid a fence:\n```py\nx = 1\n</think>\n\nx is 1.") == ("amid a fence:\n```py\nx = 1", "x is 1.")


@pytest.mark.parametrize(
    "text",
    [
        "The tag `</think>` ends them.",
        "```jinja\n{{ '</think>' }}\n```\nThat was it.",
        "~~~\n</think>\n~~~",
        "- item\n  ```\n  </think>\n  ```\n",
        "``</think>`` and ` </think> `",
        "It writes <think>x</think> first.",
        "A thinking </thinking> tag, a [/THINK] and ◁/think▷.",
        "Output: <output>x</output>",
        "<answer>14</answer>",
        "",
        " \n ",
        "Thought: none",
    ],
)
def test_mentions_of_tags_stay_text(text):
    assert parts(text) == (None, text)


def test_code_in_the_reasoning_hides_no_closing_tag_unless_it_mentions_it():
    assert parts("<think>the tag `</think>` closes\n</think>\nYes.") == ("the tag `</think>` closes", "Yes.")
    assert parts("<think>\n```\n</think>\n```\nwhy</think>Yes.") == ("```\n</think>\n```\nwhy", "Yes.")
    assert parts("<think>a fence:\n```py\nx = 1\n</think>\nYes.") == ("a fence:\n```py\nx = 1", "Yes.")
    assert parts("<think>a stray ` sign</think>Use `x`.") == ("a stray ` sign", "Use `x`.")
    assert parts("<think>fence:\n```py\nx\n</think>\nSo:\n```\ny\n```") == ("fence:\n```py\nx", "So:\n```\ny\n```")


WRAPPED = {
    "OpenThoughts": "<|begin_of_thought|>\n\nWhy.\n\n<|end_of_thought|>\n\n<|begin_of_solution|>So.<|end_of_solution|>",
    "Cohere": "<|START_THINKING|>Why.<|END_THINKING|><|START_RESPONSE|>So.<|END_RESPONSE|>",
    "OpenO1": "<Thought>\nWhy.\n</Thought>\n<Output>\nSo.\n</Output>\n",
    "thinking and output": "<thinking>Why.</thinking>\n\n<output>So.</output>",
}


@pytest.mark.parametrize("text", WRAPPED.values(), ids=WRAPPED)
def test_the_answers_wrapper_goes_where_it_holds_all_of_the_rest(text):
    assert parts(text) == ("Why.", "So.")


def test_a_wrapper_that_is_not_the_dialects_or_does_not_hold_all_stays():
    assert parts("<think>a</think><output>b</output>") == ("a", "<output>b</output>")
    assert parts("<thought>a</thought><output>b</output> c") == ("a", "<output>b</output> c")
    assert parts("<thought>a</thought>c <output>b</output>") == ("a", "c <output>b</output>")
    assert parts("<think>a</think>\n<answer>b</answer>") == ("a", "<answer>b</answer>")
    assert parts("<|START_RESPONSE|>So.<|END_RESPONSE|>") == (None, "So.")


def test_an_answer_cut_off_in_its_wrapper_refuses_the_record():
    with pytest.raises(RecordError, match="begin_of_solution"):
        read("<|begin_of_thought|>a<|end_of_thought|><|begin_of_solution|>So")


def test_two_blocks_are_one_where_they_are_equal_or_one_is_empty():
    assert parts("<think>\n\n</think>\n\n<think>Why.</think>So.") == ("Why.", "So.")
    assert parts("<think>Why.</think><think>Why.</think>So.") == ("Why.", "So.")
    with pytest.raises(RecordError, match="different reasoning"):
        read("<think>Why.</think><thinking>Why not.</thinking>So.")


ANALYSIS = "<|channel|>analysis<|message|>Why.<|end|>"
HARMONY = {
    "both": "<|channel|>analysis<|message|>Why.<|end|><|start|>assistant<|channel|>final<|message|>So.<|return|>",
    "whole": f"<|start|>assistant{ANALYSIS}<|start|>assistant<|channel|>final<|message|>So.<|end|>",
    "no end": "<|channel|>analysis<|message|>Why.<|end|>\n<|start|>assistant<|channel|>final<|message|>So.",
    "an end left out": "<|channel|>analysis<|message|>Why.<|start|>assistant<|channel|>final<|message|>So.<|return|>",
    "Muse Glimmer": "<|start|>assistant to=self<|message|>Why.<|eom|><|start|>assistant to=user<|message|>So.<|eot|>",
    "Muse Glimmer, cut header": " to=self<|message|>Why.<|eom|><|start|>assistant to=user<|message|>So.<|eot|>",
}


@pytest.mark.parametrize("text", HARMONY.values(), ids=HARMONY)
def test_channels_tell_reasoning_from_content(text):
    assert parts(text) == ("Why.", "So.")


def test_channels_hold_content_alone_several_thoughts_and_preambles():
    assert parts("<|channel|>final<|message|>So `<|end|>` it is.<|return|>") == (None, "So `<|end|>` it is.")
    twice = "<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>analysis<|message|>B<|end|>"
    assert parts(f"{twice}<|start|>assistant<|channel|>final<|message|>C<|return|>") == ("A\n\nB", "C")
    call = "<|start|>assistant<|channel|>commentary to=functions.f<|message|>{}"
    preamble = f"<|channel|>commentary<|message|>I look.<|end|>{call}"
    found = read(preamble, frozenset({"f"}))
    assert (found.content, [call.name for call in found.calls]) == ("I look.", ["f"])
    with pytest.raises(RecordError, match="analysis"):
        read("<|channel|>analysis<|message|>Why and")


def test_reacts_thought_and_final_answer_count_where_tools_are_declared():
    names = frozenset({"f"})
    assert parts("Thought: I know.\nFinal Answer: Yes,\n26 degrees.", names) == ("I know.", "Yes,\n26 degrees.")
    assert parts("Final Answer: Yes.", names) == (None, "Yes.")
    assert parts("Thought: I know.\nFinal Answer: Yes.") == (None, "Thought: I know.\nFinal Answer: Yes.")
    found = read("\nThought: First\nthis.\n\nAction: f\nAction Input: {}\n", names)
    assert (found.reasoning, found.content, found.calls[0].name) == ("First\nthis.", "", "f")
    with pytest.raises(RecordError, match="different reasoning"):
        read("<think>a</think>Thought: b\nAction: f\nAction Input: {}", names)
