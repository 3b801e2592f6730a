"""A reply that comes in pieces (server-sent events), put together as it would have come whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sft_toolkit.json_text import encode
from sft_toolkit.teachers.bodies import decode_with_halves, whole_pairs

_DONE = b"[DONE]"
_OF_THE_REPLY = ("id", "model", "created", "system_fingerprint", "usage")


def is_event_stream(content_type: str, body: bytes) -> bool:
    """True where a server streams, whether or not it was asked to."""
    return content_type.partition(";")[0].strip().lower() == "text/event-stream" or body.startswith(b"data:")


def whole_reply(stream: bytes) -> bytes:
    """The body that the stream stands for, an error's body where the stream says that the server failed.

    Raises ValueError where the stream ends before the reply does, or holds no JSON.
    """
    reply: dict[str, Any] = {}
    choice = _Choice()
    for data in _events(stream):
        if data == _DONE:
            choice.is_over = True
            break
        chunk = decode_with_halves(data)
        if not isinstance(chunk, dict):
            raise ValueError("an event is no object")
        if chunk.get("error"):
            return encode(whole_pairs({"error": chunk["error"]}))
        reply.update((name, chunk[name]) for name in _OF_THE_REPLY if chunk.get(name) is not None)
        for piece in chunk.get("choices") or []:
            choice.add(piece)
    if not choice.is_over:
        raise ValueError("the stream ended before the reply did")
    return encode(whole_pairs({**reply, "choices": [choice.to_json()] if choice.has_come else []}))


class _Choice:
    """The one choice of a reply, put together from its pieces: texts are joined, tool calls by their index."""

    def __init__(self) -> None:
        self.has_come = self.is_over = False
        self._finish: Any = None
        self._is_chat = False
        self._texts: dict[str, list[str]] = {}
        self._others: dict[str, Any] = {}
        self._calls: dict[Any, dict[str, Any]] = {}

    def add(self, piece: Any) -> None:
        if not isinstance(piece, dict) or piece.get("index") not in (None, 0):
            return
        self.has_come = True
        if piece.get("finish_reason") is not None:
            self._finish, self.is_over = piece["finish_reason"], True
        delta = piece.get("delta")
        self._is_chat |= isinstance(delta, dict)
        for name, held in (delta if isinstance(delta, dict) else {"text": piece.get("text")}).items():
            self._add_field(name, held)

    def to_json(self) -> dict[str, Any]:
        fields = {**self._others, **{name: "".join(texts) for name, texts in self._texts.items()}}
        if self._calls:
            fields["tool_calls"] = [_whole_call(call) for call in self._calls.values()]
        held = (
            {"message": {"role": "assistant", "content": None, **fields}} if self._is_chat else {"text": "", **fields}
        )
        return {"index": 0, **held, "finish_reason": self._finish}

    def _add_field(self, name: str, held: Any) -> None:
        if name == "tool_calls":
            for call in held or []:
                self._add_call(call)
        elif isinstance(held, str) and name != "role":
            self._texts.setdefault(name, []).append(held)
        elif isinstance(held, list):
            self._others[name] = [*self._others.get(name, []), *held]
        elif held is not None and name != "role":
            self._others[name] = held

    def _add_call(self, piece: Any) -> None:
        """Servers that send a call whole may leave its index out: one that brings an id or a name is then a new one."""
        if not isinstance(piece, dict):
            return
        place = piece.get("index")
        given = piece.get("function")
        function = given if isinstance(given, dict) else {}
        if place is None:
            begins = piece.get("id") or function.get("name")
            place = len(self._calls) if begins or not self._calls else len(self._calls) - 1
        call = self._calls.setdefault(place, {"id": None, "name": "", "arguments": []})
        call["id"] = call["id"] or piece.get("id")
        call["name"] = call["name"] or function.get("name") or ""
        call["arguments"].append(function.get("arguments"))


def _whole_call(call: dict[str, Any]) -> dict[str, Any]:
    """Arguments come as pieces of JSON text, or at once as an object."""
    pieces = [piece for piece in call["arguments"] if piece is not None]
    arguments = "".join(pieces) if all(isinstance(piece, str) for piece in pieces) else pieces[-1]
    return {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": arguments}}


def _events(stream: bytes) -> Iterator[bytes]:
    """The data of each event; comments, with which servers keep a connection alive, are passed over."""
    data: list[bytes] = []
    for line in stream.splitlines():
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif not line and data:
            yield b"\n".join(data)
            data = []
    if data:
        yield b"\n".join(data)
