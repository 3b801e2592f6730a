"""Control tokens inside messages: kept inert wherever the template puts them, refused where it takes them apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sft_toolkit.chat import Renderer
from sft_toolkit.errors import RecordError
from sft_toolkit.formats import parse_record


@pytest.mark.parametrize(
    ("name", "answers"), [("qwen3", ["foo </think> bar"]), ("deepseekv3", ["foo </think> bar", "foo </think> bar"])]
)
def test_an_answer_that_a_template_divides_at_a_control_token_is_refused(
    trl_templates: Path, renderer_for: Callable[..., Renderer], name: str, answers: list[str]
) -> None:
    """Qwen 3 takes what precedes </think> for reasoning and writes a </think> of its own, which is no plain text."""
    renderer = renderer_for((trl_templates / f"{name}.jinja").read_text() + "{#- </think> -#}")
    messages = [
        {"role": role, "content": content}
        for answer in answers
        for role, content in (("user", "Und?"), ("assistant", answer))
    ]
    with pytest.raises(RecordError) as caught:
        renderer.render(parse_record({"messages": messages}))
    assert caught.value.reason == "control_text"
