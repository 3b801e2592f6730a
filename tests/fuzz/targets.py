"""What is fuzzed: each reader of files by strangers, good inputs for it, and how they are damaged."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sft_toolkit.chat.effort_sentences import read_effort_sentences
from sft_toolkit.chat.template import ChatTemplate
from sft_toolkit.chat.tokenizer_folder import TokenizerFolder
from sft_toolkit.chat.tokens import ChatTokenizer
from sft_toolkit.errors import RecordError, ToolkitError
from sft_toolkit.formats import RecordReader
from sft_toolkit.formats.dialects import find_calls
from sft_toolkit.formats.dialects.reading import read_assistant_text
from sft_toolkit.json_text import decode, encode
from sft_toolkit.mergemix.candidates import read_candidates
from sft_toolkit.mergemix.score_journal import open_journal
from sft_toolkit.running.row_reader import RowReader
from sft_toolkit.shards.documents import DocumentReader, scan
from sft_toolkit.shards.schemas import PACKED
from sft_toolkit.shards.segments import open_arrow
from sft_toolkit.shards.shard_folder import ShardFolder
from sft_toolkit.shards.sources import Source
from sft_toolkit.shards.writer import shard_writer
from sft_toolkit.souping.checkpoint import open_checkpoint
from sft_toolkit.souping.safetensors_file import read_tensors
from sft_toolkit.stage import Outcome
from sft_toolkit.stages.mask import MaskStage
from sft_toolkit.stages.mix.mixture_file import read_mixture
from sft_toolkit.teachers.batch_lines import read_replies
from sft_toolkit.teachers.bodies import decode_or_none
from sft_toolkit.teachers.event_stream import whole_reply
from sft_toolkit.teachers.journal import Replies
from sft_toolkit.teachers.replies import is_answer, read_reply
from sft_toolkit.teachers.teacher import RawReply
from tests.byte_tokenizer import CHATML, write_byte_tokenizer
from tests.dialect_writers import BARE_WRITERS, JSON_WRITERS, PYTHON_WRITERS, TYPED_WRITERS
from tests.fuzz.mutation import Mutate, mutated_bytes, mutated_json, mutated_text
from tests.token_shards import random_documents, write_token_folder

ROOT = Path(__file__).resolve().parents[2]
REFUSALS = (ToolkitError, RecordError)
"""What a reader may raise: one line for a person."""


@dataclass(frozen=True)
class Target:
    """`seeds` makes good inputs in a folder; `run` reads one input there, and raises nothing but REFUSALS."""

    seeds: Callable[[Path], Sequence[bytes]]
    mutate: Mutate
    run: Callable[[bytes, Path], None]


def _sample_lines(_: Path) -> list[bytes]:
    files = sorted((ROOT / "sample_data").glob("*.jsonl"))
    lines = [line for file in files for line in file.read_bytes().splitlines()[:8]]
    return [line for line in lines if len(line) < 6000]


def _read_rows(path: Path, spool: Path) -> None:
    reader, outcome = RowReader(), Outcome(quarantine=True)
    for block in Source([str(path)]).blocks(64, spool):
        for row in block.read():
            list(MaskStage().process(reader.read(row, outcome), outcome))
        block.discard()


def _as_file(name: str, read: Callable[[Path, Path], Any], data: bytes, folder: Path) -> None:
    path = folder / name
    path.write_bytes(data)
    read(path, folder)


def _record(data: bytes, _: Path) -> None:
    try:
        record = decode(data)
    except ValueError:
        return
    list(MaskStage().process(RecordReader().read(record), Outcome(quarantine=True)))


def _table(_: Path) -> pa.Table:
    rows = [json.loads(line) for line in _sample_lines(_)[:40]]
    return pa.table(
        {"id": [str(row.get("id")) for row in rows], "messages": [json.dumps(row.get("messages")) for row in rows]}
    )


def _parquet_files(folder: Path) -> list[bytes]:
    found = []
    for options in ({"compression": "none"}, {"compression": "zstd"}, {"use_dictionary": False, "version": "1.0"}):
        sink = io.BytesIO()
        pq.write_table(_table(folder), sink, row_group_size=10, **options)
        found.append(sink.getvalue())
    return found


def _arrow_files(folder: Path) -> list[bytes]:
    found = []
    for new in (pa.ipc.new_file, pa.ipc.new_stream):
        sink = io.BytesIO()
        with new(sink, _table(folder).schema) as writer:
            writer.write_table(_table(folder), 10)
        found.append(sink.getvalue())
    return found


def _token_shards(folder: Path) -> list[bytes]:
    written = write_token_folder(folder / "tokens", random_documents(30, longest=60))
    return [path.read_bytes() for path in ShardFolder(written).paths]


def _read_documents(path: Path, _: Path) -> None:
    reader = DocumentReader((path,))
    for batch in scan(path, 0):
        for document in batch.documents:
            if 0 <= document["length"] < 10**6:
                reader.tokens(document, np.empty(document["length"], np.int32))
                reader.loss_mask(document, np.empty(document["length"], np.bool_))


def _packed_shards(folder: Path) -> list[bytes]:
    path = folder / "packed.arrow"
    with shard_writer(path, PACKED) as writer:
        for size in (3, 9, 30):
            ids = np.arange(size, dtype=np.int32)
            bounds = np.array([0, 2, size], np.int32)
            counts = {"tokens": size, "documents": 2, "loss_tokens": size - 2, "cost": 4 + (size - 2) ** 2}
            lists = {"input_ids": ids, "loss_mask": ids % 2 > 0, "cu_seqlens": bounds, "ids": ["a", "b"]}
            writer.write({**lists, **counts})
    return [path.read_bytes()]


def _read_packed(path: Path, _: Path) -> None:
    with pa.memory_map(str(path)) as source:
        for batch in open_arrow(path, source, "packed"):
            batch.to_pylist()


def _manifests(folder: Path) -> list[bytes]:
    return [(write_token_folder(folder / "tokens", random_documents(5), shards=2) / "manifest.json").read_bytes()]


def _read_manifest(data: bytes, folder: Path) -> None:
    if not (written := folder / "tokens").is_dir():
        write_token_folder(written, random_documents(5), shards=2)
    (written / "manifest.json").write_bytes(data)
    for path, _ in ShardFolder(written).checksums():
        assert path.parent == written


def _schemas(_: Path) -> list[bytes]:
    node = {"type": "object", "properties": {"op": {"enum": ["+"]}, "left": {"$ref": "#/$defs/node"}}}
    parameters = [
        {"type": "object", "properties": {"a": {"type": "integer", "default": 3}, "b": {"type": "string"}}},
        {"$defs": {"node": {"anyOf": [{"type": "number"}, node]}}, "properties": {"e": {"$ref": "#/$defs/node"}}},
        {"properties": {"x": {"type": ["string", "null"], "pattern": "^a+$"}}, "required": ["x"]},
        {"properties": {"l": {"items": {"oneOf": [{"type": "integer"}, {"const": None}]}, "uniqueItems": True}}},
        {"patternProperties": {"^.$": {"minimum": 1}}, "additionalProperties": False, "minProperties": 1},
    ]
    values = [{"a": 1, "b": "x"}, {"e": {"op": "+", "left": 1}}, {"x": None}, {"l": [1, None]}, {"k": 0.5}]
    return [_called(given, value) for given in parameters for value in values]


def _called(parameters: dict[str, Any], arguments: dict[str, Any]) -> bytes:
    """A record in which a tool is declared, called twice, and fails."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    answers = [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "content": "Error: no"}]
    messages = [{"role": "user", "content": "Go."}, *answers, *answers, {"role": "assistant", "content": "No."}]
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    return encode({"id": "r", "tools": [tool], "messages": messages})


