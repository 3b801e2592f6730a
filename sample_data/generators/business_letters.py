"""Letters to firms and landlords: complaint, cancellation, enquiry."""

from __future__ import annotations

from generators.common import money
from generators.letter_scene import Letter, Scene

GOODS = {
    "de": (
        ("die Kaffeemaschine", "der Wassertank ist undicht"),
        ("die Stehlampe", "der Schalter klemmt"),
        ("das Regal", "ein Brett ist gebrochen"),
        ("die Regenjacke", "der Reißverschluss lässt sich nicht schließen"),
        ("das Fahrradschloss", "der zweite Schlüssel fehlt"),
    ),
    "en": (
        ("the coffee machine", "its water tank leaks"),
        ("the floor lamp", "its switch is stuck"),
        ("the bookshelf", "one board is broken"),
        ("the rain jacket", "its zip does not close"),
        ("the bicycle lock", "the second key is missing"),
    ),
}


CONTRACTS = {
    "de": ("Fitnessvertrag", "Zeitungsabonnement", "Mobilfunkvertrag", "Streaming-Abonnement", "Stromliefervertrag"),
    "en": (
        "gym membership",
        "newspaper subscription",
        "mobile phone contract",
        "streaming subscription",
        "electricity contract",
    ),
}


def complaint(scene: Scene) -> Letter:
    draw, language = scene.draw, scene.language
    thing, defect = draw.choice(GOODS[language])
    order, cents, days = draw.randint(10_000, 99_999), draw.randint(20, 160) * 100 - 1, draw.choice((7, 10, 14))
    price = money(cents, language)
    if language == "de":
        wish = scene.pick("Ersatz", "Reparatur", "Erstattung des Kaufpreises")
        remark = scene.pick("Ein Foto liegt bei.", "Die Ware wurde nicht benutzt.", "Die Verpackung war unbeschädigt.")
        closing = scene.pick("Für Rückfragen erreichen Sie mich jederzeit.", "Bitte bestätigen Sie mir den Eingang.")
        return Letter(
            "Schreibe eine höfliche Reklamation.",
            f"Ware: {thing.split()[1]}, Bestellung {order}, {price}. Mangel: {defect}. Wunsch: {wish}, Frist {days}"
            f" Tage. Absender: {scene.writer}, {scene.city}.",
            f"Eine Reklamation braucht Bestellnummer, Mangel, Wunsch und Frist. Ton: sachlich. Betrag {price}, Frist"
            f" {days} Tage.",
            scene.head(f"Reklamation zu Bestellung {order}")
            + "Sehr geehrte Damen und Herren,\n\n"
            + f"am {scene.date()} habe ich {thing} zum Preis von {price} erhalten. Leider muss ich feststellen:"
            f" {defect}.\n\n" + f"{remark} Ich bitte um {wish} innerhalb von {days} Tagen."
            f" {closing}\n\n" + f"Mit freundlichen Grüßen\n{scene.writer}",
        )
    wish = scene.pick("a replacement", "a repair", "a refund")
    remark = scene.pick("I enclose a photograph.", "It has not been used.", "The packaging was undamaged.")
    closing = scene.pick("Please call me with any questions.", "Please confirm that you have received this letter.")
    return Letter(
        "Write a polite complaint.",
        f"Goods: {thing.split(' ', 1)[1]}, order {order}, {price}. Fault: {defect}. Wish: {wish} within {days} days."
        f" From: {scene.writer}, {scene.city}.",
        f"A complaint needs the order number, the fault, the wish and a deadline. Keep it factual: {price}, {days}"
        " days.",
        scene.head(f"Complaint about order {order}")
        + "Dear Sir or Madam,\n\n"
        + f"On {scene.date()} I received {thing} for {price}. Unfortunately, {defect}.\n\n"
        + f"{remark} I would like to ask for {wish} within {days} days."
        f" {closing}\n\n" + f"Yours faithfully,\n{scene.writer}",
    )


