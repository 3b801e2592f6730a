"""A teacher behind an OpenAI-compatible endpoint.

The key goes into one header and nowhere else; where a server echoes it, it is blotted out.
"""

from __future__ import annotations

import email.utils
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx

from sft_toolkit.errors import RecordError, ToolkitError, TryAgain
from sft_toolkit.json_text import encode
from sft_toolkit.teachers.batch_endpoint import HttpBatches
from sft_toolkit.teachers.bodies import decode_or_none
from sft_toolkit.teachers.event_stream import is_event_stream, whole_reply
from sft_toolkit.teachers.handshake import Agreed, KnownTemplate, shake_hands
from sft_toolkit.teachers.http_client import HttpClient, Timeouts
from sft_toolkit.teachers.key_filter import SECRET_LENGTH, KeyFilter
from sft_toolkit.teachers.prefill import COMPLETIONS, chat_body, completion_body
from sft_toolkit.teachers.replies import error_message, is_answer
from sft_toolkit.teachers.requests import Asking, Request
from sft_toolkit.teachers.teacher import Busy, Faulty, NotThere, RawReply, Setback, Unreachable

_HOPELESS = {
    401: "is the key right? it comes from `api_key_file` or KOLIBRI_SFT_API_KEY",
    403: "the key may not use this model or endpoint",
    407: "the proxy that the environment names wants a login",
}
_NOT_THERE = {
    404: "check `teacher` (it usually ends in /v1) and `model`",
    405: "check `teacher`: it usually ends in /v1",
}
_PASSING = frozenset({408, 409, 425})
_BUSY = (429, 503)
_PAYMENT_REQUIRED = 402
_OUT_OF_FUNDS = ("insufficient_quota", "billing_hard_limit_reached", "insufficient_balance")
_SHOWN_BYTES = 500
_STREAM = {"stream": True, "stream_options": {"include_usage": True}}


