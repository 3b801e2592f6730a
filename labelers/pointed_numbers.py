"""Numbers with a point in German text: which of them are decimals in English writing (3.5 for 3,5), and which are not.

German, too, joins numbers with a point: thousands (1.250), dates (21.12.), times (14.30 Uhr), sections (Satz 2.3),
versions (USB 3.0), verses (Joh 3.16). What stands before and behind distinguishes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_UNITS = (
    "kg|g|mg|t|km|m|cm|mm|nm|l|ml|dl|h|s|ms|min|kW|kWh|W|V|A|Hz|kHz|MHz|GHz|B|KB|kB|MB|GB|TB|Mbit|Gbit|Grad|Zoll|€|EUR"
    "|Euro|Cent|Dollar|USD|CHF|%|‰|°C?|Prozent|Promille|Millionen|Milliarden|Mio|Mrd|x|mal|fach|Liter|Meter|Kilometer"
    "|Kilogramm|Gramm|Tonnen|Stunden|Minuten|Sekunden|Tage|Jahre|Punkte"
)
_NUMBER = re.compile(
    rf"""
    (?<![\w.,:;§\-−+±]) [-−+±]? (?:[$€£]\s?)?
    (?: (?P<thousands>\d{{1,3}}(?:,\d{{3}})+) \. (?P<cents>\d+)
      | (?P<whole>\d+) \. (?P<fraction>\d+) )
    (?! [.,]\d | \.\. | (?!(?:{_UNITS})(?!\w)) \w )
    """,
    re.VERBOSE,
)
_UNIT_BEHIND = re.compile(rf"\s?(?:{_UNITS})(?!\w)")
_HEADING = re.compile(r"\s+[A-ZÄÖÜ]")
_NUMBERED = (
    "Abb|Abbildung|Abs|Absatz|Abschnitt|Algorithmus|Anhang|Anlage|Anmerkung|Art|Artikel|Aufgabe|Ausgabe|Axiom|Band"
    "|Behauptung|Beispiel|Bemerkung|Bild|Bsp|Buch|Def|Definition|Diagramm|Etappe|Fall|Fig|Figur|Folgerung|Folie|Formel"
    "|Frage|Gl|Gleichung|Gln|Grafik|Hilfssatz|Kap|Kapitel|Korollar|Lektion|Lemma|Level|Listing|Modul|Nr|Nummer|Paragraf"
    "|Paragraph|Phase|Pos|Position|Proposition|Punkt|Rdnr|Regel|Rn|Satz|Schritt|Seite|Stufe|Tab|Tabelle|Teil|Teilaufgabe"
    "|Theorem|These|Thema|Übung|Übungsaufgabe|Unterkapitel|Unterpunkt|Vers|Version|Vorlesung|Zeile|Ziff|Ziffer|TOP"
    "|Release|Build|Update|Patch|Stand|Kennzahl|Schema"
)
_SEE = r"siehe|s|vgl|vergleiche|laut|unter|gemäß"
_SOFTWARE = """
    Android Angular Ansible Apache Bluetooth Bootstrap Chrome Clang CMake Cuda Debian Delphi Django Docker
    Dotnet Eclipse Edge Elasticsearch Excel Express Fedora Firefox Flask Fortran Gemma Git GitLab Gnome Go
    Gradle Groovy Haskell iOS Java JavaScript Julia Keras Kernel Kotlin Kubernetes LaTeX LibreOffice Linux Llama
    macOS MariaDB Maven Mistral MongoDB MySQL Nginx Node NumPy Office Opera Oracle pandas Perl PHP Pip polars
    Postgres PostgreSQL PowerShell PyTorch Python Qt Qwen Rails React Redis Ruby Rust Safari Scala scikit-learn
    SciPy Spark Spring SQLite Swift Symfony TensorFlow Thunderbird torch transformers TypeScript Ubuntu Unicode
    Unity Unreal Vim Studio Vue Wi-Fi Windows WordPress Word Xcode
