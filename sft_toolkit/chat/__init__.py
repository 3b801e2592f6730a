"""Chat templates to token ids with an exact loss mask.

More than 20 modules, because each question to a template (a probe, a bound) is one, and all serve one class.
"""

from sft_toolkit.chat.rendered import Rendered, Span
from sft_toolkit.chat.renderer import Renderer

__all__ = ["Rendered", "Renderer", "Span"]
