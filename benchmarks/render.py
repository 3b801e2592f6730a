"""Rendering with a loss mask: tokens per processor second, beside the bare tokenizer (the limit) and transformers.

    python benchmarks/render.py [TOKENIZER_FOLDER [RECORDS.jsonl...]]

The limit is `encode_batch` of the tokenizers library on texts that are rendered already, ids taken as arrays. The peer
is transformers' `apply_chat_template(return_assistant_tokens_mask=True)`, which needs a template with generation tags.
Records are read first. Each is timed several times in turn and the best time counts; times are of the processor, so
that what else runs on the machine disturbs little.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sft_toolkit.chat import Rendered, Renderer
from sft_toolkit.chat.messages import prepare, prepare_tools
from sft_toolkit.conversation import Conversation
from sft_toolkit.formats import parse_record
from sft_toolkit.json_text import decode

os.environ.setdefault("RAYON_NUM_THREADS", "1")
ROUNDS = 5
_BATCH = 64
_SAMPLE_DATA = Path(__file__).parent.parent / "sample_data"
_SAMPLES = ("agent_runs", "bakery_tools", "code_review", "general_chat", "letters", "school_maths", "science_questions")


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0]) if arguments else _SAMPLE_DATA / "tokenizer"
    paths = [Path(path) for path in arguments[1:]] or [_SAMPLE_DATA / f"{name}.jsonl" for name in _SAMPLES]
    conversations = [parse_record(decode(line)) for path in paths for line in path.read_bytes().splitlines()]
    renderer = Renderer.from_folder(folder)
    rendered = [one for one in renderer.render_batch(conversations) if isinstance(one, Rendered)]
    tokens = sum(len(one.input_ids) for one in rendered)
    print(f"{len(rendered):,} of {len(conversations):,} conversations, {tokens:,} tokens, best of {ROUNDS}")
    texts = [one.text for one in rendered]
    contenders: dict[str, Callable[[], Any]] = {
        "tokenizers: encode_batch of rendered text": lambda: encode(renderer, texts),
        "kolibri-sft: text, ids, mask, spans": lambda: renderer.render_batch(conversations),
    }
    if renderer.facts.generation_blocks_agree is not None:
        contenders["transformers: apply_chat_template with mask"] = peer(folder, renderer, conversations)
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(ROUNDS):
        for name, work in contenders.items():
            begun = time.process_time()
            work()
            best[name] = min(best[name], time.process_time() - begun)
    limit = next(iter(best.values()))
    for name, seconds in best.items():
        print(f"  {name:45} {tokens / seconds:12,.0f} tokens/CPU s  {limit / seconds:6.1%}")


def encode(renderer: Renderer, texts: list[str]) -> list[np.ndarray]:
    encoded = []
    for start in range(0, len(texts), _BATCH):
        encoded += [np.array(one.ids, np.int32) for one in renderer.tokenizer.encode(texts[start : start + _BATCH])]
    return encoded


def peer(folder: Path, renderer: Renderer, conversations: list[Conversation]) -> Callable[[], None]:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    prepared = [
        (prepare(each, renderer.probes.dialect, Counter()), prepare_tools(each), each.effort) for each in conversations
    ]

    def run() -> None:
        for messages, tools, effort in prepared:
            tokenizer.apply_chat_template(
                messages, tools=tools, effort=effort, return_dict=True, return_assistant_tokens_mask=True
            )

    return run


if __name__ == "__main__":
    main(sys.argv[1:])
