"""Text without what carries no meaning when answers are compared: case, quotes, Markdown, a leading article."""

from __future__ import annotations

import re
from typing import Final
from unicodedata import normalize

_EDGES = " \t\n\r\"'“”„‟‘’‚«»‹›`*_#.,;:!?…()[]$\u00a0"
_MARKDOWN = re.compile(r"\*\*|__|`|^#+\s|^>\s", re.MULTILINE)
_ARTICLE = re.compile(
    r"^(?:der|die|das|den|dem|des|ein|eine|einen|einem|einer|the|an?|le|la|les|un|une|des|du|de la)\s+(?=\S)"
    r"|^l['’](?=\w)"
)
NEGATION: Final = re.compile(
    r"(?<!\w)(?:nicht|kein\w*|weder|nie(?:mals)?|statt|außer|not|no|never|neither|nor|isn't|instead|except|cannot|"
    r"ne|n['’]|pas|aucun\w*|ni|sauf)(?!\w)|(?<!\w)n['’](?=\w)|(?<!\w)(?:falsch|wrong|incorrect|faux|fausse)(?!\w)",
    re.IGNORECASE,
)
ALTERNATIVE: Final = re.compile(
    r"(?<!\w)(?:oder|or|ou|entweder|either|bzw\.?|sowie|und|and|et)(?!\w)|[,/;]", re.IGNORECASE
)


def folded(text: str) -> str:
    """The text in NFKC and small letters (ß is ss), single spaces, without Markdown, outer quotes and full stop."""
    return " ".join(_MARKDOWN.sub("", normalize("NFKC", text)).casefold().split()).strip(_EDGES)


def without_article(text: str) -> str:
    """A folded text without the article that it begins with."""
    return _ARTICLE.sub("", text)


def transliterated(text: str) -> str:
    """A folded text with umlauts in two letters."""
    for letter, letters in (("ä", "ae"), ("ö", "oe"), ("ü", "ue")):
        text = text.replace(letter, letters)
    return text


def phrase(text: str) -> re.Pattern[str]:
    """Where a folded text stands as whole words."""
    return re.compile(rf"(?<!\w){re.escape(text)}(?!\w)")
