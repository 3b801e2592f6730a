"""Named chat templates: found, and chosen record by record, as transformers does it with the same folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.chat import Renderer
from sft_toolkit.chat.tokenizer_folder import TokenizerFolder
from sft_toolkit.errors import RecordError, ToolkitError
from sft_toolkit.formats import parse_record

MakeFolder = Callable[..., Path]
TOOLS = [{"type": "function", "function": {"name": "wetter", "parameters": {"type": "object", "properties": {}}}}]
MESSAGES = [{"role": "user", "content": "Warm?"}, {"role": "assistant", "content": "Kein Werkzeug hilft."}]
PLAIN = {"id": "plain", "messages": MESSAGES}
WITH_TOOLS = {"id": "tools", "messages": MESSAGES, "tools": TOOLS}


def template(name: str, before: str = "") -> str:
    loop = "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}"
    return f"{name}:{before}{loop}{{% if add_generation_prompt %}}{{{{ '<|assistant|>' }}}}{{% endif %}}"


SOURCES = {
    "default": template("default"),
    "tool_use": template("tool_use", "{% for tool in tools %}{{ tool | tojson }}{% endfor %}"),
    "rag": template("rag", "{% for text in documents %}{{ text.title }}{% endfor %}"),
}


def config_list(folder: Path, sources: dict[str, str]) -> None:
    configure(folder, [{"name": name, "template": source} for name, source in sources.items()])


def config_object(folder: Path, sources: dict[str, str]) -> None:
    configure(folder, sources)


def files(folder: Path, sources: dict[str, str]) -> None:
    """As save_pretrained writes them; what the configuration says beside them is not read."""
    configure(folder, "{{ 'the configuration' }}")
    (folder / "additional_chat_templates").mkdir()
    for name, source in sources.items():
        path = folder / "additional_chat_templates" / f"{name}.jinja"
        (folder / "chat_template.jinja" if name == "default" else path).write_text(source)


def configure(folder: Path, chat_template: Any) -> None:
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "chat_template": chat_template}))


def transformers_text(folder: Path, record: dict[str, Any], **options: Any) -> str:
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    text: str = tokenizer.apply_chat_template(record["messages"], tools=record.get("tools"), tokenize=False, **options)
    return text


@pytest.fixture
def folder(make_folder: MakeFolder) -> Path:
    return make_folder(None, None)


@pytest.mark.parametrize("write", [config_list, config_object, files])
@pytest.mark.parametrize("names", [("default", "tool_use", "rag"), ("default", "rag"), ("default",)])
@pytest.mark.parametrize("record", [PLAIN, WITH_TOOLS])
def test_a_record_is_rendered_with_the_template_that_transformers_takes(
    write: Callable[..., None], names: tuple[str, ...], record: dict[str, Any], folder: Path
) -> None:
    write(folder, {name: SOURCES[name] for name in names})
    rendered = Renderer.from_folder(folder).render(parse_record(record))
    assert rendered.text == transformers_text(folder, record)
    assert rendered.notes["tools_not_rendered"] == ("tools" in record and "tool_use" not in names)


@pytest.mark.parametrize("write", [config_list, config_object, files])
def test_a_template_is_taken_by_name_for_the_run_or_by_the_record(write: Callable[..., None], folder: Path) -> None:
    write(folder, SOURCES)
    documents = [{"title": "Ulm", "text": "warm"}]
    wanted = transformers_text(folder, PLAIN, chat_template="rag", documents=documents)
    assert wanted.startswith("rag:Ulm<|user|>")
    asked = parse_record({**PLAIN, "chat_template_kwargs": {"documents": documents}})
    assert Renderer.from_folder(folder, "rag").render(asked).text == wanted
    asks = parse_record({**PLAIN, "chat_template_kwargs": {"chat_template": "rag", "documents": documents}})
    assert Renderer.from_folder(folder).render(asks).text == wanted


def test_a_name_that_no_template_has_and_tools_missing_where_only_tool_use_is_there_are_faults_of_the_record(
    folder: Path,
) -> None:
    config_list(folder, {"tool_use": SOURCES["tool_use"]})
    renderer = Renderer.from_folder(folder)
    assert renderer.render(parse_record(WITH_TOOLS)).text.startswith("tool_use:")
    with pytest.raises(RecordError, match="without tools") as fault:
        renderer.render(parse_record(PLAIN))
    assert fault.value.reason == "no_such_template" and "tool_use" in fault.value.hint
    with pytest.raises(RecordError, match="called rag"):
        renderer.render(parse_record({**WITH_TOOLS, "chat_template_kwargs": {"chat_template": "rag"}}))


def test_the_legacy_file_of_processors_is_read_where_nothing_else_is_there(folder: Path) -> None:
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": SOURCES["default"]}))
    assert Renderer.from_folder(folder).render(parse_record(PLAIN)).text.startswith("default:")
    configure(folder, template("configured"))
    assert Renderer.from_folder(folder).render(parse_record(PLAIN)).text.startswith("configured:")


@pytest.mark.parametrize("configured", [5, [], ["x"], [{"name": "default"}], {"default": 5}, {}])
def test_a_configuration_that_holds_no_template_is_named(configured: Any, folder: Path) -> None:
    configure(folder, configured)
    with pytest.raises(ToolkitError, match="chat_template is neither"):
        TokenizerFolder.read(folder)


def test_a_named_template_that_does_not_compile_is_named(folder: Path) -> None:
    config_list(folder, {**SOURCES, "rag": "{% for %}"})
    with pytest.raises(ToolkitError, match="template rag: chat template"):
        Renderer.from_folder(folder)
