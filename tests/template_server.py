"""A real HTTP server with a real chat template, in the manner of vLLM, llama.cpp or SGLang, and a model that counts on.

The model continues any prompt that ends in the canary's numbers and then closes a thinking block, whether one was open
or not: what it says proves nothing. `prompts` are the prompts that it was given.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Render = Callable[..., str]
"""`apply_chat_template` of a tokenizer with its template bound."""

TOKENIZING, APPLYING, SILENT = "vllm", "llama.cpp", "sglang"


@dataclass
class TemplateServer:
    """`render(messages, add_generation_prompt=…, continue_final_message=…)`, `encode`, `decode`: a tokenizer's."""

    render: Render
    encode: Callable[[str], list[int]]
    decode: Callable[[list[int]], str]
    manner: str
    prompts: list[str] = field(default_factory=list)
    url: str = ""

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path == "/v1/completions":
            return self._generated(body["prompt"], in_chat=False)
        try:
            if path == "/v1/chat/completions":
                return self._generated(self.prompt(body), in_chat=True)
            if path == "/tokenize" and self.manner == TOKENIZING:
                return 200, {"tokens": self.encode(self.prompt(body))}
            if path == "/detokenize" and self.manner == TOKENIZING:
                return 200, {"prompt": self.decode(body["tokens"])}
            if path == "/apply-template" and self.manner == APPLYING:
                return 200, {"prompt": self.prompt(body)}
        except Exception as fault:
            return 400, {"error": {"message": f"the template says {fault}"}}
        return 404, {"error": {"message": "no such path"}}

    def prompt(self, body: dict[str, Any]) -> str:
        messages = body["messages"]
        if not body.get("continue_final_message"):
            return self.render(messages, add_generation_prompt=body.get("add_generation_prompt", True))
        if self.manner == SILENT:
            return self.render(messages[:-1], add_generation_prompt=True) + messages[-1]["content"]
        return self.render(messages, add_generation_prompt=False, continue_final_message=True)

    def _generated(self, prompt: str, in_chat: bool) -> tuple[int, dict[str, Any]]:
        self.prompts.append(prompt)
        continues = prompt.rstrip().endswith("8,")
        text = " 9, 10, 11, 12\n</think>\n\nDone." if continues else "Done."
        held = {"message": {"role": "assistant", "content": text}} if in_chat else {"text": text}
        usage = {"prompt_tokens": len(self.encode(prompt)), "completion_tokens": 9}
        return 200, {"choices": [{"index": 0, **held, "finish_reason": "stop"}], "usage": usage}


@contextlib.contextmanager
def listening(answer: Callable[[str, Any], tuple[int, Any]]) -> Iterator[str]:
    """The base URL of a server on loopback that gives `answer(path, body)`, a status with a JSON value or bytes.

    The body is decoded where it is JSON, {} for GET.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet: else each reply waits for an acknowledgement

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            is_json = self.headers.get("content-type") == "application/json"
            self._send(*answer(self.path, json.loads(body) if is_json else body))

        def do_GET(self) -> None:
            self._send(*answer(self.path, {}))

        def _send(self, status: int, value: Any) -> None:
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/event-stream" if data.startswith(b"data:") else "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            self.wfile.flush()

        def log_message(self, *_: Any) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
