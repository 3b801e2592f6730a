"""Templates that go their own way: rendered right, or refused, never trained wrongly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sft_toolkit.chat import Rendered, Renderer
from sft_toolkit.formats import parse_record

RendererFor = Callable[..., Renderer]


def said(role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def render(renderer: Renderer, *messages: dict[str, Any]) -> Rendered:
    return renderer.render(parse_record({"messages": list(messages)}))


def trained(renderer: Renderer, rendered: Rendered) -> str:
    return renderer.tokenizer.decode(rendered.input_ids[rendered.loss_mask])


def test_a_template_for_one_exchange_renders_one_exchange(chatml: str, renderer_for: RendererFor) -> None:
    guard = "{% if messages | length > 2 %}{{ raise_exception('one exchange only') }}{% endif %}"
    renderer = renderer_for(guard + chatml)
    rendered = render(renderer, said("user", "Und?"), said("assistant", "Gut."))
    assert trained(renderer, rendered) == "Gut.<|im_end|>"


def test_no_header_is_trained_where_an_answer_lacks_the_end_of_it(
    trl_templates: Path, renderer_for: RendererFor
) -> None:
    """A prompt of Nemotron's ends in <think>, which the template leaves out of an answer that holds </think>."""
    renderer = renderer_for((trl_templates / "nemotron_3_nano.jinja").read_text())
    rendered = render(renderer, said("user", "Und?"), said("assistant", "So endet es: </think> ja"))
    assert trained(renderer, rendered) == "So endet es: </think> ja<|im_end|>"
    assert rendered.notes["turns_without_header"] == 1
