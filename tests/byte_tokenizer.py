"""A tokenizer of one token a byte, and a small ChatML template: tokens that a person can count."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CHATML = (
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message.role + '\\n' }}"
    "{%- if message.reasoning %}{{- '<think>' + message.reasoning + '</think>' }}{% endif %}"
    "{{- message.content or '' }}"
    "{%- for call in message.tool_calls or [] %}{{- '<call>' + (call.function | tojson) }}{% endfor %}"
    "{{- '<|im_end|>\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}"
)
CONTROL = ("<|im_start|>", "<|im_end|>")


def write_byte_tokenizer(
    folder: Path,
    template: str = CHATML,
    control: Sequence[str] = CONTROL,
    merges: Sequence[tuple[str, str]] = (),
    **config: Any,
) -> Path:
    """A tokenizer folder: a token for each byte, merged pair and control token, in this order; EOS is <|im_end|>.

    Bytes in `merges` are written as byte-level BPE does, a line break as Ċ.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    texts = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *(first + second for first, second in merges)]
    tokenizer = Tokenizer(models.BPE({text: number for number, text in enumerate(texts)}, list(merges)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(control))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|im_end|>", **config}))
    (folder / "chat_template.jinja").write_text(template)
    return folder
