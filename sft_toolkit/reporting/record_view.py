"""A record as it is shown: its messages as they stand, or rendered to text and tokens with one template."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sft_toolkit.chat.rendered import Rendered, Span
from sft_toolkit.conversation import Conversation, Message, ToolCall
from sft_toolkit.errors import RecordError, ToolkitError, UsageError
from sft_toolkit.formats.dialects import find_calls
from sft_toolkit.json_text import encode_text
from sft_toolkit.reporting.view import Piece, Section, Standing, View, token_facts, token_pieces, token_remark
from sft_toolkit.stage import Outcome
from sft_toolkit.stages.documents import DocumentRules
from sft_toolkit.visible import one_line

if TYPE_CHECKING:
    from sft_toolkit.chat import Renderer

_LABELS = ("dataset", "domain", "difficulty", "effort")


def record_view(conversation: Conversation) -> View:
    """Messages with weights and mask reasons."""
    sections = [
        Section(f"{index} {message.role}", _message_remarks(message), _standing(message), _message_pieces(message))
        for index, message in enumerate(conversation.messages)
    ]
    return View(conversation.id, _record_facts(conversation), sections)


def rendered_view(conversation: Conversation, renderer: Renderer, tokens_apart: bool) -> View:
    """Text and loss as `render` makes them. Raises ToolkitError where the conversation has no exact rendering."""
    try:
        rendered = renderer.render(conversation)
    except RecordError as error:
        hint = error.hint or "without `tokenizer` its messages are shown as they stand"
        raise ToolkitError(f"record {conversation.id!r}: {error.detail}", hint) from error
    facts = _record_facts(conversation) + token_facts([len(rendered.input_ids)], rendered.loss_tokens)
    notes = [f"{name} {count}" for name, count in sorted(rendered.notes.items()) if count]
    facts += [("notes", ", ".join(notes))] if notes else []
    sections = _Sections(conversation, rendered, renderer, tokens_apart).all()
    return View(conversation.id, facts, sections, tokens_apart=tokens_apart)


def document_of(conversation: Conversation, renderer: Renderer, number: int | None) -> tuple[Conversation, str]:
    """The document that `render` makes of a record, and a word on the others where it makes several, one per effort.

    `number` counts documents from 0; None is the last. Raises ToolkitError where the record gives no documents, and
    UsageError where it gives fewer.
    """
    try:
        documents = DocumentRules(renderer).documents(conversation, Outcome(quarantine=True))
    except RecordError as error:
        raise ToolkitError(f"record {conversation.id!r}: {error.detail}", error.hint) from error
    if number is not None and number >= len(documents):
        raise UsageError(f"record {conversation.id!r} gives {len(documents)} documents, from 0: there is no {number}")
    shown = documents[-1 if number is None else number].conversation
    others = [f"{n}: {each.conversation.id}" for n, each in enumerate(documents) if each.conversation is not shown]
    if not others:
        return shown, ""
    return shown, (
        f"render makes {len(documents)} documents of this record, one for each run of exchanges of one effort: "
        f"this is {shown.id}; choose another with `document` ({', '.join(others)})"
    )


def _record_facts(conversation: Conversation) -> list[tuple[str, str]]:
    labels = [f"{name} {value}" for name in _LABELS if (value := getattr(conversation, name)) is not None]
    facts = [("from", conversation.origin)]
    facts += [("labels", ", ".join(labels))] if labels else []
    standings = [_standing(message) for message in conversation.messages]
    masked = [index for index, standing in enumerate(standings) if standing == "masked"]
    which = f" ({', '.join(map(str, masked))})" if masked else ""
    facts.append(("messages", f"{len(standings):,}"))
    facts.append(("turns", f"{standings.count('trained'):,} trained, {len(masked):,} masked{which}"))
    names = [str(tool.get("function", tool).get("name")) for tool in conversation.tools]
    facts += [("tools", ", ".join(names))] if names else []
    return facts


def _standing(message: Message) -> Standing:
    if message.role != "assistant":
        return "context"
    return "trained" if message.trained else "masked"


def _message_remarks(message: Message) -> list[str]:
    remarks = [f"weight {message.weight}"] if message.weight is not None else []
    if message.mask_reason:
        detail = f": {message.mask_detail}" if message.mask_detail else ""
        remarks.append(one_line(f"{message.mask_reason}{detail}"))
    remarks += [f"effort {message.effort}"] if message.effort else []
    remarks += [f"{call.name}: arguments {call.problem}" for call in message.tool_calls if call.problem]
    remarks += [f"answers {message.tool_call_id}"] if message.tool_call_id else []
    return remarks + (_calls_as_text(message) if message.role == "assistant" else [])


def _calls_as_text(message: Message) -> list[str]:
    """Calls that the assistant's text or reasoning holds, in any dialect, beside those that it makes."""
    remarks = []
    for place, text in (("content", message.text), ("reasoning", message.reasoning or "")):
        found = dict.fromkeys(f"{each.call.name} ({each.dialect})" for each in find_calls(text))
        remarks += [one_line(f"{place} holds calls as text: {', '.join(found)}")] if found else []
    return remarks


