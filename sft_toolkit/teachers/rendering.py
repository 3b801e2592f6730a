"""The teacher's chat template, applied here: for servers that continue a text (/completions)."""

from __future__ import annotations

from pathlib import Path

from sft_toolkit.chat.template import ChatTemplate
from sft_toolkit.chat.tokenizer_folder import TokenizerFolder
from sft_toolkit.teachers.prefill import Render
from sft_toolkit.teachers.requests import Request


def renderer(path: Path) -> Render:
    """What renders questions with the template in a tokenizer folder, up to the generation prompt.

    A BOS that servers put before every text anyway is left out. Raises ToolkitError where there is no template.
    """
    folder = TokenizerFolder.read(path)
    template = ChatTemplate(folder.require_template(), folder.special_tokens)
    bos = folder.special_tokens.get("bos_token", "") if folder.adds_bos is not False else ""

    def render(request: Request) -> str:
        text = template.render(request.messages, request.tools or None, {}, generation_prompt=True)
        return text.removeprefix(bos)

    return render
