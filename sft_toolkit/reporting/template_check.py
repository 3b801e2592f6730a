"""What a chat template and its tokenizer do together, and what of that would train wrongly.

Besides the renderer's own facts, small conversations are rendered all the way: what is said of stop tokens, BOS and
straddling tokens is read off their token ids.
"""

from __future__ import annotations

import re
from typing import Any

from sft_toolkit.chat import Rendered, Renderer, Span
from sft_toolkit.chat.probe_words import ANSWER, TOOLS, assistant, probe, result, user
from sft_toolkit.chat.variables import RECORD_KEY
from sft_toolkit.conversation import EFFORTS, Message
from sft_toolkit.errors import RecordError
from sft_toolkit.reporting.findings import Finding, Level
from sft_toolkit.reporting.wording import last_token, listed, shown, tokens_of, written

_LOOKS_LIKE_CONTROL = re.compile(r"<\|[^|<>\s]{1,40}\|>|<｜[^｜<>\s]{1,40}｜>")
_STATE_EFFORT = "`effort_sentences` states it"
_EFFORT_VARIABLES = frozenset({"reasoning_effort", "reasoning_strength", "enable_thinking", "thinking"})
_PER_EXCHANGE = "`render(per_exchange=True)` trains every exchange as inference would show it"


def findings_of(renderer: Renderer, without_tools: bool = False) -> list[Finding]:
    """Of the one template of a renderer; a conversation that cannot be rendered ends them early.

    `without_tools`: no record that declares tools is rendered with this template.
    """
    try:
        return _TemplateCheck(renderer, without_tools).all()
    except RecordError as error:
        return [Finding("error", "rendering", f"two questions with their answers: {error.detail}", error.hint)]