def _message_pieces(message: Message) -> list[Piece]:
    """Reasoning, content and calls, each from a new line on."""
    parts: list[list[Piece]] = []
    if message.reasoning:
        parts.append([Piece("reasoning ", annotation=True), Piece(message.reasoning, message.trained)])
    if isinstance(message.content, str) and message.content:
        parts.append([Piece(message.content, message.trained)])
    elif isinstance(message.content, list):
        parts += [_part_pieces(part, message.trained) for part in message.content]
    parts += [_call_pieces(call, message.trained) for call in message.tool_calls]
    return [piece for number, part in enumerate(parts) for piece in ([Piece("\n")] if number else []) + part]


def _part_pieces(part: dict[str, object], trained: bool) -> list[Piece]:
    if part.get("type") == "text" and isinstance(part.get("text"), str):
        return [Piece(str(part["text"]), trained)]
    return [Piece("part ", annotation=True), Piece(encode_text(part), trained)]


def _call_pieces(call: ToolCall, trained: bool) -> list[Piece]:
    arguments = call.arguments if isinstance(call.arguments, str) else encode_text(call.arguments)
    identity = [Piece(f" {call.id}", annotation=True)] if call.id else []
    return [Piece("call ", annotation=True), Piece(f"{call.name} {arguments}", trained), *identity]


class _Sections:
    """A rendered text, divided: each assistant message, and what other messages wrote between two of them.

    A token belongs where it begins; white space after an assistant message is shown with it.
    """

    def __init__(self, conversation: Conversation, rendered: Rendered, renderer: Renderer, tokens_apart: bool) -> None:
        self._messages = conversation.messages
        self._rendered = rendered
        self._decode = renderer.tokenizer.decode
        self._tokens_apart = tokens_apart
        offsets = renderer.offsets(rendered)
        self._begins = offsets[:, 0]
        self._ends = np.maximum.accumulate(offsets[:, 1])
        self._control: NDArray[np.bool_] = np.isin(rendered.input_ids, list(renderer.tokenizer.control.values()))
        self._unwritten = np.flatnonzero(self._control & (offsets[:, 0] == offsets[:, 1]))

    def all(self) -> list[Section]:
        sections, token, message = [], 0, 0
        for span in self._rendered.spans:
            own = self._token_at(span.begin)
            sections += self._between(token, own, range(message, span.message))
            token, message = self._token_at(self._end_with_space(span)), span.message + 1
            sections.append(self._turn(span, own, token))
        return sections + self._between(token, len(self._begins), range(message, len(self._messages)))

    def _turn(self, span: Span, begin: int, end: int) -> Section:
        message = self._messages[span.message]
        remarks = _message_remarks(message)
        remarks += ["reasoning left out by the template"] if span.reasoning is False else []
        remarks += ["no stop token"] if not span.stop and span.pieces else []
        remarks.append(token_remark(end - begin, int(self._rendered.loss_mask[begin:end].sum())))
        return Section(f"{span.message} assistant", remarks, _standing(message), self._pieces(begin, end))

    def _between(self, begin: int, end: int, messages: range) -> list[Section]:
        if begin == end:
            return []
        title = ", ".join(f"{index} {self._messages[index].role}" for index in messages) or "template"
        remarks = [f"effort {effort}" for index in messages if (effort := self._messages[index].effort)]
        return [Section(title, [*remarks, token_remark(end - begin, 0)], "context", self._pieces(begin, end))]

    def _end_with_space(self, span: Span) -> int:
        text = self._rendered.text
        return next((place for place in range(span.end, len(text)) if not text[place].isspace()), len(text))

    def _token_at(self, char: int) -> int:
        """The first token that begins at `char` or later; past all for the end of the text."""
        if char >= len(self._rendered.text):
            return len(self._begins)
        return int(np.searchsorted(self._begins, char)) if char else 0

    def _pieces(self, begin: int, end: int) -> list[Piece]:
        return token_pieces(self._text, begin, end, self._rendered.loss_mask, self._control, self._tokens_apart)

    def _text(self, first: int, after: int) -> str:
        """A token that stands for no text (a BOS or EOS that the template does not write) is shown by its name."""
        low = int(self._ends[first - 1]) if first else 0
        written = self._rendered.text[low : int(self._ends[after - 1])]
        begin, end = np.searchsorted(self._unwritten, (first, after))
        names = self._decode(self._rendered.input_ids[self._unwritten[begin:end]].tolist())
        return names + written if first == 0 else written + names
