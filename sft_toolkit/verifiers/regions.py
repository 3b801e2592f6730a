"""Where in a text its answer stands: in a box, behind a marker, in bold, or in its last sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator

_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_WORDS = (
    r"(?:endg[üu]ltige\s+)?antwort|(?:end)?ergebnis|l[öo]sung|(?:final\s+)?answer|(?:final\s+)?result|solution|"
    r"r[ée]ponse(?:\s+finale)?|r[ée]sultat|respuesta|risposta|resposta"
)
_MARKER = re.compile(
    rf"(?:####|(?<!\w)[*_]*(?:{_WORDS})[*_]*\s*(?:\(.{{0,20}}?\)\s*)?[*_]*[:：][*_]*"
    rf"|(?<!\w)(?:{_WORDS})\s+(?:ist|lautet|is|est)(?:\s+(?:also|daher|somit|therefore|donc))?(?!\w)\s*:?)[ \t]*",
    re.IGNORECASE,
)
_BOLD = re.compile(r"\*\*(?!\s)(.+?)(?<!\s)\*\*|(?<!\w)__(?!\s)(.+?)(?<!\s)__(?!\w)", re.DOTALL)
_ABBREVIATIONS = re.compile(
    r"(?:mio|mrd|tsd|bio|bzw|ca|z|b|d|h|u|a|nr|st|std|min|sek|approx|dr|prof|fr|kap|s|"
    r"vgl|etc|usw|ggf|inkl|zzgl|env|no|mr|mrs|vs|eq|fig|jh|str|tel|max|abs|evtl|gem|i|"
    r"e|g)",
    re.IGNORECASE,
)
_ENDS = re.compile(r"[.!?…]+[\"'“”»)\]*_]*(?=\s)|\n+")
_MONTH = re.compile(r"(?:jan|feb|m[äa]r|apr|mai|jun|jul|aug|sep|okt|nov|dez)[a-zä]*\b", re.IGNORECASE)
_LAST_WORD = re.compile(r"(\w+)$")


def boxed(text: str) -> str | None:
    """What the last box of a text holds, None where there is none or it does not close."""
    openings = list(_BOX.finditer(text))
    return _balanced(text, openings[-1].end()) if openings else None


def _balanced(text: str, begin: int) -> str | None:
    depth = 1
    for place in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[begin:place].strip()
    return None


def marked(text: str) -> str | None:
    """What stands behind the last marker of an answer, up to the end of the line, or the next line if that is empty."""
    for marker in reversed(list(_MARKER.finditer(text))):
        lines = [line.strip() for line in text[marker.end() :].splitlines()]
        found = next((line for line in lines if line.strip("*_ ")), "")
        if found:
            return found
    return None


def bold(text: str) -> list[str]:
    """What stands in bold, in order."""
    return [(match[1] or match[2]).strip() for match in _BOLD.finditer(text)]


def sentences(text: str) -> list[str]:
    """The sentences of a text. A full stop behind an abbreviation or inside a number ends none."""
    return [sentence for sentence in _sentences(text) if sentence]


def _sentences(text: str) -> Iterator[str]:
    begin = 0
    for end in _ENDS.finditer(text):
        if end[0] == "." and _is_abbreviation(text[begin : end.start()], text[end.end() :].lstrip()):
            continue
        yield text[begin : end.end()].strip()
        begin = end.end()
    yield text[begin:].strip()


def _is_abbreviation(before: str, behind: str) -> bool:
    word = _LAST_WORD.search(before)
    if word is None or not behind:
        return False
    if word[1].isdigit():
        return len(word[1]) <= 2 and (not behind[:1].isupper() or bool(_MONTH.match(behind)))
    return bool(_ABBREVIATIONS.fullmatch(word[1]))


def is_question(sentence: str) -> bool:
    return sentence.rstrip("\"'“”»)*_ ").endswith("?")
