"""Requests to one endpoint: connections kept open, what came of a broken reply kept, its faults by their kind."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from urllib.parse import urlsplit

import httpx

from sft_toolkit.errors import ToolkitError
from sft_toolkit.json_text import encode
from sft_toolkit.teachers.teacher import Faulty, Unreachable

_JSON = {"Content-Type": "application/json"}
_PROXIES = "HTTP_PROXY, HTTPS_PROXY and ALL_PROXY name it; NO_PROXY excepts hosts"
_OK = 200


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds: to connect, without a byte from the server, for a whole reply, which comes when it is finished."""

    connect: float = 10.0
    read: float = 3600.0
    total: float = 3600.0


class HttpClient:
    """Certificates are checked, and a redirect is never followed, so that no other host can be handed the key."""

    def __init__(self, url: str, timeouts: Timeouts, key: str | None) -> None:
        self.url = url.rstrip("/")
        self._total = timeouts.total
        self._open = partial(
            httpx.AsyncClient,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(timeouts.read, connect=timeouts.connect, pool=None),
            verify=_certificates(),
            trust_env=not _is_loopback(url),
            follow_redirects=False,
        )
        # One connection each: a shared pool looks through all of its connections for every request.
        self._idle: list[httpx.AsyncClient] = []

    async def post(self, url: str, body: Mapping[str, Any]) -> httpx.Response:
        """Post `body` as JSON. Raises as `request`."""
        return await self.request("POST", url, content=encode(body), headers=_JSON)

    async def request(self, method: str, url: str, **options: Any) -> httpx.Response:
        """The whole response. Raises Unreachable or Faulty, with what had come of the body, and ToolkitError."""
        client = self._idle.pop() if self._idle else self._client()
        came, is_paid = bytearray(), False
        try:
            async with asyncio.timeout(self._total), client.stream(method, url, **options) as response:
                is_paid = response.status_code == _OK
                async for chunk in response.aiter_raw():
                    came += chunk
            return httpx.Response(response.status_code, headers=response.headers, content=bytes(came))
        except (httpx.ConnectError, httpx.ConnectTimeout) as fault:
            raise Unreachable(f"no connection: {fault or type(fault).__name__}") from fault
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as fault:
            raise ToolkitError(f"{self.url}: {fault}", "give `teacher` as https://host/v1") from fault
        except (TimeoutError, httpx.RequestError) as fault:
            raise Faulty(self._broken(fault), bytes(came) if is_paid else b"") from fault
        finally:
            self._idle.append(client)

    def _broken(self, fault: Exception) -> str:
        if isinstance(fault, TimeoutError):
            return f"no reply within {self._total:g} s"
        if isinstance(fault, httpx.TimeoutException):
            return "the reply stopped coming"
        return f"the reply broke off: {str(fault) or type(fault).__name__}"

    async def close(self) -> None:
        for client in self._idle:
            await client.aclose()

    def _client(self) -> httpx.AsyncClient:
        try:
            return self._open()
        except (ImportError, ValueError, httpx.InvalidURL) as fault:
            raise ToolkitError(f"the environment names a proxy that cannot be used: {fault}", _PROXIES) from fault


@cache
def _certificates() -> ssl.SSLContext:
    """Those that this machine trusts, read once."""
    return httpx.create_ssl_context()


def _is_loopback(url: str) -> bool:
    """True for this machine itself: no proxy can reach it, and the key is none of a proxy's business."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")
