"""Does an opener land inside open thinking? Shown before any prompt is paid for, or the run does not begin."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from sft_toolkit.errors import ToolkitError, TryAgain
from sft_toolkit.teachers.pace import Patience
from sft_toolkit.teachers.prefill import AUTO, COMPLETIONS, FORMS, NONE, chat_body, holds_opener
from sft_toolkit.teachers.replies import read_reply
from sft_toolkit.teachers.requests import Asking, Request
from sft_toolkit.teachers.teacher import Busy, NotThere, RawReply, Setback

CANARY_OPENER = "1, 2, 3, 4, 5, 6, 7, 8,"
_CONTINUED = re.compile(r"\s*9\b")
_CANARY = [{"role": "user", "content": "Count from 1 to 12, then say done."}]
_CANARY_TOKENS, _RENDERED_CANARY_TOKENS = 512, 16
_TRIES = 4
_LONGEST_WAIT = 60.0


class Endpoint(Protocol):
    async def ask(self, asking: Asking, request: Request) -> RawReply: ...

    async def rendered_by_server(self, body: Mapping[str, Any]) -> str | None: ...


async def shake_hands(endpoint: Endpoint, asking: Asking, *, can_render: bool) -> Asking:
    """`asking` with the first form of prefill that is shown to work; with `none` there is nothing to show.

    A form works where the server's own rendering of the prompt ends with the opener inside open thinking, or where a
    canary, a count up to 8, is continued inside the thinking of the reply. Raises ToolkitError that says what each
    form did, or at once where no form would be heard (a wrong key).
    """
    if asking.prefill == NONE:
        return asking
    forms = (
        [form for form in FORMS if form != COMPLETIONS or can_render] if asking.prefill == AUTO else [asking.prefill]
    )
    found, not_there = [], []
    for form in forms:
        candidate = replace(asking, prefill=form)
        try:
            why_not = await _why_not(endpoint, candidate)
        except NotThere as error:
            not_there.append(error)
            why_not = error.message
        if why_not is None:
            return candidate
        found.append(f"{form}: {why_not}")
    if len(not_there) == len(forms):
        raise not_there[0]
    more = "" if can_render else " add --tokenizer DIR to try completions;"
    raise ToolkitError(
        f"the opener does not land inside open thinking ({'; '.join(found)})",
        f"{more} --prefill none asks without openers".strip(),
    )


async def _why_not(endpoint: Endpoint, asking: Asking) -> str | None:
    """What speaks against the form of prefill in `asking`; None where it was shown to work."""
    canary = Request(_CANARY, opener=CANARY_OPENER)
    if asking.prefill != COMPLETIONS:
        rendered = await endpoint.rendered_by_server(chat_body(asking, canary))
        if rendered is not None:
            return None if holds_opener(rendered, CANARY_OPENER) else "the server renders it outside of open thinking"
    tokens = _RENDERED_CANARY_TOKENS if asking.prefill == COMPLETIONS else _CANARY_TOKENS
    parameters = {**asking.parameters, "max_tokens": tokens, "temperature": 0}
    raw = await _persistently(endpoint, replace(asking, parameters=parameters), canary)
    if raw.status >= 400:
        return read_reply(raw).refusal
    if asking.prefill == COMPLETIONS:
        return None
    reply = read_reply(raw, CANARY_OPENER, asking.prefill)
    if not reply.reasoning:
        return "the reply holds no thinking"
    if not reply.thought_closed:
        return "the thinking of the reply never ends"
    continued = reply.reasoning.removeprefix(CANARY_OPENER)
    return None if _CONTINUED.match(continued) else f"the thinking begins anew: {continued[:40].strip()!r}"


async def _persistently(endpoint: Endpoint, asking: Asking, canary: Request) -> RawReply:
    """Raises TryAgain where nobody answers."""
    for attempt in range(1, _TRIES + 1):
        try:
            return await endpoint.ask(asking, canary)
        except Setback as setback:
            last = setback
        if attempt < _TRIES:
            asked_for = last.wait if isinstance(last, Busy) else None
            await asyncio.sleep(min(asked_for or Patience().delay(attempt), _LONGEST_WAIT))
    raise TryAgain(f"the teacher does not answer: {last}", "run the same command again when it does")
