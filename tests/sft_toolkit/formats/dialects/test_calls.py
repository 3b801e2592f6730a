"""Calls in text, dialect by dialect: forms that models and data sets write, what is kept raw, what is refused."""

from __future__ import annotations

from decimal import Decimal

import pytest

from sft_toolkit.errors import RecordError
from sft_toolkit.formats.dialects import read_assistant_text, read_call_text

PARAMETERS = {
    "city": {"type": "string"},
    "rooms": {"type": "integer"},
    "size": {"type": "number"},
    "balcony": {"type": "boolean"},
    "tags": {"type": "array"},
    "area": {"$ref": "#/$defs/area"},
    "floor": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    "note": {"type": ["string", "null"]},
    "code": {"enum": ["007", "true"]},
    "python": {"type": "str"},
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "find",
            "parameters": {"type": "object", "properties": PARAMETERS, "$defs": {"area": {"type": "object"}}},
        },
    },
    {"type": "function", "function": {"name": "weather.now"}},
    {"type": "function", "function": {"name": "Get Time (UTC)"}},
]
NAMES = frozenset({"find", "weather.now", "Get Time (UTC)"})


def read(text: str, names: frozenset[str] | None = NAMES, follows: bool = False):
    return read_assistant_text(text, tools_declared=names, tool_message_follows=follows, tools=TOOLS)


def calls_of(text: str):
    return [(call.name, call.arguments) for call in read(text).calls]


