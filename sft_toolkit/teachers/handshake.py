"""Does an opener land inside open thinking? Shown before any prompt is paid for, or the run does not begin."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from sft_toolkit.errors import ToolkitError, TryAgain
from sft_toolkit.teachers.pace import Patience
from sft_toolkit.teachers.prefill import (
    AUTO,
    COMPLETIONS,
    CONTINUED_AS_TEXT,
    DEFAULT_TAG,
    FORMS,
    NONE,
    TAGGED,
    TEMPLATE_VARIABLES,
    Template,
    chat_body,
    holds_opener,
    probe_body,
    template_variables,
)
from sft_toolkit.teachers.replies import Reply, read_reply, read_usage
from sft_toolkit.teachers.requests import LIMITS, Asking, Request
from sft_toolkit.teachers.teacher import Busy, NotThere, RawReply, Setback
from sft_toolkit.teachers.thinking import CANARY, CANARY_OPENER, PROBES, Opening, find_opening

_CONTINUED = re.compile(r"\s*9\b")
_CANARY_TOKENS = 16
_TRIES = 4
_SAMPLES = 3
_LONGEST_WAIT = 60.0
_SHOWN = 60

Answer = TypeVar("Answer")


class KnownTemplate(Template, Protocol):
    """A chat template that is at hand, with its tokenizer."""

    def opening(self, variables: Mapping[str, Any]) -> Opening | None: ...

    def tokens(self, text: str) -> set[int]: ...


class Endpoint(Protocol):
    async def ask(self, asking: Asking, request: Request) -> RawReply: ...

    async def rendered_by_server(self, body: Mapping[str, Any]) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Agreed:
    """What a handshake settles: the form of prefill, and the tag that opens thinking where we write it."""

    prefill: str
    tag: str = DEFAULT_TAG


async def shake_hands(endpoint: Endpoint, asking: Asking, template: KnownTemplate | None) -> Agreed:
    """The first form of prefill that is proven to open thinking; with `none` there is nothing to prove.

    A form is proven where the server's own rendering of the prompt ends in the opener, and all before it is what the
    server's chat template itself writes before a message's reasoning. Where a server renders nothing, a canary, a count
    up to 8, must be continued inside the thinking of its reply; where we write the tag ourselves, the server must also
    count as many tokens as the prompt of `template` has. Raises ToolkitError that says what each form did, or at once
    where no form would be heard (a wrong key).
    """
    if asking.prefill == NONE:
        return Agreed(NONE)
    hands = _Hands(endpoint, template, await _server_template(endpoint, asking), template_variables(asking))
    usable = [form for form in FORMS if form != COMPLETIONS or template is not None]
    forms = usable if asking.prefill == AUTO else [asking.prefill]
    found, not_there = [], []
    for form in forms:
        try:
            why_not = await hands.why_not(replace(asking, prefill=form))
        except NotThere as error:
            not_there.append(error)
            why_not = error.message
        if why_not is None:
            return Agreed(form, hands.tag)
        found.append(f"{form}: {why_not}")
    if not_there and not hands.were_heard:
        raise not_there[0]
    more = "" if template is not None else "add `tokenizer` with the teacher's chat template;"
    raise ToolkitError(
        f"the opener does not land inside open thinking ({'; '.join(found)})",
        f"{more} {_VARIABLES}; `prefill=none` asks without openers".strip(),
    )


@dataclass(frozen=True, slots=True)
class _ServerTemplate:
    """What the server's own rendering says: how its template opens thinking, None where it writes no reasoning."""

    opening: Opening | None


