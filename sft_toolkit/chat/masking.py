"""A draft and its tokens to a rendered conversation: spans among tokens, the loss mask, what is worth counting."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from sft_toolkit.chat.drafts import Draft
from sft_toolkit.chat.fit import Fit
from sft_toolkit.chat.rendered import Range, Rendered, Span
from sft_toolkit.chat.tokens import Located, first_token_from
from sft_toolkit.chat.turns import Turn
from sft_toolkit.errors import RecordError

if TYPE_CHECKING:
    from tokenizers import Encoding

Train = Literal["all", "last"]


class Masking:
    """Of one draft that was made with `fit`. `train`: "all" assistant turns of weight 1, or only the "last" message."""

    def __init__(self, fit: Fit, draft: Draft, train: Train) -> None:
        self._fit = fit
        self._draft = draft
        self._train = train

    def masked(self, encoding: Encoding) -> Rendered:
        """Raises RecordError where the tokenizer does not place a token where it stands in the text."""
        draft, tokenizer = self._draft, self._fit.tokenizer
        tokens = tokenizer.encode_inert(draft.text, encoding, draft.inert) if draft.inert else encoding
        ids = np.asarray(tokens.ids, np.int32)
        before = tokenizer.missing_prefix(ids)
        spans = [self._span(turn, tokens, ids, len(before)) for turn in draft.turns]
        self._note(spans)
        after = self._appended(spans)
        if len(after):
            spans[-1] = replace(spans[-1], tokens=_grown(spans[-1].tokens, len(before) + len(ids)))
        if len(before) or len(after):
            ids = np.concatenate([before, ids, after])
        mask = np.zeros(len(ids), np.bool_)
        for span in spans:
            for begin, end in span.tokens if span.trained else ():
                mask[begin:end] = True
        for begin, end in draft.untrained:
            mask[self._tokens(begin, end, tokens, len(before))] = False
        mask[:1] = False
        return Rendered(draft.text, ids, mask, spans, +draft.notes, draft.inert)

    def _span(self, turn: Turn, tokens: Encoding | Located, ids: np.ndarray, shift: int) -> Span:
        draft = self._draft
        ranges = []
        for begin, end in turn.pieces:
            found = self._tokens(begin, end, tokens, shift)
            ranges.append((found.start, found.stop))
        if turn.stop and ids[ranges[-1][1] - shift - 1] != self._fit.tokenizer.control[turn.stop]:
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

    def _tokens(self, begin: int, end: int, tokens: Encoding | Located, shift: int) -> slice:
        """The tokens whose first character is in text[begin:end]; those that lie over its bounds are counted."""
        length = len(self._draft.text)
        first, straddles_begin = first_token_from(tokens, begin, length)
        after, straddles_end = first_token_from(tokens, end, length)
        self._draft.notes["straddling_tokens"] += straddles_begin + straddles_end
        return slice(first + shift, after + shift)

    def _note(self, spans: list[Span]) -> None:
        """Of turns, those that carry loss: what happens to others teaches nothing."""
        draft, facts, rules = self._draft, self._fit.facts, self._fit.rules
        notes = draft.notes
        trained = [(turn, span) for turn, span in zip(draft.turns, spans, strict=True) if span.trained]
        lost = "dropped_reasoning" if facts.reasoning else "reasoning_not_rendered"
        notes[lost] += sum(span.reasoning is False for _, span in trained)
        notes["history_stop_left_out"] += sum(turn.foreign_stop for turn, _ in trained)
        notes["turns_without_stop"] += sum(not turn.stop and not turn.foreign_stop for turn, _ in trained)
        if rules.headers:
            headers = [draft.text[span.begin : span.header_end] for _, span in trained]
            notes["turns_without_header"] += sum(header not in rules.headers for header in headers)
        notes["control_text"] += len(draft.inert)
        notes["untrained_stretches"] += len(draft.untrained)
        prompted = draft.conversation.messages[0].role in ("system", "developer")
        prompted = prompted or bool(notes["tools_in_system"] or notes["effort_sentences"])
        notes["inserted_default_system"] += facts.inserts_default_system and not prompted
        notes["fixed_date"] += self._fit.template.asks_for_date

    def _appended(self, spans: list[Span]) -> np.ndarray:
        """EOS, where the conversation ends in an answer that the template does not end."""
        draft, eos = self._draft, self._fit.tokenizer.eos
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
