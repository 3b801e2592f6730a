"""The teacher's chat template, applied here: for servers that continue a text, and to count what a server was sent."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers

from sft_toolkit.chat.template import ChatTemplate
from sft_toolkit.chat.template_files import choose
from sft_toolkit.chat.tokenizer_folder import TokenizerFolder
from sft_toolkit.errors import RecordError
from sft_toolkit.teachers.requests import Request
from sft_toolkit.teachers.thinking import UNKNOWN, Messages, Opening, opening_of, with_reasoning


class TeacherTemplate:
    """The templates in a tokenizer folder. A BOS that servers put before every text anyway is left out.

    Raises ToolkitError where there is no template.
    """

    def __init__(self, path: Path) -> None:
        self._folder = TokenizerFolder.read(path)
        sources = self._folder.require_templates().items()
        self._templates = {name: ChatTemplate(source, self._folder.special_tokens) for name, source in sources}
        self._bos = self._folder.special_tokens.get("bos_token", "") if self._folder.adds_bos is not False else ""
        self._openings: dict[tuple[str, str], Opening | None] = {}

    def opened(self, request: Request, variables: Mapping[str, Any]) -> str:
        """The prompt of a question, with thinking open and the opener as its first words where it has an opener.

        Raises RecordError where the template refuses the conversation, or ends its prompt otherwise than the canary's.
        """
        name = self._name(with_tools=bool(request.tools))
        prompt = self._render(name, request.messages, request.tools, variables, generation=True)
        if request.opener is None:
            return prompt
        try:
            return (self._opening(name, variables) or UNKNOWN).opened(prompt, request.opener)
        except ValueError as fault:
            raise RecordError("template_error", str(fault)) from fault

    def opening(self, variables: Mapping[str, Any]) -> Opening | None:
        """How the template opens thinking; None where it writes none."""
        return self._opening(self._name(with_tools=False), variables)

    def tokens(self, text: str) -> set[int]:
        """How many tokens a server may count in a prompt: with a BOS of its own or without."""
        count = len(self._tokenizer.encode(text, add_special_tokens=False).ids)
        return {count, count + 1} if self._bos else {count}

    @cached_property
    def _tokenizer(self) -> Any:
        return tokenizers.Tokenizer.from_buffer(self._folder.tokenizer_json)

    def _name(self, *, with_tools: bool) -> str:
        return choose(self._templates, with_tools) or min(self._templates)

    def _opening(self, name: str, variables: Mapping[str, Any]) -> Opening | None:
        def rendered(messages: Messages, generation: bool) -> str | None:
            try:
                return self._render(name, messages, [], variables, generation)
            except RecordError:
                return None

        known = name, repr(sorted(variables.items()))
        if known not in self._openings:
            self._openings[known] = opening_of(rendered)
        return self._openings[known]

    def _render(
        self,
        name: str,
        messages: Messages,
        tools: list[dict[str, Any]],
        variables: Mapping[str, Any],
        generation: bool,
    ) -> str:
        named = [with_reasoning(message) for message in messages]
        text = self._templates[name].render(named, tools or None, variables, generation_prompt=generation)
        return text.removeprefix(self._bos)
