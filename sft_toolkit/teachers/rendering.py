"""The teacher's chat template, applied here: for servers that continue a text (/completions)."""

from __future__ import annotations

from pathlib import Path

from sft_toolkit.chat.template import ChatTemplate
from sft_toolkit.chat.template_files import choose
from sft_toolkit.chat.tokenizer_folder import TokenizerFolder
from sft_toolkit.teachers.prefill import Render
from sft_toolkit.teachers.requests import Request


def renderer(path: Path) -> Render:
    """What renders questions with the templates in a tokenizer folder, up to the generation prompt.

    A BOS that servers put before every text anyway is left out. Raises ToolkitError where there is no template.
    """
    folder = TokenizerFolder.read(path)
    templates = {
        name: ChatTemplate(source, folder.special_tokens) for name, source in folder.require_templates().items()
    }
    bos = folder.special_tokens.get("bos_token", "") if folder.adds_bos is not False else ""

    def render(request: Request) -> str:
        name = choose(templates, bool(request.tools)) or min(templates)
        text = templates[name].render(request.messages, request.tools or None, {}, generation_prompt=True)
        return text.removeprefix(bos)

    return render
