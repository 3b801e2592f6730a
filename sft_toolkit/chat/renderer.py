"""A conversation to token ids with an exact loss mask: template, spans and tokenizer put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sft_toolkit.chat.drafts import Draft, Drafter
from sft_toolkit.chat.facts import TemplateFacts, template_facts
from sft_toolkit.chat.probes import Probes
from sft_toolkit.chat.rendered import Range, Rendered, Span
from sft_toolkit.chat.template import DEFAULT_DATE, ChatTemplate
from sft_toolkit.chat.tokenizer_folder import TokenizerFolder, read_template
from sft_toolkit.chat.tokens import ChatTokenizer, Located, first_token_from
from sft_toolkit.chat.turn_probes import find_rules
from sft_toolkit.chat.turns import Turn
from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError

if TYPE_CHECKING:
    from tokenizers import Encoding

Train = Literal["all", "last"]

_CHARACTERS_AT_ONCE = 1 << 18


class Renderer:
    """Renders conversations with one chat template and one tokenizer.

    `train`: "all" assistant turns of weight 1, or only the "last" message. `train_empty_think`: an empty thinking
    block that a generation prompt would give is trained nonetheless. `today` is the date
    for a template that asks for one.
    """

    def __init__(
        self,
        folder: TokenizerFolder,
        chat_template: str | None = None,
        *,
        train: Train = "all",
        train_empty_think: bool = False,
        today: date = DEFAULT_DATE,
    ) -> None:
        source = chat_template if chat_template is not None else folder.require_template()
        self.template = ChatTemplate(source, folder.special_tokens, today)
        self.tokenizer = ChatTokenizer(folder, source)
        self.probes = Probes(self.template)
        self.rules = find_rules(self.probes.probing, self.tokenizer.control_text.pattern, train_empty_think)
        self._drafter = Drafter(self.template, self.tokenizer.control_text, self.probes, self.rules)
        self._train = train

    @classmethod
    def from_folder(cls, path: str | Path, chat_template: str | Path | None = None, **options: Any) -> Renderer:
        """From a folder in Hugging Face layout, and a template file that replaces the folder's own.

        Raises ToolkitError where tokenizer or template are missing, broken, or cannot carry an exact mask.
        """
        folder = TokenizerFolder.read(Path(path))
        return cls(folder, None if chat_template is None else read_template(Path(chat_template)), **options)

    @cached_property
    def facts(self) -> TemplateFacts:
        return template_facts(self.template, self.tokenizer, self.probes, self.rules)

    def render(self, conversation: Conversation) -> Rendered:
        """Raises RecordError where the conversation has no exact rendering with this template."""
        (rendered,) = self.render_batch([conversation])
        if isinstance(rendered, RecordError):
            raise rendered
        return rendered

    def render_batch(self, conversations: list[Conversation]) -> list[Rendered | RecordError]:
        """Per conversation what `render` gives, or the error it would raise."""
        return [rendered for _, rendered in self.render_each(conversations)]

    def render_each(
        self, conversations: Iterable[Conversation]
    ) -> Iterator[tuple[Conversation, Rendered | RecordError]]:
        """Each conversation with what `render_batch` gives, in order.

        About 256k characters are tokenised at once: enough to keep processors busy, little enough for their caches.
        """
        drafts: list[Draft] = []
        held = 0
        for conversation in conversations:
            drafts.append(self._drafter.draft(conversation))
            held += len(drafts[-1].text)
            if held >= _CHARACTERS_AT_ONCE:
                yield from self._tokenised(drafts)
                drafts, held = [], 0
        yield from self._tokenised(drafts)

    def offsets(self, rendered: Rendered) -> np.ndarray:
        """Characters of each token, int32[n, 2]; empty for a BOS or EOS that is not in the text."""
        (encoding,) = self.tokenizer.encode([rendered.text])
        located = self.tokenizer.encode_inert(rendered.text, encoding, rendered.inert)
        before = self._missing_prefix(located.ids)
        after = len(rendered.input_ids) - len(before) - len(located)
        ends = np.full((after, 2), len(rendered.text), np.int32)
        return np.concatenate([np.zeros((len(before), 2), np.int32), located.offsets, ends])

    def _missing_prefix(self, ids: np.ndarray) -> np.ndarray:
        """What the tokenizer puts before a text and this text does not begin with."""
        prefix = self.tokenizer.prefix
        return prefix[:0] if np.array_equal(ids[: len(prefix)], prefix) else prefix

    def _tokenised(self, drafts: list[Draft]) -> Iterator[tuple[Conversation, Rendered | RecordError]]:
        encodings = iter(self.tokenizer.encode([draft.text for draft in drafts if draft.error is None]))
        for draft in drafts:
            yield draft.conversation, draft.error or self._finished(draft, next(encodings))

    def _finished(self, draft: Draft, encoding: Encoding) -> Rendered | RecordError:
        try:
            if draft.inert:
                return self._masked(draft, self.tokenizer.encode_inert(draft.text, encoding, draft.inert))
            return self._masked(draft, encoding)
        except RecordError as error:
            return error

    def _masked(self, draft: Draft, tokens: Encoding | Located) -> Rendered:
        ids = np.asarray(tokens.ids, np.int32)
        before = self._missing_prefix(ids)
        spans = [self._span(draft, turn, tokens, ids, len(before)) for turn in draft.turns]
        self._note(draft, spans)
        after = self._appended(draft, spans)
        if len(after):
            spans[-1] = replace(spans[-1], tokens=_grown(spans[-1].tokens, len(before) + len(ids)))
        if len(before) or len(after):
            ids = np.concatenate([before, ids, after])
        mask = np.zeros(len(ids), np.bool_)
        for span in spans:
            for begin, end in span.tokens if span.trained else ():
                mask[begin:end] = True
        mask[:1] = False
        return Rendered(draft.text, ids, mask, spans, +draft.notes, draft.inert)

    def _span(self, draft: Draft, turn: Turn, tokens: Encoding | Located, ids: np.ndarray, shift: int) -> Span:
        length = len(draft.text)
        ranges = []
        for begin, end in turn.pieces:
            first, straddles_begin = first_token_from(tokens, begin, length)
            after, straddles_end = first_token_from(tokens, end, length)
            draft.notes["straddling_tokens"] += straddles_begin + straddles_end
            ranges.append((first + shift, after + shift))
        if turn.stop and ids[after - 1] != self.tokenizer.control[turn.stop]:
            raise RecordError(
                "offsets_do_not_map", f"the tokenizer does not place {turn.stop} of message {turn.message} in the text"
            )
        messages = draft.conversation.messages
        trained = messages[turn.message].trained and (self._train == "all" or turn.message == len(messages) - 1)
        return Span(
            message=turn.message,
            begin=turn.begin,
            header_end=turn.header_end,
            pieces=turn.pieces,
            tokens=tuple(ranges),
            stop=turn.stop,
            trained=trained,
            reasoning=draft.writes_reasoning(turn),
        )

    def _note(self, draft: Draft, spans: list[Span]) -> None:
        """Of turns, those that carry loss: what happens to others teaches nothing."""
        notes = draft.notes
        trained = [(turn, span) for turn, span in zip(draft.turns, spans, strict=True) if span.trained]
        lost = "dropped_reasoning" if self.facts.reasoning else "reasoning_not_rendered"
        notes[lost] += sum(span.reasoning is False for _, span in trained)
        notes["history_stop_left_out"] += sum(turn.foreign_stop for turn, _ in trained)
        notes["turns_without_stop"] += sum(not turn.stop and not turn.foreign_stop for turn, _ in trained)
        if self.rules.headers:
            headers = [draft.text[span.begin : span.header_end] for _, span in trained]
            notes["turns_without_header"] += sum(header not in self.rules.headers for header in headers)
        notes["control_text"] += len(draft.inert)
        first = draft.conversation.messages[0].role
        notes["inserted_default_system"] += self.facts.inserts_default_system and first not in ("system", "developer")
        notes["effort_not_rendered"] += draft.conversation.effort is not None and not self.facts.effort
        notes["fixed_date"] += self.template.asks_for_date

    def _appended(self, draft: Draft, spans: list[Span]) -> np.ndarray:
        """EOS, where the conversation ends in an answer that the template does not end."""
        eos = self.tokenizer.eos
        ends_open = bool(spans) and not spans[-1].stop and spans[-1].message == len(draft.conversation.messages) - 1
        if not ends_open or eos is None:
            return np.empty(0, np.int32)
        draft.notes["eos_appended"] += 1
        draft.notes["turns_without_stop"] -= spans[-1].trained
        return np.array([eos], np.int32)


def _grown(ranges: tuple[Range, ...], token: int) -> tuple[Range, ...]:
    """The ranges with `token` added, which follows the last of them unless something untrained stands between."""
    if ranges and ranges[-1][1] == token:
        return (*ranges[:-1], (ranges[-1][0], token + 1))
    return (*ranges, (token, token + 1))
