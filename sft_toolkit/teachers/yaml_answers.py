"""Values that stand in an answer as YAML: in a fence, as the whole answer, or as lines amid prose.

Words are read as YAML 1.2 has them: true and false are the only booleans, and a date stays text, as JSON would have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

import yaml

from sft_toolkit.formats.dialects.searching import FoundObject

_MARKS = re.compile(r"\*\*|__(?=\w)|(?<=\w)__|`")
_LINE = re.compile(r"[^\n]*\n?")
_ITEM = r"(?:[-*][ ]+|\d{1,2}[.)][ ]+)?"
_KEY = r"(?:[\"']?[A-Za-z_][\w.-]{0,60}(?:[ ][\w.-]{1,60}){0,2}[\"']?)"
_MEMBER = re.compile(rf"[ ]*{_ITEM}{_KEY}:(?:\s|\Z)")
_LISTED = re.compile(r"[ ]*-[ ]+\S")
_ARGUMENTS = re.compile(r"[ ]*(?:arguments?|args|param(?:eter)?s|(?:\w+[ _])?input)\s*:", re.IGNORECASE)
_NUMBERED = re.compile(r"^([ ]*)(\*|\d{1,2}[.)])(?=[ ])", re.MULTILINE)
_MOST_LINES = 400


def find_yaml(text: str) -> Iterator[FoundObject]:
    """Every run of lines that is a YAML mapping, in order; a list is taken for one of calls."""
    lines: list[str] = []
    begin = place = 0
    for found in [*_LINE.finditer(text), None]:
        line = _MARKS.sub("", found[0]) if found else ""
        if lines and not (found and _continues(line, lines)):
            yield from _loaded(lines, begin, place)
            lines = []
        if found and (lines or _MEMBER.match(line)):
            begin = begin if lines else found.start()
            lines.append(line)
        place = found.end() if found else place


def _continues(line: str, lines: list[str]) -> bool:
    """Whether a line belongs to the run; after an empty one only what must: lines further in, and arguments."""
    if len(lines) >= _MOST_LINES:
        return False
    if not line.strip():
        return bool(lines[-1].strip())
    if len(line) - len(line.lstrip(" ")) > len(lines[0]) - len(lines[0].lstrip(" ")):
        return True
    if not lines[-1].strip():
        return _ARGUMENTS.match(line) is not None
    return _MEMBER.match(line) is not None or _LISTED.match(line) is not None


def _loaded(lines: list[str], begin: int, end: int) -> Iterator[FoundObject]:
    """What the lines say as YAML; nothing where they are none. Lists of any kind of mark are lists."""
    text = _NUMBERED.sub(lambda mark: f"{mark[1]}{'-':{len(mark[2])}}", "".join(lines).expandtabs(2))
    try:
        value = yaml.load(text, _Loader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return
    value = {"calls": value} if isinstance(value, list) else value
    if isinstance(value, dict):
        yield FoundObject(value, begin, end)


class _Loader(yaml.SafeLoader):
    """Plain values as JSON has them; no references, by which a short text could grow without end."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("a reference")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
        return {str(key): value for key, value in super().construct_mapping(node, deep=True).items()}


_PLAIN = {
    "tag:yaml.org,2002:null": r"~|null|Null|NULL|",
    "tag:yaml.org,2002:bool": r"true|True|TRUE|false|False|FALSE",
    "tag:yaml.org,2002:int": r"[-+]?(?:0|[1-9]\d{0,30})",
    "tag:yaml.org,2002:float": r"[-+]?\d{1,30}\.\d{1,30}(?:[eE][-+]?\d{1,3})?",
}
for _tag, _pattern in _PLAIN.items():
    _Loader.add_implicit_resolver(_tag, re.compile(rf"(?:{_pattern})\Z"), None)
