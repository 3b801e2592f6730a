"""From what a user names to the files that hold weights, or one line with the way there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sft_toolkit.errors import ToolkitError

CONFIG = "config.json"
ADAPTER = "adapter_config.json"
SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
TORCH_SINGLE, TORCH_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"


@dataclass(frozen=True, slots=True)
class _Other:
    """What a folder is where it holds no checkpoint: a file of it by pattern, and what to do. {path}: the folder,
    {found}: the last by name that fits the pattern."""

    pattern: str
    is_what: str
    way: str


_MERGE_ADAPTER = (
    'python -c "from peft import AutoPeftModelForCausalLM as A; '
    "A.from_pretrained('{path}').merge_and_unload().save_pretrained('MERGED')\""
)
_OTHERS = (
    _Other("*.gguf", "GGUF, whose weights are quantised", "name the checkpoint that {found} was converted from"),
    _Other("model_index.json", "a diffusers pipeline", "name the safetensors files of one component, file by file"),
    _Other("diffusion_pytorch_model*.safetensors", "a component of diffusers", "name its file, as in {found}"),
    _Other("checkpoints/step-*/.metadata", "a run of train that has not ended", "finish it: `train(resume=True)`"),
    _Other("run.json", "a run of train that has not ended", "finish it: `train(resume=True)`"),
    _Other("model.safetensors.*", "an unfinished download", "download it again"),
    _Other("checkpoint-*/trainer_state.json", "a run with checkpoints", "name one of them, as in {found_folder}"),
    _Other(
        ".metadata",
        "a distributed checkpoint (DCP)",
        "for a run of train: `train(resume=True)` writes its model/; "
        "else: python -m torch.distributed.checkpoint.format_utils dcp_to_torch {path} model.pt",
    ),
    _Other(
        "pytorch_model_fsdp_*/.metadata",
        "a sharded checkpoint of FSDP",
        "accelerate merge-weights {found_folder} MERGED, then name MERGED",
    ),
    _Other("zero_to_fp32.py", "a checkpoint of DeepSpeed", "python {found} {path} MERGED --safe_serialization"),
    _Other("*/zero_pp_rank_*", "a checkpoint of DeepSpeed", "merge it with zero_to_fp32.py of DeepSpeed"),
    _Other("tf_model.h5", "a model of TensorFlow", "save it again from PyTorch, with transformers 4"),
    _Other("flax_model.msgpack", "a model of Flax", "save it again from PyTorch, with transformers 4"),
    _Other("*.safetensors", "safetensors of other names", "name the file, as in {found}"),
    _Other("*.pth", "a file of torch.save of another name", "name the file, as in {found}"),
    _Other("*.pt", "a file of torch.save of another name", "name the file, as in {found}"),
    _Other("*.bin", "a file of torch.save of another name", "name the file, as in {found}"),
    _Other(f"*/{CONFIG}", "a folder of models", "name one of them, as in {found_folder}"),
)
"""The first that fits is named."""


def locate(path: Path) -> Path:
    """The folder or the file with the weights: a revision of a hub's cache, the model of a finished run, or `path`.

    Raises ToolkitError for what does not exist, and for an adapter, whether or not full weights lie beside it.
    """
    if path.is_file():
        _require_weights_file(path)
        return path
    if not path.is_dir():
        raise ToolkitError(
            f"{path}: no such checkpoint",
            "name a folder with safetensors or one safetensors file; from a hub: hf download NAME --local-dir DIR",
        )
    found = _revision(path) if (path / "snapshots").is_dir() else path
    if (found / "model" / CONFIG).is_file() and (found / "run.json").is_file():
        found = found / "model"
    if any(found.glob("adapter_model.*")) or (found / ADAPTER).is_file():
        raise ToolkitError(
            f"{found}: an adapter{_beside(found)}: the mean of factors is not the mean of models",
            f"merge it into its base first: {_MERGE_ADAPTER.format(path=found)}",
        )
    return found


def not_a_checkpoint(path: Path) -> ToolkitError:
    """The refusal of a folder without weights, saying what it holds instead and the way from there."""
    for other in _OTHERS:
        fitting = sorted(path.glob(other.pattern), key=lambda found: (len(str(found)), str(found)))
        if fitting:
            found = fitting[-1]
            way = other.way.format(path=path, found=found, found_folder=found.parent)
            return ToolkitError(f"{path}: neither {SINGLE} nor {INDEX}: this is {other.is_what}", way)
    return ToolkitError(f"{path}: neither {SINGLE} nor {INDEX}", "name a folder that transformers can load")


def _require_weights_file(path: Path) -> None:
    if path.suffix == ".gguf":
        raise ToolkitError(f"{path}: GGUF holds quantised weights", "name the checkpoint that it was converted from")
    if path.suffix == ".json":
        raise ToolkitError(f"{path}: no file of weights", f"name its folder, {path.parent}")


def _revision(root: Path) -> Path:
    """The revision that a hub's cache calls main, or the only one there is."""
    main = root / "refs" / "main"
    if main.is_file() and (named := root / "snapshots" / main.read_text(encoding="utf-8").strip()).is_dir():
        return named
    revisions = sorted(path for path in (root / "snapshots").iterdir() if path.is_dir())
    if len(revisions) != 1:
        names = ", ".join(path.name for path in revisions) or "none"
        raise ToolkitError(f"{root}: the revisions in this cache are {names}", "name one of the folders in snapshots/")
    return revisions[0]


def _beside(folder: Path) -> str:
    full = [name for name in (SINGLE, INDEX, TORCH_SINGLE, TORCH_INDEX) if (folder / name).exists()]
    return f" beside the full weights in {full[0]}" if full else ""
