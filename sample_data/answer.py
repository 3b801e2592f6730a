"""Lets a trained folder answer, through plain transformers: `python sample_data/answer.py MODEL [QUESTION]`."""

from __future__ import annotations

import sys

from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

QUESTION = "Was kosten drei Brötchen zu je 45 Cent?"


def main(folder: str, question: str = QUESTION) -> None:
    logging.disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    messages = [{"role": "user", "content": question}]
    prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    reply = model.generate(**prompt, max_new_tokens=24, do_sample=False)
    print(f"{question}\n  {tokenizer.decode(reply[0, prompt['input_ids'].shape[1] :])!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
