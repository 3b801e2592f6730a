"""Which causal types of the installed transformers `kolibri-sft train` trains, and how exactly: a table.

    python benchmarks/training_support.py                  all types, into docs/training_support.md
    python benchmarks/training_support.py llama gpt2 …     these alone, on the screen

Every type is built at a tiny size from its own configuration class, with random weights, and saved. It is loaded as a
run loads it; loss and gradient of one packed batch of five documents (float32, CPU) are compared with those of plain
transformers, a document at a time with its eager attention. Trained is what agrees to 1e-6 in the loss and 1e-5 in the
gradient, relative. Each type has a process of its own and two minutes.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
import transformers
from torch import Tensor
from transformers import CONFIG_MAPPING, AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from sft_toolkit.errors import ToolkitError
from sft_toolkit.training.batch import Batch
from sft_toolkit.training.estimate import memory_of
from sft_toolkit.training.flops import Flops
from sft_toolkit.training.loading import load_checked
from sft_toolkit.training.model import empty_model, read_config
from sft_toolkit.training.options import ModelSource, TrainOptions
from sft_toolkit.training.processes import joined_ranks
from sft_toolkit.training.sequences import PackedSequence

DOCUMENT = Path(__file__).parents[1] / "docs" / "training_support.md"
SECONDS = 120
LENGTHS = (70, 1, 90, 12, 30)
WINDOW, VOCABULARY, HIDDEN, HEADS = 17, 128, 64, 4

SIZES: dict[int, str] = {
    VOCABULARY: "vocab_size unpadded_vocab_size vocab_size_per_layer_input decoder_vocab_size",
    HIDDEN: "hidden_size d_model n_embd embedding_size dim_model_base emb_dim embedding_dim word_embed_proj_dim "
    "lru_width attention_hidden_size input_embedding_size output_embedding_size backbone_hidden_size",
    96: "intermediate_size moe_intermediate_size ffn_dim decoder_ffn_dim encoder_ffn_dim dim_ff dff n_inner d_inner "
    "block_ffn_dim shared_expert_intermediate_size shared_intermediate_size intermediate_size_mlp feed_forward_size "
    "expert_ffn_hidden_size moe_shared_expert_intermediate_size dense_intermediate_size ffn_hidden_size "
    "shared_experts_intermediate_size",
    4: "num_hidden_layers n_layer n_layers decoder_layers encoder_layers num_layers num_decoder_layers "
    "num_encoder_layers num_blocks num_attention_heads n_head n_heads decoder_attention_heads "
    "encoder_attention_heads num_heads num_decoder_attention_heads num_encoder_attention_heads attention_heads "
    "num_experts num_local_experts n_routed_experts moe_num_experts linear_num_value_heads mamba_n_heads "
    "mamba_num_heads index_n_heads swa_num_attention_heads linear_num_heads",
    2: "num_key_value_heads num_experts_per_tok num_experts_per_token moe_topk moe_k linear_num_key_heads n_group "
    "topk_group swa_num_key_value_heads num_kv_heads num_query_groups",
    1: "n_shared_experts moe_num_shared_experts num_shared_experts num_expert_group mamba_n_groups n_groups "
    "mamba_ngroups num_dense_layers first_k_dense_replace",
    16: "head_dim dim_head kv_channels q_lora_rank kv_lora_rank qk_nope_head_dim v_head_dim linear_key_head_dim "
    "linear_value_head_dim mamba_d_head mamba_head_dim mamba_headdim linear_head_dim index_head_dim swa_head_dim "
    "state_size mamba_d_state ssm_state_size attention_head_dim d_head hidden_size_per_layer_input laurel_rank "
    "mamba_dt_rank time_step_rank adapter_rank o_lora_rank gated_norm_rank router_hidden_size hc_lowrank",
    8: "qk_rope_head_dim rotary_dim",
    24: "qk_head_dim",
    512: "index_topk max_position_embeddings n_positions n_ctx max_seq_len model_max_length context_length",
    WINDOW: "sliding_window attention_window_size sliding_window_size window_size local_attention",
    0: "attention_dropout hidden_dropout dropout activation_dropout resid_pdrop embd_pdrop attn_pdrop emb_pdrop "
    "hidden_dropout_prob attention_probs_dropout_prob dropout_p resid_dropout embed_dropout residual_dropout "
    "embedding_dropout mlp_dropout layerdrop decoder_layerdrop encoder_layerdrop router_jitter_noise "
    "input_jitter_noise num_kv_shared_layers lsh_attention_probs_dropout_prob local_attention_probs_dropout_prob "
    "pad_token_id",
    3: "bos_token_id eos_token_id sep_token_id decoder_start_token_id eod_token_id cls_token_id mask_token_id "
    "image_token_id video_token_id audio_token_id image_token_index boi_token_id eoi_token_id boa_token_id "
    "eoa_token_id boi_token_index eoi_token_index vision_start_token_id vision_end_token_id eoa_token_index",
}
TINY = {name: size for size, names in SIZES.items() for name in names.split()}
UNSET = [
    "head_dim",
    "n_shared_experts",
    "n_routed_experts",
    "num_experts_per_tok",
    "n_group",
    "topk_group",
    "linear_num_key_heads",
    "linear_num_value_heads",
    "linear_key_head_dim",
    "linear_value_head_dim",
]
"""What has no default in some configurations, and is needed."""
SWITCHES = {"is_decoder": True, "use_cache": False}
_SSM = {"mamba_n_heads": 8}
OVERRIDES: dict[str, dict[str, Any]] = {
    "mamba2": {"num_heads": 8},
    "bamba": _SSM,
    "falcon_h1": _SSM | {"mamba_d_ssm": 128},
    "granitemoehybrid": _SSM,
    "gpt_neo": {"attention_types": [[["global", "local"], 2]]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2},
    "kimi_linear": {"num_expert_group": 2},
    "hrm_text": {"num_hidden_layers": 32},
    "longcat_flash": {"num_layers": 2},
    "xmod": {"default_language": "en_XX", "languages": ["en_XX"]},
    "bailing_hybrid": {"n_routed_experts": 8, "num_experts": 8, "num_local_experts": 8, "n_group": 4},
    "dbrx": {"attn_config": {"rope_theta": 10000.0, "kv_n_heads": 2, "clip_qkv": 8}},
    "reformer": {"axial_pos_embds": False, "hidden_size": 64, "attn_layers": ["local"] * 4},
    "qwen4_exp_text": {
        "indexer_n_heads": 4,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 16,
        "indexer_budget": 512,
        "indexer_compress_ratio": 4,
    },
    "zaya": {"num_experts_per_tok": 1},
    "zamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "zamba2": {
        "layer_types": ["mamba", "hybrid"] * 2,
        "n_mamba_heads": 8,
        "num_key_value_heads": 4,
        "attention_head_dim": 32,
    },
}
"""What a type needs beside: sizes that depend on one another."""


@dataclass
class Found:
    """One row. mode: packed, one after the other, or refused (then `reason`); differences are relative."""

    type: str
    mode: str
    reason: str = ""
    loss: float | None = None
    gradient: float | None = None
    dry_run: str = ""

    @property
    def trains(self) -> bool:
        return self.loss is not None and self.gradient is not None and self.loss <= 1e-6 and self.gradient <= 1e-5


def tiny_config(kind: str) -> Any:
    """The type's configuration at a tiny size."""
    own = CONFIG_MAPPING[kind]
    try:
        default = own()
    except Exception:  # validates what it has no default for
        return own(**OVERRIDES.get(kind, {}))
    return own(**_tiny(default) | OVERRIDES.get(kind, {}))