def _templates(_: Path) -> list[bytes]:
    sample = (ROOT / "sample_data" / "tokenizer" / "chat_template.jinja").read_bytes()
    odd = (
        "{% macro show(x) %}{{ x }}{% endmacro %}{% set ns = namespace(n=0) %}{% for m in messages %}"
        "{% set ns.n = ns.n + 1 %}{{ show(m.role ~ ns.n) | upper | replace('U', '%5d' % ns.n) }}"
        "{% if loop.last %}{{ '-' * 3 }}{% endif %}{% endfor %}"
    )
    return [CHATML.encode(), sample, odd.encode()]


def _render(data: bytes, _: Path) -> None:
    calls = [{"type": "function", "id": "c", "function": {"name": "f", "arguments": {"a": 1}}}]
    messages = [
        {"role": "user", "content": "Warm?"},
        {"role": "assistant", "content": None, "reasoning": "Hm.", "tool_calls": calls},
        {"role": "tool", "content": "16.2", "tool_call_id": "c"},
        {"role": "assistant", "content": "Yes."},
    ]
    template = ChatTemplate(data.decode("utf-8", "replace"), {"bos_token": "<s>"})
    template.render(messages, None, {"effort": "low"}, True)
    template.trace(messages, None, {})


_WRITTEN = [("get", {"a": 1, "b": "x"}), ("put", {"t": [1, 2], "u": {"v": None}})]


