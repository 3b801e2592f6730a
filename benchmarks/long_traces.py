"""How often genuine text is taken for drift, by length, and how often a planted drift is found.

    python benchmarks/long_traces.py texts/

`texts/` holds unpacked Debian packages (see debian_texts.py): fortunes-de, manpages-de, manpages-de-dev,
libreoffice-help-de, installation-guide-amd64, debian-reference-de, maint-guide-de; for what is planted fortunes,
maint-guide-fr, -es, -it, manpages-zh. Rules were settled on manpages-de and on every second file of fortunes-de, the
rest is unseen. First every passage that is called foreign in part is shown, to be read by eye: FOREIGN holds hashes of
those that do hold a sentence in another language, or code. Then traces are drawn from the other passages.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import xxhash
from debian_texts import fortunes, html_pages, manual_pages

from sft_toolkit.labelers.language import judge_language, judged_stretches
from sft_toolkit.labelers.prose import prose
from sft_toolkit.labelers.wilson import wilson_interval

FOREIGN_FILE = Path(__file__).with_name("foreign_passages.txt")
LENGTHS = {250: 1000, 4_000: 200, 16_000: 60}
PLANTED = {250: 200, 4_000: 40}
SHORT = (
    "Let me check that.|That is correct.|So that is it.|Wait, that is wrong.|This is not right.|I see.|It works."
    "|We are done.|Let's see.|Now we go on.|But is it true?|That can't be.|What about that?|Why is that so?"
    "|It is the same.|You are right.|Here it is.|No, it is not.|Is that all?|There we go.|I got it.|It fits well."
    "|Then we stop.|Both are even."
)


def main() -> None:
    root = Path(sys.argv[1])
    known = set(FOREIGN_FILE.read_text().split()) if FOREIGN_FILE.exists() else set()
    genuine: list[str] = []
    for name, passages in german_sets(root):
        words = sum(len(passage.split()) for passage in passages)
        found = [passage for passage in passages if foreign_parts(passage)]
        new = [passage for passage in found if digest(passage) not in known]
        print(f"{name}: {words:,} words, {len(found)} passages called foreign in part, {len(new)} of them wrongly")
        for passage in new:
            print(f"    {digest(passage)} {foreign_parts(passage)[0][:110]!r}")
        genuine += [passage for passage in passages if digest(passage) not in known]
    for length, count in LENGTHS.items():
        drawn = random.Random(length)
        drifts = sum(judge_language(trace(drawn, genuine, length)).stays is False for _ in range(count))
        low, high = wilson_interval(drifts, count)
        print(f"{length:,} words: {drifts} of {count} genuine traces drift, 95% interval [{low:.4f}, {high:.4f}]")
    for length, count in PLANTED.items():
        for kind, plant in planted(root).items():
            drawn = random.Random(f"{kind} {length}")
            hits = sum(judge_language(trace(drawn, genuine, length, plant(drawn))).stays is False for _ in range(count))
            print(f"{length:,} words, {kind}: {hits} of {count} found")


def german_sets(root: Path) -> Iterator[tuple[str, list[str]]]:
    """Genuine German by name, those on which no rule was settled; passages once each."""
    share = "usr/share"
    yield "manpages-de-dev", unique(page for page in manual_pages(root / "manpages-de-dev", "de"))
    yield "libreoffice-help-de", unique(html_pages(root / "libreoffice-help-de", f"{share}/libreoffice/help/de"))
    yield (
        "installation-guide",
        unique(html_pages(root / "installation-guide-amd64", f"{share}/doc/installation-guide-amd64/de")),
    )
    yield "debian-reference-de", unique(html_pages(root / "debian-reference-de", f"{share}/debian-reference"))
    yield "maint-guide-de", unique(html_pages(root / "maint-guide-de", f"{share}/doc"))
    yield "fortunes-de, second half", unique(second_half(root / "fortunes-de"))


def second_half(root: Path) -> Iterator[str]:
    """Every second file of fortunes-de, without the one that is bilingual."""
    folder = root / "usr/share/games/fortunes/de"
    names = [path for path in sorted(folder.iterdir()) if path.suffix != ".u8" and path.name != "translations"]
    for path in names[1::2]:
        yield from filter(None, map(str.strip, re.split(r"\n%\n", path.read_bytes().decode(errors="replace"))))


def unique(passages: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(passages))


def digest(passage: str) -> str:
    return xxhash.xxh3_64_hexdigest(passage.encode())


def foreign_parts(passage: str) -> list[str]:
    return [passage[s.start : s.end] for s, is_own in judged_stretches(prose(passage), "de") if not is_own]


def trace(drawn: random.Random, passages: list[str], length: int, plant: str | None = None) -> str:
    chosen, words = [], 0
    while words < length:
        chosen.append(drawn.choice(passages))
        words += len(chosen[-1].split())
    if plant is not None:
        chosen.insert(drawn.randrange(len(chosen) + 1), plant)
    return "\n\n".join(chosen)


def planted(root: Path) -> dict[str, Callable[[random.Random], str]]:
    """Drifts by kind, each from a sentence that somebody wrote in that language."""
    english = sentences(fortunes(root / "fortunes"))
    french, spanish, italian = (
        sentences(html_pages(root / f"maint-guide-{code}", "usr/share/doc")) for code in ("fr", "es", "it")
    )
    chinese = [page for page in manual_pages(root / "manpages-zh", "zh_CN") if re.search(r"[\u4e00-\u9fff]{12}", page)]
    half = "Der zweite Fall ist leichter, "
    return {
        "a sentence": lambda drawn: drawn.choice(english),
        "a short sentence": lambda drawn: drawn.choice(SHORT.split("|")),
        "capitals": lambda drawn: drawn.choice(english).upper(),
        "title case": lambda drawn: " ".join(word[:1].upper() + word[1:] for word in drawn.choice(english).split()),
        "the second half of a sentence": lambda drawn: half + lowered(drawn.choice(english)),
        "the first half": lambda drawn: drawn.choice(english).rstrip(".!?") + ", und das ist der ganze Unterschied.",
        "amid a sentence": lambda drawn: f"Wir sehen nun, {lowered(drawn.choice(english))[:-1]} und damit ist es gut.",
        "French": lambda drawn: drawn.choice(french),
        "Spanish": lambda drawn: drawn.choice(spanish),
        "Italian": lambda drawn: drawn.choice(italian),
        "Chinese": lambda drawn: drawn.choice(chinese),
    }


def sentences(passages: Iterator[str]) -> list[str]:
    """Whole sentences of 6 to 25 words that begin with a capital and are mostly in lower case, without quotations."""
    found = []
    for passage in passages:
        for match in re.finditer(r"[^.!?\n]+[.!?]", passage.split("\n\t\t--")[0].replace("\n", " ")):
            text = match[0].strip(" '-")
            words = text.split()
            is_plain = re.match(r"[A-ZÀ-Ý¿¡]", text) and not re.search(r'["`<>/\d:;*_\t]', text)
            if 6 <= len(words) <= 25 and is_plain and sum(word[0].islower() for word in words) * 2 >= len(words):
                found.append(text)
    return found


def lowered(text: str) -> str:
    return text[0].lower() + text[1:]


if __name__ == "__main__":
    main()