"""
_BOOKS = (
    "Gen|Ex|Lev|Num|Dtn|Jos|Ri|Sam|Kön|Chr|Esra|Neh|Ijob|Hiob|Ps|Spr|Koh|Hld|Jes|Jer|Klgl|Ez|Hes|Dan|Hos|Mt|Mk|Lk|Joh|Apg"
    "|Röm|Kor|Gal|Eph|Phil|Kol|Thess|Tim|Tit|Hebr|Jak|Petr|Jud|Offb|Mose|Matthäus|Markus|Lukas|Johannes|Psalm|Sure"
)
_JOINED = r"(?:\(?\d+(?:\.\d+)*\)?\s*(?:,|;|und|oder|bis|sowie|/|–|-)\s*(?:auch\s+)?)*"
_LOOK_BACK = 120
_SOFTWARE_NAMES = "|".join(map(re.escape, _SOFTWARE.split()))
_BEFORE_REFERENCE = re.compile(
    rf"""
    (?: \b (?: (?:{_NUMBERED})(?:e|en|n|s|es|er|ern)? | Sätzen? | Bänden? | {_SEE}
           | (?i:{_SOFTWARE_NAMES}) | {_BOOKS} ) \.?
      | \b[A-Z][A-Za-z]*[A-Z][A-Za-z]*                         # USB, HTTP, CUDA
      | §§? )
    \s+ (?:Nr\.\s*)? \(? {_JOINED} \(? \Z
    """,
    re.VERBOSE,
)
_BEFORE_EQUATION = re.compile(r"\b(?:aus|nach|mit|wegen|gemäß|in|von|und|siehe|Mit|Aus|Nach|Wegen|In)\s+\(\Z")
_BEFORE_DATE = re.compile(
    r"\b(?:am|vom|zum|bis|seit|ab|dem|den|der|des|und|Stand|tag|woch|abend|,)\.?,?\s+(?:den\s+)?\Z", re.IGNORECASE
)
_BEFORE_TIME = re.compile(r"\b(?:um|gegen|ab|bis|punkt|kurz (?:nach|vor)|zwischen)\s+\Z", re.IGNORECASE)
_BEHIND_TIME = re.compile(r"\s*(?:Uhr|h\b|bis\s+\d{1,2}\.\d\d\s*(?:Uhr|h\b))")


def english_decimals(text: str, start: int, end: int, is_on_versions: bool) -> Iterator[tuple[int, int]]:
    """Where decimals in English writing stand in the German sentence text[start:end]: "-3.5", "2.5kg", "1,234.56".

    `is_on_versions`: the sentence speaks of versions, so that 2.24 is taken for one unless a unit follows.
    """
    for number in _NUMBER.finditer(text, start, end):
        if is_on_versions and number["whole"] not in (None, "0") and not _UNIT_BEHIND.match(text, number.end()):
            continue
        if number["thousands"] or _is_decimal(number):
            yield number.span()


def _is_decimal(number: re.Match[str]) -> bool:
    """False for what a point joins in German, too."""
    text, (start, end) = number.string, number.span()
    whole, fraction = number["whole"], number["fraction"]
    before = text[max(text.rfind("\n", 0, start) + 1, start - _LOOK_BACK) : start]
    if _UNIT_BEHIND.match(text, end):
        return not _is_thousands(whole, fraction)
    return not (
        _is_thousands(whole, fraction)
        or (not before.strip() and _HEADING.match(text, end))
        or _BEFORE_REFERENCE.search(before)
        or (whole != "0" and text[end : end + 1] == ")" and _BEFORE_EQUATION.search(before))
        or _is_date(before, text[end : end + _LOOK_BACK], whole, fraction)
        or _is_time(before, text[end : end + _LOOK_BACK], whole, fraction)
    )


def _is_thousands(whole: str, fraction: str) -> bool:
    return len(fraction) == 3 and whole != "0" and len(whole) <= 3


def _is_date(before: str, behind: str, whole: str, fraction: str) -> bool:
    """Day and month: with a full stop amid a sentence, or after a word like "am"."""
    if not (1 <= int(whole[:4]) <= 31 and 1 <= int(fraction[:4]) <= 12 and len(fraction) <= 2):
        return False
    return behind[:2] in (". ", ".-", ".–") or bool(_BEFORE_DATE.search(before))


def _is_time(before: str, behind: str, whole: str, fraction: str) -> bool:
    is_clock = int(whole[:4]) <= 24 and len(fraction) == 2 and int(fraction) < 60
    return is_clock and bool(_BEFORE_TIME.search(before) or _BEHIND_TIME.match(behind))