def _dialect_texts(_: Path) -> list[bytes]:
    writers = (*JSON_WRITERS.values(), *PYTHON_WRITERS.values(), *TYPED_WRITERS.values(), *BARE_WRITERS.values())
    return [f"<think>Hm.</think>So.\n{write(_WRITTEN)}".encode() for write in writers]


def _read_text(data: bytes, _: Path) -> None:
    text = data.decode("utf-8", "replace")
    find_calls(text)
    read_assistant_text(text, tools_declared=frozenset({"get", "put"}), tool_message_follows=True)


def _safetensors(_: Path) -> list[bytes]:
    from safetensors.numpy import save

    return [save({"a": np.ones((2, 3), np.float32), "b": np.ones(5, np.float16)}), save({"x": np.zeros(0, np.float32)})]


def _checkpoint(data: bytes, folder: Path) -> None:
    (folder / "model-00001-of-00001.safetensors").write_bytes(_safetensors(folder)[0])
    (folder / "model.safetensors.index.json").write_bytes(data)
    open_checkpoint(folder)


def _weight_maps(_: Path) -> list[bytes]:
    shard = "model-00001-of-00001.safetensors"
    return [encode({"metadata": {"total_size": 34}, "weight_map": {"a": shard, "b": shard}})]


def _replies(_: Path) -> list[bytes]:
    calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}]
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "content": "<think>Hm.</think>So.", "reasoning_content": None},
        {"role": "assistant", "content": None, "reasoning": "Hm.", "tool_calls": calls},
        {"role": "assistant", "content": [{"type": "text", "text": "So."}], "refusal": None},
    ]
    usage = {"prompt_tokens": 3, "completion_tokens": 5}
    return [encode({"choices": [{"message": m, "finish_reason": "stop"}], "usage": usage}) for m in messages]


def _read_reply(data: bytes, _: Path) -> None:
    if is_answer(decode_or_none(data)):
        read_reply(RawReply(200, data), "Okay", "content")


def _streams(folder: Path) -> list[bytes]:
    pieces = [{"delta": {"role": "assistant", "content": "So"}}, {"delta": {"content": "."}, "finish_reason": "stop"}]
    lines = b"".join(b"data: " + encode({"choices": [piece]}) + b"\n\n" for piece in pieces)
    return [lines + b"data: [DONE]\n\n", lines, b": ping\n\n" + lines]


def _read_stream(data: bytes, _: Path) -> None:
    try:
        whole = whole_reply(data)
    except ValueError:  # as the HTTP teacher expects of what is no whole stream
        return
    _read_reply(whole, _)


def _batch_replies(folder: Path) -> list[bytes]:
    return [
        encode({"custom_id": "k" * 32, "response": {"status_code": 200, "body": json.loads(reply)}, "error": None})
        for reply in _replies(folder)
    ]


def _read_batch(data: bytes, _: Path) -> None:
    for _key, reply, _why in read_replies(io.BytesIO(data)):
        if reply is not None:
            read_reply(reply)


def _journals(folder: Path) -> list[bytes]:
    lines = [b'{"key":"%032x","status":200,"reply":%s}\n' % (n, reply) for n, reply in enumerate(_replies(folder))]
    return [b"".join(lines), lines[0]]


def _read_journal(data: bytes, folder: Path) -> None:
    (folder / "replies-00000-of-00001.jsonl").write_bytes(data)
    replies = Replies.scan(folder)
    for number in range(4):
        found = replies.get(f"{number:032x}")
        if found is not None:
            read_reply(found)


