"""Every chat template of the trl package against transformers' renderings and trl's own tagged twins.

The last test compares the table in docs/templates.md with what was found. KOLIBRI_SFT_WRITE_DOCS=1 writes it anew.
"""

from __future__ import annotations

import itertools
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sft_toolkit.chat import Rendered, Renderer
from sft_toolkit.chat.messages import prepare
from sft_toolkit.conversation import Conversation
from sft_toolkit.errors import RecordError
from sft_toolkit.formats import parse_record

DOCS = Path(__file__).parents[3] / "docs" / "templates.md"
TABLE_BEGIN, TABLE_END = "<!-- parity table: begin -->", "<!-- parity table: end -->"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {"ort": {"type": "string", "description": "Ort"}, "betrag": {"type": "number"}},
                "required": ["ort"],
            },
        },
    }
    for name, description in (("wetter", "Wetter an einem Ort"), ("buche", "Bucht <einen> Betrag & mehr"))
]
ANSWERS: list[Any] = [
    "Ja, gern.",
    "",
    "\nBeginnt mit einer leeren Zeile.",
    "  Leerzeichen außen  ",
    "Grüße 🥨 — „naïve“ 漢字\n\n```python\nx = {'a': [1, 2]}\n```\n",
    [{"type": "text", "text": "Zwei"}, {"type": "text", "text": " Teile"}],
]


def call(number: int, name: str = "wetter", **arguments: Any) -> dict[str, Any]:
    return {"id": f"call_{number:04}", "type": "function", "function": {"name": name, "arguments": arguments}}


def result(number: int, content: str = '{"grad": 16.2}') -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"call_{number:04}", "content": content}


def turn(content: Any, *calls: dict[str, Any], reasoning: str | None = None) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    return message | ({"tool_calls": list(calls)} if calls else {}) | ({"reasoning": reasoning} if reasoning else {})


def exchanges(answer: Any) -> dict[str, list[dict[str, Any]]]:
    """One exchange of each kind, each ending in `answer`."""
    ulm, bonn = call(1, ort="Ulm"), call(2, "buche", ort="Bonn <&> 'Köln'", betrag=16.2)
    thought = "Erst nachdenken.\n\nDann antworten."
    return {
        "plain": [turn(answer)],
        "reasoned": [turn(answer, reasoning=thought)],
        "call": [turn(None, ulm), result(1), turn(answer)],
        "call with content": [turn("Ich sehe nach.", ulm), result(1), turn(answer)],
        "call with reasoning": [turn("", ulm, reasoning=thought), result(1), turn(answer, reasoning="Da ist es.")],
        "parallel calls": [turn("", ulm, bonn), result(1), result(2, "gebucht"), turn(answer)],
        "chain": [turn("", ulm), result(1), turn("", bonn, reasoning=thought), result(2), turn(answer)],
        "two answers": [turn("Moment."), turn(answer)],
    }


def corpus() -> Iterator[dict[str, Any]]:
    """Conversations: kinds of exchange by answers, pairs of kinds, and kinds behind system and developer messages."""
    question = {"role": "user", "content": "Wie wird das Wetter? ümläut"}
    parts = {"role": "user", "content": [{"type": "text", "text": "Und "}, {"type": "text", "text": "morgen?"}]}
    for answer in ANSWERS:
        for messages in exchanges(answer).values():
            yield {"messages": [question, *messages], "tools": TOOLS}
    kinds = exchanges("Bis bald.")
    for first, second in itertools.product(kinds.values(), repeat=2):
        yield {"messages": [question, *first, parts, *second], "tools": TOOLS}
    system, developer = ({"role": role, "content": f"Sei kurz. ({role})"} for role in ("system", "developer"))
    for messages in kinds.values():
        yield {"messages": [system, question, *messages], "tools": TOOLS}
        yield {"messages": [system, question, *messages], "effort": "high"}
    for before in ([developer], [system, system], [system, developer]):
        yield {"messages": [*before, question, *kinds["plain"]]}
    yield {"messages": [system, question, *kinds["plain"], system, parts, *kinds["reasoned"]]}
    yield {"messages": [question, *kinds["plain"], parts]}


EMPTY = "(empty)"


def read(record: dict[str, Any]) -> Conversation:
    """The conversation of a record, which may hold answers of no text: files with such are refused at the door."""
    marked = [
        {**message, "content": EMPTY}
        if message["role"] == "assistant" and message["content"] == "" and message.keys() == {"role", "content"}
        else message
        for message in record["messages"]
    ]
    conversation = parse_record({**record, "messages": marked})
    for message in conversation.messages:
        message.content = "" if message.content == EMPTY else message.content
    return conversation


