"""The handshake against servers with real chat templates: right forms are taken, wrong ones are not.

The model behind these servers continues the canary's numbers and closes a thinking block in any case, so that its
replies prove nothing. What is right was worked out by hand from what the templates render.
"""

import asyncio
import shutil
from functools import partial
from pathlib import Path

import pytest

from sft_toolkit.errors import ToolkitError
from sft_toolkit.teachers.http_client import Timeouts
from sft_toolkit.teachers.http_teacher import HttpTeacher
from sft_toolkit.teachers.prefill import FORMS, holds_opener
from sft_toolkit.teachers.rendering import TeacherTemplate
from sft_toolkit.teachers.requests import Asking
from tests.template_server import APPLYING, SILENT, TOKENIZING, TemplateServer, listening

transformers = pytest.importorskip("transformers")
trl = pytest.importorskip("trl")

TEMPLATES = Path(trl.__file__).parent / "chat_templates"
COMPLETIONS, CONTENT, ALONE = "completions", "content", "opener-alone"
OPENS_ITSELF = ({COMPLETIONS}, {COMPLETIONS, ALONE})
PLAIN_TAG = ({COMPLETIONS, CONTENT}, {COMPLETIONS, CONTENT})
# Forms that open thinking where a server continues the rendered last message (vLLM), and where it appends the content
# of the last message to the generation prompt (SGLang).
RIGHT = {
    "deepseek_r1_distill": ({COMPLETIONS, CONTENT}, {COMPLETIONS, ALONE}),
    "deepseekv3": ({COMPLETIONS, CONTENT}, {COMPLETIONS, ALONE}),
    "diffusion_gemma": ({COMPLETIONS}, {COMPLETIONS, CONTENT}),
    "gemma4": ({COMPLETIONS}, {COMPLETIONS, CONTENT}),
    "gemma4_v2": (set(), set()),
    "gemma4_v3": ({COMPLETIONS}, {COMPLETIONS, CONTENT}),
    "gemma4_v4": ({COMPLETIONS}, {COMPLETIONS, CONTENT}),
    "gemma4_v5": ({COMPLETIONS}, {COMPLETIONS, CONTENT}),
    "glm4moe": ({COMPLETIONS}, {COMPLETIONS}),
    "gptoss": ({COMPLETIONS}, {COMPLETIONS, CONTENT}),
    "lfm2_2_5": PLAIN_TAG,
    "lfm2_2_5_v2": PLAIN_TAG,
    "lfm2_2_5_vl": PLAIN_TAG,
    "muse_glimmer": ({COMPLETIONS}, {COMPLETIONS, CONTENT}),
    "nemotron_3_5_lightning": ({COMPLETIONS, CONTENT}, {COMPLETIONS, ALONE}),
    "nemotron_3_nano": ({COMPLETIONS, CONTENT}, {COMPLETIONS, ALONE}),
    "nemotron_3_super": ({COMPLETIONS, CONTENT}, {COMPLETIONS, ALONE}),
    "nemotron_3_ultra": ({COMPLETIONS, CONTENT}, {COMPLETIONS, ALONE}),
    "qwen3": ({COMPLETIONS}, {COMPLETIONS, CONTENT}),
    "qwen3_5_nothink": ({COMPLETIONS}, {COMPLETIONS}),
    "qwen3_5_think": OPENS_ITSELF,
    "qwen3_6": OPENS_ITSELF,
    "qwen3_8": OPENS_ITSELF,
}
WITHOUT_THINKING = ("cohere2", "gemma3", "llama3_2", "phi3", "qwen2_5", "qwen3_instruct_2507")


@pytest.fixture(scope="module")
def tokenizer(sample_data):
    return transformers.AutoTokenizer.from_pretrained(sample_data / "tokenizer")


@pytest.fixture
def folder(sample_data, tmp_path):
    """`folder(template)`: a tokenizer folder with one of trl's templates."""

    def make(template):
        shutil.copytree(sample_data / "tokenizer", tmp_path / template)
        shutil.copy(TEMPLATES / f"{template}.jinja", tmp_path / template / "chat_template.jinja")
        return tmp_path / template

    return make


def server_of(tokenizer, template, manner, **variables):
    source = (TEMPLATES / f"{template}.jinja").read_text()
    render = partial(tokenizer.apply_chat_template, chat_template=source, tokenize=False, **variables)
    encode = partial(tokenizer.encode, add_special_tokens=False)
    return TemplateServer(render, encode, tokenizer.decode, manner)


def accepted(url, template, parameters=None):
    """The forms that pass the handshake, and what it says of the others."""

    async def try_all():
        teacher, passed, said = HttpTeacher(url, Timeouts(2, 10, 20), template=template), set(), {}
        for form in FORMS:
            try:
                passed.add((await teacher.settle_prefill(Asking("m", form, parameters or {}))).prefill)
            except ToolkitError as fault:
                said[form] = fault.message
        await teacher.close()
        return passed, said

    return asyncio.run(try_all())


def test_the_table_holds_every_template_of_trl_that_speaks_of_thinking():
    sources = {path.stem: path.read_text() for path in TEMPLATES.glob("*.jinja") if "training" not in path.stem}
    assert {name for name, source in sources.items() if "think" in source} <= RIGHT.keys()


