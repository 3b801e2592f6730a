"""What is worth knowing of a template and tokenizer before training with them."""

from __future__ import annotations

from dataclasses import dataclass

from sft_toolkit.chat.messages import Dialect
from sft_toolkit.chat.probes import CallShape, Probes
from sft_toolkit.chat.template import ChatTemplate
from sft_toolkit.chat.tokens import ChatTokenizer
from sft_toolkit.chat.turn_probes import generation_blocks_agree
from sft_toolkit.chat.turns import TurnRules


@dataclass(frozen=True)
class TemplateFacts:
    """`roles`: which roles' text is written. `generation_blocks_agree` is None where the template has none.

    `tools`: the tools that a record declares are written. `parallel_calls`: several calls in one turn are all written.
    `history_reasoning`: reasoning before the last question is kept. `effort`: the record's effort changes the text.
    `stops` is empty where a turn ends at the next role marker or at an appended EOS; `history_stops` are endings that a
    template shows but a model must not produce. `writes_bos`: the text begins with BOS; `adds_bos`: the tokenizer puts
    it there.
    """

    dialect: Dialect
    tools: bool
    tool_calls: bool
    parallel_calls: bool
    reasoning: bool
    history_reasoning: bool
    effort: bool
    roles: dict[str, bool]
    headers: tuple[str, ...]
    stops: tuple[str, ...]
    history_stops: tuple[str, ...]
    generation_blocks_agree: bool | None
    inserts_default_system: bool
    asks_for_date: bool
    writes_bos: bool
    adds_bos: bool
    has_eos: bool


def template_facts(template: ChatTemplate, tokenizer: ChatTokenizer, probes: Probes, rules: TurnRules) -> TemplateFacts:
    preamble = probes.preamble()
    bos = tokenizer.bos or ""
    said = tokenizer.control_text.pattern.sub("", preamble)
    return TemplateFacts(
        dialect=probes.dialect,
        tools=probes.writes_tools,
        tool_calls=probes.writes_call(CallShape(1)) or probes.writes_call(CallShape(1, last=True)),
        parallel_calls=probes.writes_call(CallShape(2)),
        reasoning=probes.writes_reasoning(last=True),
        history_reasoning=probes.writes_reasoning(last=False),
        effort=probes.writes_effort(),
        roles={role: probes.writes_role(role, 0) for role in ("system", "developer", "user", "tool")},
        headers=rules.headers,
        stops=rules.stops,
        history_stops=rules.history_stops,
        generation_blocks_agree=generation_blocks_agree(probes.probing, rules),
        inserts_default_system=bool(said.removeprefix(bos).strip()) and not probes.probing.always_tools,
        asks_for_date=template.asks_for_date,
        writes_bos=bool(bos) and preamble.startswith(bos),
        adds_bos=len(tokenizer.prefix) > 0,
        has_eos=tokenizer.eos is not None,
    )
