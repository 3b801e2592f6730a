"""Passages that people wrote, from unpacked Debian packages: fortunes, manual pages, HTML documentation.

    apt-get download fortunes-de manpages-de libreoffice-help-de; for f in *.deb; do dpkg -x $f texts; done

Code, names of commands and file names come out in backticks, as a trace quotes them.
"""

from __future__ import annotations

import gzip
import html
import re
from collections.abc import Iterator
from pathlib import Path

_MACRO_OF_WORDS = re.compile(r"\.(?:B|I|BR|IR|RB|BI|RI|IB|SM|Nm|Ar|Fl|Pa|Cm)\s+(.*)")
_MACRO_OF_PARAGRAPHS = re.compile(r"\.(?:PP|P|LP|TP|IP|SH|SS|Pp|It|Sh|Ss|RS|RE|HP|TQ|Bl|El)\b")
_FONT_OF_CODE = re.compile(r"\\f(?:B|I|CW|\(CW|\[CW\]|\(CB)([^\\]*?)\\f(?:R|P|\[\]|\[R\])")
_ESCAPES = re.compile(r"\\f(?:\[[^\]]*\]|\(..|.)|\\[&/,|^)%]|\\s[-+]?\d|\\\(..|\\\[[^\]]*\]")
_NO_TEXT = re.compile(r"(?s)<(pre|script|style|head)\b.*?</\1>")
_CODE = re.compile(r"(?s)<(code|tt|kbd|samp|cmd|literal|programlisting|screen)\b[^>]*>(.*?)</\1>")
_PARAGRAPH = re.compile(r"(?s)<(p|dd|li|para)\b[^>]*>(.*?)</\1>")
_TAG = re.compile(r"(?s)<[^>]+>")
_SENTENCE_END = re.compile(r"[.!?:]$")


def fortunes(root: Path, folder: str = "") -> Iterator[str]:
    """Every cookie of the files in usr/share/games/fortunes, or in a folder of it."""
    for path in sorted((root / "usr/share/games/fortunes" / folder).iterdir()):
        if path.is_file() and path.suffix not in (".dat", ".u8"):
            yield from filter(None, map(str.strip, re.split(r"\n%\n", _read(path))))


def manual_pages(root: Path, language: str) -> Iterator[str]:
    """The paragraphs of manual pages that are sentences, of six words or more."""
    for path in sorted((root / "usr/share/man" / language).rglob("*.gz")):
        if not path.is_symlink():
            yield from filter(_is_prose, _paragraphs_of_groff(_read(path)))


def html_pages(root: Path, folder: str, ending: str = ".html") -> Iterator[str]:
    """The paragraphs and points of lists of HTML, Mallard or DocBook pages below a folder: sentences of six words."""
    for path in sorted((root / folder).rglob(f"*{ending}")):
        for _, inner in _PARAGRAPH.findall(_NO_TEXT.sub("", _read(path))):
            quoted = _CODE.sub(lambda code: f"`{_TAG.sub('', code[2])}`", inner)
            text = " ".join(html.unescape(_TAG.sub("", quoted)).split())
            if _is_prose(text):
                yield text


def _read(path: Path) -> str:
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _is_prose(text: str) -> bool:
    return len(text.split()) >= 6 and _SENTENCE_END.search(text) is not None


def _paragraphs_of_groff(text: str) -> Iterator[str]:
    words: list[str] = []
    is_skipped = False
    for line in [*text.split("\n"), ".PP"]:
        if line.startswith((".nf", ".EX", ".TS", ".ig", ".de ")):
            is_skipped = True
        elif line.startswith((".fi", ".EE", ".TE", "..")):
            is_skipped = False
        elif is_skipped:
            continue
        elif macro := _MACRO_OF_WORDS.match(line):
            words.append(f"`{macro[1]}`".replace('"', ""))
        elif not line.strip() or _MACRO_OF_PARAGRAPHS.match(line):
            if words:
                yield _plain(" ".join(words))
            words = []
        elif not line.startswith((".", "'")):
            words.append(line.strip())


def _plain(groff: str) -> str:
    text = _FONT_OF_CODE.sub(r"`\1`", groff)
    for sign, meant in ((r"\-", "-"), (r"\(aq", "'"), (r"\(dq", '"'), (r"\e", "\\"), (r"\ ", " "), (r"\~", " ")):
        text = text.replace(sign, meant)
    return _ESCAPES.sub("", text).strip()
