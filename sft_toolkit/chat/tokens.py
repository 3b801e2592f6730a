"""Text to token ids in one pass, and characters to tokens by the offsets of that pass."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sft_toolkit.chat.control_text import ControlText
from sft_toolkit.chat.tokenizer_folder import TokenizerFolder
from sft_toolkit.errors import RecordError, ToolkitError

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

Range = tuple[int, int]

_PROBED_TOKENS = 64
_GUARD = "\U0010fffa"


class ChatTokenizer:
    """A tokenizer for rendered conversations. `template_source` decides which added tokens are control tokens.

    Control tokens are the special ones and whatever else the vocabulary adds and the template writes (`<think>`).
    The post-processor is taken off: it would add special tokens and trim offsets.
    """

    def __init__(self, folder: TokenizerFolder, template_source: str) -> None:
        self._folder = folder
        self._specification = _specification(folder)
        self._tokenizer = _tokenizer(self._specification)
        # In this order: the post-processor is what adds a BOS, so the prefix is read off before it is removed.
        self.prefix = self._find_prefix()
        """Ids (int32) that this tokenizer puts before a text at inference: BOS, or nothing."""
        self._tokenizer.post_processor = None
        self.control: dict[str, int] = {
            token["content"]: token["id"]
            for token in self._specification["added_tokens"]
            if token["special"] or (token["content"].strip() and token["content"] in template_source)
        }
        self._require_exact_offsets()

    @property
    def digest(self) -> str:
        """Hash of all that decides how a text becomes ids."""
        return self._folder.digest

    @cached_property
    def control_text(self) -> ControlText:
        return ControlText(self.control)

    @property
    def bos(self) -> str | None:
        return self._folder.special_tokens.get("bos_token")

    @property
    def eos(self) -> int | None:
        """Id of the end-of-sequence token."""
        return self._tokenizer.token_to_id(self._folder.special_tokens.get("eos_token", ""))

    def encode(self, texts: list[str]) -> list[Encoding]:
        """One encoding per text, without special tokens that the text does not write itself.

        Raises ToolkitError where the tokenizer cannot.
        """
        with _refusing(self._folder.path):
            encodings: list[Encoding] = self._tokenizer.encode_batch(texts, add_special_tokens=False)
        return encodings

    def decode(self, ids: Sequence[int]) -> str:
        """Text of the ids, special tokens included."""
        text: str = self._tokenizer.decode([int(token) for token in ids], skip_special_tokens=False)
        return text

    def missing_prefix(self, ids: np.ndarray) -> np.ndarray:
        """What the tokenizer puts before a text and a text of these ids does not begin with."""
        return self.prefix[:0] if np.array_equal(ids[: len(self.prefix)], self.prefix) else self.prefix

    def encode_inert(self, text: str, encoding: Encoding, inert: list[Range]) -> Located:
        """Tokens of `text`, where control tokens inside the `inert` characters are tokenised as plain text.

        Everything between two live control tokens that holds inert text is encoded again with control tokens off.
        Raises RecordError `control_text` where this tokenizer makes a control token of plain text all the same.
        """
        located = Located.of(encoding)
        if not inert:
            return located
        # Only the gaps are encoded again and spliced in: a long document with one quoted token costs one gap. A gap
        # ends at live control tokens because merges never cross them: the text on either side is tokenised the same
        # with or without the other.
        parts, done = [], 0
        for low, high in self._gaps_with(inert, located, len(text)):
            first, last = np.searchsorted(located.offsets[:, 0], (low, high))
            parts += [located.part(done, int(first)), self._encode_plain(text, low, high)]
            done = int(last)
        parts.append(located.part(done, len(located)))
        return Located(np.concatenate([part.ids for part in parts]), np.concatenate([part.offsets for part in parts]))

    def _gaps_with(self, inert: list[Range], located: Located, length: int) -> list[Range]:
        """What lies between two live control tokens, or before or after all of them, and holds inert characters."""
        # A control token is live unless the inert range that begins at or before it reaches to its end. Bisection for
        # all tokens together: comparing each with each range would be quadratic in control text.
        inert_begins, inert_ends = np.array(inert, np.int32).T
        begins, ends = located.offsets[np.isin(located.ids, list(self.control.values()))].T
        around = np.searchsorted(inert_begins, begins, "right") - 1
        live = (around < 0) | (ends > inert_ends[around])
        lows, highs = np.append([0], ends[live]), np.append(begins[live], [length])
        holds = np.searchsorted(inert_begins, highs) > np.searchsorted(inert_begins, lows)
        return [(int(low), int(high)) for low, high in zip(lows[holds], highs[holds], strict=True)]

    def _encode_plain(self, text: str, low: int, high: int) -> Located:
        """Tokens of text[low:high] without control tokens; after one, if anything precedes it, as in the whole text.

        A tokenizer may treat the beginning of a text unlike that of a stretch (Metaspace puts a space before it).
        """
        # The guard, a character for private use that no text is expected to hold, is one token. It stands for what
        # came before, and is cut off again; text that holds it is refused, since it would look like the guard.
        guard = _GUARD if low else ""
        with _refusing(self._folder.path):
            plain = Located.of(self._plain.encode(guard + text[low:high], add_special_tokens=False))
        if _GUARD in text[low:high] or np.isin(plain.ids, list(self.control.values())).any():
            raise RecordError("control_text", "text of a message holds a control token that cannot be made inert")
        return Located(plain.ids[len(guard) :], plain.offsets[len(guard) :] + np.int32(low - len(guard)))

    @cached_property
    def _plain(self) -> Tokenizer:
        """The same tokenizer with all control tokens read as plain text, and a guard as the one token of its kind."""
        from tokenizers import AddedToken

        added = [
            {**token, "special": token["content"] in self.control} for token in self._specification["added_tokens"]
        ]
        tokenizer = _tokenizer({**self._specification, "added_tokens": added, "post_processor": None})
        # "special" for all of them, since this switch, which makes special tokens plain text, covers no other kind.
        tokenizer.encode_special_tokens = True
        tokenizer.add_tokens([AddedToken(_GUARD, normalized=False)])
        return tokenizer

    def _find_prefix(self) -> np.ndarray:
        # What the encoding of any text begins with. Where tokenizer_config.json contradicts the post-processor
        # (`add_bos_token`), the configuration wins.
        with _refusing(self._folder.path):
            encoding = self._tokenizer.encode("x")
        special = encoding.special_tokens_mask
        added = encoding.ids[: special.index(0)] if 0 in special else []
        bos = self._tokenizer.token_to_id(self._folder.special_tokens.get("bos_token", ""))
        if self._folder.adds_bos is False:
            added = [token for token in added if token != bos]
        elif self._folder.adds_bos and bos is not None and bos not in added:
            added = [bos]
        return np.array(added, np.int32)

    def _require_exact_offsets(self) -> None:
        """A normaliser may fold, drop or insert characters: offsets must lead back to the text all the same."""
        # A mask is only as exact as the offsets. A text with the hard cases (ligature, fraction, accents, Chinese,
        # no-break space, runs of white space) around the control tokens shows once, when the tokenizer is opened,
        # whether they hold; the alternative is a mask that is off by a character somewhere in the data.
        expected = list(self.control.items())[:_PROBED_TOKENS]
        words = "Über ﬁne ½ é 漢字 \u00a0 naïve\n\tx  y. "
        probe = "".join(f"{words}{text} " for text, _ in expected) + words
        located = Located.of(self.encode([probe])[0])
        found = [
            (probe[begin:end].strip(), int(token))
            for token, (begin, end) in zip(located.ids, located.offsets, strict=True)
            if token in self.control.values()
        ]
        begins, ends = located.offsets.T
        if found != expected or (np.diff(begins) < 0).any() or (ends > len(probe)).any():
            lost = next((text for text, token in expected if (text, token) not in found), "the text")
            raise ToolkitError(
                f"{self._folder.path}: the tokenizer does not place {lost} where it stands in a text",
                "its normaliser or its added tokens leave no way to put a loss mask in the right place",
            )


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Raise ToolkitError where the tokenizer in this folder fails on a text.

    A panic of its native code is no Exception, and its class has no name to import.
    """
    try:
        yield
    except BaseException as fault:
        if not isinstance(fault, Exception) and type(fault).__name__ != "PanicException":
            raise
        said = f"{path}: the tokenizer fails on a text: {fault}"
        raise ToolkitError(said, "is its tokenizer.json as it was written?") from fault


