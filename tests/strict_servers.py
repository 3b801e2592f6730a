"""Endpoints that take nothing but what they know, each in the manner of one provider: `answer(path, body)`.

A question that a provider would refuse is refused with its status; the model counts on in the thinking that it was
given, or thinks in German.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

THOUGHT = " eine Aufgabe, die wir in aller Ruhe und der Reihe nach lösen wollen."
ANSWER = "Die Antwort lautet 42."
_COMMON = {"model", "messages", "temperature", "top_p", "stream", "stop", "tools", "tool_choice", "response_format"}


def refused(status: int, message: str) -> tuple[int, dict[str, Any]]:
    return status, {"error": {"message": message, "type": "invalid_request_error"}}


def thought(opener: str) -> str:
    return " 9, 10, 11, 12." if opener.endswith("8,") else THOUGHT


def reply(message: dict[str, Any], finish: str = "stop") -> dict[str, Any]:
    usage = {"prompt_tokens": 10, "completion_tokens": 20}
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage}


class Strict:
    """Counts what it was asked; `bodies` are the questions of /chat/completions that it answered."""

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.bodies: list[dict[str, Any]] = []

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        if not path.endswith("/chat/completions"):
            return refused(404, "no such path")
        status, value = self.chat(body)
        self.statuses[status] += 1
        if status == 200:
            self.bodies.append(body)
        return status, value

    def chat(self, body: dict[str, Any]) -> tuple[int, Any]:
        raise NotImplementedError


class DeepSeek(Strict):
    """Ignores unknown fields; an assistant message comes last with `prefix` alone, and calls keep their reasoning."""

    def chat(self, body: dict[str, Any]) -> tuple[int, Any]:
        *before, last = body["messages"]
        asked = max(index for index, message in enumerate(body["messages"]) if message["role"] == "user")
        for index, message in enumerate(before):
            if index > asked and message.get("tool_calls") and not message.get("reasoning_content"):
                return refused(400, "The reasoning_content in the thinking mode must be passed back to the API.")
        if last["role"] != "assistant":
            return 200, reply({"role": "assistant", "reasoning_content": "We think." + THOUGHT, "content": ANSWER})
        if last.get("prefix") is not True:
            return refused(400, "The last message of an assistant must have prefix set")
        thinking = last.get("reasoning_content", "")
        if not thinking:
            return 200, reply({"role": "assistant", "content": ANSWER})
        return 200, reply({"role": "assistant", "reasoning_content": thought(thinking), "content": ANSWER})


class Mistral(Strict):
    """Forbids what it does not know, of the body and of messages; thinking is a part of the content."""

    known = frozenset({*_COMMON, "max_tokens", "random_seed", "n", "prompt_mode"})
    of_messages = frozenset({"role", "content", "tool_calls", "tool_call_id", "name", "prefix"})

    def chat(self, body: dict[str, Any]) -> tuple[int, Any]:
        unknown = sorted(body.keys() - self.known)
        unknown += sorted({name for message in body["messages"] for name in message.keys() - self.of_messages})
        if unknown:
            detail = [{"type": "extra_forbidden", "loc": ["body", name], "msg": "not permitted"} for name in unknown]
            return 422, {"object": "error", "message": {"detail": detail}}
        last = body["messages"][-1]
        if last["role"] == "assistant" and not last.get("prefix"):
            return 400, {
                "object": "error",
                "message": "Expected last role User or Tool (or Assistant with prefix True)",
            }
        held = last["content"] if last["role"] == "assistant" else ""
        if isinstance(held, str):
            parts = [{"type": "text", "text": ANSWER}]
        elif held[0]["closed"] is False:
            opener = held[0]["thinking"][0]["text"]
            thinking = {"type": "thinking", "thinking": [{"type": "text", "text": opener + thought(opener)}]}
            parts = [thinking, {"type": "text", "text": ANSWER}]
        return 200, reply({"role": "assistant", "content": parts})


class OpenAIReasoning(Strict):
    """Refuses max_tokens, any temperature but 1, fields that it does not know, and an assistant message at the end."""

    known = frozenset({*_COMMON, "max_completion_tokens", "reasoning_effort", "seed", "n"})

    def chat(self, body: dict[str, Any]) -> tuple[int, Any]:
        if "max_tokens" in body:
            return refused(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        if body.get("temperature", 1) != 1 or body.get("top_p", 1) != 1:
            return refused(400, "Unsupported value: 'temperature' does not support 0 with this model.")
        unknown = sorted(body.keys() - self.known)
        if unknown:
            return refused(400, f"Unknown parameter: '{unknown[0]}'.")
        return 200, reply({"role": "assistant", "content": ANSWER})


class StreamOnly(Strict):
    """Streams or refuses: pieces of a few characters, pings between them, usage at the end where it is asked for."""

    def __init__(self, cut_after: int | None = None, refuses_usage: bool = False) -> None:
        super().__init__()
        self.cut_after, self.refuses_usage = cut_after, refuses_usage

    def chat(self, body: dict[str, Any]) -> tuple[int, Any]:
        if body.get("stream") is not True:
            return refused(400, "This model only supports streaming")
        if self.refuses_usage and "stream_options" in body:
            return refused(422, "extra fields not permitted: stream_options")
        opener = str(body["messages"][-1].get("reasoning_content") or "")
        events = self.events(thought(opener), body)
        if self.cut_after is not None:
            self.cut_after, events = None, events[: self.cut_after]
        return 200, "".join(events).encode()

    def events(self, thinking: str, body: dict[str, Any]) -> list[str]:
        deltas = [{"role": "assistant", "content": ""}]
        deltas += [{"reasoning_content": thinking[at : at + 5]} for at in range(0, len(thinking), 5)]
        deltas += [{"content": ANSWER[at : at + 5]} for at in range(0, len(ANSWER), 5)]
        choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
        chunks = [{"id": "s", "object": "chat.completion.chunk", "choices": [choice]} for choice in choices]
        if "stream_options" in body:
            chunks.append({"id": "s", "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 20}})
        lines = [f"data: {json.dumps(chunk)}\r\n\r\n" for chunk in chunks]
        return [lines[0], ": ping\r\n\r\n", *lines[1:], "data: [DONE]\r\n\r\n"]


class Batches(Strict):
    """Files and batches as OpenAI has them, over at the third look; `fails` strikes the first calls of a path."""

    def __init__(self, fails: dict[str, list[int]] | None = None, expires_after: int | None = None) -> None:
        super().__init__()
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.looks: Counter[str] = Counter()
        self.fails = fails or {}
        self.expires_after = expires_after
        self.asked: Counter[str] = Counter()

    def answer(self, path: str, body: Any) -> tuple[int, Any]:
        place = path.removeprefix("/v1")
        for beginning, statuses in self.fails.items():
            if place.startswith(beginning) and statuses:
                return refused(statuses.pop(0), "scripted")
        if place == "/files":
            return self.upload(body)
        if place.startswith("/files/"):
            return 200, self.files[place.split("/")[2]]
        if place == "/batches":
            return self.create(body)
        if place.startswith("/batches?"):
            return 200, {"object": "list", "data": [*reversed(self.batches.values())]}
        if place.startswith("/batches/"):
            return 200, self.look(place.split("/")[2])
        return super().answer(path, body)

    def upload(self, body: bytes) -> tuple[int, Any]:
        head, _, rest = body.partition(b"\r\n\r\n")
        if b'name="purpose"' not in head:
            return refused(400, "purpose is missing")
        content = rest.split(b"\r\n\r\n", 1)[1].rsplit(b"\r\n--", 1)[0]
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return 200, {"id": name, "object": "file", "purpose": "batch"}

    def create(self, body: dict[str, Any]) -> tuple[int, Any]:
        if body.keys() != {"input_file_id", "endpoint", "completion_window"} or body["completion_window"] != "24h":
            return refused(400, "bad batch")
        lines = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
        if any(line["url"] != body["endpoint"] or line["method"] != "POST" for line in lines):
            return refused(400, "mismatched endpoint")
        name = f"batch-{len(self.batches)}"
        self.asked.update(line["custom_id"] for line in lines)
        self.batches[name] = {"id": name, "status": "validating", "input_file_id": body["input_file_id"]}
        return 200, self.batches[name]

    def look(self, name: str) -> dict[str, Any]:
        batch = self.batches[name]
        self.looks[name] += 1
        if self.looks[name] == 2:
            batch["status"] = "in_progress"
        if self.looks[name] >= 3 and "output_file_id" not in batch:
            self.finish(name, batch)
        return batch

    def finish(self, name: str, batch: dict[str, Any]) -> None:
        lines = [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines()]
        answered = lines if self.expires_after is None else lines[: self.expires_after]
        batch["status"] = "completed" if len(answered) == len(lines) else "expired"
        batch["output_file_id"] = f"{name}-out"
        self.files[batch["output_file_id"]] = b"".join(map(self.reply_line, reversed(answered)))
        if len(answered) < len(lines):
            batch["error_file_id"] = f"{name}-errors"
            error = {"code": "batch_expired", "message": "This request could not be executed before it expired."}
            late = [
                {"custom_id": line["custom_id"], "response": None, "error": error} for line in lines[len(answered) :]
            ]
            self.files[batch["error_file_id"]] = b"".join(json.dumps(line).encode() + b"\n" for line in late)

    def reply_line(self, line: dict[str, Any]) -> bytes:
        user = next(m["content"] for m in line["body"]["messages"] if m["role"] == "user")
        status, body = (
            200,
            reply({"role": "assistant", "reasoning_content": "Gegeben ist" + THOUGHT, "content": ANSWER}),
        )
        if "verboten" in user:
            status, body = refused(400, "not this one")
        response = {"status_code": status, "request_id": "r", "body": body}
        return (
            json.dumps({"id": "x", "custom_id": line["custom_id"], "response": response, "error": None}).encode()
            + b"\n"
        )
