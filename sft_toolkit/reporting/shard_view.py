"""A token row or packed sequence as it is shown: decoded with the tokenizer that made it, or as bare ids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sft_toolkit.chat.tokenizer_folder import TokenizerFolder
from sft_toolkit.chat.tokens import ChatTokenizer
from sft_toolkit.reporting.find import Document, Sequence
from sft_toolkit.reporting.view import Section, View, token_facts, token_pieces, token_remark

_INCOMPLETE = "\ufffd"


def sequence_view(sequence: Sequence, tokenizer: ChatTokenizer | None, tokens_apart: bool) -> View:
    """All documents of a sequence, or the one that was asked for."""
    documents = sequence.documents
    loss_tokens = sum(int(document.loss_mask.sum()) for document in documents)
    facts = [("from", sequence.origin)]
    facts += (
        [("labels", ", ".join(f"{name} {value}" for name, value in sequence.labels.items()))] if sequence.labels else []
    )
    facts += token_facts([len(document.input_ids) for document in documents], loss_tokens)
    wanted = range(len(documents)) if sequence.wanted is None else [sequence.wanted]
    if len(wanted) < len(documents):
        facts.append(("shown", f"document {sequence.wanted}; `row` shows all"))
    sections = [_document_section(number, documents[number], tokenizer, tokens_apart) for number in wanted]
    title = documents[wanted[0]].id if len(wanted) == 1 else f"{len(documents)} documents"
    return View(title, facts, sections, _warnings(sequence, tokenizer), tokens_apart)


def read_tokenizer(path: Path) -> ChatTokenizer:
    """Raises ToolkitError where the folder holds no tokenizer."""
    folder = TokenizerFolder.read(path)
    return ChatTokenizer(folder, "\n".join(folder.chat_templates.values()))


def _warnings(sequence: Sequence, tokenizer: ChatTokenizer | None) -> list[str]:
    if tokenizer is None:
        return ["token ids are shown; add `tokenizer` to see text"]
    if sequence.tokenizer not in (None, tokenizer.digest):
        return ["made with another tokenizer: the text may be nonsense; give the one that render was given"]
    return []


def _document_section(number: int, document: Document, tokenizer: ChatTokenizer | None, apart: bool) -> Section:
    ids, mask = document.input_ids, document.loss_mask
    if tokenizer is None:
        control = np.zeros(len(ids), np.bool_)
        pieces = token_pieces(lambda first, after: _bare(ids[first:after]), 0, len(ids), mask, control, apart)
    else:
        control = np.isin(ids, list(tokenizer.control.values()))
        pieces = token_pieces(_Decoding(tokenizer, ids), 0, len(ids), mask, control, apart)
    remarks = [token_remark(len(ids), int(mask.sum()))]
    return Section(f"document {number} {document.id}", remarks, "trained" if mask.any() else "context", pieces)


def _bare(ids: NDArray[np.int32]) -> str:
    return "".join(f"{token} " for token in ids)


class _Decoding:
    """Text of consecutive tokens, each decoded together with what precedes it.

    A decoder takes off a space at the beginning and needs all bytes of a character: the text of a stretch is what it
    adds to the text of the stretch before it. A character that ends in a later stretch is shown there.
    """

    def __init__(self, tokenizer: ChatTokenizer, ids: NDArray[np.int32]) -> None:
        self._decode = tokenizer.decode
        self._ids = ids.tolist()
        self._context = 0
        self._read = 0

    def __call__(self, first: int, after: int) -> str:
        known = self._decode(self._ids[self._context : self._read])
        text = self._decode(self._ids[self._context : after])
        if text.endswith(_INCOMPLETE) and after < len(self._ids):
            return ""
        self._context, self._read = self._read, after
        return text[len(known) :]
