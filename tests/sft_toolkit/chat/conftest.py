"""Tokenizers and templates for the chat tests: a small byte-level BPE, trained here, and ChatML."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.chat import Renderer

CHATML = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}{% for tool in tools %}{{ tool | tojson }}{% endfor %}{{ '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.reasoning %}{{- '<think>\\n' + message.reasoning + '\\n</think>\\n\\n' }}{% endif %}
{{- message.content }}
{%- for call in message.tool_calls or [] %}
    {{- '\\n<tool_call>\\n' + (call.function | tojson) + '\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}"""

_CONTROL = re.compile(r"<\|?/?[A-Za-z_][A-Za-z_0-9]*\|?>|<[A-Za-z_]+\|>|<｜[^｜]*｜>|\[/?[A-Z_]{3,16}\]|\[gMASK\]")
_CORPUS = [
    "Was heisst das? Das sind Steuerzeichen, ja oder nein. How now brown cow, a new answer to an old question.",
    "user assistant system tool Weather in Ulm? 16.2 Grad. lange Antwort, sehr langer Text\n\n\n\nb\n\n",
    '{"name": "get_weather", "arguments": {"city": "Ulm"}}\n',
]

MakeFolder = Callable[..., Path]
RendererFor = Callable[..., Renderer]


@pytest.fixture(scope="session")
def chatml() -> str:
    """A ChatML template with reasoning, tools and tool calls; no generation tags, no system message of its own."""
    return CHATML


@pytest.fixture(scope="session")
def base_tokenizer() -> dict[str, Any]:
    """tokenizer.json of a byte-level BPE of 700 tokens, without special tokens.

    Words are split as Llama 3 and Qwen do it, so that newlines in a row become one token.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    words = Regex(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(words, "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=700, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(_CORPUS * 20, trainer)
    return json.loads(tokenizer.to_str())


def added_tokens(first: int, texts: Sequence[str]) -> list[dict[str, Any]]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return [{"id": first + number, "content": text, **flags} for number, text in enumerate(texts)]


@pytest.fixture(scope="session")
def make_folder(tmp_path_factory: pytest.TempPathFactory, base_tokenizer: dict[str, Any]) -> MakeFolder:
    """`make_folder(template, tokenizer, **config)`: a tokenizer folder.

    The small tokenizer gets every token that looks like a control token in the template, and <s>, </s>.
    """

    def make(template: str | None, tokenizer: dict[str, Any] | None = None, **config: Any) -> Path:
        folder = tmp_path_factory.mktemp("tokenizer")
        if tokenizer is None:
            texts = sorted({*_CONTROL.findall(template or ""), "<s>", "</s>"})
            first = max(base_tokenizer["model"]["vocab"].values()) + 1
            tokenizer = {**base_tokenizer, "added_tokens": added_tokens(first, texts)}
        named = {"bos_token": "<s>", "eos_token": "</s>", **config}
        if template is not None:
            named["chat_template"] = template
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
        (folder / "tokenizer_config.json").write_text(json.dumps(named))
        return folder

    return make


@pytest.fixture(scope="session")
def renderer_for(make_folder: MakeFolder) -> RendererFor:
    """`renderer_for(template, **options)`: a renderer with the small tokenizer, built once per template and options."""
    built: dict[Any, Renderer] = {}

    def make(template: str, **options: Any) -> Renderer:
        key = (template, tuple(sorted(options.items())))
        if key not in built:
            built[key] = Renderer.from_folder(make_folder(template), **options)
        return built[key]

    return make


@pytest.fixture(scope="session")
def trl_templates() -> Path:
    """The folder of real chat templates in the trl package."""
    found = importlib.util.find_spec("trl")
    if found is None or found.origin is None:
        pytest.skip("trl is not installed")
    return Path(found.origin).parent / "chat_templates"
