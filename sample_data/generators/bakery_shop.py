"""The bakery behind the tools: what they declare, and a shift in which stock and till answer from their state."""

from __future__ import annotations

import json
import random
from typing import Any

from generators.common import REASONING_FORMS, money

SYSTEM = {
    "de": "Du hilfst in der Bäckerei Morgenrot. Nutze die Werkzeuge und antworte kurz.",
    "en": "You help in the bakery Morgenrot. Use the tools and answer briefly.",
}


INGREDIENTS = (
    "Weizenmehl",
    "Roggenmehl",
    "Hefe",
    "Butter",
    "Zucker",
    "Mohn",
    "Sesam",
    "Haselnüsse",
    "Milch",
    "Rosinen",
)


ENGLISH = dict(
    zip(
        INGREDIENTS,
        (
            "wheat flour",
            "rye flour",
            "yeast",
            "butter",
            "sugar",
            "poppy seed",
            "sesame",
            "hazelnuts",
            "milk",
            "raisins",
        ),
        strict=True,
    )
)


def _tool(name: str, description: str, required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = [
    _tool(
        "buche_einnahme",
        "Bucht eine Einnahme in die Kasse.",
        ["betrag"],
        betrag={"type": "number", "description": "Betrag in Euro"},
    ),
    _tool("lies_bestand", "Nennt den Bestand einer Zutat in Kilogramm.", ["zutat"], zutat={"type": "string"}),
    _tool(
        "bestelle",
        "Bestellt eine Zutat beim Großhandel.",
        ["zutat", "kilogramm"],
        zutat={"type": "string"},
        kilogramm={"type": "integer", "minimum": 1, "maximum": 200},
        eilig={"type": "boolean", "default": False},
    ),
    _tool(
        "heize_ofen",
        "Stellt einen Ofen auf eine Temperatur.",
        ["ofen", "grad"],
        ofen={"type": "integer", "enum": [1, 2]},
        grad={"type": "integer", "minimum": 50, "maximum": 280},
    ),
    _tool("kassenstand", "Nennt die Summe der Einnahmen von heute in Euro.", []),
]


class Shift:
    """A conversation with the assistant in one shift, and the state of the shop behind its tools."""

    def __init__(self, draw: random.Random, language: str) -> None:
        self.draw = draw
        self.language = language
        self.stock = {name: draw.randint(2, 60) for name in INGREDIENTS}
        self.takings = draw.randint(2_000, 60_000)
        self.thinks = draw.random() < 0.8
        self.form = draw.choice([form for form in REASONING_FORMS if form != "part"])
        self.as_text = draw.random() < 0.5
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM[language]}]
        self._calls = 0

    def choose(self, german: str, english: str) -> str:
        return german if self.language == "de" else english

    def money(self, cents: int) -> str:
        return money(cents, self.language)

    def ingredient(self, name: str) -> str:
        return name if self.language == "de" else ENGLISH[name]

    def ask(self, german: str, english: str) -> None:
        self.messages.append({"role": "user", "content": self.choose(german, english)})

    def say(self, german: str, english: str, thought: tuple[str, str] | None = None) -> None:
        self._speak({"role": "assistant", "content": self.choose(german, english)}, thought)

    def call(self, thought: tuple[str, str], *calls: tuple[str, Any, str]) -> None:
        """One turn of calls, each (tool, arguments, result); arguments that are text go in as they are."""
        entries, results = [], []
        for name, arguments, result in calls:
            self._calls += 1
            identity = f"{name[:3]}{self._calls}"
            given = (
                json.dumps(arguments, ensure_ascii=False)
                if self.as_text and not isinstance(arguments, str)
                else arguments
            )
            entries.append({"id": identity, "type": "function", "function": {"name": name, "arguments": given}})
            results.append({"role": "tool", "tool_call_id": identity, "content": result})
        self._speak({"role": "assistant", "content": "", "tool_calls": entries}, thought)
        self.messages += results

    def _speak(self, message: dict[str, Any], thought: tuple[str, str] | None) -> None:
        if thought and self.thinks:
            text = self.choose(*thought)
            if self.form == "tags":
                message["content"] = f"<think>\n{text}\n</think>\n\n{message['content']}"
            else:
                message[self.form] = text
        self.messages.append(message)

    def book(self, cents: int) -> str:
        self.takings += cents
        return json.dumps({"gebucht": cents / 100, "kasse": self.takings / 100})
