"""A teacher behind an OpenAI-compatible endpoint.

The key goes into one header and nowhere else; where a server echoes it, it is blotted out. Certificates are checked,
and a redirect is never followed, so that no other host can be handed the key.
"""

from __future__ import annotations

import asyncio
import email.utils
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httpx

from sft_toolkit.errors import ToolkitError, TryAgain
from sft_toolkit.json_text import decode, encode
from sft_toolkit.teachers.handshake import shake_hands
from sft_toolkit.teachers.prefill import COMPLETIONS, Render, chat_body, completion_body
from sft_toolkit.teachers.replies import error_message, is_answer
from sft_toolkit.teachers.requests import Asking, Request
from sft_toolkit.teachers.teacher import Busy, Faulty, NotThere, RawReply, Unreachable

_HOPELESS = {
    401: "is the key right? it comes from --api-key-file or KOLIBRI_SFT_API_KEY",
    403: "the key may not use this model or endpoint",
    407: "the proxy that the environment names wants a login",
}
_NOT_THERE = {
    404: "check --teacher (it usually ends in /v1) and --model",
    405: "check --teacher: it usually ends in /v1",
}
_PASSING = frozenset({408, 409, 425})
_BUSY = (429, 503)
_PAYMENT_REQUIRED = 402
_OUT_OF_FUNDS = ("insufficient_quota", "billing_hard_limit_reached", "insufficient_balance")
# What is shorter is no key but a word such as EMPTY or ollama, which answers may well hold.
_SECRET_LENGTH = 16
_SHOWN_BYTES = 500


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds: to connect, without a byte from the server, for a whole reply, which comes when it is finished."""

    connect: float = 10.0
    read: float = 3600.0
    total: float = 3600.0


class HttpTeacher:
    """`url` is the base of the endpoint, as in https://host/v1. `render` applies the chat template, where known."""

    at_once: int | None = None

    def __init__(self, url: str, timeouts: Timeouts, *, key: str | None = None, render: Render | None = None) -> None:
        self._url = url.rstrip("/")
        self._total = timeouts.total
        self._render = render
        self._key = (key or "").encode()
        self._open = partial(
            httpx.AsyncClient,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(timeouts.read, connect=timeouts.connect, pool=None),
            verify=httpx.create_ssl_context(),
            trust_env=not _is_loopback(url),
            follow_redirects=False,
        )
        # One connection each: a shared pool looks through all of its connections for every request.
        self._idle: list[httpx.AsyncClient] = []

    async def settle_prefill(self, asking: Asking) -> Asking:
        return await shake_hands(self, asking, can_render=self._render is not None)

    async def ask(self, asking: Asking, request: Request) -> RawReply:
        if asking.prefill == COMPLETIONS and request.opener is not None:
            if self._render is None:
                raise ToolkitError("prefill completions needs the chat template", "add --tokenizer DIR")
            return await self._post("/completions", completion_body(asking, request, self._render))
        return await self._post("/chat/completions", chat_body(asking, request))

    async def rendered_by_server(self, body: Mapping[str, Any]) -> str | None:
        """The prompt that the server makes of a chat body, where it has an endpoint for that (llama.cpp, vLLM)."""
        root = self._url.removesuffix("/v1")
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

    async def close(self) -> None:
        for client in self._idle:
            await client.aclose()

    async def _send(self, url: str, body: Mapping[str, Any]) -> httpx.Response:
        client = self._idle.pop() if self._idle else self._client()
        try:
            async with asyncio.timeout(self._total):
                return await client.post(url, content=encode(body), headers=_JSON)
        finally:
            self._idle.append(client)

    def _client(self) -> httpx.AsyncClient:
        try:
            return self._open()
        except (ImportError, ValueError, httpx.InvalidURL) as fault:
            raise ToolkitError(f"the environment names a proxy that cannot be used: {fault}", _PROXIES) from fault

    async def _probe(self, url: str, body: Mapping[str, Any]) -> Any:
        try:
            response = await self._send(url, body)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError):
            return None
        return _decoded(response.content) if response.status_code == 200 else None

    async def _post(self, path: str, body: Mapping[str, Any]) -> RawReply:
        try:
            response = await self._send(self._url + path, body)
        except TimeoutError as fault:
            raise Faulty(f"no reply within {self._total:g} s") from fault
        except (httpx.ConnectError, httpx.ConnectTimeout) as fault:
            raise Unreachable(f"no connection: {fault or type(fault).__name__}") from fault
        except httpx.TimeoutException as fault:
            raise Faulty("the reply stopped coming") from fault
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as fault:
            raise ToolkitError(f"{self._url}: {fault}", "give --teacher as https://host/v1") from fault
        except httpx.RequestError as fault:
            raise Faulty(f"the reply broke off: {fault or type(fault).__name__}") from fault
        return self._judged(response)

    def _judged(self, response: httpx.Response) -> RawReply:
        status = response.status_code
        if 300 <= status < 400:
            target = _host_of(response.headers.get("location", ""))
            raise ToolkitError(f"{self._url}: redirects to {target}", "redirects are not followed: give the final URL")
        if status < 300 and is_answer(_decoded(response.content)):
            return RawReply(status, self._without_key(response.content, _SECRET_LENGTH))
        content = self._without_key(response.content)
        body = _decoded(content)
        said = _said(content) if body is None else error_message(body)
        if status == _PAYMENT_REQUIRED or (400 <= status < 500 and _names_funds(body)):
            raise TryAgain(f"{self._url}: HTTP {status}: {said}", "top up, then run the same command again")
        if status in _HOPELESS:
            raise ToolkitError(f"{self._url}: HTTP {status}: {said}", _HOPELESS[status])
        if status in _NOT_THERE:
            raise NotThere(f"{self._url}: HTTP {status}: {said}", _NOT_THERE[status])
        if status in _BUSY:
            raise Busy(f"HTTP {status}: {said}", _retry_after(response.headers.get("retry-after")))
        if status >= 500 or status in _PASSING:
            raise Faulty(f"HTTP {status}: {said}")
        if status < 300:
            raise Faulty(f"not a reply: {'no JSON' if body is None else said}")
        return RawReply(status, encode({"error": {"message": said}}) if body is None else content)

    def _without_key(self, content: bytes, shortest: int = 0) -> bytes:
        """`content` without a key of `shortest` bytes or more, which JSON may hold with slashes escaped."""
        if len(self._key) < shortest:
            return content
        for key in filter(None, {self._key, self._key.replace(b"/", b"\\/")}):
            content = content.replace(key, b"***")
        return content


_JSON = {"Content-Type": "application/json"}
_PROXIES = "HTTP_PROXY, HTTPS_PROXY and ALL_PROXY name it; NO_PROXY excepts hosts"


def _is_loopback(url: str) -> bool:
    """True for this machine itself: no proxy can reach it, and the key is none of a proxy's business."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def _host_of(url: str) -> str:
    try:
        return httpx.URL(url).host or "elsewhere"
    except httpx.InvalidURL:
        return "elsewhere"


def _names_funds(body: Any) -> bool:
    """True where the error's code or type says that money is what is missing."""
    error = body.get("error") if isinstance(body, dict) else None
    return isinstance(error, dict) and any(error.get(name) in _OUT_OF_FUNDS for name in ("code", "type"))


def _decoded(content: bytes) -> Any:
    try:
        return decode(content)
    except (ValueError, RecursionError):
        return None


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
