"""N-gram profiles of the data sets in a run's input."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import ToolkitError
from sft_toolkit.mergemix.ngram_profiles import NgramCounts, count_ngrams
from sft_toolkit.running.options import RunOptions
from sft_toolkit.running.passes import Batches, measure_blocks
from sft_toolkit.stage import Counters, Outcome


def profile_datasets(run: RunOptions) -> tuple[dict[str, NgramCounts], Counters]:
    """Count the n-grams of every data set. Raises ToolkitError for records that name none, else as `run_stage` does."""
    profiles: dict[str, NgramCounts] = {}
    counters = Counters()
    for block, block_counters in measure_blocks(_profile, run):
        for dataset, counts in block.items():
            profiles[dataset] = profiles[dataset] + counts if dataset in profiles else counts
        counters.add(block_counters)
        run.progress(counters)
    return profiles, counters


def _profile(batches: Batches, outcome: Outcome) -> dict[str, NgramCounts]:
    texts: defaultdict[str, list[str]] = defaultdict(list)
    for batch in batches:
        for conversation in batch:
            if conversation.dataset is None:
                raise ToolkitError(f"record {conversation.id} names no data set", "`convert(dataset)` names one")
            texts[conversation.dataset].extend(_prose(conversation))
            outcome.counters.records_out += 1
    return {dataset: count_ngrams(found) for dataset, found in texts.items()}


def _prose(conversation: Conversation) -> Iterator[str]:
    return (message.text for message in conversation.messages if message.role in ("user", "assistant"))