BONN = [("find", {"city": "Bonn"})]
FORMS = {
    # <tool_call> with objects
    "spaces": ('<tool_call>   {"name": "find",   "arguments":{"city":"Bonn"}  }   </tool_call>', BONN),
    "tabs and line breaks": (
        '<tool_call>\n\n\t{\n"name":\n"find",\n"arguments": {"city": "Bonn"}}\n\n</tool_call>\n\n',
        BONN,
    ),
    "carriage returns": ('<tool_call>\r\n{"name": "find", "arguments": {"city": "Bonn"}}\r\n</tool_call>\r\n', BONN),
    "arguments first": ('<tool_call>{"arguments": {"city": "Bonn"}, "name": "find"}</tool_call>', BONN),
    "an id beside": ('<tool_call>{"id": "c1", "name": "find", "arguments": {"city": "Bonn"}}</tool_call>', BONN),
    "no closing tag": ('<tool_call>\n{"name": "find", "arguments": {"city": "Bonn"}}', BONN),
    "no closing tags, two": ('<tool_call>{"name": "find", "arguments": {"city": "Bonn"}}\n' * 2, BONN * 2),
    "a stop token": ('<tool_call>{"name": "find", "arguments": {"city": "Bonn"}}</tool_call><|im_end|>\n', BONN),
    "a stop token and no closing tag": ('<tool_call>{"name": "find", "arguments": {"city": "Bonn"}}<|im_end|>', BONN),
    "a Python literal": ("<tool_call>\n{'name': 'find', 'arguments': {'city': 'Bonn'}}\n</tool_call>", BONN),
    "Python's words": (
        "<tool_call>{'name': 'find', 'arguments': {'balcony': True, 'note': None, 'tags': ('a', 'b')}}</tool_call>",
        [("find", {"balcony": True, "note": None, "tags": ["a", "b"]})],
    ),
    "an apostrophe in a literal": (
        """<tool_call>{'name': 'find', 'arguments': {'city': "Val d'Isère"}}</tool_call>""",
        [("find", {"city": "Val d'Isère"})],
    ),
    "a comma too many in a literal": ("<tool_call>{'name': 'find', 'arguments': {'city': 'Bonn',},}</tool_call>", BONN),
    "a fence within": (
        '<tool_call>\n```json\n{"name": "find", "arguments": {"city": "Bonn"}}\n```\n</tool_call>',
        BONN,
    ),
    "arguments as text": ('<tool_call>{"name": "find", "arguments": "{\\"city\\": \\"Bonn\\"}"}</tool_call>', BONN),
    "arguments as text, twice": (
        '<tool_call>{"name": "find", "arguments": "\\"{\\\\\\"city\\\\\\": \\\\\\"Bonn\\\\\\"}\\""}</tool_call>',
        BONN,
    ),
    "parameters": ('<tool_call>{"name": "find", "parameters": {"city": "Bonn"}}</tool_call>', BONN),
    "no arguments": ('<tool_call>{"name": "find"}</tool_call>', [("find", {})]),
    "null arguments": ('<tool_call>{"name": "find", "arguments": null}</tool_call>', [("find", {})]),
    "empty text for arguments": ('<tool_call>{"name": "find", "arguments": ""}</tool_call>', [("find", {})]),
    "every digit": (
        '<tool_call>{"name": "find", "arguments": {"size": 16.20, "rooms": 1234567890123456789}}</tool_call>',
        [("find", {"size": Decimal("16.20"), "rooms": 1234567890123456789})],
    ),
    "every digit of a literal": (
        "<tool_call>{'name': 'find', 'arguments': {'size': 16.20, 'rooms': -1234567890123456789}}</tool_call>",
        [("find", {"size": Decimal("16.20"), "rooms": -1234567890123456789})],
    ),
    "its own tags in a string": (
        '<tool_call>{"name": "find", "arguments": {"city": "</tool_call><tool_call>{"}}</tool_call>',
        [("find", {"city": "</tool_call><tool_call>{"})],
    ),
    "a fence in a string": (
        '<tool_call>{"name": "find", "arguments": {"city": "```\\n`x"}}</tool_call>',
        [("find", {"city": "```\n`x"})],
    ),
    "escapes": (
        '<tool_call>{"name": "find", "arguments": {"city": "\\u0141\\u00f3d\\u017a \\ud83d\\ude00"}}</tool_call>',
        [("find", {"city": "Łódź 😀"})],
    ),
    "a name nobody declared": ('<tool_call>{"name": "other", "arguments": {}}</tool_call>', [("other", {})]),
    "OpenAI's object": (
        '<tool_call>{"type": "function", "function": {"name": "find", "arguments": "{\\"city\\": \\"Bonn\\"}"}}'
        "</tool_call>",
        BONN,
    ),
    "a list": ('<tool_call>[{"name": "find", "arguments": {"city": "Bonn"}}]</tool_call>', BONN),
    "two in one tag": (
        '<tool_call>\n{"name": "find"}\n{"name": "weather.now"}\n</tool_call>',
        [("find", {}), ("weather.now", {})],
    ),
    "of two dialects": (
        '<tool_call>{"name": "find"}</tool_call>\n<function=weather.now>{}</function>',
        [("find", {}), ("weather.now", {})],
    ),
    # <function=…><parameter=…>
    "one line": ("<tool_call><function=find><parameter=city>Bonn</parameter></function></tool_call>", BONN),
    "no parameters": ("<tool_call>\n<function=find>\n</function>\n</tool_call>", [("find", {})]),
    "without <tool_call>": (
        "<function=find>\n<parameter=city>\nBonn\n</parameter>\n</function>\n</tool_call>"[:-13],
        BONN,
    ),
    "without </function>": ("<tool_call>\n<function=find>\n<parameter=city>\nBonn\n</parameter>\n</tool_call>", BONN),
    "lines and spaces are the value's": (
        "<tool_call><function=find>\n<parameter=city>\n\n  a\n\n b \n\n</parameter>\n</function></tool_call>",
        [("find", {"city": "\n  a\n\n b \n"})],
    ),
    "its tag in a value": (
        "<function=find>\n<parameter=city>\nclose with </parameter> so\n</parameter>\n</function>",
        [("find", {"city": "close with </parameter> so"})],
    ),
    "types": (
        "<function=find><parameter=rooms>3</parameter><parameter=size>2.50</parameter><parameter=balcony>True</parameter>"
        '<parameter=tags>[\'a\', "b"]</parameter><parameter=area>{"km": 1}</parameter><parameter=floor>null</parameter>'
        "<parameter=note>None</parameter><parameter=code>007</parameter><parameter=python>1</parameter></function>",
        [
            (
                "find",
                {"rooms": 3, "size": Decimal("2.50"), "balcony": True, "tags": ["a", "b"], "area": {"km": 1}}
                | {"floor": None, "note": None, "code": "007", "python": "1"},
            )
        ],
    ),
    "text that looks like JSON": (
        '<function=find><parameter=city>{"a": 1}</parameter><parameter=note>12</parameter></function>',
        [("find", {"city": '{"a": 1}', "note": "12"})],
    ),
    "a value of another type": (
        "<function=find><parameter=rooms>many</parameter></function>",
        [("find", {"rooms": "many"})],
    ),
    "an undeclared parameter": (
        "<function=find><parameter=x>3</parameter><parameter=y>04109</parameter></function>",
        [("find", {"x": 3, "y": "04109"})],
    ),
    "JSON": ('<function=find>{"city": "Bonn"}</function>', BONN),
    "JSON over lines": ('<function=find>\n{\n  "city": "Bonn"\n}\n</function>', BONN),
    "JSON with the tag in it": (
        '<function=find>{"city": "</function>"}</function>',
        [("find", {"city": "</function>"})],
    ),
    "JSON, unclosed": ('<function=find>{"city": "Bonn"}', BONN),
    "several functions": (
        "<seed:tool_call>\n<function=find>\n<parameter=city>Bonn</parameter>\n</function>\n"
        "<function=weather.now>\n</function>\n</seed:tool_call>",
        [*BONN, ("weather.now", {})],
    ),
    # GLM
    "GLM on one line": (
        "<tool_call>find<arg_key>city</arg_key><arg_value>Bonn</arg_value><arg_key>rooms</arg_key><arg_value>2</arg_value>"
        "</tool_call>",
        [("find", {"city": "Bonn", "rooms": 2})],
    ),
    "GLM, values on lines of their own": (
        "<tool_call>find\n<arg_key>\ncity\n</arg_key>\n<arg_value>\nBonn\n</arg_value>\n</tool_call>",
        BONN,
    ),
    "GLM without arguments": ("<tool_call>find\n</tool_call>", [("find", {})]),
    "GLM, two": (
        "<tool_call>find\n</tool_call>\n<tool_call>weather.now</tool_call>",
        [("find", {}), ("weather.now", {})],
    ),
    # <invoke>
    "MiniMax over lines": (
        '<minimax:tool_call>\n<invoke name="find">\n<parameter name="city">\nBonn\n</parameter>\n</invoke>\n'
        "</minimax:tool_call>",
        BONN,
    ),
    "MiniMax without parameters": (
        '<minimax:tool_call><invoke name="find"></invoke></minimax:tool_call>',
        [("find", {})],
    ),
    "bare invoke": ('<invoke name="find"><parameter name="city">Bonn</parameter></invoke>', BONN),
    # lists and names
    "Nemotron, an object": ('<TOOLCALL>{"name": "find", "arguments": {"city": "Bonn"}}</TOOLCALL>', BONN),
    "Nemotron, unclosed": ('<TOOLCALL>[{"name": "find", "arguments": {"city": "Bonn"}}]', BONN),
    "glaive, closed": ('<functioncall> {"name": "find", "arguments": \'{"city": "Bonn"}\'} </functioncall>', BONN),
    "glaive, an object": ('<functioncall>{"name": "find", "arguments": {"city": "Bonn"}}<|endoftext|>', BONN),
    "glaive, apostrophes": (
        """<functioncall> {"name": "find", "arguments": '{"city": "l'Aquila", "note": "it's '5'"}'} <|endoftext|>""",
        [("find", {"city": "l'Aquila", "note": "it's '5'"})],
    ),
    "glaive, apostrophes before the name": (
        """<functioncall> {"arguments": '{"city": "l'Aquila"}', "name": "find"}""",
        [("find", {"city": "l'Aquila"})],
    ),
    "Phi, two": (
        '<|tool_call|>[{"name": "find", "arguments": {}}, {"name": "weather.now"}]<|/tool_call|><|end|>',
        [("find", {}), ("weather.now", {})],
    ),
    "Mistral, no space": ('[TOOL_CALLS][{"name": "find", "arguments": {"city": "Bonn"}}]', BONN),
    "Mistral, one object": ('[TOOL_CALLS] {"name": "find", "arguments": {"city": "Bonn"}}</s>', BONN),
    "Mistral, spaces": ('  [TOOL_CALLS] find [ARGS] {"city": "Bonn"} </s>', BONN),
    "Mistral, two names": (
        "[TOOL_CALLS]find[ARGS]{}[TOOL_CALLS]weather.now[ARGS]{}</s>",
        [("find", {}), ("weather.now", {})],
    ),
    "Llama, a built-in tool": (
        '<|python_tag|>brave_search.call(query="Bonn")<|eom_id|>',
        [("brave_search", {"query": "Bonn"})],
    ),
    "Llama, two": (
        '<|python_tag|>{"name": "find", "parameters": {}}; {"name": "weather.now", "parameters": {}}<|eot_id|>',
        [("find", {}), ("weather.now", {})],
    ),
    "OLMo": ('<function_calls>\nfind(city="Bonn")\nweather.now()\n</function_calls>', [*BONN, ("weather.now", {})]),
    "LFM2 with JSON": ('<|tool_call_start|>[{"name": "find", "arguments": {"city": "Bonn"}}]<|tool_call_end|>', BONN),
    "LFM2, unescaped": (
        "<|tool_call_start|>[find(city='l'Aquila', note='it's'), weather.now()]<|tool_call_end|>",
        [("find", {"city": "l'Aquila", "note": "it's"}), ("weather.now", {})],
    ),
    "LFM2, JSON in values": (
        '<|tool_call_start|>[find(area={"km": true, "x": null}, tags=[1, "a"], balcony=False)]<|tool_call_end|>',
        [("find", {"area": {"km": True, "x": None}, "tags": [1, "a"], "balcony": False})],
    ),
    "all arguments as one object": ('<function_calls>find({"city": "Bonn"})</function_calls>', BONN),
    "DeepSeek, blank space": (
        '<｜tool▁calls▁begin｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>find\n```json\n{\n "city": "Bonn"\n}\n```\n'
        "<｜tool▁call▁end｜>\n<｜tool▁calls▁end｜>",
        BONN,
    ),
    "DeepSeek, a fence in the arguments": (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>find\n```json\n{"city": "```\\nx"}\n'
        "```<｜tool▁call▁end｜>",
        [("find", {"city": "```\nx"})],
    ),
    "DeepSeek, plain signs": (
        '<|tool_calls_begin|><|tool_call_begin|>find<|tool_sep|>{"city": "Bonn"}<|tool_call_end|><|tool_calls_end|>',
        BONN,
    ),
    "Kimi without functions.": (
        '<|tool_calls_section_begin|><|tool_call_begin|>find:0<|tool_call_argument_begin|>{"city": "Bonn"}'
        "<|tool_call_end|><|tool_calls_section_end|>",
        BONN,
    ),
    "Kimi, dots and spaces": (
        "<|tool_calls_section_begin|>\n<|tool_call_begin|> functions.weather.now:12 <|tool_call_argument_begin|> {} "
        "<|tool_call_end|>\n<|tool_calls_section_end|><|im_end|>",
        [("weather.now", {})],
    ),
    "harmony, the recipient first": (
        '<|start|>assistant to=functions.find<|channel|>commentary json<|message|>{"city": "Bonn"}<|call|>',
        BONN,
    ),
    "harmony, cut header": (
        ' to=functions.find<|channel|>commentary <|constrain|>json<|message|>{"city": "Bonn"}<|call|>',
        BONN,
    ),
    "Command R7B": (
        '<|START_ACTION|>[\n  {"tool_call_id": "0", "tool_name": "find", "parameters": {"city": "Bonn"}}\n]'
        "<|END_ACTION|>",
        BONN,
    ),
    # without marks
    "ToolACE, declared names": (
        '[find(city="Bonn", rooms=2), weather.now(), Get Time (UTC)(zone="x")]',
        [("find", {"city": "Bonn", "rooms": 2}), ("weather.now", {}), ("Get Time (UTC)", {"zone": "x"})],
    ),
    "ToolACE, spaces in keys": ("[find(floor plan='x', city='Bonn')]", [("find", {"floor plan": "x", "city": "Bonn"})]),
    "ToolACE, nested": (
        "[find(tags=['a)', \"b]\"], area={'x': [1, -2.5, None]}, city='(,)')]",
        [("find", {"tags": ["a)", "b]"], "area": {"x": [1, Decimal("-2.5"), None]}, "city": "(,)"})],
    ),
    "ToolACE, lines": ('[\n  find(\n    city="Bonn",\n  ),\n  weather.now()\n]\n', [*BONN, ("weather.now", {})]),
    "Llama, bare": ('{"name": "find", "parameters": {"city": "Bonn"}}', BONN),
    "Llama, bare, stop token": ('{"name": "find", "parameters": {"city": "Bonn"}}<|eot_id|>', BONN),
    "Llama, bare, two": ('{"name": "find", "parameters": {}}; {"name": "find", "parameters": {}}', [("find", {})] * 2),
    "bare with arguments": ('\n{\n  "name": "find",\n  "arguments": {"city": "Bonn"}\n}\n', BONN),
    "ReAct": ('Action: find\nAction Input: {"city": "Bonn"}', BONN),
    "ReAct, over lines": ('Action: find\nAction Input:\n{\n"city": "Bonn"\n}\nObservation:', BONN),
    "ReAct, a literal": ("Action: find\nAction Input: {'city': 'Bonn'}", BONN),
    "ReAct, indented": ('\n  Action: find\n  Action Input: {"city": "Bonn"}\n', BONN),
    "ReAct, no arguments": ("Action: weather.now\nAction Input:", [("weather.now", {})]),
}