class HttpTeacher:
    """`url` is the base of the endpoint, as in https://host/v1. `template` is its chat template, where known.

    `streamed` asks for replies in pieces; they are put together, and are read where a server sends them unasked too.
    """

    at_once: int | None = None

    def __init__(
        self,
        url: str,
        timeouts: Timeouts,
        *,
        key: str | None = None,
        template: KnownTemplate | None = None,
        streamed: bool = False,
    ) -> None:
        self._client = HttpClient(url, timeouts, key)
        self._key = KeyFilter(key)
        self._template = template
        self._streamed = _STREAM if streamed else {}
        self._agreed = Agreed("")

    async def settle_prefill(self, asking: Asking) -> Asking:
        self._agreed = await shake_hands(self, asking, self._template)
        return replace(asking, prefill=self._agreed.prefill)

    async def ask(self, asking: Asking, request: Request) -> RawReply:
        try:
            path, body = self.question(asking, request)
        except RecordError as fault:
            return RawReply(400, encode({"error": {"message": fault.detail}}))
        sent = asking.without_left_out({**body, **self._streamed})
        try:
            response = await self._client.post(self._client.url + path, sent)
        except Setback as setback:
            setback.body = self._key.clean(setback.body)
            raise
        return self._judged(response)

    def question(self, asking: Asking, request: Request) -> tuple[str, dict[str, Any]]:
        """Path and body that ask `request`. Raises RecordError where the chat template refuses its conversation."""
        if asking.prefill != COMPLETIONS or request.opener is None:
            return "/chat/completions", chat_body(asking, request, self._agreed.tag)
        if self._template is None:
            raise ToolkitError("prefill completions needs the chat template", "add `tokenizer`")
        return "/completions", completion_body(asking, request, self._template)

    async def rendered_by_server(self, body: Mapping[str, Any]) -> str | None:
        """The prompt that the server makes of a chat body, where it has an endpoint for that (llama.cpp, vLLM).

        Raises Busy while it loads its model or is too busy for that.
        """
        root = self._client.url.removesuffix("/v1")
        applied = await self._probe(f"{root}/apply-template", body)
        if isinstance(applied, dict) and isinstance(applied.get("prompt"), str):
            return applied["prompt"]
        tokens = await self._probe(f"{root}/tokenize", body)
        if isinstance(tokens, dict) and tokens.get("tokens"):
            wanted = {"model": body.get("model"), "tokens": tokens["tokens"]}
            text = await self._probe(f"{root}/detokenize", wanted)
            if isinstance(text, dict) and isinstance(text.get("prompt"), str):
                return text["prompt"]
        return None

    def batches(self) -> HttpBatches:
        return HttpBatches(self._client, self._refused)

    async def close(self) -> None:
        await self._client.close()

    async def _probe(self, url: str, body: Mapping[str, Any]) -> Any:
        try:
            response = await self._client.post(url, body)
        except (Faulty, Unreachable):
            return None
        if response.status_code in _BUSY:
            raise Busy(f"HTTP {response.status_code}", _retry_after(response.headers.get("retry-after")))
        return decode_or_none(response.content) if response.status_code == 200 else None

    def _judged(self, response: httpx.Response) -> RawReply:
        status = response.status_code
        if 300 <= status < 400:
            target = _host_of(response.headers.get("location", ""))
            raise ToolkitError(
                f"{self._client.url}: redirects to {target}", "redirects are not followed: give the final URL"
            )
        return self._answer(response) if status < 300 else self._refused(response)

    def _refused(self, response: httpx.Response) -> RawReply:
        """What the server said of a question that it refuses. Raises where another time or nobody would be heard."""
        status, content = response.status_code, self._key.clean(response.content)
        body = decode_or_none(content)
        said = _said(content) if body is None else error_message(body)
        place = f"{self._client.url}: HTTP {status}: {said}"
        if status == _PAYMENT_REQUIRED or (400 <= status < 500 and _names_funds(body)):
            raise TryAgain(place, "top up, then run the same command again")
        if status in _HOPELESS:
            raise ToolkitError(place, _HOPELESS[status])
        if status in _NOT_THERE:
            raise NotThere(place, _NOT_THERE[status])
        if status in _BUSY:
            raise Busy(f"HTTP {status}: {said}", _retry_after(response.headers.get("retry-after")))
        if status >= 500 or status in _PASSING:
            raise Faulty(f"HTTP {status}: {said}")
        return RawReply(status, encode({"error": {"message": said}}) if body is None else content)

    def _answer(self, response: httpx.Response) -> RawReply:
        """A reply of status 200; a gateway may send an error with it. Raises Busy or Faulty, with what came."""
        whole = came = response.content
        if is_event_stream(response.headers.get("content-type", ""), came):
            try:
                whole = whole_reply(came)
            except ValueError as fault:
                raise Faulty(f"not a reply: {fault}", self._key.clean(came)) from fault
        body = decode_or_none(whole)
        if is_answer(body):
            return RawReply(response.status_code, self._key.clean(whole, SECRET_LENGTH))
        content = self._key.clean(came)
        said = "no JSON" if body is None else self._key.clean(error_message(body).encode()).decode()
        if _code_of(body) in _BUSY:
            wait = _retry_after(response.headers.get("retry-after"))
            raise Busy(f"HTTP {response.status_code} and in it {_code_of(body)}: {said}", wait, content)
        raise Faulty(f"not a reply: {said}", content)


def _host_of(url: str) -> str:
    try:
        return httpx.URL(url).host or "elsewhere"
    except httpx.InvalidURL:
        return "elsewhere"


def _names_funds(body: Any) -> bool:
    """True where the error's code or type says that money is what is missing."""
    error = body.get("error") if isinstance(body, dict) else None
    return isinstance(error, dict) and any(error.get(name) in _OUT_OF_FUNDS for name in ("code", "type"))


def _code_of(body: Any) -> Any:
    error = body.get("error") if isinstance(body, dict) else None
    return error.get("code") if isinstance(error, dict) else None


def _said(content: bytes) -> str:
    """The beginning of a body that is no JSON, on one line."""
    return " ".join(content[:_SHOWN_BYTES].decode("utf-8", "replace").split())


def _retry_after(given: str | None) -> float | None:
    """Seconds to wait, from seconds or an HTTP date; None where none are asked for, or nothing that is either."""
    try:
        seconds = float(given or "0")
    except ValueError:
        seconds = _seconds_until(str(given))
    return seconds if seconds > 0 else None


def _seconds_until(date: str) -> float:
    try:
        return email.utils.parsedate_to_datetime(date).timestamp() - time.time()
    except (ValueError, OverflowError, TypeError):
        return 0.0
