"""The batch API of an OpenAI-compatible endpoint: files and batches over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from sft_toolkit.errors import ToolkitError
from sft_toolkit.teachers.bodies import decode_or_none
from sft_toolkit.teachers.http_client import HttpClient
from sft_toolkit.teachers.replies import read_reply
from sft_toolkit.teachers.teacher import Faulty, NotThere, RawReply

_PURPOSE = {"purpose": "batch"}


class HttpBatches:
    """`refused` says what a response that is no success means: it raises, or returns what the server said."""

    def __init__(self, client: HttpClient, refused: Callable[[httpx.Response], RawReply]) -> None:
        self._client = client
        self._refused = refused

    async def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        response = await self._request(method, path, **({} if body is None else {"json": body}))
        answer = decode_or_none(response.content)
        if not isinstance(answer, dict):
            raise Faulty(f"{path}: no JSON object")
        return answer

    async def upload(self, path: Path) -> str:
        with path.open("rb") as file:
            sent = {"file": (path.name, file, "application/jsonl")}
            response = await self._request("POST", "/files", data=_PURPOSE, files=sent)
        answer = decode_or_none(response.content)
        if not (isinstance(answer, dict) and isinstance(answer.get("id"), str)):
            raise Faulty("/files: no id of the file")
        return str(answer["id"])

    async def content(self, file_id: str) -> bytes:
        return (await self._request("GET", f"/files/{file_id}/content")).content

    async def _request(self, method: str, path: str, **options: Any) -> httpx.Response:
        response = await self._client.request(method, self._client.url + path, **options)
        if response.status_code < 300:
            return response
        try:
            said = read_reply(self._refused(response)).refusal
        except NotThere as fault:
            raise ToolkitError(
                fault.message, "has this endpoint /files and /batches? `batch_file` does without"
            ) from fault
        raise ToolkitError(f"{self._client.url}{path}: {said}")