class _Hands:
    """One form at a time is tried: `why_not` says what speaks against it. `were_heard`: some form was answered."""

    def __init__(
        self,
        endpoint: Endpoint,
        template: KnownTemplate | None,
        server: _ServerTemplate | None,
        variables: Mapping[str, Any],
    ) -> None:
        self._endpoint = endpoint
        self._template = template
        self._server = server
        self._variables = variables
        self._here = template.opening(variables) if template else None
        self.were_heard = server is not None

    @property
    def tag(self) -> str:
        """What opens thinking in the teacher's template, as far as that is known."""
        opening = self._server.opening if self._server else self._here
        return opening.tag if opening else DEFAULT_TAG

    async def why_not(self, asking: Asking) -> str | None:
        if asking.prefill == COMPLETIONS:
            return await self._why_not_completions(asking)
        if self._server is not None:
            return await self._why_not_rendered(asking, self._server)
        if asking.prefill not in CONTINUED_AS_TEXT:
            return self._why_not_read(asking, await self._asked(asking))
        if self._template is None and asking.prefill in TAGGED:
            return "the tag would be text of ours, and nothing shows how the template opens thinking"
        if self._template is not None and self._here is None:
            return _WRITES_NONE
        return self._why_not_text(asking, await self._asked(asking))

    async def _why_not_rendered(self, asking: Asking, server: _ServerTemplate) -> str | None:
        if server.opening is None:
            return "the server's chat template writes no reasoning, so that nothing shows how it opens thinking"
        rendered = await _rendered(self._endpoint, chat_body(asking, _canary(), self.tag))
        if rendered is None:
            return "the server does not render it"
        if holds_opener(rendered, CANARY_OPENER, server.opening.own):
            return None
        return (
            f"the server renders {rendered[-_SHOWN:]!r}, its template {server.opening.own[-_SHOWN:]!r} before thinking"
        )

    async def _why_not_completions(self, asking: Asking) -> str | None:
        """The prompt is rendered here: what remains to show is that the server continues a text."""
        opening = self._here
        if opening is None:
            return _WRITES_NONE
        if opening.mark is None:
            return f"no tag is known here that ends thinking after {opening.own[-20:]!r}"
        others = {name: value for name, value in asking.parameters.items() if name not in LIMITS}
        short = replace(asking, parameters={**others, "max_tokens": _CANARY_TOKENS})
        for sample in range(_SAMPLES):
            raw = await self._asked(short, sample)
            if raw.status >= 400:
                return read_reply(raw).refusal
            reply = read_reply(raw, CANARY_OPENER, COMPLETIONS)
            if _is_continued(reply):
                return None
        return f"the text is not continued: {_beginning(reply)!r}"

    def _why_not_text(self, asking: Asking, raw: RawReply) -> str | None:
        """What goes on as content may do so outside of thinking, and be closed by a model that takes it for thinking.

        So the server has to count the tokens of the prompt with open thinking, or to split thinking and answer itself.
        """
        why_not = self._why_not_read(asking, raw)
        if why_not is not None or raw.status >= 400:
            return why_not
        if self._template is None:
            filed = read_reply(raw, CANARY_OPENER, asking.prefill).filed
            return None if filed else "the server does not split thinking and answer, and no template is at hand"
        expected = self._template.tokens(self._template.opened(_canary(), self._variables))
        counted = read_usage(raw).tokens_in
        if counted in expected:
            return None
        return f"the server counts {counted} tokens, and the prompt with open thinking has {min(expected)}"

    def _why_not_read(self, asking: Asking, raw: RawReply) -> str | None:
        """What speaks against a reply that should continue the canary inside its thinking."""
        if raw.status >= 400:
            return read_reply(raw).refusal
        reply = read_reply(raw, CANARY_OPENER, asking.prefill)
        if not reply.reasoning:
            return "the reply holds no thinking"
        if not _is_continued(reply):
            return f"the thinking begins anew: {_beginning(reply)!r}"
        if reply.is_cut and not reply.thought_closed:
            return "the reply ended at the limit of tokens before its thinking did"
        if not reply.is_cut and not (reply.thought_closed and reply.content.strip()):
            return "the thinking of the reply never ends"
        return None

    async def _asked(self, asking: Asking, sample: int = 0) -> RawReply:
        raw = await _persistently(lambda: self._endpoint.ask(asking, _canary(sample)))
        self.were_heard = True
        return raw


async def _server_template(endpoint: Endpoint, asking: Asking) -> _ServerTemplate | None:
    """None where the server does not tell how it renders."""
    prompt = await _rendered(endpoint, probe_body(asking, CANARY, generation=True))
    if prompt is None:
        return None
    probes = [await _rendered(endpoint, probe_body(asking, probe, generation=False)) for probe in PROBES]
    return _ServerTemplate(find_opening(prompt, probes))


def _canary(sample: int = 0) -> Request:
    return Request(CANARY, sample, opener=CANARY_OPENER)


def _is_continued(reply: Reply) -> bool:
    return _CONTINUED.match(reply.reasoning.removeprefix(CANARY_OPENER)) is not None


def _beginning(reply: Reply) -> str:
    return reply.reasoning.removeprefix(CANARY_OPENER)[:40].strip()


_WRITES_NONE = "the chat template of `tokenizer` writes no reasoning, so that nothing shows how it opens thinking"
_VARIABLES = f"""a template may want `parameter={TEMPLATE_VARIABLES}='{{"enable_thinking": true}}'` to open thinking"""


async def _rendered(endpoint: Endpoint, body: Mapping[str, Any]) -> str | None:
    return await _persistently(lambda: endpoint.rendered_by_server(body))


async def _persistently(call: Callable[[], Awaitable[Answer]]) -> Answer:
    """What the call gives, tried again after setbacks. Raises TryAgain where nobody answers."""
    for attempt in range(1, _TRIES + 1):
        try:
            return await call()
        except Setback as setback:
            last = setback
        if attempt < _TRIES:
            asked_for = last.wait if isinstance(last, Busy) else None
            await asyncio.sleep(min(asked_for or Patience().delay(attempt), _LONGEST_WAIT))
    raise TryAgain(f"the teacher does not answer: {last}", "run the same command again when it does")
