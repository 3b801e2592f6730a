"""Writers of every dialect of calls, by the grammars' published forms and none of the toolkit's code.

A writer turns calls, (name, arguments) each, into the text that a model of that dialect writes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

Calls = list[tuple[str, dict[str, Any]]]


def as_json(value: Any) -> str:
    """JSON with the digits of a Decimal."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {as_json(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def as_python(value: Any) -> str:
    """A Python literal with the digits of a Decimal."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {as_python(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_python, value)) + "]"
    return repr(value)


def as_gemma(value: Any) -> str:
    if isinstance(value, str):
        return f'<|"|>{value}<|"|>'
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{as_gemma(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(as_gemma, value)) + "]"
    return as_json(value)


def plain(value: Any) -> str:
    """A value between XML-like tags: text as it is, all else as JSON."""
    return value if isinstance(value, str) else as_json(value)


def call_object(name: str, arguments: Any, key: str = "arguments", write: Callable[[Any], str] = as_json) -> str:
    return write({"name": name, key: arguments})


def python_call(name: str, arguments: dict[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={as_python(value)}' for key, value in arguments.items())})"


def function_tags(name: str, arguments: dict[str, Any]) -> str:
    members = "".join(f"<parameter={key}>\n{plain(value)}\n</parameter>\n" for key, value in arguments.items())
    return f"<function={name}>\n{members}</function>"


def invoke(name: str, arguments: dict[str, Any], prefix: str = "") -> str:
    members = "".join(
        f'<{prefix}parameter name="{key}">{plain(value)}</{prefix}parameter>\n' for key, value in arguments.items()
    )
    return f'<{prefix}invoke name="{name}">\n{members}</{prefix}invoke>'


def dsml(name: str, arguments: dict[str, Any]) -> str:
    members = "".join(
        f'<｜DSML｜parameter name="{key}" string="{"true" if isinstance(value, str) else "false"}">{plain(value)}'
        "</｜DSML｜parameter>\n"
        for key, value in arguments.items()
    )
    return f'<｜DSML｜invoke name="{name}">\n{members}</｜DSML｜invoke>'


def argument_keys(name: str, arguments: dict[str, Any]) -> str:
    pairs = "".join(f"<arg_key>{key}</arg_key>\n<arg_value>{plain(v)}</arg_value>\n" for key, v in arguments.items())
    return f"{name}\n{pairs}"


def each(write: Callable[[str, dict[str, Any]], str], before: str, after: str, between: str = "\n") -> Any:
    """A writer that puts every call between marks of its own."""
    return lambda calls: between.join(f"{before}{write(name, arguments)}{after}" for name, arguments in calls)


def together(write: Callable[[str, dict[str, Any]], str], before: str, after: str, between: str = ", ") -> Any:
    """A writer that puts all calls between one pair of marks."""
    return lambda calls: before + between.join(write(name, arguments) for name, arguments in calls) + after


def literal(name: str, arguments: dict[str, Any]) -> str:
    return call_object(name, arguments, write=as_python)


def deepseek_v3(name: str, arguments: dict[str, Any]) -> str:
    return f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{as_json(arguments)}\n```<｜tool▁call▁end｜>"


def deepseek_v31(name: str, arguments: dict[str, Any]) -> str:
    return f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{as_json(arguments)}<｜tool▁call▁end｜>"


def kimi(calls: Calls) -> str:
    written = "".join(
        f"<|tool_call_begin|>functions.{name}:{number}<|tool_call_argument_begin|>{as_json(arguments)}<|tool_call_end|>"
        for number, (name, arguments) in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{written}<|tool_calls_section_end|>"


def harmony(calls: Calls) -> str:
    return "<|start|>assistant".join(
        f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{as_json(arguments)}<|call|>"
        for name, arguments in calls
    )


JSON_WRITERS: dict[str, Callable[[Calls], str]] = {
    "<tool_call>": each(call_object, "<tool_call>\n", "\n</tool_call>"),
    "<tool_call> on one line": each(call_object, "<tool_call>", "</tool_call>", ""),
    "<tool_call>, several in one": together(call_object, "<tool_call>\n", "\n</tool_call>", "\n"),
    "<tool_call>, args": each(lambda n, a: call_object(n, a, "args"), "<tool_call>", "</tool_call>"),
    "<tool_call>, input": each(lambda n, a: call_object(n, a, "input"), "<tool_call>", "</tool_call>"),
    "<tool_call>, arguments as text": each(lambda n, a: call_object(n, as_json(a)), "<tool_call>", "</tool_call>"),
    "<tool_call>, OpenAI's form": each(
        lambda n, a: as_json({"type": "function", "function": {"name": n, "arguments": as_json(a)}}),
        "<tool_call>",
        "</tool_call>",
    ),
    "<tool_calls>": together(call_object, "<tool_calls>[", "]</tool_calls>"),
    "<tool_calls> around <tool_call>": lambda calls: (
        "<tool_calls>\n" + each(call_object, "<tool_call>", "</tool_call>")(calls) + "\n</tool_calls>"
    ),
    "<TOOLCALL>": together(call_object, "<TOOLCALL>[", "]</TOOLCALL>"),
    "<functioncall>": each(call_object, "<functioncall> ", " <|endoftext|>"),
    "<functioncall>, glaive": each(
        lambda n, a: f'{{"name": "{n}", "arguments": \'{as_json(a)}\'}}', "<functioncall> ", ""
    ),
    "<|tool_call|>, Granite": together(call_object, "<|tool_call|>[", "]"),
    "<|tool_call|>, Phi": together(call_object, "<|tool_call|>[", "]<|/tool_call|>"),
    "[TOOL_CALLS] list": together(call_object, "[TOOL_CALLS] [", "]</s>"),
    "[TOOL_CALLS] names": each(lambda n, a: f"{n}[ARGS]{as_json(a)}", "[TOOL_CALLS]", "", ""),
    "[TOOL_CALLS] names and ids": each(lambda n, a: f"{n}[CALL_ID]abcdefghi[ARGS]{as_json(a)}", "[TOOL_CALLS]", "", ""),
    "<|python_tag|>": together(lambda n, a: call_object(n, a, "parameters"), "<|python_tag|>", "<|eom_id|>", "; "),
    "<function=f>{…}": each(lambda n, a: f"<function={n}>{as_json(a)}</function>", "", ""),
    "DeepSeek-V3": together(deepseek_v3, "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜><｜end▁of▁sentence｜>", "\n"),
    "DeepSeek-V3.1": together(deepseek_v31, "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", ""),
    "Kimi-K2": kimi,
    "harmony": harmony,
    "<function_call>": each(call_object, "<function_call>", "</function_call>"),
    "<|action_start|>": each(
        lambda n, a: call_object(n, a, "parameters"), "<|action_start|><|plugin|>\n", "\n<|action_end|>"
    ),
    "<|START_ACTION|>": together(
        lambda n, a: as_json({"tool_call_id": "0", "tool_name": n, "parameters": a}),
        "<|START_ACTION|>[\n",
        "\n]<|END_ACTION|>",
        ",\n",
    ),
    "<function_calls> JSON": together(call_object, "<function_calls>[", "]</function_calls>"),
}
PYTHON_WRITERS: dict[str, Callable[[Calls], str]] = {
    "<tool_call> literal": each(literal, "<tool_call>\n", "\n</tool_call>"),
    "<|tool_call_start|>": together(python_call, "<|tool_call_start|>[", "]<|tool_call_end|>"),
    "<|python_start|>": together(python_call, "<|python_start|>[", "]<|python_end|>"),
    "<function_calls> lines": together(python_call, "<function_calls>\n", "\n</function_calls>", "\n"),
    "<|python_tag|> call": each(lambda n, a: python_call(f"{n}.call", a), "<|python_tag|>", "<|eom_id|>"),
    "Gemma 4": each(lambda n, a: f"call:{n}{as_gemma(a)}", "<|tool_call>", "<tool_call|>", ""),
}
TYPED_WRITERS: dict[str, Callable[[Calls], str]] = {
    "Qwen3-Coder": each(function_tags, "<tool_call>\n", "\n</tool_call>"),
    "Qwen3-Coder without <tool_call>": each(function_tags, "", ""),
    "Seed-OSS": each(function_tags, "<seed:tool_call>\n", "\n</seed:tool_call>"),
    "GLM-4.5": each(argument_keys, "<tool_call>", "</tool_call>"),
    "MiniMax-M2": together(invoke, "<minimax:tool_call>\n", "\n</minimax:tool_call>", "\n"),
    "<invoke> alone": each(invoke, "", ""),
    "Anthropic": together(invoke, "<function_calls>\n", "\n</function_calls>", "\n"),
    "Muse Glimmer": each(lambda n, a: invoke(n, a, "atem:"), "<atem:function_calls>\n", "\n</atem:function_calls>"),
    "DeepSeek-V3.2": together(dsml, "<｜DSML｜function_calls>\n", "\n</｜DSML｜function_calls>", "\n"),
}
BARE_WRITERS: dict[str, Callable[[Calls], str]] = {
    "ToolACE": together(python_call, "[", "]"),
    "Llama 3.1": together(lambda n, a: call_object(n, a, "parameters"), "", "", "; "),
    "a list of objects": together(call_object, "[", "]"),
}