@pytest.mark.parametrize(("text", "calls"), FORMS.values(), ids=FORMS)
def test_a_call_is_read(text, calls):
    assert calls_of(text) == calls
    assert (read(text).content, read(text).reasoning) == ("", None)


MARKED = {
    name: form
    for name, form in FORMS.items()
    if not form[0].lstrip().startswith(("[f", "[\n", "{", "\n{", "Act", "\n  Act", "[TOOL"))
}


@pytest.mark.parametrize(("text", "calls"), MARKED.values(), ids=MARKED)
def test_text_before_a_marked_call_stays_content_without_the_space_between(text, calls):
    if text.startswith((" to=", "<|start|>")):
        text = f"<|channel|>commentary<|message|>I look.<|end|>{text}"
    else:
        text = f"I look.\n\n{text}"
    found = read(text)
    assert (found.content, [(call.name, call.arguments) for call in found.calls]) == ("I look.", calls)


@pytest.mark.parametrize(("text", "calls"), MARKED.values(), ids=MARKED)
def test_marked_calls_are_text_where_no_tool_is_declared_and_none_answers(text, calls):
    assert read(text, None, True).calls
    alone = read(f"So:\n{text}", None)
    assert (alone.content, alone.calls) == (f"So:\n{text}", [])


RAW = {
    "cut off": ('<tool_call>\n{"name": "find", "arguments": {"city": "Bon\n</tool_call>', '{"city": "Bon'),
    "cut off and unclosed": ('<tool_call>\n{"name": "find", "arguments": {"city": "Bon', '{"city": "Bon'),
    "keys without quotes": ('<tool_call>{"name": "find", "arguments": {city: "Bonn"}}</tool_call>', '{city: "Bonn"}'),
    "values without quotes": ('<tool_call>{"arguments": {"city": Bonn}, "name": "find"}</tool_call>', '{"city": Bonn}'),
    "a key twice": ('<tool_call>{"name": "find", "arguments": {"a": 1, "a": 2}}</tool_call>', '{"a": 1, "a": 2}'),
    "NaN": ('<tool_call>{"name": "find", "arguments": {"size": NaN}}</tool_call>', '{"size": NaN}'),
    "half a surrogate pair": (
        '<tool_call>{"name": "find", "arguments": {"a": "\\ud83d"}}</tool_call>',
        '{"a": "\\ud83d"}',
    ),
    "a bracket too many": ('<tool_call>{"name": "find", "arguments": {"a": 1}}}</tool_call>', '{"a": 1}}}'),
    "text": ('<tool_call>{"name": "find", "arguments": "Bonn"}</tool_call>', "Bonn"),
    "a list": ('<tool_call>{"name": "find", "arguments": [1, 2]}</tool_call>', "[1,2]"),
    "a parameter that never ends": (
        "<tool_call>\n<function=find>\n<parameter=city>\nBon\n</function>\n</tool_call>",
        "<parameter=city>\nBon",
    ),
    "a parameter cut off with all that follows": (
        "<tool_call>\n<function=find>\n<parameter=city>\nBon",
        "<parameter=city>\nBon",
    ),
    "JSON in a function, cut off": ('<function=find>{"city": "Bon</function>', '{"city": "Bon'),
    "GLM, cut off": (
        "<tool_call>find\n<arg_key>city</arg_key>\n<arg_value>Bon\n</tool_call>",
        "<arg_key>city</arg_key>\n<arg_value>Bon",
    ),
    "DeepSeek, cut off": (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>find\n```json\n{"city": "Bon\n'
        "```<｜tool▁call▁end｜>",
        '{"city": "Bon',
    ),
    "Kimi, cut off": (
        '<|tool_calls_section_begin|><|tool_call_begin|>functions.find:0<|tool_call_argument_begin|>{"city": "Bon'
        "<|tool_call_end|><|tool_calls_section_end|>",
        '{"city": "Bon',
    ),
    "Mistral, cut off": ('[TOOL_CALLS]find[ARGS]{"city": "Bon', '{"city": "Bon'),
    "harmony, cut off": (
        '<|channel|>commentary to=functions.find <|constrain|>json<|message|>{"city": "Bon',
        '{"city": "Bon',
    ),
    "Python, without a key": ('<function_calls>find("Bonn")</function_calls>', '"Bonn"'),
    "LFM2, cut off": ('<|tool_call_start|>[find(city="Bon', 'city="Bon'),
    "ReAct": ("Action: find\nAction Input: Bonn", "Bonn"),
}


