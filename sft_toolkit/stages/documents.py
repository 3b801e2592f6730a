"""Which documents `render` makes of a record: one, or several that each state one effort.

A prompt states one effort, and a record carries one label for each exchange. Exchanges that follow one another share a
document while the prompt that one would get states the other's effort too, and while the reasoning that is to be
trained is shown. A document holds all that precedes its own exchanges, without loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from sft_toolkit.choices import EffortMismatch, History
from sft_toolkit.conversation import Conversation, Message
from sft_toolkit.draws import uniform
from sft_toolkit.errors import RecordError
from sft_toolkit.stage import Outcome

if TYPE_CHECKING:
    from sft_toolkit.chat import Renderer


@dataclass(frozen=True, slots=True)
class Document:
    """`repeated`: a later document of the same record holds all of it once more."""

    conversation: Conversation
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class _Exchange:
    """Messages [begin, stop); what precedes the first question belongs to the first exchange.

    `trains`: an answer of it carries loss; `reasons`: and one that does has reasoning.
    """

    number: int
    begin: int
    stop: int
    effort: str | None
    trains: bool
    reasons: bool


@dataclass(frozen=True)
class DocumentRules:
    """`effort_mismatch`: exchanges whose effort the prompt does not state get documents of their own, carry no loss, or
    are an error. `history`: reasoning before a document's last exchange is kept, dropped, or either by a draw of (seed,
    record id). `per_exchange`: each exchange gets a document. `last`: only the final message carries loss.
    """

    renderer: Renderer
    effort_mismatch: EffortMismatch = "split"
    history: History = "keep"
    per_exchange: bool = False
    last: bool = False
    seed: int = 0

    def documents(self, conversation: Conversation, outcome: Outcome) -> list[Document]:
        """In order. One that is alone has the id of its record; of several, each has the number of its first exchange
        behind it (r#0, r#2).

        Raises RecordError where trained reasoning is labelled `none`, or where `effort_mismatch` says so.
        """
        exchanges = list(self._exchanges(conversation))
        self._require_no_reasoning_under_none(conversation, exchanges)
        drop = self._drops(conversation)
        if self.per_exchange and exchanges:
            outcome.note("exchanges", len(exchanges))
            return [
                self._document(conversation, [exchange], drop, outcome, exchange is not exchanges[-1], numbered=True)
                for exchange in exchanges
            ]
        training = [exchange for exchange in exchanges if exchange.trains]
        if not training:
            return [Document(conversation)]
        outcome.note("effort_of_record_differs", conversation.effort not in (None, exchanges[-1].effort))
        agree = self._agree(conversation, training)
        if not agree and self.effort_mismatch == "error":
            raise _mismatch(training)
        if self.effort_mismatch == "mask":
            return [self._masked(conversation, training, agree, drop, outcome)]
        runs = self._runs(conversation, training, agree, drop)
        if len(runs) > 1:
            outcome.note("effort_split" if not agree else "history_split")
        return [
            self._document(conversation, run, drop, outcome, run is not runs[-1], numbered=len(runs) > 1)
            for run in runs
        ]

    def _exchanges(self, conversation: Conversation) -> Iterator[_Exchange]:
        messages = conversation.messages
        labelled = zip(conversation.exchanges(), conversation.efforts(), strict=True)
        for number, (exchange, effort) in enumerate(labelled):
            own = range(exchange.start if number else 0, exchange.stop)
            trained = self._trained(messages, own)
            yield _Exchange(
                number,
                own.start,
                own.stop,
                effort,
                bool(trained),
                any(_reasons(messages[index]) for index in trained),
            )

    def _require_no_reasoning_under_none(self, conversation: Conversation, exchanges: list[_Exchange]) -> None:
        for exchange in exchanges:
            if exchange.effort == "none" and exchange.reasons:
                raise _contradiction(f"exchange {exchange.number} is labelled none and trains reasoning")
        messages = conversation.messages if not exchanges and conversation.effort == "none" else []
        if any(_reasons(messages[index]) for index in self._trained(messages, range(len(messages)))):
            raise _contradiction("the record is labelled none and trains reasoning")

    def _trained(self, messages: list[Message], own: range) -> list[int]:
        """The messages among `own`, those of an exchange or of a whole conversation, that carry loss."""
        if self.last:
            final = (own.stop if self.per_exchange else len(messages)) - 1
            own = range(max(final, own.start), own.stop)
        return [index for index in own if messages[index].trained]

    def _drops(self, conversation: Conversation) -> bool:
        return self.history == "drop" or (
            self.history == "both" and uniform(self.seed, "history", conversation.id) < 0.5
        )

    def _agree(self, conversation: Conversation, training: list[_Exchange]) -> bool:
        """Whether one document can state the effort of all: the prompts look alike, or the template drops from history
        what would stand under the effort of another."""
        if all(self._alike(conversation, one, other) for one, other in pairwise(training)):
            return True
        whole = replace(conversation, effort=training[-1].effort)
        if self.renderer.fit_of(whole).facts.history_reasoning:
            return False
        shown = self.renderer.shows_reasoning(whole)
        differing = [exchange for exchange in training if not self._alike(conversation, exchange, training[-1])]
        return not any(
            shown.get(index, False)
            for exchange in differing
            for index in self._trained(conversation.messages, _own(exchange))
        )

    def _alike(self, conversation: Conversation, one: _Exchange, other: _Exchange) -> bool:
        """Whether a prompt looks the same for both."""
        if one.effort == other.effort:
            return True
        display = self.renderer.fit_of(conversation).effort
        return display.shown(one.effort) == display.shown(other.effort)

    def _runs(
        self, conversation: Conversation, training: list[_Exchange], agree: bool, drop: bool
    ) -> list[list[_Exchange]]:
        runs = [[training[0]]]
        for before, exchange in pairwise(training):
            if (agree or self._alike(conversation, before, exchange)) and not (drop and before.reasons):
                runs[-1].append(exchange)
            else:
                runs.append([exchange])
        return runs

    def _document(
        self,
        conversation: Conversation,
        run: list[_Exchange],
        drop: bool,
        outcome: Outcome,
        repeated: bool,
        numbered: bool,
    ) -> Document:
        stop = run[-1].stop if repeated else len(conversation.messages)
        begin = run[0].begin if numbered else 0
        history = [replace(message, weight=0) for message in conversation.messages[:begin]]
        messages = [*history, *conversation.messages[begin:stop]]
        messages = self._with_history(messages, run[-1].begin, drop, outcome)
        name = f"{conversation.id}#{run[0].number}" if numbered else conversation.id
        return Document(replace(conversation, id=name, messages=messages, effort=run[-1].effort), repeated)

    def _masked(
        self, conversation: Conversation, training: list[_Exchange], agree: bool, drop: bool, outcome: Outcome
    ) -> Document:
        """One document, in which exchanges that it states or shows wrongly carry no loss."""
        last = training[-1]
        messages = list(conversation.messages)
        for exchange in training[:-1]:
            differs = not agree and not self._alike(conversation, exchange, last)
            if differs or (drop and exchange.reasons):
                outcome.note("effort_masked" if differs else "history_masked")
                for index in _own(exchange):
                    messages[index] = replace(messages[index], weight=0)
        messages = self._with_history(messages, last.begin, drop, outcome)
        return Document(replace(conversation, messages=messages, effort=last.effort))

    def _with_history(self, messages: list[Message], end: int, drop: bool, outcome: Outcome) -> list[Message]:
        """The messages, with the reasoning of those before `end` if it is to be kept."""
        if self.history != "keep" and any(_reasons(message) for message in messages[:end]):
            outcome.note("history_dropped" if drop else "history_kept")
        if not drop:
            return messages
        return [*(replace(message, reasoning=None) for message in messages[:end]), *messages[end:]]


def _own(exchange: _Exchange) -> range:
    return range(exchange.begin, exchange.stop)


def _reasons(message: Message) -> bool:
    return bool(message.reasoning and not message.reasoning.isspace())


def _contradiction(detail: str) -> RecordError:
    return RecordError("reasoning_under_none", detail, "label it again with effort label, or mask its reasoning")


def _mismatch(training: list[_Exchange]) -> RecordError:
    labels = ", ".join(f"{exchange.number}: {exchange.effort or 'no label'}" for exchange in training)
    return RecordError(
        "effort_mismatch",
        f"its exchanges have different efforts ({labels}), and a prompt states one",
        "choose `effort_mismatch` split or mask",
    )
