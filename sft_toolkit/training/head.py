"""What a causal LM of transformers makes of its last hidden states, read from its modules and its configuration.

That the reading is the whole of it is not taken on trust: `isolation.require_known_head` compares it with the model's
own logits.
"""

from __future__ import annotations

from typing import Any

from sft_toolkit.training.loss import Head

_CAPS = ("final_logit_softcapping", "logits_soft_cap", "output_logit_soft_cap")
_FACTORS = ("logit_scale", "lm_head_multiplier")
_DIVISORS = ("logits_scaling",)
"""What configurations call a cap, and what logits are multiplied with and divided by."""


def learned_outside(causal_lm: Any) -> str | None:
    """The name of a parameter that is neither in the base model nor the head's weight or bias."""
    head = causal_lm.get_output_embeddings()
    known = {id(one) for one in (*causal_lm.base_model.parameters(), head.weight, getattr(head, "bias", None))}
    return next((name for name, one in causal_lm.named_parameters() if id(one) not in known), None)


def head_of(causal_lm: Any) -> Head:
    """The output head, with its parameters as they lie there now."""
    embeddings, config = causal_lm.get_output_embeddings(), causal_lm.config.get_text_config(decoder=True)
    scale = 1.0
    for name in _FACTORS:
        scale *= getattr(config, name, None) or 1.0
    for name in _DIVISORS:
        scale /= getattr(config, name, None) or 1.0
    cap = next((value for name in _CAPS if (value := getattr(config, name, None))), None)
    return Head(embeddings.weight, getattr(embeddings, "bias", None), scale, cap)