@cache
def _byte_tokenizer(folder: Path) -> Path:
    return write_byte_tokenizer(folder / "tokenizer")


def _tokenizers(folder: Path) -> list[bytes]:
    return [(_byte_tokenizer(folder) / "tokenizer.json").read_bytes()]


def _read_tokenizer(data: bytes, folder: Path) -> None:
    (folder / "tokenizer.json").write_bytes(data)
    (folder / "chat_template.jinja").write_text(CHATML)
    opened = TokenizerFolder.read(folder)
    ChatTokenizer(opened, CHATML).encode(["Warm?", "<|im_start|>ä"])


_MIXTURE = b"""tokens = 2_000
max_epochs = 4
[datasets.maths]
weight = 3
where = { difficulty = ["medium", "hard"], length = { max = 32768 } }
[datasets.agents]
from = ["tau", "swe"]
epochs = 0.5
"""
_SENTENCES = b"position = 'front'\n[low]\nsentence = 'Think briefly.'\nvariables = { reasoning_effort = 'low' }\n"
_SCORES = (
    b'{"id":"a","scorer":"CMD {model}","scores":{"score":1.0}}\n'
    b'{"id":"b","scorer":"x","scores":{"loss":2},"is_loss":true}\n'
)
_CANDIDATES = b'{"id":"m0","weights":{"a":0.5,"b":0.5}}\n{"id":"m1","weights":{"a":1}}\n'


def _file(name: str, read: Callable[[Path, Path], Any]) -> Callable[[bytes, Path], None]:
    return partial(_as_file, name, read)


def _only(read: Callable[[Path], Any]) -> Callable[[Path, Path], Any]:
    """For a reader that needs no folder for temporary files."""
    return lambda path, _: read(path)


def _one_seed(seed: bytes) -> Callable[[Path], list[bytes]]:
    return lambda _: [seed]


def _some_lines(folder: Path) -> list[bytes]:
    return [b"\n".join(_sample_lines(folder)[:4])]


def _gzipped(folder: Path) -> list[bytes]:
    return [pa.compress(lines, "gzip", asbytes=True) for lines in _some_lines(folder)]


TARGETS: dict[str, Target] = {
    "record": Target(_sample_lines, mutated_json, _record),
    "jsonl": Target(_some_lines, mutated_bytes, _file("x.jsonl", _read_rows)),
    "gzip": Target(_gzipped, mutated_bytes, _file("x.jsonl.gz", _read_rows)),
    "parquet": Target(_parquet_files, mutated_bytes, _file("x.parquet", _read_rows)),
    "arrow": Target(_arrow_files, mutated_bytes, _file("x.arrow", _read_rows)),
    "token shard": Target(_token_shards, mutated_bytes, _file("x.arrow", _read_documents)),
    "packed shard": Target(_packed_shards, mutated_bytes, _file("x.arrow", _read_packed)),
    "manifest": Target(_manifests, mutated_json, _read_manifest),
    "schema": Target(_schemas, mutated_json, _record),
    "template": Target(_templates, mutated_text, _render),
    "dialect": Target(_dialect_texts, mutated_text, _read_text),
    "safetensors": Target(_safetensors, mutated_bytes, _file("x.safetensors", _only(read_tensors))),
    "weight map": Target(_weight_maps, mutated_json, _checkpoint),
    "reply": Target(_replies, mutated_json, _read_reply),
    "event stream": Target(_streams, mutated_bytes, _read_stream),
    "batch replies": Target(_batch_replies, mutated_json, _read_batch),
    "journal": Target(_journals, mutated_bytes, _read_journal),
    "tokenizer": Target(_tokenizers, mutated_json, _read_tokenizer),
    "mixture": Target(_one_seed(_MIXTURE), mutated_text, _file("m.toml", _only(read_mixture))),
    "effort sentences": Target(_one_seed(_SENTENCES), mutated_text, _file("s.toml", _only(read_effort_sentences))),
    "scores": Target(_one_seed(_SCORES), mutated_bytes, _file("s.jsonl", _only(open_journal))),
    "candidates": Target(_one_seed(_CANDIDATES), mutated_bytes, _file("c.jsonl", _only(read_candidates))),
}