def cancellation(scene: Scene) -> Letter:
    draw, language = scene.draw, scene.language
    contract, customer, months = (
        draw.choice(CONTRACTS[language]),
        draw.randint(100_000, 999_999),
        draw.choice((1, 2, 3)),
    )
    if language == "de":
        ending = {"Fitnessvertrag": "meinen", "Mobilfunkvertrag": "meinen", "Stromliefervertrag": "meinen"}.get(
            contract, "mein"
        )
        return Letter(
            "Formuliere eine Kündigung.",
            f"Vertrag: {contract}, Kundennummer {customer}, zum {scene.date(months)}. Absender: {scene.writer},"
            f" {scene.city}, heute ist der {scene.date()}.",
            f"Eine Kündigung nennt Vertrag, Kundennummer und Datum ({scene.date(months)}), hilfsweise den nächsten"
            " Termin, und bittet um Bestätigung.",
            scene.head(f"Kündigung, Kundennummer {customer}")
            + f"Sehr geehrte Damen und Herren,\n\nhiermit kündige ich {ending} {contract} zum {scene.date(months)},"
            " hilfsweise zum nächstmöglichen Termin.\n\n"
            + "Bitte bestätigen Sie mir die Kündigung und das Vertragsende schriftlich. "
            + scene.pick(
                "Eine erteilte Einzugsermächtigung widerrufe ich zu diesem Zeitpunkt.",
                "Von Rückwerbeversuchen bitte ich abzusehen.",
                "Meine Daten löschen Sie bitte danach.",
            )
            + f"\n\nMit freundlichen Grüßen\n{scene.writer}",
        )
    return Letter(
        "Draft a letter of cancellation.",
        f"Contract: {contract}, customer number {customer}, as of {scene.date(months)}. From: {scene.writer},"
        f" {scene.city}; today is {scene.date()}.",
        f"A cancellation names the contract, the customer number and the date ({scene.date(months)}), failing that the"
        " next possible one, and asks for confirmation.",
        scene.head(f"Cancellation, customer number {customer}")
        + f"Dear Sir or Madam,\n\nI hereby cancel my {contract} as of {scene.date(months)}, or failing that at the next"
        " possible date.\n\n"
        + "Please confirm the cancellation and the end of the contract in writing. "
        + scene.pick(
            "I withdraw my direct debit mandate as of that day.",
            "Please refrain from offers to win me back.",
            "Please delete my data afterwards.",
        )
        + f"\n\nYours faithfully,\n{scene.writer}",
    )


def enquiry(scene: Scene) -> Letter:
    draw, language = scene.draw, scene.language
    adults, children, nights, budget = (
        draw.randint(1, 4),
        draw.randint(0, 3),
        draw.randint(2, 9),
        draw.randint(6, 16) * 10,
    )
    total = money(budget * nights * 100, language)
    if language == "de":
        party = f"{adults} {'Erwachsener' if adults == 1 else 'Erwachsene'}" + (
            f" und {children} {'Kind' if children == 1 else 'Kinder'}" if children else ""
        )
        return Letter(
            "Schreibe eine Anfrage an eine Pension.",
            f"{party}, {nights} Nächte ab {scene.date()}, höchstens {budget} Euro je Nacht. Absender: {scene.writer}.",
            f"Wer, wann, wie lange, wie viel. {nights} Nächte zu {budget} Euro sind höchstens {total}.",
            f"Guten Tag,\n\nwir suchen ab dem {scene.date()} eine Unterkunft für {nights} Nächte: {party}. Unser Rahmen"
            f" liegt bei {budget} Euro je Nacht, insgesamt also höchstens {total}.\n\n"
            + scene.pick(
                "Ist Frühstück dabei?",
                "Gibt es einen Stellplatz für Fahrräder?",
                "Sind Hunde erlaubt?",
                "Wie weit ist es zum Bahnhof?",
            )
            + f" Über ein Angebot freue ich mich.\n\nFreundliche Grüße\n{scene.writer}",
        )
    party = f"{adults} {'adult' if adults == 1 else 'adults'}" + (
        f" and {children} {'child' if children == 1 else 'children'}" if children else ""
    )
    return Letter(
        "Write an enquiry to a guest house.",
        f"{party}, {nights} nights from {scene.date()}, at most {budget} euros a night. From: {scene.writer}.",
        f"Who, when, how long, how much. {nights} nights at {budget} euros are at most {total}.",
        f"Hello,\n\nwe are looking for a place to stay from {scene.date()} for {nights} nights: {party}. Our limit is"
        f" {budget} euros a night, so {total} at most.\n\n"
        + scene.pick(
            "Is breakfast included?",
            "Is there room for bicycles?",
            "Are dogs allowed?",
            "How far is it to the station?",
        )
        + f" I look forward to your offer.\n\nKind regards,\n{scene.writer}",
    )
