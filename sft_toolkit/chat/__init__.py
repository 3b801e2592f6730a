"""Chat templates to token ids with an exact loss mask."""

from sft_toolkit.chat.rendered import Rendered, Span
from sft_toolkit.chat.renderer import Renderer

__all__ = ["Rendered", "Renderer", "Span"]
