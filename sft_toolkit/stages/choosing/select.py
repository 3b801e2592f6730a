"""`select`: right attempts at prompts that are neither too easy nor too hard, a few of each."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from sft_toolkit.choices import Preference, require_choices
from sft_toolkit.conversation import Conversation
from sft_toolkit.draws import key
from sft_toolkit.errors import RecordError, UsageError
from sft_toolkit.running.options import RunOptions, Summary
from sft_toolkit.running.passes import Batches, measure_blocks
from sft_toolkit.shards.ids import IdLedger
from sft_toolkit.stage import Outcome, Stage
from sft_toolkit.stages.choosing.facts import Facts, FactWriter
from sft_toolkit.stages.choosing.format_score import format_score
from sft_toolkit.stages.choosing.prompts import last_attempt, prompt_key
from sft_toolkit.stages.choosing.score import SCORE
from sft_toolkit.stages.choosing.two_passes import look_then_apply
from sft_toolkit.verifiers.verdicts import RIGHT

WEIGHT = "sampling_weight"
DOUBTFUL, NOT_RIGHT, TOO_FEW = "reference_doubtful", "not_right", "too_few_attempts"
LOW, HIGH, OVER_CAP = "pass_rate_low", "pass_rate_high", "over_cap"


@dataclass(frozen=True)
class SelectOptions:
    """`low` and `high`: right attempts of `of` (rates where that is 1); `per_prompt`: a cap, None for none.

    Raises UsageError for a window that nothing can fall into.
    """

    low: Fraction = Fraction(0)
    high: Fraction | None = None
    of: int = 1
    per_prompt: int | None = None
    prefer: Preference = "shortest"
    merge_rates: tuple[str, ...] = ()
    prompt_id: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        require_choices(self)
        top = Fraction(self.of) if self.high is None else self.high
        if not 0 <= self.low <= min(top, Fraction(self.of)):
            raise UsageError(f"`pass_rate` {self.low}..{top} of {self.of}: no such window", "write 2..5 with `of=8`")

    def fault(self, rate: Fraction) -> str | None:
        """The reason why a pass rate falls out of the window."""
        if rate * self.of < self.low:
            return LOW
        return HIGH if self.high is not None and rate * self.of > self.high else None


def parse_window(text: str | None) -> tuple[Fraction, Fraction | None]:
    """`2..5`, `2..`, `..5` or `3`, or rates. Raises UsageError for all else."""
    low, dots, high = (text or "0..").partition("..")
    try:
        first = Fraction(low or 0)
        return first, (Fraction(high) if high else None) if dots else first
    except (ValueError, ZeroDivisionError) as fault:
        raise UsageError(f"`pass_rate` {text}: no window", "write 2..5") from fault


@dataclass
class Candidates:
    """A prompt's rate, and its best right attempts so far, as (rank, id), the best last to leave."""

    attempts: int = 0
    right: int = 0
    best: list[tuple[Any, str]] = field(default_factory=list)


@dataclass(frozen=True)
class SelectStage(Stage):
    """Keeps what the first pass chose, by prompt in `prompts`."""

    how: SelectOptions
    prompts: Facts

    name: ClassVar[str] = "select"

    @property
    def draws(self) -> bool:
        return True

    def options(self) -> dict[str, Any]:
        given = asdict(self.how)
        return {**given, "low": str(self.how.low), "high": None if self.how.high is None else str(self.how.high)}

    def process(self, batch: list[Conversation], outcome: Outcome) -> Iterator[Conversation]:
        kept = [conversation for conversation in batch if self._keep(conversation, outcome)]
        yield from self.each(kept, outcome, self._weigh)

    def _keep(self, conversation: Conversation, outcome: Outcome) -> bool:
        prompt = self.prompts.get(prompt_key(conversation, self.how.prompt_id))
        try:
            reason, detail = _refusal(conversation, prompt, self.how)
        except RecordError as error:
            outcome.fault(conversation, error)
            return False
        if reason is not None:
            partner = tuple(prompt["kept"]) if reason == OVER_CAP else ()
            outcome.drop(conversation, reason, detail, partner=partner)
        return reason is None

    def _weigh(self, conversation: Conversation) -> Conversation:
        prompt = self.prompts.get(prompt_key(conversation, self.how.prompt_id))
        conversation.extra[WEIGHT] = float(1 - Fraction(prompt["right"], prompt["attempts"]))
        return conversation


