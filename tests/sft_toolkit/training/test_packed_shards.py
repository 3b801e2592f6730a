"""Packed shards in other trainers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from accelerate.data_loader import BatchSamplerShard
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, SequentialSampler
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

from sft_toolkit.packers import FILLER, window_plan
from sft_toolkit.training import ATTENTION, PackedShards, collate_packed, register_attention
from sft_toolkit.training.sequences import PackedFolder
from tests.sft_toolkit.training.tiny import tiny_config


def test_places_follow_the_plan_and_end_in_filler(packed: Path) -> None:
    folder = PackedFolder(packed)
    plan = window_plan(folder.index.cost, 2, 3, buffer=6, seed=5)
    shards = PackedShards(packed, ranks=2, microbatches=3, epochs=2, buffer=6, seed=5)
    planned = [int(number) for epoch in (0, 1) for number in plan.epoch(epoch).ravel()]
    assert len(shards) == len(planned)
    assert FILLER in planned
    for place, number in enumerate(planned):
        sequence, item = folder.sequence(number), shards[place]
        assert item["input_ids"].tolist() == sequence.input_ids.tolist()
        assert item["lengths"].tolist() == sequence.lengths.tolist()
        assert [label != -100 for label in item["labels"].tolist()] == sequence.loss_mask.tolist()
    with pytest.raises(IndexError, match="outside a plan"):
        shards[len(shards)]


def test_each_rank_of_a_distributed_sampler_reads_its_column_of_the_plan(packed: Path) -> None:
    shards = PackedShards(packed, ranks=2, microbatches=2)
    plan = window_plan(PackedFolder(packed).index.cost, 2, 2)
    for rank in (0, 1):
        sampler = DistributedSampler(shards, num_replicas=2, rank=rank, shuffle=False)
        loader = DataLoader(shards, sampler=sampler, collate_fn=collate_packed, num_workers=2)
        lengths = [batch["input_ids"].size(1) for batch in loader]
        column = plan.epoch(0)[:, :, rank].ravel().tolist()
        assert lengths == [len(PackedFolder(packed).sequence(number).input_ids) for number in column]


def test_accelerate_deals_ranks_the_same_columns(packed: Path) -> None:
    shards = PackedShards(packed, ranks=2, microbatches=2)
    batches = BatchSampler(SequentialSampler(shards), batch_size=1, drop_last=False)
    for rank in (0, 1):
        dealt = [place for (place,) in BatchSamplerShard(batches, num_processes=2, process_index=rank)]
        assert dealt == list(range(rank, len(shards), 2))


def test_collation_joins_documents_and_starts_positions_anew(packed: Path) -> None:
    def item(tokens: list[int], lengths: list[int]) -> dict[str, torch.Tensor]:
        return {
            "input_ids": torch.tensor(tokens),
            "labels": torch.tensor([-100, *tokens[1:]]),
            "lengths": torch.tensor(lengths, dtype=torch.int32),
        }

    batch = collate_packed([item([5, 6, 7], [1, 2]), item([8, 9], [2])])
    assert batch["input_ids"].tolist() == [[5, 6, 7, 8, 9]]
    assert batch["labels"].tolist() == [[-100, 6, 7, -100, 9]]
    assert batch["position_ids"].tolist() == [[0, 0, 1, 0, 1]]
    assert batch["cu_seq_lens_q"].tolist() == batch["cu_seq_lens_k"].tolist() == [0, 1, 3, 5]
    assert batch["max_length_q"] == batch["max_length_k"] == 2
    assert "attention_mask" not in batch


def test_the_trainer_of_transformers_sees_the_mean_loss_over_trained_tokens(packed: Path, tmp_path: Path) -> None:
    register_attention()
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(tiny_config(), attn_implementation=ATTENTION)
    plain = AutoModelForCausalLM.from_config(tiny_config(), attn_implementation="eager")
    plain.load_state_dict(model.state_dict())
    shards = PackedShards(packed, microbatches=4)
    arguments = TrainingArguments(
        output_dir=str(tmp_path),
        per_device_train_batch_size=1,
        gradient_accumulation_steps=4,
        max_steps=1,
        train_sampling_strategy="sequential",
        remove_unused_columns=False,
        report_to=[],
        use_cpu=True,
    )
    done = Trainer(model=model, args=arguments, train_dataset=shards, data_collator=collate_packed).train()
    assert done.training_loss == pytest.approx(mean_loss(plain, [shards[place] for place in range(4)]), rel=1e-6)


def mean_loss(model: torch.nn.Module, items: list[dict[str, torch.Tensor]]) -> float:
    """Each document alone, by plain transformers."""
    total, count = 0.0, 0
    for item in items:
        lengths = item["lengths"].tolist()
        for tokens, labels in zip(item["input_ids"].split(lengths), item["labels"].split(lengths), strict=True):
            with torch.no_grad():
                logits = model(input_ids=tokens[None]).logits[0]
            total += torch.nn.functional.cross_entropy(logits[:-1], labels[1:], reduction="sum").item()
            count += int((labels != -100).sum())
    return total / count
