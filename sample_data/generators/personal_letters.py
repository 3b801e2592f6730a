"""Letters to friends: invitation, apology."""

from __future__ import annotations

from generators.letter_scene import Letter, Scene

OCCASIONS = {
    "de": (
        ("Gartenfest", "hinter dem Haus"),
        ("60. Geburtstag", "im Gasthaus Zur Linde"),
        ("Einzug", "in der neuen Wohnung"),
        ("Spieleabend", "bei mir"),
    ),
    "en": (
        ("garden party", "behind the house"),
        ("60th birthday", "at the Linden Inn"),
        ("housewarming", "at the new flat"),
        ("games evening", "at my place"),
    ),
}


def invitation(scene: Scene) -> Letter:
    draw, language = scene.draw, scene.language
    (occasion, place), hour = draw.choice(OCCASIONS[language]), draw.randint(15, 19)
    name, first = scene.other_first, scene.writer.split()[0]
    if language == "de":
        brings = scene.pick("einen Salat", "gute Laune", "einen Kuchen", "ein Spiel")
        return Letter(
            "Schreibe eine herzliche Einladung.",
            f"Anlass: {occasion}, {place}, am {scene.date()} um {hour} Uhr. An: {name}. Von: {first}. Mitbringen:"
            f" {brings}.",
            f"Persönlich und kurz. Hinein gehören: Anlass ({occasion}), Ort, {scene.date()}, {hour} Uhr, {brings},"
            " Bitte um Antwort.",
            f"Hallo {name},\n\nes ist so weit: {occasion}! Ich lade dich herzlich ein, und zwar {place} am"
            f" {scene.date()} um {hour} Uhr.\n\n"
            + scene.pick(
                "Es gibt reichlich zu essen, und wer mag, bleibt länger.",
                "Wir sind eine kleine Runde, du kennst die meisten.",
                "Kinder sind willkommen.",
            )
            + f" Bring bitte {brings} mit und sag mir kurz Bescheid, ob du kommst.\n\nIch freue mich auf"
            f" dich!\n{first}",
        )
    brings = scene.pick("a salad", "good cheer", "a cake", "a game")
    return Letter(
        "Write a warm invitation.",
        f"Occasion: {occasion}, {place}, on {scene.date()} at {hour}:00. To: {name}. From: {first}. Bring: {brings}.",
        f"Personal and short. It needs the occasion ({occasion}), the place, {scene.date()}, {hour}:00, {brings}, and a"
        " request to answer.",
        f"Dear {name},\n\nthe time has come: {occasion}! I would love to have you there, {place}, on {scene.date()} at"
        f" {hour}:00.\n\n"
        + scene.pick(
            "There will be plenty to eat, and whoever likes can stay longer.",
            "It is a small circle; you know most of them.",
            "Children are welcome.",
        )
        + f" Please bring {brings}, and let me know whether you can come.\n\nLooking forward to seeing you,\n{first}",
    )


def apology(scene: Scene) -> Letter:
    name, first, language = scene.other_first, scene.writer.split()[0], scene.language
    if language == "de":
        missed, why = scene.draw.choice(
            (
                ("dein Konzert verpasst", "der Zug fiel aus"),
                ("unser Treffen vergessen", "ich hatte es falsch notiert"),
                ("dir das Buch so spät zurückgegeben", "es lag unter einem Stapel"),
                ("deinen Anruf nicht erwidert", "mein Telefon war in der Reparatur"),
            )
        )
        return Letter(
            "Hilf mir bei einer Entschuldigung.",
            f"Ich habe {missed}, denn {why}. An: {name}. Von: {first}.",
            "Nicht lange rechtfertigen: sagen, was war, dass es leidtut, und etwas anbieten.",
            f"Hallo {name},\n\nes tut mir leid, dass ich {missed} habe. Der Grund ist schnell erzählt: {why}. Eine"
            " Ausrede soll das nicht sein.\n\n"
            + scene.pick(
                "Darf ich dich am Wochenende zum Essen einladen?",
                "Ich mache es wieder gut, versprochen.",
                "Lass uns einen neuen Termin finden, ich richte mich nach dir.",
            )
            + f"\n\nHerzliche Grüße\n{first}",
        )
    missed, why = scene.draw.choice(
        (
            ("missed your concert", "my train was cancelled"),
            ("forgot our meeting", "I had noted the wrong day"),
            ("returned the book so late", "it lay under a pile"),
            ("did not call back", "my phone was being repaired"),
        )
    )
    return Letter(
        "Help me apologise.",
        f"I {missed}, because {why}. To: {name}. From: {first}.",
        "No long excuses: say what happened, that I am sorry, and offer something.",
        f"Dear {name},\n\nI am sorry that I {missed}. The reason is quickly told: {why}. That is not meant as an"
        " excuse.\n\n"
        + scene.pick(
            "May I invite you to dinner at the weekend?",
            "I will make up for it, I promise.",
            "Let us find a new date; I will fit in with yours.",
        )
        + f"\n\nYours,\n{first}",
    )
