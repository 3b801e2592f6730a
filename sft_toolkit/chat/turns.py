"""Which characters of a message's stretch the model must produce: the header is given to it, the stop token is not."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sft_toolkit.chat.span_trace import Stretch, Traced
from sft_toolkit.conversation import Message

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Turn:
    """One assistant message in the text. The model produces `pieces`; other messages may stand between them.

    `stop` is the control token that ends the turn, "" where the text holds none; it may lie beyond the message's
    own stretch where the next role marker ends the turn. `foreign_stop`: the template shows this turn, once it is
    history, with another ending than the model must produce; that ending is left out.
    """

    message: int
    begin: int
    header_end: int
    pieces: tuple[Range, ...]
    stop: str
    foreign_stop: bool = False

    @property
    def end(self) -> int:
        return self.pieces[-1][1] if self.pieces else self.header_end


@dataclass(frozen=True, slots=True)
class TurnRules:
    """What a template writes around what the model says, as `probes` found it.

    `headers`: what a generation prompt can give, the longest first. `beginnings`: all that is written before what an
    answer says, after a question, header included; the longest first. `stops`: control tokens that end a turn, empty
    where only the next role marker does. `history_stops`: other control tokens that earlier turns are shown with.
    `trailing`: white space that follows what the model says in a template without stop tokens; at the end of the text
    the model has to produce it, since EOS comes after it.
    """

    headers: tuple[str, ...]
    beginnings: tuple[str, ...]
    stops: tuple[str, ...]
    history_stops: tuple[str, ...]
    trailing: str
    control: re.Pattern[str]

    def turn(self, traced: Traced, stretch: Stretch, messages: list[Message], foreign: int = 0) -> Turn:
        """Divide the stretch of an assistant message, of which the first `foreign` characters belong to no message."""
        text = traced.text
        opening = stretch.begin + foreign
        begin = header_end = opening + len(self._header(text, opening, stretch.end))
        pieces: list[Range] = []
        stop, foreign_stop = "", False
        for inner in stretch.inner:
            if messages[inner.message].role != "assistant":
                end, stop = self._extended(text, inner.begin)
                pieces.append((begin, end))
                begin = inner.end
        if begin < stretch.end or not pieces:
            follower = messages[stretch.message + 1 : stretch.message + 2]
            goes_on = bool(follower) and follower[0].role == "assistant"
            end, stop, foreign_stop = self._end(text, begin, stretch.end, goes_on)
            pieces.append((begin, end))
        produced = tuple((first, after) for first, after in pieces if after > first)
        return Turn(stretch.message, opening, header_end, produced, stop, foreign_stop)

    def foreign(self, beginning: str) -> tuple[int, str]:
        """Divide what precedes the words of an answer that opens a conversation.

        Returns how much of it belongs to no message (BOS, or a system prompt of the template's own), and what stands
        after the header that it does not write in answers to a question.
        """
        usual = next((usual for usual in self.beginnings if beginning.endswith(usual)), "")
        if usual.strip() or not self.headers:
            return len(beginning) - len(usual), ""
        place, header = max(((beginning.rfind(header), header) for header in self.headers), key=_last_and_longest)
        return (len(beginning), "") if place < 0 else (place, beginning[place + len(header) :])

    def _header(self, text: str, begin: int, end: int) -> str:
        """The longest header that text[begin:end] begins with; else as much of one as a prompt would have given."""
        whole = next((header for header in self.headers if text.startswith(header, begin, end)), None)
        if whole is not None:
            return whole
        said = text[begin:end]
        shared = (common_beginning(header, said, self.control) for header in self.headers)
        return max((part for part in shared if part.strip()), key=len, default="")

    def _end(self, text: str, begin: int, end: int, goes_on: bool) -> tuple[int, str, bool]:
        """End of what the model says in text[begin:end], the stop token there, whether a foreign one was left out."""
        bare = begin + len(text[begin:end].rstrip())
        for stop in self.stops:
            if text.endswith(stop, begin, bare):
                return bare, stop, False
        if goes_on:
            return end, "", False
        for stop in self.history_stops:
            if text.endswith(stop, begin, bare):
                return bare - len(stop), "", True
        if self.trailing and end < len(text) and text.endswith(self.trailing, begin, end):
            return end - len(self.trailing), "", False
        return *self._extended(text, end), False

    def _extended(self, text: str, end: int) -> tuple[int, str]:
        """`end`, moved past the control token that directly follows it where that one stops the model."""
        marker = self.control.match(text, end)
        if marker is None or (self.stops and marker[0] not in self.stops):
            return end, ""
        return marker.end(), marker[0]


def common_beginning(prompt: str, text: str, control: re.Pattern[str]) -> str:
    """What two texts begin with in common, cutting neither a control token nor a word of the prompt."""
    length = common_length(prompt, text)
    ends = [match.end() for match in re.finditer(rf"{control.pattern}|\s|[^\s<]+|<[^\s<]*", prompt)]
    return prompt[: max((end for end in ends if end <= length), default=0)]


def common_length(first: str, second: str) -> int:
    """Number of characters that two texts begin with in common."""
    differing = (place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    return next(differing, min(len(first), len(second)))


def _last_and_longest(found: tuple[int, str]) -> tuple[int, int]:
    place, text = found
    return place, len(text)
