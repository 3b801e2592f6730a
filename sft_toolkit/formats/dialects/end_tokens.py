"""Tokens that end a message and, copied into data, stand at its end as text."""

from __future__ import annotations

import re

END_TOKENS = (
    "</s>",  # Llama 2, Mistral
    "<|eot_id|>",  # Llama 3
    "<|eom_id|>",
    "<|end_of_text|>",  # Llama 3, Granite
    "<|im_end|>",  # ChatML
    "<|endoftext|>",  # GPT-2, Qwen, glaive
    "<|end|>",  # Phi, harmony
    "<|call|>",  # harmony
    "<|return|>",
    "<｜end▁of▁sentence｜>",  # DeepSeek
    "<end_of_turn>",  # Gemma 1 to 3
    "<turn|>",  # Gemma 4
    "<|tool_response>",  # Gemma 4 stops a call so
    "<|END_OF_TURN_TOKEN|>",  # Command R
    "<|observation|>",  # GLM-4 stops a call so
    "<|user|>",  # GLM-4 stops an answer so
    "<|eot|>",  # Llama 4, Muse Glimmer
    "<|eom|>",
    "<seed:eos>",  # Seed-OSS
    "[e~[",  # MiniMax
)
_TOKEN = "|".join(map(re.escape, END_TOKENS))
AFTER_CALL = re.compile(rf"(?:\s|{_TOKEN})*+")
_LAST = (*END_TOKENS, "<s>")
_BEGIN = re.compile(r"(?:\s|<s>|<\|begin_of_text\|>|<｜begin▁of▁sentence｜>)*+")


def without_end_tokens(text: str) -> str:
    """`text` without blank space and tokens that begin or end it."""
    begun = _BEGIN.match(text)
    begin, end = begun.end() if begun else 0, len(text)
    while end > begin:
        token = next((token for token in _LAST if text.endswith(token, begin, end)), "")
        if not token and not text[end - 1].isspace():
            break
        end -= len(token) or 1
    return text[begin:end]
