"""Whether the tokenizer that goes with a model is the one that its packed shards were rendered with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sft_toolkit.chat.tokenizer_folder import TokenizerFolder, template_digest
from sft_toolkit.shards.shard_folder import ShardFolder
from sft_toolkit.training.options import ModelSource


def rendering_warnings(packed: Path, source: ModelSource) -> Iterator[str]:
    """Say where the trained model would be used otherwise than it was trained.

    Hashes of files are compared, and the same tokenizer may have been saved twice with other bytes: so no error.
    A checkpoint without a tokenizer.json, such as a GGUF file, is not looked at.
    """
    origin = source.tokenizer or source.path
    if source.init is not None and source.tokenizer is None:
        yield "no tokenizer will lie beside the trained model; give --tokenizer DIR"
    if not (origin / "tokenizer.json").is_file():
        return
    rendered_with = ShardFolder(packed, "packed").manifest
    folder = TokenizerFolder.read(origin)
    if rendered_with.get("tokenizer", folder.digest) != folder.digest:
        yield (
            f"{packed}: rendered with another tokenizer than that of {origin}: "
            "the same id may be another token; render with the model's own"
        )
    if folder.chat_template is None:
        return
    template = template_digest(folder.chat_template)
    if rendered_with.get("chat_template", template) != template:
        yield (
            f"{packed}: rendered with another chat template than that of {origin}: "
            "prompts would look other than in training; put the one that was used beside the model"
        )
