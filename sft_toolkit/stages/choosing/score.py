"""`score`: which attempts at a prompt are right, and which references are doubtful."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from string import ascii_uppercase
from typing import Any, ClassVar, NamedTuple

import xxhash

from sft_toolkit.conversation import Conversation
from sft_toolkit.json_text import encode
from sft_toolkit.running.options import RunOptions, Summary
from sft_toolkit.running.passes import Batches, measure_blocks
from sft_toolkit.shards.ids import IdLedger
from sft_toolkit.stage import Outcome, Stage
from sft_toolkit.stages.choosing.facts import Facts, FactWriter
from sft_toolkit.stages.choosing.prompts import field_value, last_attempt, prompt_key
from sft_toolkit.stages.choosing.two_passes import look_then_apply
from sft_toolkit.verifiers.registry import WHOLE_KEYS, find_verifier
from sft_toolkit.verifiers.verdicts import RIGHT, WRONG, Attempt, Verdict, Verifier

SCORE = "score"
NO_REFERENCE, REFERENCES_DIFFER, NO_ATTEMPT = "no_reference", "references_differ", "no_attempt"
_DOUBTFUL_SHARE, _DOUBTFUL_ATTEMPTS = 0.75, 4


@dataclass(frozen=True)
class ScoreOptions:
    """How attempts are judged. `language`: of records that name none; `seconds`, `megabytes`: limits of a command.

    Raises UsageError for a verifier that does not exist.
    """

    answer_key: str
    verifier: str
    language: str = "de"
    options: str = "options"
    prompt_id: str | None = None
    tolerance: float = 0.0
    seconds: float = 10.0
    megabytes: int = 2048

    def __post_init__(self) -> None:
        self.judge()

    def judge(self) -> Verifier:
        return find_verifier(self.verifier, self.tolerance, self.seconds, self.megabytes)


class Judged(NamedTuple):
    """One attempt after the first pass. `reference`: a hash of its reference."""

    id: str
    prompt: str
    reference: str
    verdict: Verdict


@dataclass(frozen=True)
class ScoreStage(Stage):
    """Writes the key `score`, as the first pass found it in `attempts` (by id) and `prompts`."""

    how: ScoreOptions
    attempts: Facts
    prompts: Facts

    name: ClassVar[str] = "score"

    @property
    def draws(self) -> bool:
        return True

    def options(self) -> dict[str, Any]:
        return asdict(self.how)

    def process(self, batch: list[Conversation], outcome: Outcome) -> Iterator[Conversation]:
        for conversation in batch:
            reason = _unfit(conversation, self.how)
            found = None if reason else self.attempts.get(conversation.id)
            prompt = None if found is None else self.prompts.get(found["prompt"])
            if reason or found is None or prompt is None:
                outcome.drop(conversation, reason or NO_REFERENCE, _detail(reason, self.how), partner=())
            elif "differ" in prompt:
                others = tuple(name for name in prompt["differ"] if name != conversation.id)
                detail = "attempts at this prompt have different references"
                outcome.drop(conversation, REFERENCES_DIFFER, detail, partner=others)
            else:
                verdict = {name: found[name] for name in ("verdict", "extracted", "why")}
                conversation.extra[SCORE] = {**verdict, "verifier": self.how.verifier, **prompt}
                outcome.note(found["verdict"])
                outcome.note("reference_doubtful", prompt["reference_doubtful"])
                conversation.provenance.append(self.stamp)
                yield conversation


def run_score(how: ScoreOptions, run: RunOptions) -> Summary:
    """Score the records of the run. Raises as `run_stage` does."""
    return look_then_apply(partial(_decide, how), run)


def _decide(how: ScoreOptions, run: RunOptions, folder: Path) -> tuple[Stage, dict[str, Any]]:
    attempts, prompts, ledger = FactWriter(folder, "attempts"), Prompts(), IdLedger()
    for judged, counters in measure_blocks(partial(_judge_block, how), run):
        ledger.add([each.id for each in judged])
        for each in judged:
            shown = {name: getattr(each.verdict, name) for name in ("verdict", "extracted", "why")}
            attempts.add(each.id, {"prompt": each.prompt, **shown})
            prompts.add(each)
        run.progress(counters)
    return ScoreStage(how, attempts.save(), prompts.save(folder)), {"prompts": len(prompts.tallies)}


def _judge_block(how: ScoreOptions, batches: Batches, outcome: Outcome) -> list[Judged]:
    verifier = how.judge()
    return [_judged(each, how, verifier) for batch in batches for each in batch if _unfit(each, how) is None]


def _unfit(conversation: Conversation, how: ScoreOptions) -> str | None:
    if field_value(conversation, how.answer_key) in (None, "", [], {}):
        return NO_REFERENCE
    return NO_ATTEMPT if last_attempt(conversation) is None else None


def _detail(reason: str | None, how: ScoreOptions) -> str:
    if reason == NO_ATTEMPT:
        return "the record has no assistant turn"
    return f"the record has no {how.answer_key}"


def _judged(conversation: Conversation, how: ScoreOptions, verifier: Verifier) -> Judged:
    turn = last_attempt(conversation)
    assert turn is not None
    message = conversation.messages[turn]
    key = field_value(conversation, how.answer_key)
    attempt = Attempt(
        message.text,
        key,
        str(conversation.extra.get("language") or how.language),
        _options(field_value(conversation, how.options)),
        tuple(message.tool_calls),
        tuple(conversation.tools),
    )
    reference = encode(sorted(map(encode, key)) if isinstance(key, list) and how.verifier not in WHOLE_KEYS else key)
    prompt = prompt_key(conversation, how.prompt_id)
    return Judged(conversation.id, prompt, xxhash.xxh3_64_hexdigest(reference), verifier.verify(attempt))


def _options(given: Any) -> dict[str, str]:
    if isinstance(given, dict):
        return {str(letter): str(text) for letter, text in given.items()}
    return dict(zip(ascii_uppercase, map(str, given), strict=False)) if isinstance(given, list) else {}


@dataclass
class Tally:
    """What is known of a prompt: verdicts, and of each value how often it was given, under what names, and if wrong."""

    reference: str
    attempts: int = 0
    right: int = 0
    values: Counter[str] = field(default_factory=Counter)
    names: dict[str, Counter[str]] = field(default_factory=dict)
    wrong: set[str] = field(default_factory=set)
    differ: bool = False

    def add(self, judged: Judged) -> None:
        self.differ |= judged.reference != self.reference
        self.attempts += 1
        self.right += judged.verdict.verdict == RIGHT
        value, name = judged.verdict.value, judged.verdict.extracted
        if value is not None and name is not None:
            self.values[value] += 1
            self.names.setdefault(value, Counter())[name] += 1
            if judged.verdict.verdict == WRONG:
                self.wrong.add(value)

    def majority(self) -> str | None:
        """The value that most attempts give, None where two tie."""
        ranked = self.values.most_common(2)
        if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
            return None
        return ranked[0][0]

    def to_json(self) -> dict[str, Any]:
        value = self.majority()
        count = self.values[value] if value is not None else 0
        doubtful = count >= max(_DOUBTFUL_ATTEMPTS, _DOUBTFUL_SHARE * self.attempts) and value in self.wrong
        names = self.names.get(value or "", Counter())
        shown = min(names, key=lambda name: (-names[name], name), default=None)
        return {
            "attempts": self.attempts,
            "right": self.right,
            "pass_rate": self.right / self.attempts,
            "majority": shown,
            "reference_doubtful": doubtful,
        }


class Prompts:
    """The tally of each prompt: some hundred bytes a prompt, and those of the answers that differ."""

    def __init__(self) -> None:
        self.tallies: dict[str, Tally] = {}
        self._ids: dict[str, list[str]] = {}

    def add(self, judged: Judged) -> None:
        tally = self.tallies.setdefault(judged.prompt, Tally(judged.reference))
        self._ids.setdefault(judged.prompt, []).append(judged.id)
        tally.add(judged)

    def save(self, folder: Path) -> Facts:
        writer = FactWriter(folder, "prompts")
        for prompt, tally in self.tallies.items():
            writer.add(prompt, {"differ": sorted(self._ids[prompt])} if tally.differ else tally.to_json())
        return writer.save()