@pytest.mark.parametrize(("text", "arguments"), RAW.values(), ids=RAW)
def test_arguments_that_cannot_be_read_are_kept_as_they_stand(text, arguments):
    (call,) = read(text).calls
    assert (call.name, call.arguments) == ("find", arguments)
    assert call.to_tool_call().problem


REFUSED = {
    "no name": '<tool_call>{"arguments": {"city": "Bonn"}}</tool_call>',
    "a blank name": '<tool_call>{"name": " ", "arguments": {}}</tool_call>',
    "a name cut off": '<tool_call>{"name": "fin',
    "nothing": "<tool_call>\n</tool_call>",
    "nothing and the end": "I look. <tool_call>",
    "an empty list": "<TOOLCALL>[]</TOOLCALL>",
    "prose": "<tool_call>I would call find now.</tool_call>",
    "two kinds of arguments": '<tool_call>{"name": "find", "args": {}, "input": {}}</tool_call>',
    "code": "<|python_tag|>print(1 +\n2) # x\nimport os",
    "a function without a name": "<function_calls><function=></function></function_calls>",
    "an invoke without a name": '<minimax:tool_call><invoke name=""></invoke></minimax:tool_call>',
    "DeepSeek without a name": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>\n{}",
    "a function in prose": "Qwen opens with <function=find> and closes it later.",
    "an invoke in prose": 'The tag <invoke name="find"> opens.',
    "Mistral's token alone": "[TOOL_CALLS]",
    "text behind": '<tool_call>{"name": "find"}</tool_call> That is it.',
    "text between": '<tool_call>{"name": "find"}</tool_call> and <tool_call>{"name": "find"}</tool_call>',
    "text behind LFM2": "<|tool_call_start|>[find()]<|tool_call_end|>I look.",
    "an answer behind harmony's call": (
        "<|channel|>commentary to=functions.find<|message|>{}<|call|><|channel|>final<|message|>x"
    ),
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_marks_without_a_readable_name_and_text_after_a_call_refuse_the_record(text):
    with pytest.raises(RecordError) as refusal:
        read(text)
    assert refusal.value.reason in ("unreadable_call", "text_after_call")
    assert "\n" not in refusal.value.detail


LOOK_ALIKES = {
    "a fence": 'So:\n\n```xml\n<tool_call>\n{"name": "find", "arguments": {}}\n</tool_call>\n```\n\nand waits.',
    "a fence of tildes": '~~~\n<tool_call>{"name": "find"}</tool_call>\n~~~',
    "a fence that never ends": '```\n<tool_call>{"name": "find"}</tool_call>',
    "a fence in a list": '1. ```\n   <tool_call>{"name": "find"}</tool_call>\n   ```\n2. so',
    "a quoted fence": '> ```\n> <tool_call>{"name": "find"}</tool_call>\n> ```',
    "a fence of four": '````\n```\n<tool_call>{"name": "find"}</tool_call>\n```\n````',
    "inline code": "Write `<tool_call>` and `</tool_call>` around it.",
    "inline code of two": "Write ``<tool_call> ` `` so.",
    "inline code over lines": "Write `<tool_call>\n{}` so.",
    "Mistral's token amid prose": "Mistral's token is [TOOL_CALLS], followed by a list.",
    "Mistral's call amid prose": 'It is [TOOL_CALLS] [{"name": "find", "arguments": {}}] and then </s>.',
    "an undeclared list": '[print(x="hello")]',
    "an undeclared object": '{"name": "Ida", "parameters": {"age": 30}}',
    "a declaration": '{"name": "find", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}',
    "an object with more": '{"name": "find", "arguments": {}, "description": "Finds flats."}',
    "a list and prose": '[find(city="Bonn")] finds flats.',
    "an object and prose": 'Call {"name": "find", "arguments": {}} then.',
    "a list of one declared and one other": '[find(city="Bonn"), other()]',
    "arguments without keys": '[find("Bonn")]',
    "a link": "[find(x)](https://example.org)",
    "an action nobody declared": "Thought: x\nAction: dance\nAction Input: {}",
    "an action without input": "Action: find\nBoth.",
    "an action amid prose": 'First think.\nAction: find\nAction Input: {"city": "Bonn"}',
    "an action and more": "Action: find\nAction Input: {}\nObservation: 3\nThought: so",
    "a fenced object": '```json\n{"name": "find", "parameters": {"city": "Bonn"}}\n```',
    "JSON of another kind": '{"city": "Bonn"}',
    "harmony's recipient in prose": "The header holds to=functions.find and a channel.",
    "an empty list": "[]",
    "less than": "a <tool_calling> b < c <function> d",
}


@pytest.mark.parametrize("text", LOOK_ALIKES.values(), ids=LOOK_ALIKES)
def test_what_only_looks_like_a_call_stays_text(text):
    found = read(text)
    assert (found.reasoning, found.content, found.calls) == (None, text, [])


def test_a_call_behind_code_that_speaks_of_one_is_read():
    text = 'The `<tool_call>` tag:\n```\n<tool_call>x\n```\n<tool_call>{"name": "find"}</tool_call>'
    found = read(text)
    assert found.content == "The `<tool_call>` tag:\n```\n<tool_call>x\n```"
    assert [call.name for call in found.calls] == ["find"]


def test_mistrals_calls_behind_other_text_are_calls_where_they_run_to_the_end():
    found = read('I look.[TOOL_CALLS]find[ARGS]{"city": "Bonn"}</s>')
    assert (found.content, [call.arguments for call in found.calls]) == ("I look.", [{"city": "Bonn"}])


def test_ids_that_a_dialect_writes_are_kept():
    assert [call.id for call in read('[TOOL_CALLS] [{"name": "find", "arguments": {}, "id": "a1b2c3d4e"}]').calls] == [
        "a1b2c3d4e"
    ]
    assert read("[TOOL_CALLS]find[CALL_ID]a1b2c3d4e[ARGS]{}").calls[0].id == "a1b2c3d4e"


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "find", "arguments": {"city": "Bonn"}}',
        '[{"name": "find", "arguments": {"city": "Bonn"}}]',
        """{'name': 'find', 'arguments': '{"city": "Bonn"}'}""",
        """{"name": "find", "arguments": '{"city": "Bonn"}'}""",
        'find(city="Bonn")',
        '[find(city="Bonn")]\n',
        '<tool_call>\n{"name": "find", "arguments": {"city": "Bonn"}}\n</tool_call>',
    ],
)
def test_a_message_that_is_a_call_by_its_speaker_needs_no_mark(text):
    assert [(call.name, call.arguments) for call in read_call_text(text, TOOLS)] == BONN


@pytest.mark.parametrize("text", ["", "I call find.", '{"city": "Bonn"}', 'find(city="Bonn") now'])
def test_a_message_of_calls_that_holds_none_is_refused(text):
    with pytest.raises(RecordError):
        read_call_text(text, TOOLS)