class _TemplateCheck:
    """Each method answers one question."""

    def __init__(self, renderer: Renderer, without_tools: bool) -> None:
        """`without_tools`: no record that declares tools is rendered with this template."""
        self._renderer = renderer
        self._facts = renderer.facts
        self._without_tools = without_tools
        self._declared = TOOLS if renderer.probes.probing.always_tools else []
        self._own_variables = renderer.probes.needed_variables(renderer.template)
        self._plain = self._render(user(), assistant(), user(), assistant())

    def _render(self, *messages: Message, tools: list[dict[str, Any]] | None = None) -> Rendered:
        conversation = probe(*messages, tools=tools or self._declared)
        conversation.extra[RECORD_KEY] = self._own_variables
        return self._renderer.render(conversation)

    def all(self) -> list[Finding]:
        questions = (
            self._header,
            self._stop,
            self._call_stop,
            self._eos,
            self._bos,
            self._exactness,
            self._markers,
            self._roles,
            self._tools,
            self._tool_calls,
            self._reasoning,
            self._history_reasoning,
            self._effort,
            self._generation_tags,
            self._straddles,
            self._control_text,
            self._default_system,
            self._date,
            self._forms,
        )
        return [finding for ask in questions if (finding := ask()) is not None]

    def _header(self) -> Finding:
        headers = self._facts.headers
        produced = "".join(self._plain.text[begin:end] for begin, end in self._plain.spans[-1].pieces)
        if headers:
            return Finding("ok", "header", f"a prompt gives {listed(headers)}: no loss on it")
        if produced.lstrip().startswith(ANSWER):
            return Finding("ok", "header", "none: an answer begins right after the question")
        said = f"no prompt gives {shown(produced.partition(ANSWER)[0])}: it carries loss"
        return Finding("warning", "header", said, "does the template heed add_generation_prompt?")

    def _stop(self) -> Finding:
        earlier, last = self._plain.spans
        if self._plain.notes["turns_without_stop"]:
            advice = "end answers with a control token, or give the tokenizer an eos_token"
            return Finding("error", "stop", "no token ends an answer: the model would not learn to stop", advice)
        if self._plain.notes["history_stop_left_out"]:
            said = f"{last.stop} ends the last answer; earlier ones end in {listed(self._facts.history_stops)}, no loss"
            return Finding("warning", "stop", said, _PER_EXCHANGE)
        if not earlier.stop:
            said = f"{last.stop or self._eos_text} ends the last answer; no token ends an earlier one"
            return Finding("warning", "stop", said, _PER_EXCHANGE)
        if not last.stop:
            return Finding("ok", "stop", f"{earlier.stop} ends an answer; after the last, {self._eos_text} is appended")
        return Finding("ok", "stop", f"{listed(dict.fromkeys((earlier.stop, last.stop)))} ends an answer, with loss")

    def _call_stop(self) -> Finding | None:
        """Where one call and several end a turn differently, the model would go on after those without a stop."""
        for calls in (1, 2) if self._facts.tool_calls else ():
            try:
                called = self._render(user(), assistant(None, calls=calls), *map(result, range(calls)), assistant())
            except RecordError:
                continue
            turn = called.spans[0]
            if not turn.stop and not called.notes["history_stop_left_out"]:
                ends = last_token(written(called, turn), self._renderer.tokenizer.control)
                many = "one call" if calls == 1 else "several calls"
                said = (
                    f"a turn of {many} ends in {ends}, neither eos_token nor what ends an answer: a model would go on"
                )
                return Finding("warning", "call stop", said, "for tool-calling data, choose another template")
        return None

    def _eos(self) -> Finding:
        ends = {span.stop or self._eos_text for span in self._plain.spans}
        if not self._facts.has_eos:
            return Finding("warning", "eos", "the tokenizer names no eos_token", "name the stop token as eos_token")
        if self._eos_text in ends:
            return Finding("ok", "eos", f"{self._eos_text} ends an answer")
        advice = f"add {listed(sorted(ends))} to eos_token_id in generation_config.json"
        return Finding("warning", "eos", f"{self._eos_text} is not what ends an answer", advice)

    @property
    def _eos_text(self) -> str:
        return self._renderer.template.special_tokens.get("eos_token", "")

    def _bos(self) -> Finding:
        bos = self._renderer.tokenizer.bos
        if bos is None:
            return Finding("ok", "bos", "none: the tokenizer names no bos_token")
        identity = self._renderer.tokenizer.control.get(bos)
        ids = self._plain.input_ids.tolist()
        count = ids.count(identity)
        if count == 0:
            advice = "a model that was trained with it wants it: set add_bos_token in tokenizer_config.json"
            return Finding("warning", "bos", f"neither template nor tokenizer writes {bos}", advice)
        if count > 1 or ids[0] != identity:
            said = f"{bos} occurs {count} times, first at token {ids.index(identity)}"
            return Finding("error", "bos", said, "let the template write it once, at the beginning")
        return Finding("ok", "bos", f"{bos} once, from the {'template' if self._facts.writes_bos else 'tokenizer'}")

    def _exactness(self) -> Finding:
        """Decoding the loss tokens of a turn gives what the turn says."""
        trials = [self._plain]
        if self._facts.tool_calls:
            called = user(), assistant(None, calls=1), result(0), assistant()
            trials.append(self._render(*called, tools=TOOLS))
        for trial in trials:
            for span in trial.spans:
                decoded, turn = self._decoded(trial, span), written(trial, span)
                if decoded != turn:
                    said = f"loss lies on {shown(decoded)}, the turn is {shown(turn)}"
                    return Finding("error", "loss", said, "this tokenizer's offsets cannot be trusted")
        example = shown(written(self._plain, self._plain.spans[-1]))
        return Finding("ok", "loss", f"decodes to what a turn says: {example}")

    def _decoded(self, trial: Rendered, span: Span) -> str:
        ids = [token for begin, end in span.tokens for token in trial.input_ids[begin:end].tolist()]
        text = self._renderer.tokenizer.decode(ids).strip()
        return text if span.stop else text.removesuffix(self._eos_text)

    def _markers(self) -> Finding | None:
        control = self._renderer.tokenizer.control
        plain = dict.fromkeys(text for text in _LOOKS_LIKE_CONTROL.findall(self._plain.text) if text not in control)
        if not plain:
            return None
        advice = "is this the tokenizer that goes with the template? else add them as special tokens"
        return Finding("warning", "markers", f"no tokens of this tokenizer, but plain text: {listed(plain)}", advice)

    def _roles(self) -> Finding:
        lost = [role for role, written in self._facts.roles.items() if not written]
        if not lost:
            return Finding("ok", "roles", f"{', '.join(self._facts.roles)}: all written")
        level: Level = "error" if "user" in lost else "warning"
        said = f"leaves out messages of role {', '.join(lost)}: render refuses such records"
        return Finding(level, "roles", said, "choose another template, or give those messages another role")

    def _tools(self) -> Finding | None:
        if self._without_tools:
            return None
        if self._facts.tools:
            return Finding("ok", "tools", "declared tools are written")
        said = "declared tools are not written: a model would learn to use, or decline, tools that no prompt shows"
        return Finding("warning", "tools", said, "`render(tools_in_system=True)` writes them into the system prompt")

    def _tool_calls(self) -> Finding | None:
        if self._without_tools:
            return None
        if not self._facts.tool_calls:
            said = "not written: render refuses records that hold any"
            return Finding("warning", "tool calls", said, "for tool-calling data, choose another template")
        if not self._facts.parallel_calls:
            said = "written one at a time: render refuses records with several calls in a turn"
            return Finding("warning", "tool calls", said, "for parallel calls, choose another template")
        return Finding("ok", "tool calls", "written, also several in a turn")

    def _reasoning(self) -> Finding:
        if self._facts.reasoning:
            return Finding("ok", "reasoning", "written before the last answer")
        said = "not written: the model would be trained to answer without it"
        return Finding("warning", "reasoning", said, "for reasoning data, choose another template")

    def _history_reasoning(self) -> Finding | None:
        if not self._facts.reasoning:
            return None
        if self._facts.history_reasoning:
            return Finding("ok", "history", "keeps reasoning of earlier exchanges")
        return Finding("warning", "history", "drops reasoning of earlier exchanges", _PER_EXCHANGE)

    def _effort(self) -> Finding:
        unstated = self._renderer.effort.unstated
        if not unstated:
            return Finding("ok", "effort", "a record's effort changes the prompt")
        if unstated != list(EFFORTS):
            said = f"a prompt of effort {' or '.join(unstated)} does not say so"
            return Finding("warning", "effort", said, "give those levels a table in `effort_sentences`")
        switches = [name for name in self._renderer.template.readable if name in _EFFORT_VARIABLES]
        if not switches:
            return Finding("ok", "effort", "the template reads none: labels of effort would not show", _STATE_EFFORT)
        said = f"the template reads {', '.join(switches)}, and a record's effort does not show"
        return Finding("warning", "effort", said, f"{_STATE_EFFORT}, by variables of each level")

    def _generation_tags(self) -> Finding:
        agree = self._facts.generation_blocks_agree
        if agree is None:
            return Finding("ok", "generation tags", "none, and none needed: turns are traced")
        if agree:
            return Finding("ok", "generation tags", "mark the traced turns")
        said = "mark other text than the model must produce; render goes by the traced turns"
        return Finding("warning", "generation tags", said, "a trainer that goes by the tags would train other tokens")

    def _straddles(self) -> Finding:
        newline_led = self._render(user(), assistant(f"\n{ANSWER}"))
        if count := newline_led.notes["straddling_tokens"]:
            said = f"an answer that begins with a line break shares {tokens_of(count)} with the header: no loss on it"
            return Finding("warning", "straddles", said, "strip the line breaks that answers begin with")
        return Finding("ok", "straddles", "no token lies across the bounds of a turn, line breaks included")

    def _control_text(self) -> Finding | None:
        control = next(iter(self._facts.stops or self._renderer.tokenizer.control), None)
        if control is None:
            return None
        try:
            self._render(Message("user", f"what is {control}?"), assistant())
        except RecordError as error:
            return Finding("warning", "control text", f"{control} in a message: {error.detail}", "render refuses it")
        return Finding("ok", "control text", f"{control} in a message is read as plain text")

    def _default_system(self) -> Finding | None:
        if not self._facts.inserts_default_system:
            return None
        return Finding("ok", "system prompt", "one of its own is written where a record has none")

    def _date(self) -> Finding | None:
        if not self._facts.asks_for_date:
            return None
        said = f"writes today's date, and is given {self._renderer.template.today}"
        return Finding("warning", "date", said, "`render(date)` gives it another")

    def _forms(self) -> Finding | None:
        dialect = self._facts.dialect
        forms = {
            "tool arguments as JSON text": dialect.text_arguments,
            "empty content as null": dialect.null_content,
            "content as a list of parts": dialect.parts,
            "call ids of nine letters": dialect.short_ids,
            "developer messages as system": dialect.developer_as_system,
        }
        wanted = [form for form, holds in forms.items() if holds]
        return Finding("ok", "forms", f"the template is given {', '.join(wanted)}") if wanted else None
