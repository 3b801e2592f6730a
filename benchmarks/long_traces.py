"""How often genuine text is taken for drift, by length, and how often a planted drift is found.

    python benchmarks/long_traces.py texts/

`texts/` holds unpacked Debian packages (see debian_texts.py): those named in german_sets, and for what is planted
fortunes, maint-guide-fr, -es, -it, manpages-nl, -zh, -ja. Rules were settled on manpages-de and on every second file of
fortunes-de, the rest is unseen. First every passage that is called foreign in part is shown, to be read by eye:
foreign_passages.txt holds hashes of those that do hold a sentence in another language, or code. Of books that are only
partly translated, a passage that is called foreign and holds less than two German closed-class words is taken for
untranslated, and the others are read. The rest is cut into traces that share no passage.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import xxhash
from debian_texts import fortunes, html_pages, manual_pages

from sft_toolkit.labelers.function_words import function_words
from sft_toolkit.labelers.language import judge_language, judged_stretches
from sft_toolkit.labelers.prose import prose
from sft_toolkit.labelers.wilson import wilson_interval

FOREIGN_FILE = Path(__file__).with_name("foreign_passages.txt")
LENGTHS = {250: 2000, 4_000: 1000, 16_000: 1000}  # words, and how many traces at most
PLANTED = {250: 200, 4_000: 40}
PARTLY_TRANSLATED = {"gimp-help-de", "lilypond-doc-html-de", "gnucash-docs"}
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
        if name in PARTLY_TRANSLATED:
            known |= {digest(passage) for passage in found if is_untranslated(passage)}
        new = [passage for passage in found if digest(passage) not in known]
        print(f"{name}: {words:,} words, {len(found)} passages called foreign in part, {len(new)} of them wrongly")
        for passage in new:
            print(f"    {digest(passage)} {foreign_parts(passage)[0][:110]!r}")
        genuine += [passage for passage in passages if digest(passage) not in known]
    print(f"{sum(len(passage.split()) for passage in genuine):,} words in all")
    for length, most in LENGTHS.items():
        verdicts = [judge_language(each).stays is False for each in traces(genuine, length)[:most]]
        low, high = wilson_interval(sum(verdicts), len(verdicts))
        rate = f"95% interval [{low:.4f}, {high:.4f}]"
        print(f"{length:,} words: {sum(verdicts)} of {len(verdicts)} genuine traces drift, {rate}", flush=True)
    for length, count in PLANTED.items():
        whole = 0
        for kind, plant in planted(root).items():
            drawn = random.Random(f"{kind} {length}")
            missed = []
            for _ in range(count):
                text = plant(drawn)
                if judge_language(trace(drawn, genuine, length, text)).stays is not False:
                    missed.append(text)
            whole += count - len(missed)
            print(f"{length:,} words, {kind}: {count - len(missed)} of {count} found; missed {missed[:3]}", flush=True)
        print(f"{length:,} words: {whole} of {count * len(planted(root))} planted drifts found")


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
    handbook = f"{share}/doc/debian-handbook/html/de-DE"
    yield "debian-handbook", unique(html_pages(root / "debian-handbook", handbook))
    for name in ("debian-edu-doc-de", "debian-faq-de", "developers-reference-de"):
        yield name, unique(html_pages(root / name, share))
    yield "gimp-help-de", unique(html_pages(root / "gimp-help-de", f"{share}/gimp/2.0/help/de"))
    yield "lilypond-doc-html-de", unique(html_pages(root / "lilypond-doc-html-de", f"{share}/doc", ".de.html"))
    yield "gnucash-docs", unique(html_pages(root / "gnucash-docs", f"{share}/help/de", ".xml"))
    for name in ("gnome-user-docs", "evolution-common", "gedit-common", "totem-common", "brasero-common"):
        yield name, unique(html_pages(root / name, f"{share}/help/de", ".page"))


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


def is_untranslated(passage: str) -> bool:
    own = function_words("de") - function_words("en")
    words = set(re.findall(r"\w+", passage.lower()))
    return len(words & own) < 2 and not re.search("[äöüß]", passage)


def traces(passages: list[str], length: int) -> list[str]:
    """Traces of `length` words or a few more, each passage in one of them; what is left at the end is none."""
    shuffled = random.Random(length).sample(passages, len(passages))
    found, chosen, words = [], [], 0
    for passage in shuffled:
        chosen.append(passage)
        words += len(passage.split())
        if words >= length:
            found.append("\n\n".join(chosen))
            chosen, words = [], 0
    return found


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
    dutch = sentences(manual_pages(root / "manpages-nl", "nl"))
    japanese = [page for page in manual_pages(root / "manpages-ja", "ja") if re.search(r"[\u3040-\u30ff]{6}", page)]
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
        "Dutch": lambda drawn: drawn.choice(dutch),
        "Chinese": lambda drawn: drawn.choice(chinese),
        "a Chinese sentence": lambda drawn: drawn.choice(chinese).split("。")[0] + "。",
        "a Japanese sentence": lambda drawn: drawn.choice(japanese).split("。")[0] + "。",
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
