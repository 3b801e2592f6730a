"""What a teacher is asked, and the key under which its reply is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import xxhash

from sft_toolkit.json_text import encode

_SEED_BITS = 31
LIMITS = ("max_tokens", "max_completion_tokens")
"""Names of the parameter that says how long a reply may be."""


@dataclass(frozen=True, slots=True)
class Request:
    """One question, as OpenAI chat messages; `reasoning` on a message is sent back to the teacher.

    `record` is the id of the record that asks, so that equal questions of two records get a reply each. `opener` opens
    the thinking block and is its first words; "" opens it and leaves the words to the teacher, None leaves it to the
    teacher whether it thinks. `sample` distinguishes questions that are otherwise the same. `options` are further
    fields of the request's body, such as response_format.
    """

    messages: list[dict[str, Any]]
    sample: int = 0
    opener: str | None = None
    tools: list[dict[str, Any]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    record: str = ""


@dataclass(frozen=True)
class Asking:
    """What all questions of a run share: which model, how it samples, how an opened thinking block is sent.

    `parameters` are fields of the request's body: temperature, max_tokens and the like. `left_out` names fields that
    must not be sent, where a server knows them not. `earlier` are the limits of length, each lower than today's, with
    which a journal was filled before: what ended within one of them needs no other reply.
    """

    model: str
    prefill: str
    parameters: Mapping[str, Any]
    seed: int = 0
    left_out: tuple[str, ...] = ()
    earlier: tuple[Mapping[str, Any], ...] = ()

    def key(self, request: Request) -> str:
        """Hash of question, record, sample, opener, model and parameters: 32 hexadecimal digits."""
        question = [request.messages, request.tools, request.options, request.record, request.sample, request.opener]
        return xxhash.xxh3_128_hexdigest(encode(question) + self._shared)

    def earlier_keys(self, request: Request) -> list[str]:
        """The keys under which replies of lower limits are kept, of the highest first."""
        return [asking.key(request) for asking in self._earlier]

    def sampling_seed(self, request: Request) -> int:
        """The seed that the server is given for this question, from its key."""
        return int(self.key(request), 16) & ((1 << _SEED_BITS) - 1)

    def without_left_out(self, body: dict[str, Any]) -> dict[str, Any]:
        """`body` without the fields that are left out, of its messages too."""
        if not self.left_out:
            return body
        messages = {"messages": [self._kept(message) for message in body["messages"]]} if "messages" in body else {}
        return self._kept({**body, **messages})

    def to_json(self) -> dict[str, Any]:
        shared = {
            "model": self.model,
            "prefill": self.prefill,
            "parameters": dict(sorted(self.parameters.items())),
            "seed": self.seed,
        }
        return {**shared, "left_out": sorted(self.left_out)} if self.left_out else shared

    def limited_by(self, limit: Mapping[str, Any]) -> Asking:
        """The same with another limit of length, {} for none."""
        others = {name: value for name, value in self.parameters.items() if name not in LIMITS}
        return replace(self, parameters={**others, **limit}, earlier=())

    def _kept(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in fields.items() if name not in self.left_out}

    @cached_property
    def _shared(self) -> bytes:
        return encode(self.to_json())

    @cached_property
    def _earlier(self) -> list[Asking]:
        return [self.limited_by(limit) for limit in reversed(self.earlier)]


def limit_of(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The limit of length among parameters, {} where there is none."""
    return {name: parameters[name] for name in LIMITS if parameters.get(name) is not None}