@dataclass
class Account:
    """What came of one template."""

    records: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    spans: int = 0
    twin_same_text: int = 0
    twin_same_mask: int = 0
    differences: Counter[str] = field(default_factory=Counter)

    @property
    def rendered(self) -> int:
        return self.records - self.refused.total()


@dataclass(frozen=True)
class Peer:
    """transformers' tokenizer of the same folder."""

    tokenizer: Any

    @classmethod
    def of(cls, folder: Path) -> Peer:
        from transformers import PreTrainedTokenizerFast

        return cls(
            PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), bos_token="<s>", eos_token="</s>")
        )

    def text(self, template: str, messages: list[dict[str, Any]], conversation: Conversation) -> str:
        return self.tokenizer.apply_chat_template(
            messages, tools=conversation.tools or None, chat_template=template, tokenize=False, **effort(conversation)
        )

    def text_with_nulls(self, template: str, messages: list[dict[str, Any]], conversation: Conversation) -> str:
        """apply_chat_template leaves null content out; a template that asks for null needs the function beneath it."""
        from transformers.utils.chat_template_utils import render_jinja_template

        texts, _ = render_jinja_template(
            conversations=[messages],
            tools=conversation.tools or None,
            chat_template=template,
            **self.tokenizer.special_tokens_map,
            **effort(conversation),
        )
        return texts[0]

    def mask(
        self, template: str, messages: list[dict[str, Any]], conversation: Conversation
    ) -> tuple[list[int], list[int]]:
        found = self.tokenizer.apply_chat_template(
            messages,
            tools=conversation.tools or None,
            chat_template=template,
            return_dict=True,
            return_assistant_tokens_mask=True,
            **effort(conversation),
        )
        return found["input_ids"], found["assistant_masks"]


def effort(conversation: Conversation) -> dict[str, str]:
    return {"effort": conversation.effort} if conversation.effort else {}


def explain(renderer: Renderer, rendered: Rendered, twin_mask: list[int]) -> Counter[str]:
    """Name each run of tokens on which our mask and the twin's differ."""
    offsets = renderer.offsets(rendered)
    names = [
        "" if bool(ours) == bool(twins) else name_difference(renderer, rendered, tuple(map(int, place)), bool(ours))
        for ours, twins, place in zip(rendered.loss_mask, twin_mask, offsets, strict=False)
    ]
    return Counter(name for name, _ in itertools.groupby(names) if name)


def name_difference(renderer: Renderer, rendered: Rendered, token: tuple[int, int], ours: bool) -> str:
    """`token` are its characters, `ours` says which of the two masks it is in."""
    text, (begin, end) = rendered.text, token
    span = max((span for span in rendered.spans if span.begin <= begin), key=lambda span: span.begin, default=None)
    if span is None:
        return "unexplained"
    if ours:
        ends_a_piece = end in (piece[1] for piece in span.pieces) and text[begin:end] in renderer.tokenizer.control
        return "stop token left out by the twin" if ends_a_piece else "unexplained"
    if begin < span.header_end < end:
        return "token over the boundary"
    if begin < span.header_end:
        opened = text.find("<think>", span.begin, span.header_end)
        return "thinking block that the prompt gives" if 0 <= opened <= begin else "header"
    if begin >= span.end and text[span.end : end].isspace():
        return "white space after the stop token"
    if begin == span.end and text[begin:end] in renderer.rules.history_stops:
        return "stop token of history"
    if text[begin:end] == "</s>" and text[span.end : begin].isspace():
        return "end of text after the stop token"
    return "unexplained"


@pytest.fixture(scope="module")
def conversations() -> list[Conversation]:
    return [read({"id": str(number), **record}) for number, record in enumerate(corpus())]


@pytest.fixture(scope="module")
def account_of(
    trl_templates: Path, make_folder: Callable[..., Path], conversations: list[Conversation]
) -> Callable[[str], Account]:
    @cache
    def make(name: str) -> Account:
        source = (trl_templates / f"{name}.jinja").read_text()
        twin_path = trl_templates / f"{name}_training.jinja"
        twin = twin_path.read_text() if twin_path.exists() else source if "endgeneration" in source else None
        folder = make_folder(source)
        renderer = Renderer.from_folder(folder, today=date.today())
        return judge(renderer, Peer.of(folder), source, twin, conversations)

    return make


