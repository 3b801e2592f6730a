"""A real HTTP server on loopback that answers like an OpenAI-compatible endpoint and misbehaves by script.

    python misbehaving_server.py SCRIPT.json

prints its port, then serves until stdin closes. A fault strikes a question by its content and how often it was asked
before, never by chance, so that a run against it can be repeated. SCRIPT:

    {"faults": {"rate": 0.05, "kinds": ["500", …]},   share of questions whose first asking meets a fault
     "script": ["429", "500", "ok", …],               instead: what the first requests meet, in order; then all is well
     "style": "inline" | "reasoning" | "reasoning_content" | "thinking" | "echo" | "misfiled" | …,
     "answers": {question: message},                   messages for some questions, as they are
     "efforts": {level: words},                        length of the reasoning at each effort that the body names
     "delay": 0.0, "hold": seconds that a hang lasts, "log": FILE, "open": "reasoning-field", "secret": KEY}

A question that asks for `stream` is answered in server-sent events. The log has one JSON line per request: what was
asked, and what came back.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import sys
from collections import Counter
from pathlib import Path

STREAMED = {"Content-Type": "text/event-stream"}
OPENER_PLACES = ("reasoning_content", "reasoning")
THOUGHT = " eine Aufgabe, die wir in aller Ruhe und der Reihe nach lösen wollen."


class Server:
    def __init__(self, script: dict) -> None:
        self.script = script
        self.asked: Counter[str] = Counter()
        self.coming = iter(script.get("script", []))
        self.log = Path(script["log"]) if "log" in script else None
        self.under_way = self.most_under_way = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                line, *headers = head.decode().split("\r\n")
                named = {k.lower(): v for k, _, v in (header.partition(": ") for header in headers)}
                body = json.loads(await reader.readexactly(int(named.get("content-length", 0))))
                self.under_way += 1
                self.most_under_way = max(self.most_under_way, self.under_way)
                try:
                    if not await self.answer(writer, line.split()[1], named, body):
                        break
                finally:
                    self.under_way -= 1
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def answer(self, writer: asyncio.StreamWriter, path: str, headers: dict, body: dict) -> bool:
        """Returns False where the connection is done for."""
        question = json.dumps([body.get("messages"), body.get("prompt"), body.get("seed")])
        fault = self.fault(question) if "completions" in path else "ok"
        self.note(path=path, question=question, fault=fault, authorization=headers.get("authorization"), body=body)
        if path == "/apply-template" and self.script.get("open"):
            await send(writer, 200, {"prompt": self.render(body)})
            return True
        if "completions" not in path:
            await send(writer, 404, {"error": {"message": "no such path"}})
            return True
        await asyncio.sleep(self.script.get("delay", 0))
        return await self.respond(writer, fault, path, body)

    def fault(self, question: str) -> str:
        times = self.asked[question]
        self.asked[question] += 1
        if "script" in self.script:
            return next(self.coming, "ok")
        faults = self.script.get("faults")
        digest = hashlib.blake2b(question.encode(), digest_size=8).digest()
        if not faults or times or int.from_bytes(digest[:4], "big") / 2**32 >= faults["rate"]:
            return "ok"
        return faults["kinds"][digest[4] % len(faults["kinds"])]

    async def respond(self, writer: asyncio.StreamWriter, fault: str, path: str, body: dict) -> bool:
        if fault == "429-after":
            await send(writer, 429, {"error": {"message": "slow down"}}, {"Retry-After": "0.2"})
        elif fault == "hang":
            await asyncio.sleep(self.script.get("hold", 60))
            return False
        elif fault == "slow":
            await asyncio.sleep(self.script.get("hold", 1))
            await send(writer, 200, self.reply(path, body, "ok"))
        elif fault == "reset" and body.get("stream"):
            await send_bytes(writer, 200, events(self.reply(path, body, "ok"))[:-40], STREAMED, missing=40)
            writer.transport.abort()
            return False
        elif fault == "reset":
            writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"choices": [{"mess')
            await writer.drain()
            writer.transport.abort()
            return False
        elif fault == "malformed":
            await send_bytes(writer, 200, b'{"choices": [{"message": {"content": "so')
        elif fault == "no-choices":
            await send(writer, 200, {"object": "error", "message": "out of memory"})
        elif fault == "bad-gzip":
            await send_bytes(writer, 200, b"\x1f\x8bno gzip", {"Content-Encoding": "gzip"})
        elif fault == "too-deep":
            await send_bytes(writer, 200, b"[" * 200_000)
        elif fault == "text-400":
            await send_bytes(writer, 400, b"the prompt\nis too long")
        elif fault == "list-400":
            await send(writer, 400, [{"error": {"code": 400, "message": "the prompt is too long"}}])
        elif fault == "429-now":
            await send(writer, 429, {"error": {"message": "slow down"}}, {"Retry-After": "0"})
        elif fault == "redirect":
            await send(writer, 307, {}, {"Location": "http://elsewhere.example/v1/chat/completions"})
        elif fault.isdigit():
            await send(
                writer, int(fault), {"error": {"message": f"scripted {fault} for {self.script.get('secret', '')}"}}
            )
        elif body.get("stream"):
            await send_bytes(writer, 200, events(self.reply(path, body, fault)), STREAMED)
        else:
            await send(writer, 200, self.reply(path, body, fault))
        return True

    def reply(self, path: str, body: dict, fault: str) -> dict:
        scripted = self.script.get("answers", {}).get(question_of(body))
        if scripted is not None:
            finish = "length" if fault == "truncated" else "stop"
            return {"choices": [{"message": {"role": "assistant", **scripted}, "finish_reason": finish}]}
        if "efforts" in self.script:
            words = self.script["efforts"][body["chat_template_kwargs"]["effort"]]
            thought = {"reasoning_content": "so " * (words + len(question_of(body)) % 3)} if words else {}
            return {
                "choices": [{"message": {"role": "assistant", "content": "42", **thought}, "finish_reason": "stop"}]
            }
        opener = opener_of(body)
        if "1, 2, 3," in opener:
            text, finish = " 9, 10, 11, 12.", "stop"
        else:
            text, finish = THOUGHT, "stop"
        usage = {"prompt_tokens": 10, "completion_tokens": 20}
        style = fault if fault != "ok" else self.script.get("style", "reasoning_content")
        answer = f"Die Antwort auf {question_of(body)!r} lautet 42."
        if "prompt" in body:
            choice = {"text": f"{text}\n</think>\n\n{answer}"}
        else:
            choice = {"message": {"role": "assistant", **message(style, opener, text, answer)}}
        finish = {"truncated": "length", "filtered": "content_filter", "broken": "error"}.get(style, finish)
        return {"id": "x", "model": body["model"], "choices": [{**choice, "finish_reason": finish}], "usage": usage}

    def render(self, body: dict) -> str:
        """The prompt as a llama.cpp server tells it; only the form named by `open` opens the thinking block."""
        turns = [turn(message) for message in body["messages"]]
        last = body["messages"][-1]
        if last["role"] == "assistant" and body.get("continue_final_message"):
            thinks = self.script["open"] == "reasoning-field" and last.get("reasoning_content")
            turns[-1] = turns[-1].partition("\n</think>")[0] if thinks else turns[-1]
        return "".join(turns) + ("<|assistant|>" if body.get("add_generation_prompt") else "")

    def note(self, **entry: object) -> None:
        if self.log:
            with self.log.open("a") as file:
                file.write(json.dumps(entry) + "\n")


def turn(message: dict) -> str:
    if message["role"] != "assistant":
        return f"<|{message['role']}|>{message['content']}"
    reasoning = message.get("reasoning_content") or ""
    return f"<|assistant|><think>\n{reasoning}\n</think>\n\n{message.get('content') or ''}"


def message(style: str, opener: str, text: str, answer: str) -> dict:
    if style in ("reasoning", "reasoning_content", "thinking", "truncated", "filtered", "broken"):
        return {style if style.startswith(("reas", "think")) else "reasoning": text, "content": answer}
    return {
        "odd-calls": {"reasoning": text, "content": answer, "tool_calls": ["call"]},
        "echo": {"reasoning_content": f"{opener}{text}", "content": answer},
        "inline": {"content": f"<think>\n{opener}{text}\n</think>\n\n{answer}"},
        "continued": {"content": f"{text}\n</think>\n\n{answer}"},
        "unclosed": {"content": f"<think>\n{text}"},
        "misfiled": {"reasoning_content": f"{text}\n</think>\n", "content": answer},
        "skipped": {"content": answer},
        "anew": {"reasoning_content": "Okay, the user wants me to count.", "content": answer},
        "drift": {"reasoning_content": f"{text} Wait, let me check that again with more care.", "content": answer},
        "short": {"reasoning_content": " ja.", "content": answer},
        "empty": {"content": ""},
        "refusal": {"content": None, "refusal": "I cannot help with that."},
    }[style]


def opener_of(body: dict) -> str:
    if "prompt" in body:
        return body["prompt"].rpartition("<think>")[2].strip()
    last = body["messages"][-1]
    if last["role"] != "assistant":
        return ""
    named = next((last[place] for place in OPENER_PLACES if last.get(place)), None)
    return named or str(last.get("content")).removeprefix("<think>\n")


def question_of(body: dict) -> str:
    if "prompt" in body:
        return body["prompt"][:80]
    return next(m["content"] for m in reversed(body["messages"]) if m["role"] == "user")


async def send(writer: asyncio.StreamWriter, status: int, body: dict | list, headers: dict | None = None) -> None:
    await send_bytes(writer, status, json.dumps(body).encode(), headers)


async def send_bytes(
    writer: asyncio.StreamWriter, status: int, body: bytes, headers: dict | None = None, missing: int = 0
) -> None:
    """Send a body; `missing`: bytes that it lacks of the length that is announced."""
    named = {"Content-Type": "application/json", "Content-Length": len(body) + missing, **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    writer.write(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + body)
    await writer.drain()


def events(reply: dict) -> bytes:
    """The reply as server-sent events, a text a word at a time; usage comes last."""
    choice = reply["choices"][0]
    if "message" in choice:
        pieces = [{"delta": {name: piece}} for name, text in choice["message"].items() for piece in split(text)]
    else:
        pieces = [{"text": piece} for piece in split(choice["text"])]
    pieces += [{"delta": {}} if "message" in choice else {"text": ""}]
    pieces[-1]["finish_reason"] = choice["finish_reason"]
    shared = {"id": reply.get("id"), "model": reply.get("model")}
    chunks = [{**shared, "choices": [{"index": 0, **piece}]} for piece in pieces]
    chunks += [{**shared, "choices": [], "usage": reply.get("usage")}]
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def split(text: object) -> list[object]:
    words = re.findall(r"\s*\S+\s*", text) if isinstance(text, str) else []
    return ["".join(words[at : at + 4]) for at in range(0, len(words), 4)] or [text]


async def main() -> None:
    script = json.loads(Path(sys.argv[1]).read_text())
    server = Server(script)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", script.get("port", 0), backlog=512)
    print(listening.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(server.most_under_way, flush=True)


if __name__ == "__main__":
    asyncio.run(main())
