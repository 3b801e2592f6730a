"""The prose of a trace: what is left to judge a language by once code, formulas and quotations are taken out.

What is taken out becomes spaces, so that every place in the prose is the same place in the text. Teachers get caught in
loops and repeat a character or a mark to the last token, so no pattern may begin anew at every place of such a run.
"""

from __future__ import annotations

import re

from sft_toolkit.labelers.fences import fenced_blocks

_NOT_PROSE = re.compile(
    r"""
      `[^`\n]+`                                                  # inline code
    | \$\$.+?\$\$ | \\\[(?:(?!\\\[).)+?\\\] | \\\((?:(?!\\\().)+?\\\)    # displayed and inline LaTeX
    | \\begin\{(?P<block>[\w*]+)\}(?:(?!\\begin\{(?P=block)\}).)*?\\end\{(?P=block)\}
    | \$(?=\S)[^$\n]{1,300}?(?<=\S)\$(?!\d)
    | \\[A-Za-z]+\*?(?:\s*\{[^{}\n]*\})*                         # LaTeX left over
    | (?:https?|ftp)://\S+ | www\.\S+ | (?<!\S)[^\s@]+@\S+\.\w+  # addresses
    | (?<![\w.-])(?:\.{0,2}/)?(?:[a-zA-Z0-9_.-]++/){2,}[a-zA-Z0-9_.-]*           # paths
    | </?\w[^<>\n]{0,80}>                                        # tags
    | ^[ \t]{0,3}>[^\n]*                                        # quoted lines
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
# Ideographs stand beside Latin letters and digits without a space, and are no part of a name.
_LATIN = r"A-Za-z\u00c0-\u024f\u1e00-\u1eff"
_NAME = rf"[{_LATIN}0-9_]"
_IDENTIFIER = re.compile(
    rf"""
    (?<!{_NAME})(?: (?<!\w\.){_NAME}++(?:\.{_NAME}++)*+\([^()\n]{{0,80}}\)           # a call
      | [A-Za-z][\w-]*+(?:[.=|][\w-]++)++                      # host.example.org, After=basic.target, on|off
      | {_NAME}*[{_LATIN}]_{_NAME}* | {_NAME}*_[{_LATIN}]{_NAME}* | [a-z]+[A-Z]{_NAME}*     # snake_case, camelCase
      | {_NAME}*\d{_NAME}* )                                             # whatever holds a digit
    """,
    re.VERBOSE,
)
_CODE_LINE = re.compile(
    r"""
      ^(?:[ \t]{4}|\t).*[=(){};\[\]].*$
    | ^[ \t]*(?:def|class|import|from|return|for|while|if|elif|else|try|except|print|SELECT|const|let|var)\b
        .*[:;({)}=].*$
    """,
    re.VERBOSE | re.MULTILINE,
)
_QUOTED = re.compile(
    r"""
    (?<![\w])(?:
        „[^„“”]{1,400}?[“”] | “[^“”]{1,400}?” | »[^»«]{1,400}?« | «[^»«]{1,400}?» | "(?=\S)[^"]{1,400}?(?<=\S)"
      | ‚[^‚‘’]{1,400}?[‘’] | ‘[^‘’]{1,400}?’
    )(?!\w)
    """,
    re.VERBOSE,
)
_PARAGRAPH_BREAK = re.compile(r"\n\s*\n")
WORD = re.compile(rf"[{_LATIN}]+(?:['’-][{_LATIN}]+)*|[^\W\d_{_LATIN}]+(?:['’-][^\W\d_{_LATIN}]+)*")
_COPIED_WORDS = 4


def without_code(text: str) -> str:
    """`text` with code, formulas, addresses and tags as spaces; quotations and numbers stay."""
    return _NOT_PROSE.sub(_blank, _CODE_LINE.sub(_blank, _without_blocks(text)))


def _without_blocks(text: str) -> str:
    kept, end = [], 0
    for start, stop in fenced_blocks(text):
        kept += [text[end:start], _spaces(text[start:stop])]
        end = stop
    return "".join([*kept, text[end:]])


def prose(text: str, prompt: str = "") -> str:
    """`text` with everything as spaces that does not show in which language its writer thinks.

    That is, beside `without_code`: identifiers, numbers, text in quotation marks within a paragraph, and every run of
    four or more words that also stands in `prompt`.
    """
    text = _IDENTIFIER.sub(_blank, _QUOTED.sub(_blank_quotation, without_code(text)))
    return _without_copies(text, prompt) if prompt else text


def _blank(found: re.Match[str]) -> str:
    return _spaces(found[0])


def _spaces(text: str) -> str:
    return "\n".join(" " * len(line) for line in text.split("\n"))


def _blank_quotation(found: re.Match[str]) -> str:
    return found[0] if _PARAGRAPH_BREAK.search(found[0]) else _blank(found)


def _without_copies(text: str, prompt: str) -> str:
    in_prompt = [word[0].casefold() for word in WORD.finditer(prompt)]
    runs = {tuple(in_prompt[start : start + _COPIED_WORDS]) for start in range(len(in_prompt) - _COPIED_WORDS + 1)}
    words = list(WORD.finditer(text))
    folded = [word[0].casefold() for word in words]
    copied = bytearray(len(words))
    for start in range(len(words) - _COPIED_WORDS + 1):
        if tuple(folded[start : start + _COPIED_WORDS]) in runs:
            copied[start : start + _COPIED_WORDS] = b"\1" * _COPIED_WORDS
    kept, end = [], 0
    for word, is_copied in zip(words, copied, strict=True):
        if is_copied:
            kept += [text[end : word.start()], " " * len(word[0])]
            end = word.end()
    return "".join([*kept, text[end:]])
