"""Whether the tokenizer that goes with a model is the one that its packed shards were rendered with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sft_toolkit.chat.template_files import template_digest, templates_digest
from sft_toolkit.chat.tokenizer_folder import TokenizerFolder
from sft_toolkit.shards.shard_folder import ShardFolder
from sft_toolkit.training.options import ModelSource


def rendering_warnings(packed: Path, source: ModelSource) -> Iterator[str]:
    """Say where the trained model would be used otherwise than it was trained.

    Hashes of files are compared, and the same tokenizer may have been saved twice with other bytes: so no error.
    A checkpoint without a tokenizer.json, such as a GGUF file, is not looked at.
    """
    origin = source.tokenizer or source.path
    if source.init is not None and source.tokenizer is None:
        yield "no tokenizer will lie beside the trained model; give `tokenizer`"
    if not (origin / "tokenizer.json").is_file():
        return
    rendered_with = ShardFolder(packed, "packed").manifest
    folder = TokenizerFolder.read(origin)
    if rendered_with.get("tokenizer", folder.digest) != folder.digest:
        yield (
            f"{packed}: rendered with another tokenizer than that of {origin}: "
            "the same id may be another token; render with the model's own"
        )
    templates = folder.chat_templates
    known = {templates_digest(templates), *map(template_digest, templates.values())}
    if templates and rendered_with.get("chat_template", templates_digest(templates)) not in known:
        yield (
            f"{packed}: rendered with another chat template than that of {origin}: "
            "prompts would look other than in training; put the one that was used beside the model"
        )