class Located:
    """Ids (int32[n]) with the characters of each (int32[n, 2]); answers as an Encoding does where a mask needs it."""

    def __init__(self, ids: np.ndarray, offsets: np.ndarray) -> None:
        self.ids = ids
        self.offsets = offsets
        # Ends are not promised to ascend, and bisection needs them to.
        self._reached = np.maximum.accumulate(offsets[:, 1])

    @classmethod
    def of(cls, encoding: Encoding) -> Located:
        return cls(np.array(encoding.ids, np.int32), np.array(encoding.offsets, np.int32).reshape(-1, 2))

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, begin: int, end: int) -> Located:
        return Located(self.ids[begin:end], self.offsets[begin:end])

    def char_to_token(self, char: int) -> int | None:
        """First token that covers the character: the first that ends after it, unless that begins after it too."""
        token = int(np.searchsorted(self._reached, char, "right"))
        return token if token < len(self) and self.offsets[token, 0] <= char else None

    def token_to_chars(self, token: int) -> Range:
        begin, end = self.offsets[token]
        return int(begin), int(end)


def first_token_from(encoding: Encoding | Located, char: int, end: int) -> tuple[int, bool]:
    """Index of the first token that begins at `char` or later, and whether a token straddles `char`.

    `end` is the length of the text. A character that no token covers (a trimmed space) belongs to what follows.
    """
    count = len(encoding)
    while char < end:
        token = encoding.char_to_token(char)
        if token is not None:
            first = token
            while token < count and _begin(encoding, token) < char:
                token += 1
            return token, token > first
        char += 1
    return count, False


def _begin(encoding: Encoding | Located, token: int) -> int:
    characters = encoding.token_to_chars(token)
    return characters[0] if characters is not None else 0


def _specification(folder: TokenizerFolder) -> dict[str, Any]:
    try:
        value = json.loads(folder.tokenizer_json)
    except ValueError as fault:
        raise ToolkitError(f"{folder.path}/tokenizer.json: not JSON: {fault}") from fault
    if not isinstance(value, dict) or "model" not in value:
        raise ToolkitError(f"{folder.path}/tokenizer.json: not a tokenizer")
    return {**value, "truncation": None, "padding": None, "added_tokens": value.get("added_tokens") or []}


def _tokenizer(specification: dict[str, Any]) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_str(json.dumps(specification))
    except Exception as fault:  # tokenizers raises no narrower class
        raise ToolkitError(f"tokenizer.json: not a tokenizer: {fault}") from fault