def judge(renderer: Renderer, peer: Peer, source: str, twin: str | None, conversations: list[Conversation]) -> Account:
    account = Account(records=len(conversations))
    text_of = peer.text_with_nulls if renderer.probes.dialect.null_content else peer.text
    for conversation, rendered in zip(conversations, renderer.render_batch(conversations), strict=True):
        if isinstance(rendered, RecordError):
            account.refused[rendered.reason] += 1
            continue
        messages = prepare(conversation, renderer.probes.dialect, Counter())
        assert rendered.text == text_of(source, messages, conversation)
        answers = [index for index, message in enumerate(conversation.messages) if message.role == "assistant"]
        assert [span.message for span in rendered.spans] == answers
        account.spans += len(answers)
        if twin is None or text_or_none(peer, twin, messages, conversation) != rendered.text:
            continue
        account.twin_same_text += 1
        ids, twin_mask = peer.mask(twin, messages, conversation)
        assert ids == rendered.input_ids[: len(ids)].tolist()
        differences = explain(renderer, rendered, twin_mask)
        account.twin_same_mask += not differences
        account.differences += differences
    return account


def text_or_none(peer: Peer, twin: str, messages: list[dict[str, Any]], conversation: Conversation) -> str | None:
    try:
        return peer.text(twin, messages, conversation)
    except Exception:
        return None


def template_names() -> list[str]:
    try:
        import trl
    except ImportError:
        return []
    found = (Path(trl.__file__).parent / "chat_templates").glob("*.jinja")
    return sorted(path.stem for path in found if not path.stem.endswith("_training"))


@pytest.mark.parametrize("name", template_names())
def test_text_spans_and_masks_agree_with_the_peers(name: str, account_of: Callable[[str], Account]) -> None:
    account = account_of(name)
    assert account.rendered > 0 and account.spans > 0
    assert "unexplained" not in account.differences
    assert "message_not_traced" not in account.refused and "untraceable_template" not in account.refused


@pytest.fixture(scope="module")
def real_conversations(shared: Path) -> list[Conversation]:
    """A few from each collection of real tool-calling conversations."""
    data = shared / "data"
    tools = json.loads((data / "tau_bench" / "airline_tools.json").read_text())
    with (data / "tau_bench" / "gpt-4o-airline.subset.jsonl").open() as lines:
        tau = [{**json.loads(line), "tools": tools} for line in itertools.islice(lines, 3)]
    glaive = [
        record
        for name in ("glaive_toolcall_zh_demo.json", "glaive_toolcall_en_demo.200-299.json")
        for record in json.loads((data / "glaive" / name).read_text())[:30]
    ]
    return [parse_record(record) for record in (*tau, *glaive)]


@pytest.mark.parametrize("name", template_names())
def test_real_conversations_are_rendered_as_transformers_does(
    name: str, trl_templates: Path, make_folder: Callable[..., Path], real_conversations: list[Conversation]
) -> None:
    source = (trl_templates / f"{name}.jinja").read_text()
    folder = make_folder(source)
    account = judge(Renderer.from_folder(folder, today=date.today()), Peer.of(folder), source, None, real_conversations)
    reads_calls = not account.refused.keys() & {"tool_calls_not_rendered", "template_error"}
    assert account.rendered == account.records or not reads_calls
    assert account.refused.keys() <= {"tool_calls_not_rendered", "template_error", "role_not_rendered"}


def test_the_table_in_the_docs_is_current(account_of: Callable[[str], Account]) -> None:
    made = table({name: account_of(name) for name in template_names()})
    print(made)
    docs = DOCS.read_text()
    head, _, rest = docs.partition(TABLE_BEGIN)
    written, _, tail = rest.partition(TABLE_END)
    if os.environ.get("KOLIBRI_SFT_WRITE_DOCS"):
        DOCS.write_text(f"{head}{TABLE_BEGIN}\n{made}\n{TABLE_END}{tail}")
    else:
        assert written.strip() == made, "run this test with KOLIBRI_SFT_WRITE_DOCS=1"


def table(accounts: dict[str, Account]) -> str:
    lines = [
        "| template | rendered | refused | spans | twin: same text | same mask | named differences |",
        "| --- | --: | --- | --: | --: | --: | --- |",
    ]
    for name, account in accounts.items():
        lines.append(
            f"| {name} | {account.rendered} / {account.records} | {counted(account.refused)} | {account.spans} "
            f"| {account.twin_same_text} | {account.twin_same_mask} | {counted(account.differences)} |"
        )
    total = [sum(getattr(account, key) for account in accounts.values()) for key in ("rendered", "records", "spans")]
    lines.append(f"| all {len(accounts)} | {total[0]} / {total[1]} | | {total[2]} | | | |")
    return "\n".join(lines)


def counted(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counter.items()))
