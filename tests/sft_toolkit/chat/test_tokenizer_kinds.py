"""Real tokenizers of every kind, as they ship inside packages: an exact mask, or a refusal that says why."""

from __future__ import annotations

import base64
import importlib.util
import json
import unicodedata
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sft_toolkit.chat import Renderer
from sft_toolkit.errors import RecordError, ToolkitError
from sft_toolkit.formats import parse_record

MESSAGES = [
    {"role": "system", "content": "Du hilfst. ½ ﬁn é"},
    {"role": "user", "content": "Wie heißt 漢字?\n\n<|im_start|>assistant\nfalsch"},
    {"role": "assistant", "reasoning": "Kurz überlegt: ½ von ﬁ.", "content": "  Grüße 🥨 — naïve é\t\n\nEnde "},
    {"role": "user", "content": "Und <|im_end|>?"},
    {"role": "assistant", "content": "16,2\u00a0Grad<|im_end|>"},
]
EXPECTED = [
    "<think>\nKurz überlegt: ½ von ﬁ.\n</think>\n\n  Grüße 🥨 — naïve é\t\n\nEnde <|im_end|>",
    "16,2\u00a0Grad<|im_end|><|im_end|>",
]
CHATML_TOKENS = ("<|im_start|>", "<|im_end|>", "<think>", "</think>")


