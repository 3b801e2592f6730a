"""A conversation to token ids with an exact loss mask: template, spans and tokenizer put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sft_toolkit.chat.drafts import Draft
from sft_toolkit.chat.facts import TemplateFacts
from sft_toolkit.chat.fit import Fit
from sft_toolkit.chat.masking import Masking, Train
from sft_toolkit.chat.probes import Probes
from sft_toolkit.chat.rendered import Rendered
from sft_toolkit.chat.template import DEFAULT_DATE, ChatTemplate, with_written_numbers
from sft_toolkit.chat.tokenizer_folder import TokenizerFolder, read_template
from sft_toolkit.chat.tokens import ChatTokenizer
from sft_toolkit.chat.turns import TurnRules
from sft_toolkit.chat.variables import record_variables, require_names, switches
from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError, ToolkitError, UsageError
from sft_toolkit.json_text import decode, encode_text

if TYPE_CHECKING:
    from tokenizers import Encoding

_CHARACTERS_AT_ONCE = 1 << 18
_FITS_KEPT = 64


class Renderer:
    """Renders conversations with one chat template and one tokenizer.

    `train`: "all" assistant turns of weight 1, or only the "last" message. `train_empty_think`: an empty thinking
    block that a generation prompt would give is trained nonetheless. `today` is the date for a template that asks for
    one. `variables` are given to the template beside messages and tools; a record's `chat_template_kwargs` and its
    effort come after them and win. Raises UsageError for a variable that the template does not read.
    """

    def __init__(
        self,
        folder: TokenizerFolder,
        chat_template: str | None = None,
        *,
        train: Train = "all",
        train_empty_think: bool = False,
        today: date = DEFAULT_DATE,
        variables: Mapping[str, Any] | None = None,
    ) -> None:
        source = chat_template if chat_template is not None else folder.require_template()
        self._variables = with_written_numbers(dict(variables or {}))
        self._train: Train = train
        self._train_empty_think = train_empty_think
        require_names(self._variables)
        self.template = ChatTemplate(source, folder.special_tokens, today, self._variables)
        _require_read(self._variables, self.template)
        self.tokenizer = ChatTokenizer(folder, source)
        self._plain = Fit(self.template, self.tokenizer, train_empty_think)
        self._fit_with = lru_cache(_FITS_KEPT)(self._make_fit)

    @classmethod
    def from_folder(cls, path: str | Path, chat_template: str | Path | None = None, **options: Any) -> Renderer:
        """From a folder in Hugging Face layout, and a template file that replaces the folder's own.

        Raises ToolkitError where tokenizer or template are missing, broken, or cannot carry an exact mask.
        """
        folder = TokenizerFolder.read(Path(path))
        return cls(folder, None if chat_template is None else read_template(Path(chat_template)), **options)

    @property
    def facts(self) -> TemplateFacts:
        return self._plain.facts

    @property
    def probes(self) -> Probes:
        return self._plain.probes

    @property
    def rules(self) -> TurnRules:
        return self._plain.rules

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
        drafts: list[tuple[Fit, Draft]] = []
        held = 0
        for conversation in conversations:
            drafts.append(self._draft(conversation))
            held += len(drafts[-1][1].text)
            if held >= _CHARACTERS_AT_ONCE:
                yield from self._tokenised(drafts)
                drafts, held = [], 0
        yield from self._tokenised(drafts)

    def offsets(self, rendered: Rendered) -> np.ndarray:
        """Characters of each token, int32[n, 2]; empty for a BOS or EOS that is not in the text."""
        (encoding,) = self.tokenizer.encode([rendered.text])
        located = self.tokenizer.encode_inert(rendered.text, encoding, rendered.inert)
        before = self.tokenizer.missing_prefix(located.ids)
        after = len(rendered.input_ids) - len(before) - len(located)
        ends = np.full((after, 2), len(rendered.text), np.int32)
        return np.concatenate([np.zeros((len(before), 2), np.int32), located.offsets, ends])

    def _draft(self, conversation: Conversation) -> tuple[Fit, Draft]:
        try:
            own = record_variables(conversation)
            fit = self._fit_with(encode_text(switches(own))) if own else self._plain
        except RecordError as error:
            return self._plain, Draft(conversation, error=error)
        draft = fit.drafter.draft(conversation, with_written_numbers(own))
        draft.notes["template_variables"] += bool(own)
        draft.notes["template_variables_not_read"] += bool(own.keys() - self.template.reads)
        return fit, draft

    def _make_fit(self, own: str) -> Fit:
        """How turns begin and end may depend on the variables that a record brings: `own`, as JSON text."""
        template = self.template.with_variables({**self._variables, **with_written_numbers(decode(own))})
        try:
            return Fit(template, self.tokenizer, self._train_empty_think)
        except ToolkitError as error:
            raise RecordError("bad_template_variables", f"with {own}, {error.message}", error.hint) from error

    def _tokenised(self, drafts: list[tuple[Fit, Draft]]) -> Iterator[tuple[Conversation, Rendered | RecordError]]:
        encodings = iter(self.tokenizer.encode([draft.text for _, draft in drafts if draft.error is None]))
        for fit, draft in drafts:
            yield draft.conversation, draft.error or self._finished(fit, draft, next(encodings))

    def _finished(self, fit: Fit, draft: Draft, encoding: Encoding) -> Rendered | RecordError:
        try:
            return Masking(fit, draft, self._train).masked(encoding)
        except RecordError as error:
            return error


def _require_read(variables: Mapping[str, Any], template: ChatTemplate) -> None:
    for name in variables:
        if name not in template.reads:
            known = ", ".join(template.readable) or "none"
            raise UsageError(
                f"template variable {name}: the chat template reads none of that name", f"it reads {known}"
            )