def _tiny(default: Any) -> dict[str, Any]:
    own = vars(default)
    sizes = {
        name: type(value)(TINY[name]) for name, value in own.items() if name in TINY and isinstance(value, (int, float))
    }
    sizes |= {name: TINY[name] for name in UNSET if name in own and own[name] is None}
    sizes |= {name: value for name, value in SWITCHES.items() if name in own}
    if own.get("num_key_value_heads", 0) is None:
        sizes["num_key_value_heads"] = HEADS
    if "kv_lora_rank" in own:  # latent attention: no groups, and the rotary embedding reads head_dim
        sizes |= {"num_key_value_heads": HEADS, "head_dim": TINY["qk_rope_head_dim"]}
    for name in getattr(type(default), "sub_configs", None) or {}:
        if (part := own.get(name)) is not None:
            sizes[name] = _tiny(part) | OVERRIDES.get(part.model_type, {})
    return sizes


def save_random(config: Any, folder: Path) -> None:
    """Weights large enough that windows, caps and biases show."""
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1 and parameter.std() < 0.05:
                parameter.mul_(4)
            elif parameter.ndim == 1 and name.endswith(("bias", "sinks")):
                parameter.normal_(0, 0.1)
    model.save_pretrained(folder)


def probe() -> Batch:
    bounds = np.cumsum((0, *LENGTHS)).astype(np.int32)
    tokens = np.random.default_rng(0).integers(4, VOCABULARY, int(bounds[-1]))
    mask = np.ones(len(tokens), np.bool_)
    mask[bounds[:-1]] = False
    return Batch.of(PackedSequence(tokens.astype(np.int32), mask, bounds, []))


