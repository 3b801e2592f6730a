"""What a teacher is asked, and the key under which its reply is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import xxhash

from sft_toolkit.json_text import encode

_SEED_BITS = 31


@dataclass(frozen=True, slots=True)
class Request:
    """One question, as OpenAI chat messages.

    `opener` opens the thinking block and is its first words; "" opens it and leaves the words to the teacher, None
    leaves it to the teacher whether it thinks. `sample` distinguishes questions that are otherwise the same. `options`
    are further fields of the request's body, such as response_format.
    """

    messages: list[dict[str, Any]]
    sample: int = 0
    opener: str | None = None
    tools: list[dict[str, Any]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Asking:
    """What all questions of a run share: which model, how it samples, how an opened thinking block is sent.

    `parameters` are fields of the request's body: temperature, max_tokens and the like.
    """

    model: str
    prefill: str
    parameters: Mapping[str, Any]
    seed: int = 0

    def key(self, request: Request) -> str:
        """Hash of question, sample, opener, model and parameters: 32 hexadecimal digits."""
        question = [request.messages, request.tools, request.options, request.sample, request.opener]
        return xxhash.xxh3_128_hexdigest(encode([*question, self.to_json()]))

    def sampling_seed(self, request: Request) -> int:
        """The seed that the server is given for this question, from its key."""
        return int(self.key(request), 16) & ((1 << _SEED_BITS) - 1)

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "prefill": self.prefill,
            "parameters": dict(sorted(self.parameters.items())),
            "seed": self.seed,
        }
