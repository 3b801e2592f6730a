"""What everyday chat is made of, written by hand."""

from __future__ import annotations

GREETINGS = {
    "de": (
        ("Hallo!", "Hallo! Wie kann ich helfen?"),
        ("Guten Morgen", "Guten Morgen!"),
        ("Bist du da?", "Ja, was gibt es?"),
        ("Moin", "Moin! Was liegt an?"),
        ("Servus!", "Servus! Womit fangen wir an?"),
        ("Gute Nacht", "Gute Nacht, schlaf gut!"),
        ("Test", "Angekommen."),
        ("Wie geht's?", "Gut, danke! Und dir?"),
        ("Erzähl einen Witz.", "Was ist orange und läuft durch den Wald? Eine Wanderine."),
        ("Sag etwas Nettes.", "Schön, dass du da bist."),
        ("Grüß Gott", "Grüß Gott! Was darf es sein?"),
        ("Langweilig heute.", "Dann lass uns etwas spielen: Ich denke an ein Tier, rate!"),
        ("Ja oder nein?", "Ja. Worum geht es?"),
        ("Kopf oder Zahl?", "Kopf."),
        ("Tschüss", "Tschüss, bis bald!"),
    ),
    "en": (
        ("Hi", "Hi!"),
        ("Hello there", "Hello! What can I do for you?"),
        ("Good morning", "Good morning!"),
        ("Are you there?", "Yes, what is it?"),
        ("Hey", "Hey! What's up?"),
        ("Good night", "Good night, sleep well!"),
        ("Testing", "It works."),
        ("How are you?", "Fine, thanks! And you?"),
        ("Tell me a joke.", "What do you call a fish without eyes? A fsh."),
        ("Say something nice.", "I am glad that you are here."),
        ("Heads or tails?", "Heads."),
        ("Bored today.", "Then let us play: I am thinking of an animal, guess!"),
        ("Yes or no?", "Yes. What is it about?"),
        ("Welcome back", "Thank you! Where were we?"),
        ("Bye", "Bye, see you soon!"),
    ),
}
WORDS = (
    (
        "der Schmetterling",
        "the butterfly",
        "Der Schmetterling sitzt auf der Blume.",
        "The butterfly is sitting on the flower.",
    ),
    ("das Eichhörnchen", "the squirrel", "Das Eichhörnchen vergräbt Nüsse.", "The squirrel is burying nuts."),
    ("die Brücke", "the bridge", "Die Brücke führt über den Fluss.", "The bridge leads across the river."),
    ("der Kühlschrank", "the fridge", "Der Kühlschrank ist leer.", "The fridge is empty."),
    ("die Straßenbahn", "the tram", "Die Straßenbahn kommt in fünf Minuten.", "The tram comes in five minutes."),
    ("das Gewürz", "the spice", "Dieses Gewürz passt zu Reis.", "This spice goes well with rice."),
    ("der Regenschirm", "the umbrella", "Nimm einen Regenschirm mit.", "Take an umbrella with you."),
    ("die Gießkanne", "the watering can", "Die Gießkanne steht im Garten.", "The watering can is in the garden."),
    ("das Geländer", "the railing", "Halte dich am Geländer fest.", "Hold on to the railing."),
    ("der Schlüssel", "the key", "Ich finde den Schlüssel nicht.", "I cannot find the key."),
    ("die Küste", "the coast", "Wir wandern an der Küste entlang.", "We are hiking along the coast."),
    ("der Löffel", "the spoon", "Der Löffel liegt neben der Tasse.", "The spoon lies next to the cup."),
)
PACKING = {
    "de": {
        "ans Meer": ("Badesachen", "Sonnencreme", "ein Buch", "eine Windjacke", "ein Handtuch", "Sandalen"),
        "in die Berge": (
            "Wanderschuhe",
            "eine Regenjacke",
            "eine Mütze",
            "eine Trinkflasche",
            "Blasenpflaster",
            "eine Karte",
        ),
        "in eine Großstadt": (
            "bequeme Schuhe",
            "ein Ladekabel",
            "eine Tagestasche",
            "den Ausweis",
            "einen Schirm",
            "etwas Bargeld",
        ),
    },
    "en": {
        "at the sea": ("swimwear", "sun cream", "a book", "a windbreaker", "a towel", "sandals"),
        "in the mountains": ("hiking boots", "a rain jacket", "a woolly hat", "a water bottle", "plasters", "a map"),
        "in a big city": (
            "comfortable shoes",
            "a charging cable",
            "a day bag",
            "your passport",
            "an umbrella",
            "some cash",
        ),
    },
}
OUTINGS = {
    "de": (
        ("Stadtmuseum", 90),
        ("Bootsfahrt", 60),
        ("Wochenmarkt", 45),
        ("botanischer Garten", 75),
        ("Turmbesteigung", 40),
        ("Kaffeehaus", 50),
        ("Altstadtführung", 90),
        ("Zoo", 120),
    ),
    "en": (
        ("city museum", 90),
        ("boat trip", 60),
        ("market", 45),
        ("botanical garden", 75),
        ("tower climb", 40),
        ("coffee house", 50),
        ("guided tour of the old town", 90),
        ("zoo", 120),
    ),
}
DISHES = {
    "de": (
        (
            "Kartoffelsuppe",
            ("Kartoffeln", "Lauch", "Karotten", "Brühe", "Majoran"),
            (
                "Kartoffeln, Lauch und Karotten klein schneiden.",
                "In etwas Öl andünsten, mit Brühe bedecken.",
                "20 Minuten kochen, halb zerstampfen, mit Majoran würzen.",
            ),
        ),
        (
            "Käsespätzle",
            ("Mehl", "Eier", "Bergkäse", "Zwiebeln", "Butter"),
            (
                "Aus Mehl, Eiern, Wasser und Salz einen zähen Teig schlagen.",
                "In siedendes Wasser schaben, oben schwimmende Spätzle abschöpfen.",
                "Mit Käse schichten und mit gerösteten Zwiebeln bedecken.",
            ),
        ),
        (
            "Linsensalat",
            ("Linsen", "Äpfel", "Sellerie", "Essig", "Öl"),
            (
                "Linsen bissfest kochen und abkühlen lassen.",
                "Apfel und Sellerie fein würfeln.",
                "Mit Essig, Öl, Salz und Pfeffer mischen.",
            ),
        ),
        (
            "Apfelstrudel",
            ("Strudelteig", "Äpfel", "Rosinen", "Zimt", "Butter"),
            (
                "Äpfel schälen und in Scheiben schneiden.",
                "Mit Rosinen, Zimt und Zucker auf den Teig geben und einrollen.",
                "Mit Butter bestreichen und 35 Minuten bei 190 Grad backen.",
            ),
        ),
    ),
    "en": (
        (
            "tomato soup",
            ("tomatoes", "onions", "stock", "cream", "basil"),
            (
                "Soften the onions in oil.",
                "Add tomatoes and stock, and cook for 20 minutes.",
                "Blend, stir in cream, and add basil.",
            ),
        ),
        (
            "mushroom risotto",
            ("rice", "mushrooms", "onions", "stock", "cheese"),
            (
                "Fry onions and rice until the rice is glassy.",
                "Add hot stock ladle by ladle, stirring.",
                "After 18 minutes fold in fried mushrooms and cheese.",
            ),
        ),
        (
            "bean salad",
            ("white beans", "red onions", "parsley", "vinegar", "oil"),
            (
                "Rinse the beans.",
                "Slice the onions thinly and chop the parsley.",
                "Mix with vinegar, oil, salt and pepper.",
            ),
        ),
        (
            "apple crumble",
            ("apples", "flour", "butter", "sugar", "cinnamon"),
            (
                "Cut the apples into pieces and put them in a dish.",
                "Rub flour, butter and sugar into crumbs and scatter them on top.",
                "Bake for 35 minutes at 190 degrees.",
            ),
        ),
    ),
}
PROVERBS = {
    "de": (
        ("Morgenstund hat Gold im Mund", "Wer früh anfängt, schafft mehr."),
        ("Viele Köche verderben den Brei", "Wenn zu viele mitreden, wird das Ergebnis schlechter."),
        (
            "Wer im Glashaus sitzt, soll nicht mit Steinen werfen",
            "Wer selbst Fehler hat, sollte andere nicht dafür tadeln.",
        ),
        ("Aller Anfang ist schwer", "Neues fällt zuerst nicht leicht; das gibt sich."),
        ("Der Apfel fällt nicht weit vom Stamm", "Kinder ähneln ihren Eltern."),
        ("Steter Tropfen höhlt den Stein", "Mit Ausdauer erreicht man auch Schwieriges."),
        ("Übung macht den Meister", "Durch Wiederholen wird man gut."),
        ("Ende gut, alles gut", "Geht es gut aus, zählt der Ärger davor nicht mehr."),
        ("Stille Wasser sind tief", "Wer wenig sagt, hat oft mehr zu bieten, als man denkt."),
        ("Wie man in den Wald hineinruft, so schallt es heraus", "Man wird so behandelt, wie man andere behandelt."),
    ),
    "en": (
        ("A stitch in time saves nine", "A small repair now saves a big one later."),
        ("Too many cooks spoil the broth", "When too many people join in, the result gets worse."),
        ("Birds of a feather flock together", "People who are alike like to be together."),
        ("Look before you leap", "Think before you act."),
        ("Practice makes perfect", "By repeating something you get good at it."),
        ("Rome was not built in a day", "Big things take time."),
        ("Still waters run deep", "A quiet person may have more to offer than it seems."),
        ("The early bird catches the worm", "Who starts early has the better chances."),
        ("All's well that ends well", "If the end is good, earlier trouble no longer counts."),
        ("Actions speak louder than words", "What you do counts more than what you say."),
    ),
}
