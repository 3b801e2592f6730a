"""One text that holds a whole dialogue, cut at the markers of a known style.

    ### Human: … ### Assistant: …                      Guanaco (also ### System:, ### User:), anywhere in the text
    <|im_start|>role\n…<|im_end|>                      ChatML
    [INST] <<SYS>>…<</SYS>> … [/INST] …                Llama 2, Mistral
    SYSTEM: USER: ASSISTANT: FUNCTION RESPONSE:        glaive, at a paragraph's beginning
    Human: Assistant:                                  Anthropic's hh-rlhf, at a paragraph's beginning
    USER: … ASSISTANT: …</s>                           Vicuna, within the line; what stands first is the system prompt

Texts are trimmed, tokens that begin or end them go. The first style whose markers name a user and an assistant (or, in
a text of one turn, anybody) cuts the text. What stands before the first marker is the system prompt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sft_toolkit.errors import RecordError
from sft_toolkit.formats.dialects.end_tokens import without_end_tokens

ROLES = {
    "system": "system",
    "developer": "system",
    "human": "user",
    "user": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "function response": "tool",
    "tool": "tool",
    "function": "tool",
    "observation": "tool",
}
_LINE = r"^[^\S\n]*+"


@dataclass(frozen=True, slots=True)
class Style:
    """Markers with the speaker in the group `role`. A text that `certain` styles match is theirs whoever speaks.

    `paragraphs`: a marker counts at the text's beginning and behind an empty line.
    """

    name: str
    marker: re.Pattern[str]
    certain: bool = False
    paragraphs: bool = False

    def markers(self, text: str) -> list[re.Match[str]]:
        found = self.marker.finditer(text)
        return [marker for marker in found if not self.paragraphs or _begins_paragraph(text, marker.start())]


def _begins_paragraph(text: str, at: int) -> bool:
    """Whether nothing, or an empty line, stands before the line that begins at `at`."""
    line_end = at - 1
    line_begin = text.rfind("\n", 0, max(line_end, 0)) + 1
    return line_end < 0 or not text[line_begin:line_end].strip()


STYLES = (
    Style("ChatML", re.compile(r"<\|im_start\|>[ \t]*(?P<role>\w+)[ \t]*\n?"), certain=True),
    Style("Llama 2", re.compile(r"(?P<role>\[/?INST\])"), certain=True),
    Style("###", re.compile(r"(?<!#)###[ \t]*(?P<role>Human|User|Assistant|System)[ \t]*:", re.IGNORECASE)),
    Style("glaive", re.compile(rf"{_LINE}(?P<role>SYSTEM|USER|ASSISTANT|FUNCTION RESPONSE):", re.M), paragraphs=True),
    Style("hh-rlhf", re.compile(rf"{_LINE}(?P<role>Human|Assistant):", re.M), paragraphs=True),
    Style("lines", re.compile(r"(?:^|(?<=[\s>]))(?P<role>USER|ASSISTANT):", re.MULTILINE)),
    Style("lines", re.compile(r"^(?P<role>Human|User|Assistant):", re.MULTILINE)),
)
_SYSTEM_PROMPT = re.compile(r"\s*<<SYS>>(.*?)<</SYS>>", re.DOTALL)
_INST = {"[INST]": "user", "[/INST]": "assistant"}


def read_transcript(text: str) -> list[tuple[str, str]]:
    """(role, text) of each message, roles being system, user, assistant and tool.

    Raises RecordError where no marker stands in the text, or where one names nobody who is known.
    """
    cuts = [(style, style.markers(text)) for style in STYLES]
    for style, markers in cuts:
        if markers and (style.certain or {"user", "assistant"} <= {_role(marker["role"]) for marker in markers}):
            return _messages(text, markers)
    first = min((markers for _, markers in cuts if markers), key=lambda markers: markers[0].start(), default=None)
    if first:
        return _messages(text, first)
    known = "### Human:, <|im_start|>, [INST], USER:, Human: …"
    raise RecordError("no_transcript", f"no marker of a speaker stands in the text; known are {known}")


def _messages(text: str, markers: list[re.Match[str]]) -> list[tuple[str, str]]:
    ends = [*(marker.start() for marker in markers[1:]), len(text)]
    found = [("system", text[: markers[0].start()])]
    for marker, end in zip(markers, ends, strict=True):
        found += _message(_role(marker["role"]), text[marker.end() : end])
    trimmed = [(role, without_end_tokens(said)) for role, said in found]
    return [(role, said) for number, (role, said) in enumerate(trimmed) if said or (number and role != "system")]


def _message(role: str, said: str) -> list[tuple[str, str]]:
    """One message; two where Llama 2's user message opens with the system prompt."""
    system = _SYSTEM_PROMPT.match(said) if role == "user" else None
    return [("system", system[1]), (role, said[system.end() :])] if system else [(role, said)]


def _role(speaker: str) -> str:
    role = _INST.get(speaker) or ROLES.get(speaker.lower())
    if role is None:
        raise RecordError("unknown_role", f"the transcript has a speaker {speaker!r}")
    return role
