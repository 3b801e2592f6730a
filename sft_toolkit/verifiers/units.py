"""Units and scale words behind a number: which are the same, and which convert exactly."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

_LENGTH = {"m": 1, "km": 1000, "dm": Fraction(1, 10), "cm": Fraction(1, 100), "mm": Fraction(1, 1000)}
_MASS = {"kg": 1, "g": Fraction(1, 1000), "mg": Fraction(1, 10**6), "t": 1000}
_VOLUME = {"l": 1, "dl": Fraction(1, 10), "cl": Fraction(1, 100), "ml": Fraction(1, 1000), "hl": 100}
_TIME = {"s": 1, "min": 60, "h": 3600, "d": 86400}
_AREA = {"m2": 1, "cm2": Fraction(1, 10**4), "km2": 10**6, "ha": 10**4}
_SPACE = {"m3": 1, "cm3": Fraction(1, 10**6), "dm3": Fraction(1, 1000)}
_MONEY: dict[str, dict[str, Any]] = {
    "EUR": {"EUR": 1, "ct": Fraction(1, 100)},
    "USD": {"USD": 1},
    "CHF": {"CHF": 1, "Rp": Fraction(1, 100)},
}
_ALONE = ("GBP", "degC", "degF", "deg", "km/h", "m/s", "kWh", "W", "V", "B", "pp", "wk", "mo", "yr")
_SYSTEMS: list[Mapping[str, Any]] = [
    *(_LENGTH, _MASS, _VOLUME, _TIME, _AREA, _SPACE),
    *_MONEY.values(),
    *({name: 1} for name in _ALONE),
]
_MEASURES = {
    unit: (index, Fraction(factor)) for index, system in enumerate(_SYSTEMS) for unit, factor in system.items()
}

_SPELLINGS = {
    "m": "m meter metern mètre mètres metre metres meters",
    "km": "km kilometer kilometern kilomètre kilomètres kilometers kilometre kilometres",
    "dm": "dm dezimeter",
    "cm": "cm zentimeter zentimetern centimeter centimeters centimetre centimetres centimètre centimètres",
    "mm": "mm millimeter millimetern millimeters millimetre millimetres millimètre millimètres",
    "kg": "kg kilo kilos kilogramm kilogram kilograms kilogramme kilogrammes",
    "g": "g gramm gram grams gramme grammes",
    "mg": "mg milligramm milligram milligrams milligrammes",
    "t": "t tonne tonnen tonnes",
    "l": "l liter litern litre litres liters",
    "dl": "dl deziliter",
    "cl": "cl zentiliter",
    "ml": "ml milliliter millilitern millilitre millilitres milliliters",
    "hl": "hl hektoliter",
    "s": "s sek sekunde sekunden sec second seconds seconde secondes",
    "min": "min minute minuten minutes",
    "h": "h std stunde stunden hour hours hr hrs heure heures",
    "d": "tag tage tagen day days jour jours",
    "wk": "woche wochen week weeks semaine semaines",
    "mo": "monat monate monaten month months mois",
    "yr": "jahr jahre jahren year years an ans année années",
    "m2": "m² m2 m^2 qm quadratmeter quadratmetern",
    "cm2": "cm² cm2 cm^2 quadratzentimeter",
    "km2": "km² km2 km^2 quadratkilometer",
    "ha": "ha hektar",
    "m3": "m³ m3 m^3 kubikmeter kubikmetern",
    "cm3": "cm³ cm3 cm^3 kubikzentimeter",
    "dm3": "dm³ dm3 dm^3 kubikdezimeter",
    "EUR": "€ eur euro euros",
    "ct": "ct cent cents",
    "USD": "$ usd dollar dollars us-dollar",
    "CHF": "chf fr fr. franken sfr",
    "Rp": "rp rappen",
    "GBP": "£ gbp pound pounds pfund",
    "degC": "°c",
    "degF": "°f",
    "deg": "° grad degrees degree degrés degré",
    "km/h": "km/h",
    "m/s": "m/s",
    "kWh": "kwh",
    "pp": "prozentpunkt prozentpunkte prozentpunkten",
}
_UNITS: Final = {word: unit for unit, words in _SPELLINGS.items() for word in words.split()}

_LONG = {"de": 12, "fr": 12}
_SCALES = {
    "tsd": 3, "tausend": 3, "thousand": 3, "mille": 3, "lakh": 5, "lakhs": 5, "mio": 6, "million": 6, "millionen": 6,
    "millions": 6, "crore": 7, "crores": 7, "mrd": 9, "milliarde": 9, "milliarden": 9, "milliard": 9, "milliards": 9,
    "md": 9, "bn": 9, "trillionen": 18,
}  # fmt: skip
_BY_LANGUAGE = {"billion", "billions", "billionen", "bio"}


def scale_of(word: str, language: str) -> int | None:
    """The power of ten that a scale word names, None where it is none. A billion is 10^9 in English alone."""
    plain = word.lower().rstrip(".")
    if plain in _BY_LANGUAGE:
        return 12 if plain in ("billionen", "bio") else _LONG.get(language[:2], 9)
    return _SCALES.get(plain)


def unit_of(word: str) -> str:
    """The unit's own name where the word is known, else the word in small letters."""
    return _UNITS.get(word.lower(), _UNITS.get(word.lower().rstrip("."), word.lower().rstrip(".")))


def is_known(unit: str) -> bool:
    return unit in _MEASURES


def factor_between(unit: str, other: str) -> Fraction | None:
    """What one of `unit` is of `other`, exactly; None where they measure different things or one is unknown."""
    if unit not in _MEASURES or other not in _MEASURES:
        return None
    (system, factor), (other_system, other_factor) = _MEASURES[unit], _MEASURES[other]
    return factor / other_factor if system == other_system else None


def same_word(unit: str, other: str) -> bool:
    """True for unknown units that differ in an ending alone: Stein, Steine."""
    short, long = sorted((unit, other), key=len)
    return long.startswith(short) and len(long) - len(short) <= 2 and len(short) >= 2