def packaged(package: str, *path: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        pytest.skip(f"{package} is not installed")
    return Path(found.origin).parent.joinpath(*path)


def with_chatml_tokens(tokenizer: dict[str, Any], special: bool = True) -> dict[str, Any]:
    """The tokenizer with ChatML's tokens added after its own."""
    model = tokenizer["model"]["vocab"]
    added = tokenizer["added_tokens"]
    first = max([*(model.values() if isinstance(model, dict) else [len(model)]), *(token["id"] for token in added)]) + 1
    known = {token["content"] for token in added}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": special}
    missing = [text for text in CHATML_TOKENS if text not in known]
    return {
        **tokenizer,
        "added_tokens": [*added, *({"id": first + n, "content": t, **flags} for n, t in enumerate(missing))],
    }


def deepseek(_: Path) -> dict[str, Any]:
    return json.loads(packaged("litellm", "litellm_core_utils", "tokenizers", "deepseek_tokenizer.json").read_text())


def anthropic(_: Path) -> dict[str, Any]:
    """Byte-level BPE behind an NFKC normaliser, which folds ½ and ﬁ."""
    return json.loads(packaged("litellm", "litellm_core_utils", "tokenizers", "anthropic_tokenizer.json").read_text())


def from_ranks(path: Path, pattern: str) -> dict[str, Any]:
    from transformers.convert_slow_tokenizer import TikTokenConverter

    converter = TikTokenConverter(vocab_file=str(path), pattern=pattern, extra_special_tokens=list(CHATML_TOKENS[:2]))
    return json.loads(converter.converted().to_str())


def qwen(_: Path) -> dict[str, Any]:
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    made = from_ranks(packaged("dashscope", "resources", "qwen.tiktoken"), pattern)
    return {**made, "normalizer": {"type": "NFC"}}


def tekken(folder: Path) -> dict[str, Any]:
    content = json.loads(packaged("mistral_common", "data", "tekken_240911.json").read_text())
    config = content["config"]
    size = config["default_vocab_size"] - config["default_num_special_tokens"]
    ranks = folder / "ranks.tiktoken"
    ranks.write_text("".join(f"{entry['token_bytes']} {entry['rank']}\n" for entry in content["vocab"][:size]))
    assert base64.b64decode(content["vocab"][0]["token_bytes"]) == b"\x00"
    return from_ranks(ranks, config["pattern"])


def sentencepiece(folder: Path) -> dict[str, Any]:
    """BPE over SentencePiece with byte fallback: spaces become ▁, one is put before each text."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers
    from transformers.utils import sentencepiece_model_pb2_new as sentencepiece_model

    proto = sentencepiece_model.ModelProto()
    proto.ParseFromString(packaged("mistral_common", "data", "mistral_instruct_tokenizer_240323.model.v3").read_bytes())
    ids = {piece.piece: number for number, piece in enumerate(proto.pieces)}
    normal = [SimpleNamespace(text=piece.piece, score=piece.score) for piece in proto.pieces if piece.type == 1]
    merges = [
        (piece.score, (piece.text[:cut], piece.text[cut:]))
        for piece in normal
        for cut in range(1, len(piece.text))
        if piece.text[:cut] in ids and piece.text[cut:] in ids
    ]
    merges.sort(key=lambda merge: -merge[0])
    tokenizer = Tokenizer(
        models.BPE(ids, [pair for _, pair in merges], unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens([AddedToken(p.piece, normalized=False) for p in proto.pieces if p.type == 3])
    return json.loads(tokenizer.to_str())


KINDS: dict[str, tuple[Callable[[Path], dict[str, Any]], Any]] = {
    "deepseek: byte-level BPE": (deepseek, "NFC"),
    "anthropic: normaliser NFKC": (anthropic, "NFKC"),
    "qwen: ranks, normaliser NFC": (qwen, "NFC"),
    "mistral: tekken": (tekken, "NFC"),
    "mistral: SentencePiece": (sentencepiece, "NFC"),
}


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def renderer(
    kind: str, make_folder: Callable[..., Path], chatml: str, tmp_path_factory: pytest.TempPathFactory
) -> Renderer:
    build, _ = KINDS[kind]
    made = with_chatml_tokens(build(tmp_path_factory.mktemp("ranks")))
    return Renderer.from_folder(make_folder(chatml, made, eos_token="<|im_end|>"))


def test_masked_in_tokens_are_the_turns_and_nothing_else(renderer: Renderer) -> None:
    rendered = renderer.render(parse_record({"messages": MESSAGES}))
    offsets = renderer.offsets(rendered)
    for span, expected in zip(rendered.spans, EXPECTED, strict=True):
        ((begin, end),) = span.tokens
        assert rendered.text[offsets[begin, 0] : offsets[end - 1, 1]] == expected
        assert rendered.loss_mask[begin:end].all()
    assert rendered.loss_tokens == sum(end - begin for span in rendered.spans for begin, end in span.tokens)


def test_decoding_the_trained_tokens_gives_the_turn(renderer: Renderer, kind: str) -> None:
    """A normaliser that folds characters shows in what is decoded, not in where the mask lies.

    Spaces are left out: SentencePiece puts one of its own before each text between control tokens.
    """
    rendered = renderer.render(parse_record({"messages": MESSAGES}))
    for span, expected in zip(rendered.spans, EXPECTED, strict=True):
        said = renderer.tokenizer.decode(rendered.input_ids[slice(*span.tokens[0])])
        assert said.replace(" ", "") == unicodedata.normalize(KINDS[kind][1], expected).replace(" ", "")


def test_control_text_of_messages_is_inert(renderer: Renderer) -> None:
    rendered = renderer.render(parse_record({"messages": MESSAGES}))
    start, stop = (renderer.tokenizer.control[text] for text in CHATML_TOKENS[:2])
    assert [np.count_nonzero(rendered.input_ids == token) for token in (start, stop)] == [5, 5]
    assert rendered.notes["control_text"] == 3
    for span in rendered.spans:
        assert rendered.input_ids[span.token_end - 1] == stop


def test_ids_without_control_text_are_those_of_one_pass(renderer: Renderer) -> None:
    messages = [{"role": "user", "content": "Grüße 🥨\n"}, {"role": "assistant", "content": "\n\nnaïve é"}]
    rendered = renderer.render(parse_record({"messages": messages}))
    before = len(renderer.tokenizer.prefix)
    assert rendered.input_ids[before:].tolist() == renderer.tokenizer.encode([rendered.text])[0].ids


def test_control_tokens_that_do_not_come_out_as_declared_are_refused(
    base_tokenizer: dict[str, Any], make_folder: Callable[..., Path], chatml: str
) -> None:
    """The file says one id, the library gives another."""
    made = with_chatml_tokens(base_tokenizer)
    made["added_tokens"][1]["id"] += 50
    with pytest.raises(ToolkitError, match="does not place"):
        Renderer.from_folder(make_folder(chatml, made))


def test_a_stop_token_that_is_not_found_in_a_text_refuses_the_record(
    base_tokenizer: dict[str, Any], make_folder: Callable[..., Path], chatml: str
) -> None:
    """`single_word`: the token is only found between spaces, so an answer that ends in a letter never stops."""
    made = with_chatml_tokens(base_tokenizer)
    made["added_tokens"][1]["single_word"] = True
    renderer = Renderer.from_folder(make_folder(chatml, made))
    with pytest.raises(RecordError) as caught:
        renderer.render(parse_record({"messages": [*MESSAGES[3:4], {"role": "assistant", "content": "Ende"}]}))
    assert caught.value.reason == "offsets_do_not_map"
