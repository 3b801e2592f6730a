"""`grade apply`: a student's label of how difficult a prompt is, and how sure the student is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import xxhash

from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError, ToolkitError
from sft_toolkit.json_text import encode
from sft_toolkit.stage import Outcome, Stage
from sft_toolkit.stages.grade.labels import AGREEMENT, CONFIDENCE, VOTES, prompt_text
from sft_toolkit.stages.grade.model import Grader, read_grader

_PLACES = 4


@dataclass(frozen=True)
class GradeStage(Stage):
    """Writes `difficulty` and, under `difficulty_confidence`, its probability. `keep` leaves labelled records alone.

    Raises ToolkitError where `model` is no folder of a student, and, without `anyway`, where that student agreed no
    more with the teacher than its commonest level does.
    """

    model: str
    keep: bool = False
    anyway: bool = False

    name: ClassVar[str] = "grade"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._grader.report.get("useless") and not self.anyway:
            raise ToolkitError(
                f"{self.model}: this student agrees no more with its teacher than the commonest level does",
                "collect more labels, of the data sets to label; or give `anyway` to apply it all the same",
            )

    @cached_property
    def _grader(self) -> Grader:
        return read_grader(Path(self.model))

    def __getstate__(self) -> dict[str, Any]:
        """Workers read the student from its folder."""
        return {name: value for name, value in self.__dict__.items() if name != "_grader"}

    def options(self) -> dict[str, Any]:
        return {**self.facts(), "keep": self.keep}

    def facts(self) -> dict[str, Any]:
        arrays = sorted(self._grader.arrays.items())
        digest = xxhash.xxh3_128(encode([self._grader.student, self._grader.levels, self._grader.temperature]))
        for name, array in arrays:
            digest.update(name.encode() + array.tobytes())
        return {"grader": digest.hexdigest(), "levels": list(self._grader.levels)}

    def process(self, batch: list[Conversation], outcome: Outcome) -> Iterator[Conversation]:
        prompts = self._prompts(batch, outcome)
        chances = iter(self._grader.probabilities(list(prompts.values()))) if prompts else iter(())
        for place, conversation in enumerate(batch):
            if place in prompts:
                _write(conversation, next(chances), self._grader.levels)
                outcome.split(conversation.dataset or "-", str(conversation.difficulty))
                conversation.provenance.append(self.stamp)
                yield conversation
            elif self._is_kept(conversation):
                outcome.note("labelled_before")
                yield conversation

    def _prompts(self, batch: list[Conversation], outcome: Outcome) -> dict[int, str]:
        """By place in the batch, the prompt of each record to label; what has none is reported to `outcome`."""
        prompts = {}
        for place, conversation in enumerate(batch):
            if self._is_kept(conversation):
                continue
            try:
                prompts[place] = prompt_text(conversation)
            except RecordError as error:
                outcome.fault(conversation, error)
        return prompts

    def _is_kept(self, conversation: Conversation) -> bool:
        return self.keep and conversation.difficulty is not None


def _write(conversation: Conversation, chances: Any, levels: tuple[str, ...]) -> None:
    """chances: float64[levels]."""
    best = int(chances.argmax())
    for key in (VOTES, AGREEMENT):
        conversation.extra.pop(key, None)
    conversation.difficulty = levels[best]
    conversation.extra[CONFIDENCE] = round(float(chances[best]), _PLACES)