@pytest.mark.parametrize("template", [*RIGHT, *WITHOUT_THINKING])
def test_on_each_template_of_trl_the_right_forms_and_no_others_are_accepted(template, tokenizer, folder):
    at_hand = TeacherTemplate(folder(template))
    for manner, right in zip((TOKENIZING, SILENT), RIGHT.get(template, (set(), set())), strict=True):
        server = server_of(tokenizer, template, manner)
        with listening(server.answer) as url:
            assert accepted(url, at_hand)[0] == right, manner
            assert accepted(url, None)[0] == (right - {COMPLETIONS} if manner == TOKENIZING else set()), manner


@pytest.mark.parametrize(
    ("template", "prompt_end"),
    [
        ("qwen3", "<|im_start|>assistant\n<think>\n1, 2, 3, 4, 5, 6, 7, 8,"),
        ("qwen3_5_think", "<|im_start|>assistant\n<think>\n1, 2, 3, 4, 5, 6, 7, 8,"),
        ("qwen3_5_nothink", "<|im_start|>assistant\n<think>\n1, 2, 3, 4, 5, 6, 7, 8,"),
        ("deepseekv3", "<｜Assistant｜><think>\n1, 2, 3, 4, 5, 6, 7, 8,"),
        ("glm4moe", "<|assistant|>\n<think>1, 2, 3, 4, 5, 6, 7, 8,"),
        ("lfm2_2_5", "<|im_start|>assistant\n<think>1, 2, 3, 4, 5, 6, 7, 8,"),
        ("gemma4", "<|turn>model\n<|channel>thought\n1, 2, 3, 4, 5, 6, 7, 8,"),
        ("gptoss", "<|start|>assistant<|channel|>analysis<|message|>1, 2, 3, 4, 5, 6, 7, 8,"),
        ("muse_glimmer", "<|start|>assistant to=self<|message|>1, 2, 3, 4, 5, 6, 7, 8,"),
    ],
)
def test_completions_open_thinking_as_the_template_itself_writes_it(template, prompt_end, tokenizer, folder):
    server = server_of(tokenizer, template, TOKENIZING)
    with listening(server.answer) as url:
        assert COMPLETIONS in accepted(url, TeacherTemplate(folder(template)))[0]
    assert server.prompts[0].endswith(prompt_end)


def test_a_refused_form_is_shown_as_the_server_renders_it(tokenizer):
    with listening(server_of(tokenizer, "qwen3", TOKENIZING).answer) as url:
        said = accepted(url, None)[1]["content"]
    assert r"assistant\n<think>\n\n</think>\n\n<think>\n1, 2, 3, 4, 5, 6, 7, 8,'" in said
    assert r"its template '" in said and r"assistant\n<think>\n' before thinking" in said


def test_a_template_that_closes_thinking_opens_it_by_its_variable(tokenizer, folder):
    variables = {"chat_template_kwargs": {"enable_thinking": True}}
    server = server_of(tokenizer, "qwen3_5_nothink", SILENT, enable_thinking=True)
    with listening(server.answer) as url:
        assert accepted(url, TeacherTemplate(folder("qwen3_5_nothink")), variables)[0] == {COMPLETIONS, ALONE}
    opened = "<|im_start|>assistant\n<think>\n1, 2, 3, 4, 5, 6, 7, 8,"
    assert sum(prompt.endswith(opened) for prompt in server.prompts) == 2


@pytest.mark.parametrize("manner", [APPLYING, TOKENIZING])
def test_where_the_server_renders_nothing_is_generated_to_try_a_form(manner, tokenizer):
    server = server_of(tokenizer, "lfm2_2_5", manner)
    with listening(server.answer) as url:
        assert accepted(url, None)[0] == {CONTENT}
    assert server.prompts == []


def test_a_server_that_is_loading_its_model_is_waited_for_before_a_form_is_judged(tokenizer):
    server = server_of(tokenizer, "lfm2_2_5", APPLYING)
    loading = iter([503])

    def answer(path, body):
        status = next(loading, 200)
        return server.answer(path, body) if status == 200 else (status, {"error": {"message": "Loading model"}})

    with listening(answer) as url:
        assert accepted(url, None)[0] == {CONTENT}


@pytest.mark.parametrize(
    ("rendered", "holds"),
    [
        ("...<|im_start|>assistant\n<think>\n1, 2,", True),
        ("...<|im_start|>assistant\n<think>1, 2, \n", True),
        ("...<|im_start|>assistant\n<think>\n\n</think>\n\n<think>\n1, 2,", False),
        ("...<|im_start|>assistant\n<think>\n\n</think>\n\nWell.<think>\n1, 2,", False),
        ("...<|im_start|>assistant\n<think>\nSo 1, 2,", False),
        ("...<|im_start|>assistant\n<think>\n1, 2,<|im_end|>", False),
        ("...<|im_start|>assistant\n1, 2,", False),
        ("...<|turn>model\n<think>\n1, 2,", False),
        ("...<|turn>model\n<|channel>thought\n1, 2,", True),
        ("...<|turn>model\n<|channel>thought\n<channel|><|channel>thought\n1, 2,", False),
        ("...<|start|>assistant<|channel|>final<|message|><think>\n1, 2,", False),
        ("...<|start|>assistant<|channel|>analysis<|message|>1, 2,", True),
        ("what is </think>?<｜Assistant｜><think>\n1, 2,", True),
        ("[INST]Count[/INST][THINK]1, 2,", True),
        ("[INST]Count[/INST][THINK][/THINK]1, 2,", False),
    ],
)
def test_a_prompt_holds_the_opener_where_thinking_is_open_and_was_not_closed(rendered, holds):
    assert holds_opener(rendered, "1, 2,") is holds