def reference(folder: Path, batch: Batch) -> tuple[float, dict[str, Tensor]]:
    """Loss and gradients of plain transformers, a document at a time."""
    plain = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").train()
    built = dict(AutoModelForCausalLM.from_config(plain.config).named_parameters())
    for name, parameter in plain.named_parameters():  # reading thaws sinusoidal positions
        parameter.requires_grad_(built[name].requires_grad)
    total, ids = 0.0, batch.inputs["input_ids"]
    for begin, end in pairwise(batch.inputs["cu_seq_lens_q"].tolist()):
        wanted = batch.predictors[(batch.predictors >= begin) & (batch.predictors < end)] - begin
        logits = plain(input_ids=ids[:, begin:end], use_cache=False).logits[0].float()
        loss = F.cross_entropy(logits[wanted], ids[0, begin + wanted + 1], reduction="sum")
        loss.backward()
        total += loss.item()
    return total, {name: one.grad for name, one in plain.named_parameters() if one.grad is not None}


def examine(kind: str, folder: Path) -> Found:
    """Train one packed batch, or find out why not."""
    batch = probe()
    try:
        save_random(tiny_config(kind), folder)
        expected, wanted = reference(folder, batch)
    except Exception as fault:  # of transformers alone, at these sizes
        return Found(kind, "not tried", f"{type(fault).__name__}: {' '.join(str(fault).split())}"[:160])
    options = TrainOptions(folder, folder, ModelSource(checkpoint=folder))
    config, said = read_config(options.source), []
    try:
        blank = empty_model(config, attention=None)
        Flops.of(blank)
        memory_of(blank, options, sum(LENGTHS), 1)
        dry_run = ""
    except ToolkitError as fault:
        dry_run = fault.message
    with joined_ranks() as ranks:
        try:
            model = load_checked(options, config, ranks, said.append)
        except ToolkitError as fault:
            return Found(kind, "refused", fault.message, dry_run=dry_run)
        loss = model(batch)
        loss.backward()
        gradients = {name: one.grad for name, one in model.causal_lm.named_parameters() if one.grad is not None}
        found = {name: one.full_tensor() for name, one in gradients.items()}
    whole = torch.cat([one.flatten() for one in wanted.values()]).norm()
    difference = torch.cat([(found[name] - one).flatten() for name, one in wanted.items()]).norm()
    mode = "one after the other" if model.apart else "packed"
    reason = "; ".join(one.split(": ", 1)[1].rsplit(": ", 1)[0] for one in said)
    return Found(kind, mode, reason, abs(loss.item() / expected - 1), (difference / whole).item(), dry_run)


def in_a_child(kind: str) -> Found:
    """Fork, so that what one type breaks or leaves behind is not the next one's."""
    with tempfile.TemporaryDirectory() as place:
        answer = Path(place) / "answer.json"
        child = os.fork()
        if child == 0:
            signal.alarm(SECONDS)
            try:
                found = examine(kind, Path(place) / "model")
            except BaseException as fault:
                if os.environ.get("TRACE"):
                    traceback.print_exc()
                found = Found(kind, "traceback", f"{type(fault).__name__}: {str(fault).splitlines()[:1]}")
            answer.write_text(json.dumps(asdict(found)))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not answer.exists():
            return Found(kind, "traceback", f"ended with status {status}")
        return Found(**json.loads(answer.read_text()))


def table(rows: list[Found]) -> Iterator[str]:
    trained = [row for row in rows if row.trains]
    packed = sum(row.mode == "packed" for row in trained)
    yield "# Models that train here"
    yield ""
    inexact = sum(row.loss is not None for row in rows) - len(trained)
    refused, rest = (sum(row.mode == mode for row in rows) for mode in ("refused", "not tried"))
    yield (
        f"Written by `python benchmarks/training_support.py` with transformers {transformers.__version__} and torch "
        f"{torch.__version__}. Of {len(rows)} causal types {len(trained)} train to the loss and the gradient of plain "
        f"transformers (relative differences of at most 1e-6 and 1e-5, float32, CPU, tiny random weights, eager "
        f"attention, a document at a time): {packed} packed, {len(trained) - packed} one document after the other. "
        f"{inexact} train with a greater difference, {refused} are refused in one line, and {rest} were not tried, "
        "because plain transformers fails on them at these sizes, or needs what is not installed. A window is 17 "
        "tokens here, and sparse attention that chooses its keys may choose all of them."
    )
    yield ""
    yield "| type | trains | loss | gradient | why not packed, or not at all |"
    yield "| --- | --- | ---: | ---: | --- |"
    for row in rows:
        figures = ("", "") if row.loss is None else (f"{row.loss:.0e}", f"{row.gradient:.0e}")
        mode = row.mode if row.trains or row.loss is None else f"**inexact**, {row.mode}"
        yield f"| {row.type} | {mode} | {figures[0]} | {figures[1]} | {row.reason.replace('|', '/')} |"


def main() -> None:
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    kinds = sys.argv[1:] or sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    rows = []
    for kind in kinds:
        with contextlib.redirect_stdout(sys.stderr):
            rows.append(in_a_child(kind))
        print(rows[-1].trains, *asdict(rows[-1]).values(), sep="\t", flush=True)
    if not sys.argv[1:]:
        DOCUMENT.write_text("\n".join(table(rows)) + "\n")


if __name__ == "__main__":
    main()
