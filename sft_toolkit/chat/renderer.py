"""A conversation to token ids with an exact loss mask: template, spans and tokenizer put together."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sft_toolkit.chat.drafts import Draft
from sft_toolkit.chat.effort_display import EffortDisplay
from sft_toolkit.chat.effort_sentences import EffortSentences
from sft_toolkit.chat.facts import TemplateFacts
from sft_toolkit.chat.fit import Fit, FitOptions
from sft_toolkit.chat.masking import Masking, Train
from sft_toolkit.chat.probes import Probes
from sft_toolkit.chat.rendered import Rendered
from sft_toolkit.chat.template import DEFAULT_DATE, ChatTemplate, with_written_numbers
from sft_toolkit.chat.template_files import DEFAULT, TOOL_USE, Templates, choose, templates_digest
from sft_toolkit.chat.tokenizer_folder import TokenizerFolder
from sft_toolkit.chat.tokens import ChatTokenizer
from sft_toolkit.chat.turns import TurnRules
from sft_toolkit.chat.variables import TEMPLATE_KEY, Variables, record_variables, require_names, switches
from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError, ToolkitError, UsageError
from sft_toolkit.json_text import decode, encode_text

if TYPE_CHECKING:
    from tokenizers import Encoding

_CHARACTERS_AT_ONCE = 1 << 18
_FITS_KEPT = 64


class Renderer:
    r"""Renders conversations with the chat templates of one folder, or with one of them, and one tokenizer.

    Of several templates, that called tool_use takes the records that declare tools, and the default one all others,
    unless a record's `chat_template_kwargs` name another. `train`: "all" assistant turns of weight 1, or only the
    "last" message. `train_empty_think`: an empty thinking block that a generation prompt would give is trained
    nonetheless. `today` is the date for a template that asks for one. `variables` are given to the template beside
    messages and tools; a record's `chat_template_kwargs` and its effort come after them and win. `tools_in_system`:
    declared tools that a template leaves out are written into the system prompt. `effort_sentences` state a record's
    effort where the template does not; their variables win over all others.

    >>> from sft_toolkit.formats import parse_record
    >>> renderer = Renderer.from_folder("sample_data/tokenizer")
    >>> question = {"role": "user", "content": "1+1?"}
    >>> answer = {"role": "assistant", "reasoning": "Two.", "content": "2"}
    >>> rendered = renderer.render(parse_record({"messages": [question, answer]}))
    >>> rendered.text
    '<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n<think>\nTwo.\n</think>\n\n2<|im_end|>\n'
    >>> renderer.tokenizer.decode(rendered.input_ids[rendered.loss_mask])
    '<think>\nTwo.\n</think>\n\n2<|im_end|>'
    """

    def __init__(
        self,
        folder: TokenizerFolder,
        templates: Templates,
        *,
        train: Train = "all",
        train_empty_think: bool = False,
        today: date = DEFAULT_DATE,
        variables: Mapping[str, Any] | None = None,
        tools_in_system: bool = False,
        effort_sentences: EffortSentences | None = None,
    ) -> None:
        """Raises UsageError for a variable that no template reads or a sentence that it does not write, ToolkitError
        where a template is broken.
        """
        self._variables = with_written_numbers(dict(variables or {}))
        self._train: Train = train
        self._options = FitOptions(train_empty_think, tools_in_system, effort_sentences or EffortSentences())
        require_names(self._variables)
        self.templates = {
            name: _compiled(name, source, folder.special_tokens, today, self._variables)
            for name, source in templates.items()
        }
        self.template_digest = templates_digest(templates)
        _require_read(self._variables, self.templates.values())
        self.tokenizer = ChatTokenizer(folder, "\n".join(templates.values()))
        self._fit = lru_cache(_FITS_KEPT)(self._make_fit)
        self._main = self._fit(DEFAULT if DEFAULT in templates else min(templates), "{}")
        for of_level in self._options.effort_sentences.variables.values():
            require_names(of_level)
            _require_read(of_level, self.templates.values())
        self.effort.require_sentences()

    @classmethod
    def from_folder(cls, path: str | Path, chat_template: str | Path | None = None, **options: Any) -> Renderer:
        """From a folder in Hugging Face layout, with its own templates, one of them by name, or a template file.

        Raises ToolkitError where tokenizer or template are missing, broken, or cannot carry an exact mask.
        """
        folder = TokenizerFolder.read(Path(path))
        return cls(folder, folder.templates_from(chat_template), **options)

    def narrowed(self, name: str) -> Renderer:
        """The same with one of its templates alone."""
        only = copy.copy(self)
        only.templates = {name: self.templates[name]}
        only._main = self._fit(name, "{}")
        return only

    @property
    def template(self) -> ChatTemplate:
        return self._main.template

    @property
    def facts(self) -> TemplateFacts:
        return self._main.facts

    @property
    def probes(self) -> Probes:
        return self._main.probes

    @property
    def rules(self) -> TurnRules:
        return self._main.rules

    @property
    def effort(self) -> EffortDisplay:
        return self._main.effort

    def fit_of(self, conversation: Conversation) -> Fit:
        """The template that renders a record, under the variables that it brings, its effort left aside.

        Raises RecordError where it asks for a template that is not there, or brings variables that make no sense.
        """
        return self._fit_with({}, *self._own(conversation))

    def shows_reasoning(self, conversation: Conversation) -> dict[int, bool]:
        """Of each assistant message that reasons, whether its reasoning is in the text; nothing of a faulty record."""
        _, draft = self._draft(conversation)
        shown = {turn.message: draft.writes_reasoning(turn) for turn in draft.turns}
        return {message: written for message, written in shown.items() if written is not None}

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
        of_effort = self._options.effort_sentences.of_level(conversation.effort)
        try:
            name, own = self._own(conversation)
            fit = self._fit_with(of_effort, name, own)
            states = conversation.effort is None or self._fit_with({}, name, own).effort.states(conversation.effort)
        except RecordError as error:
            return self._main, Draft(conversation, error=error)
        draft = fit.drafter.draft(conversation, with_written_numbers({**own, **of_effort}))
        draft.notes["template_variables"] += bool(own)
        draft.notes["template_variables_not_read"] += bool(own.keys() - fit.template.reads)
        draft.notes["effort_not_rendered"] += not states
        return fit, draft

    def _own(self, conversation: Conversation) -> tuple[str, Variables]:
        """The name of the template for a record, and the variables that it brings."""
        own = record_variables(conversation)
        return self._chosen(own.pop(TEMPLATE_KEY, None), bool(conversation.tools)), own

    def _fit_with(self, of_effort: Mapping[str, Any], name: str, own: Variables) -> Fit:
        return self._fit(name, encode_text(switches({**own, **of_effort})))

    def _chosen(self, named: Any, has_tools: bool) -> str:
        """The name of the template for a record, which may name it itself."""
        name = choose(self.templates, has_tools) if named is None else named
        if name is None or name not in self.templates:
            asked = f"no chat template is called {named}" if named else "no chat template for records without tools"
            known = ", ".join(sorted(self.templates))
            raise RecordError("no_such_template", asked, f"there is {known}; `chat_template=NAME` takes one for all")
        return str(name)

    def _make_fit(self, name: str, own: str) -> Fit:
        """How turns begin and end may depend on the variables that a record brings: `own`, as JSON text."""
        template = self.templates[name].with_variables({**self._variables, **with_written_numbers(decode(own))})
        try:
            return Fit(template, self.tokenizer, self._options, for_tools=name == TOOL_USE)
        except ToolkitError as error:
            if own != "{}":
                raise RecordError("bad_template_variables", f"with {own}, {error.message}", error.hint) from error
            raise _of_template(name, error) from error

    def _tokenised(self, drafts: list[tuple[Fit, Draft]]) -> Iterator[tuple[Conversation, Rendered | RecordError]]:
        encodings = iter(self.tokenizer.encode([draft.text for _, draft in drafts if draft.error is None]))
        for fit, draft in drafts:
            yield draft.conversation, draft.error or self._finished(fit, draft, next(encodings))

    def _finished(self, fit: Fit, draft: Draft, encoding: Encoding) -> Rendered | RecordError:
        try:
            return Masking(fit, draft, self._train).masked(encoding)
        except RecordError as error:
            return error


def _compiled(name: str, source: str, special: Mapping[str, str], today: date, variables: Variables) -> ChatTemplate:
    try:
        return ChatTemplate(source, special, today, variables)
    except ToolkitError as error:
        raise _of_template(name, error) from error


def _of_template(name: str, error: ToolkitError) -> ToolkitError:
    return error if name == DEFAULT else ToolkitError(f"template {name}: {error.message}", error.hint)


def _require_read(variables: Mapping[str, Any], templates: Iterable[ChatTemplate]) -> None:
    for name in variables:
        if not any(name in template.reads for template in templates):
            known = sorted({readable for template in templates for readable in template.readable})
            raise UsageError(
                f"template variable {name}: the chat template reads no such name",
                f"it reads {', '.join(known) or 'none'}",
            )