def run_select(how: SelectOptions, run: RunOptions) -> Summary:
    """Select among the scored records of the run. Raises as `run_stage` does."""
    return look_then_apply(partial(_decide, how), run)


def _refusal(conversation: Conversation, prompt: dict[str, Any], how: SelectOptions) -> tuple[str | None, str]:
    score = _score(conversation)
    rate = Fraction(prompt["right"], prompt["attempts"])
    share = f"{prompt['right']} of {prompt['attempts']} attempts are right"
    if score["reference_doubtful"]:
        return DOUBTFUL, f"most attempts agree on {score['majority']}, which the reference is not"
    if score["verdict"] != RIGHT:
        return NOT_RIGHT, f"the attempt is {score['verdict']}"
    if prompt["attempts"] < how.of:
        return TOO_FEW, f"{prompt['attempts']} attempts, fewer than {how.of}"
    if fault := how.fault(rate):
        return fault, share
    if conversation.id not in prompt["kept"]:
        return OVER_CAP, f"{how.prefer} of {prompt['right']} right attempts: {', '.join(prompt['kept'])}"
    return None, ""


def _score(conversation: Conversation) -> dict[str, Any]:
    score = conversation.extra.get(SCORE)
    if not isinstance(score, dict) or "verdict" not in score:
        raise RecordError("not_scored", "the record has no score", "run kolibri-sft score before")
    return score


@dataclass(frozen=True, slots=True)
class _Seen:
    """One scored record: rank orders the right attempts of a prompt, the smallest first."""

    id: str
    prompt: str
    attempts: int
    right: int
    rank: Any


def _decide(how: SelectOptions, run: RunOptions, folder: Path) -> tuple[Stage, dict[str, Any]]:
    found: dict[str, Candidates] = {}
    ledger = IdLedger()
    for seen, counters in measure_blocks(partial(_look, how), run):
        ledger.add([each.id for each in seen])
        for each in seen:
            candidates = found.setdefault(each.prompt, Candidates(each.attempts, each.right))
            if each.rank is not None:
                candidates.best.append((each.rank, each.id))
        run.progress(counters)
    for prompt, (attempts, right) in _other_rates(how, run).items():
        if prompt in found:
            found[prompt].attempts += attempts
            found[prompt].right += right
    writer = FactWriter(folder, "prompts")
    for prompt, candidates in found.items():
        count = how.per_prompt or len(candidates.best)
        kept = [name for _, name in heapq.nsmallest(count, candidates.best)]
        writer.add(prompt, {"attempts": candidates.attempts, "right": candidates.right, "kept": kept})
    return SelectStage(how, writer.save()), {"prompts": len(found)}


def _other_rates(how: SelectOptions, run: RunOptions) -> dict[str, tuple[int, int]]:
    """Attempts and right ones by prompt in another scored output."""
    if not how.merge_rates:
        return {}
    other = replace(run, inputs=list(how.merge_rates), copies={})
    rates = {}
    for seen, _ in measure_blocks(partial(_look, how), other):
        rates.update({each.prompt: (each.attempts, each.right) for each in seen})
    return rates


def _look(how: SelectOptions, batches: Batches, outcome: Outcome) -> list[_Seen]:
    seen = []
    for batch in batches:
        for conversation in batch:
            try:
                score = _score(conversation)
            except RecordError as error:
                outcome.fault(conversation, error)
                continue
            rank = _rank(conversation, how) if score["verdict"] == RIGHT else None
            prompt = prompt_key(conversation, how.prompt_id)
            seen.append(_Seen(conversation.id, prompt, score["attempts"], score["right"], rank))
    return seen


def _rank(conversation: Conversation, how: SelectOptions) -> float:
    if how.prefer == "random":
        return key(how.seed, "select", conversation.id)
    if how.prefer == "format":
        return -format_score(conversation)
    turn = last_attempt(conversation)
    message = conversation.messages[turn] if turn is not None else None
    length = len(message.reasoning or "") + len(message.text) if message else 0
    return length if how.prefer == "shortest" else -length
