"""Questions that are explained rather than computed, written by hand: (question, thought or "", answer)."""

from __future__ import annotations

FACTS: tuple[tuple[str, str, str], ...] = (
    (
        "Warum ist der Himmel blau?",
        (
            "Es geht um Streuung an den Molekülen der Luft. Kurzwelliges Licht wird viel stärker gestreut als"
            " langwelliges, ungefähr mit der vierten Potenz der Frequenz. Blau kommt deshalb von überall her."
        ),
        (
            "Sonnenlicht trifft auf die Moleküle der Luft. Sie streuen blaues Licht weit stärker als rotes, darum kommt"
            " aus allen Richtungen des Himmels vor allem Blau in unser Auge."
        ),
    ),
    (
        "Why is the sky red in the evening?",
        (
            "In the evening light takes a long way through the air. The blue part is scattered out on the way, and what"
            " is left is red."
        ),
        (
            "The sun stands low, so its light crosses much more air. On that long way most of the blue is scattered"
            " aside, and mainly red and orange reach us."
        ),
    ),
    (
        "Warum schwimmt Eis auf Wasser?",
        "Dichte vergleichen: Eis etwa 0,92 g/cm³, Wasser etwa 1,00 g/cm³. Grund: das Kristallgitter ist weiträumig.",
        (
            "Eis hat eine geringere Dichte als Wasser, denn im Kristall sind die Moleküle weiter voneinander entfernt."
            " Etwa ein Zwölftel eines Eisbergs ragt deshalb heraus."
        ),
    ),
    (
        "What do plants need for photosynthesis?",
        "",
        "Light, water and carbon dioxide. With the help of chlorophyll they make sugar from them and give off oxygen.",
    ),
    (
        "Wie entstehen Ebbe und Flut?",
        (
            "Der Mond zieht das Wasser auf der ihm zugewandten Seite stärker an als die Erde im Ganzen, und die"
            " abgewandte Seite schwächer. Daher zwei Flutberge. Die Sonne wirkt ebenso, etwa halb so stark."
        ),
        (
            "Die Anziehung des Mondes ist auf der ihm nahen Seite der Erde stärker als auf der fernen. So entstehen"
            " zwei Flutberge, unter denen sich die Erde hindurchdreht: ungefähr zweimal am Tag Hochwasser."
        ),
    ),
    (
        "Why do we have seasons?",
        (
            "Not the distance from the sun: in January the earth is nearest. It is the tilt of the axis by about 23"
            " degrees."
        ),
        (
            "The axis of the earth is tilted by about 23 degrees. For half a year the northern half leans towards the"
            " sun and gets longer days and steeper light; for the other half it is the southern one."
        ),
    ),
    (
        "Wozu dient die Leber?",
        "",
        (
            "Sie baut Giftstoffe ab, speichert Zucker, bildet Galle für die Fettverdauung und stellt viele Eiweiße des"
            " Blutes her."
        ),
    ),
    (
        "What is the difference between weather and climate?",
        "",
        (
            "Weather is what happens in the air today or this week; climate is its average over decades. One cold"
            " winter is weather, a trend over thirty years is climate."
        ),
    ),
    (
        "Warum klebt Honig?",
        (
            "Honig ist eine stark konzentrierte Zuckerlösung. Er ist zäh und benetzt die Haut; beides zusammen"
            " empfinden wir als klebrig."
        ),
        (
            "Honig besteht zum größten Teil aus Zucker und nur zu etwa 18 % aus Wasser. Er fließt zäh, haftet an der"
            " Haut und zieht Fäden, bevor er reißt: das fühlt sich klebrig an."
        ),
    ),
    (
        "Why does salt melt ice on the road?",
        (
            "Salt lowers the freezing point: dissolved ions hinder the water from joining the crystal. At -5 degrees"
            " salty water is still liquid, but at -25 the usual salt no longer helps."
        ),
        (
            "Salt dissolves in the thin film of water on the ice and lowers its freezing point, so more ice melts. It"
            " works down to roughly -10 degrees in practice; in great cold it hardly helps."
        ),
    ),
    (
        "Was ist ein Katalysator?",
        "",
        (
            "Ein Stoff, der eine chemische Reaktion beschleunigt und selbst unverändert daraus hervorgeht. Enzyme sind"
            " Katalysatoren der Natur."
        ),
    ),
    (
        "How does a vaccine work?",
        "",
        (
            "It shows the immune system a harmless piece or form of a germ. The body makes antibodies and memory cells,"
            " and so reacts faster when the real germ comes."
        ),
    ),
    (
        "Warum haben Wüstenfüchse große Ohren?",
        "Große Oberfläche, viele Blutgefäße: Wärme kann abgegeben werden. Dazu hören sie Beute im Sand.",
        (
            "Über die großen, gut durchbluteten Ohren geben sie Wärme ab. Außerdem hören sie damit Käfer und Mäuse"
            " unter dem Sand."
        ),
    ),
    (
        "What makes a rainbow?",
        (
            "Sun behind the viewer, drops in front. Refraction into the drop, reflection at its back, refraction out,"
            " at about 42 degrees; the angle depends on the colour."
        ),
        (
            "Sunlight enters raindrops, is reflected inside them and leaves again. Each colour is bent by a slightly"
            " different amount, so we see them side by side, in a bow about 42 degrees around the point opposite the"
            " sun."
        ),
    ),
    (
        "Wie viele Knochen hat ein erwachsener Mensch?",
        "",
        "Meist 206. Neugeborene haben mehr, denn manche Knochen wachsen erst später zusammen.",
    ),
    (
        "Why can a heavy ship float?",
        (
            "Archimedes: the buoyancy equals the weight of the displaced water. A hull is mostly air, so its mean"
            " density is below that of water."
        ),
        (
            "A ship sinks in until the water that it displaces weighs as much as the ship. Since the hull is mostly"
            " filled with air, that happens long before it is full."
        ),
    ),
    (
        "Warum ist es im Hochgebirge kälter als im Tal?",
        (
            "Man ist der Sonne dort nicht merklich näher. Luft dehnt sich beim Aufsteigen aus und kühlt dabei ab, etwa"
            " 0,65 Grad auf 100 Meter."
        ),
        (
            "Aufsteigende Luft dehnt sich aus, weil der Druck abnimmt, und kühlt dabei ab. Im Mittel sind es etwa 0,65"
            " Grad je 100 Meter."
        ),
    ),
    (
        "What is an isotope?",
        "",
        (
            "Atoms of one element have the same number of protons but may differ in neutrons. Each such kind is an"
            " isotope; carbon-12 and carbon-14 are two of carbon."
        ),
    ),
    (
        "Weshalb rosten Fahrräder?",
        "Rost braucht Eisen, Wasser und Sauerstoff; Salz beschleunigt. Aluminiumteile rosten nicht.",
        (
            "Eisen verbindet sich mit Sauerstoff, wenn Wasser dabei ist; Salz beschleunigt es. Öl und Lack halten das"
            " Wasser fern. Teile aus Aluminium rosten nicht."
        ),
    ),
    ("How far is the moon?", "", "On average about 384,000 km. Light takes roughly 1.3 seconds for the way."),
    (
        "Was machen Bienen im Winter?",
        "",
        (
            "Sie sitzen als Traube dicht beieinander, zittern mit der Flugmuskulatur und halten so die Königin in der"
            " Mitte warm. Sie leben dabei vom eingelagerten Honig."
        ),
    ),
    (
        "Why do leaves turn yellow in autumn?",
        (
            "Chlorophyll is broken down and its nitrogen taken back; the yellow carotenoids were there all along. Red"
            " is made anew by some trees."
        ),
        (
            "The tree takes back the green chlorophyll before it drops its leaves. The yellow dyes had been there all"
            " summer, hidden by the green."
        ),
    ),
    (
        "Warum fällt der Mond nicht auf die Erde?",
        "Er fällt ja, aber mit seitlicher Geschwindigkeit von etwa 1 km/s; die Bahn krümmt sich gerade so wie nötig.",
        (
            "Er fällt fortwährend, fliegt dabei aber mit rund einem Kilometer in der Sekunde zur Seite. So fällt er"
            " immer an der Erde vorbei: das ist seine Bahn."
        ),
    ),
    (
        "What is soap good for?",
        "",
        (
            "A soap molecule has an end that likes water and one that likes fat. It surrounds drops of fat so that"
            " water can carry them away."
        ),
    ),
)
