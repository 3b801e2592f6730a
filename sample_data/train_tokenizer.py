"""Train the sample's tokenizer on the sample: `python train_tokenizer.py [FOLDER]`, by default into `tokenizer`.

A byte-level BPE that reads digits one by one, in Hugging Face layout. The chat template beside it is written by hand.
"""

from __future__ import annotations

import gzip
import itertools
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

HERE = Path(__file__).parent
FILES = (
    "agent_runs.jsonl",
    "bakery_tools.jsonl",
    "code_review.jsonl",
    "general_chat.jsonl",
    "handwritten.jsonl",
    "letters.jsonl",
    "long_reports.jsonl.gz",
    "school_maths.jsonl",
    "science_questions.jsonl",
)
VOCABULARY = 6144
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MARKS = ("<think>", "</think>", "<tool_call>", "</tool_call>")
"""Tokens of their own that are part of what the model says."""


def texts() -> Iterator[str]:
    """Every string of every record (what is said, tools, arguments, keys), and an effort sentence with each."""
    template = (HERE / "tokenizer" / "chat_template.jinja").read_text(encoding="utf-8")
    sentences = itertools.cycle(re.findall(r"'(Reasoning effort: .+)'", template))
    for name in FILES:
        content = (HERE / name).read_bytes()
        for line in (gzip.decompress(content) if name.endswith(".gz") else content).splitlines():
            yield next(sentences)
            yield from _strings(json.loads(line))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def train() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    digits, words = pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, words])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(MARKS),
        min_frequency=2,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[*SPECIAL],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts(), trainer)
    tokenizer.add_tokens([AddedToken(mark, normalized=False, special=False) for mark in MARKS])
    return tokenizer


def main(folder: Path) -> None:
    named = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": 262_144,
        "clean_up_tokenization_spaces": False,
        **named,
    }
    train().save(str(folder / "tokenizer.json"), pretty=False)
    for name, content in (("tokenizer_config.json", config), ("special_tokens_map.json", named)):
        (folder / name).write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "tokenizer")
