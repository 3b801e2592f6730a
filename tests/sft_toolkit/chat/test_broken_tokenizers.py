"""Tokenizers whose files were damaged: one line, whatever the native code does about them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sft_toolkit.chat.tokenizer_folder import TokenizerFolder
from sft_toolkit.chat.tokens import ChatTokenizer
from sft_toolkit.errors import ToolkitError
from tests.byte_tokenizer import CHATML, write_byte_tokenizer


def test_an_unknown_token_that_is_in_no_vocabulary_is_one_line(tmp_path: Path) -> None:
    folder = write_byte_tokenizer(tmp_path)
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    content["model"]["unk_token"] = "../x"
    content["model"]["vocab"] = {"a": 0}
    path.write_text(json.dumps(content))
    with pytest.raises(ToolkitError, match="tokenizer"):
        ChatTokenizer(TokenizerFolder.read(folder), CHATML).encode(["Warm?"])
