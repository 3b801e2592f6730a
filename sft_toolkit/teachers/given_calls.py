"""Words that say a call was known beforehand: "the call is given to me", "as instructed I justify it".

The writer of backfilled reasoning is shown the call; who reads the reasoning must not learn of that.
"""

from __future__ import annotations

import re

# The noun: "the tools I can call are given above" speaks of no call.
_CALL = (
    r"(?:(?:(?:werkzeug|funktions|tool-?|api-?)aufruf|(?-i:Aufruf))(?:es?|s|en)?"
    r"|(?<!\bi )(?<!\bwe )(?<!\bto )(?<!\bcan )(?<!\bwill )(?<!\bmust )(?<!\bshould )(?:tool |function |api )?calls?"
    r"|appels?(?: d['’]outil)?|llamadas?|chiamat[ae])"
)
_WORDS = r"(?:\s+[\w'’-]+)"  # with how many there may be in between
_PATTERNS = (
    # A call that is given.
    rf"\b{_CALL}{_WORDS}{{0,3}}\s+(?:ist|sind|wurden?|war|waren|steht|stehen){_WORDS}{{0,4}}\s+"
    r"(?:vorgegeben|vorgeschrieben|mitgeteilt|genannt\s+worden|fest\b(?!\w))",
    rf"\b{_CALL}{_WORDS}{{0,3}}\s+(?:ist|sind|wurden?)\s+(?:mir\s+)?(?:bereits|schon|ja)?\s*(?:mir\s+)?(?:gegeben|bekannt)\b",
    rf"\bmir{_WORDS}{{0,2}}\s+(?:wurden?|ist|sind|war){_WORDS}{{0,2}}\s+{_CALL}{_WORDS}{{0,2}}\s+"
    r"(?:vorgegeben|gegeben|gezeigt|mitgeteilt|genannt)",
    rf"\b{_CALL}{_WORDS}{{0,3}}\s+(?:is|are|was|were|ha(?:s|ve){_WORDS}{{0,2}}\s+been){_WORDS}{{0,2}}\s+"
    r"(?:given|prescribed|predetermined|predefined|pre-?specified|dictated|shown\s+to\s+me|provided)\b",
    rf"\b{_CALL}{_WORDS}{{0,2}}\s+(?:is|are)\s+already\s+(?:known|fixed|decided|set|settled)\b",
    rf"\b(?:i\s+(?:was|am|have\s+been)|we\s+(?:were|are))\s+(?:given|shown|told|provided\s+with){_WORDS}{{0,3}}\s+{_CALL}\b",
    rf"\b{_CALL}{_WORDS}{{0,3}}\s+(?:est|sont|a\s+été|m['’]est){_WORDS}{{0,2}}\s+"
    r"(?:donnée?s?|imposée?s?|fournie?s?|indiquée?s?)\b",
    rf"\b{_CALL}{_WORDS}{{0,3}}\s+(?:est[áa]|están|ha\s+sido|viene){_WORDS}{{0,2}}\s+(?:dad[ao]s?|indicad[ao]s?|fijad[ao]s?)\b",
    rf"\b{_CALL}{_WORDS}{{0,3}}\s+(?:è|sono|mi\s+è){_WORDS}{{0,2}}\s+(?:dat[aeio]|indicat[aeio]|fornit[aeio])\b",
    rf"\b{_CALL}{_WORDS}{{0,2}}\s+(?:fest|bereits\s+fest)(?:steht|stand|stehen)\b",
    rf"\bkenne{_WORDS}{{0,2}}\s+{_CALL}(?:{_WORDS}{{0,1}}\s+(?:bereits|schon))|\b(?:bereits|schon){_WORDS}{{0,2}}\s+{_CALL}\s+kenne\b",
    rf"\balready\s+know\s+(?:which|what|the){_WORDS}{{0,2}}\s*{_CALL}\b",
    r"\b(?:die\s+lösung|the\s+solution)\s+(?:ist|is)\s+(?:mir\s+|to\s+me\s+|bereits\s+|already\s+)*"
    r"(?:vorgegeben|given)\b(?!\s+(?:by|in|durch|als)\b)",
    # The given call.
    rf"\b(?:d(?:er|en|em|es|ie)|diese[rnms]?)\s+(?:mir\s+)?(?:bereits\s+)?(?:vor)?ge(?:geben|schrieben)e[nrms]?{_WORDS}{{0,1}}\s+{_CALL}\b",
    r"\b(?i:ziel(?:werkzeug|funktions|tool-?)?aufruf)(?:e[sn]?|s)?\b",
    rf"\b(?:the|this|these|that|those)\s+(?:already\s+)?"
    rf"(?:given|provided|prescribed|predetermined|predefined|target|expected|required\s+next){_WORDS}{{0,1}}\s+{_CALL}\b",
    r"\bl['’]appel\s+(?:donné|fourni|imposé|indiqué)|\bla\s+llamada\s+(?:dada|indicada)|\bla\s+chiamata\s+(?:data|fornita|indicata)",
    # An instruction to justify.
    rf"\b(?:begründ|rechtfertig)(?:e|en|et)\b{_WORDS}{{0,4}}\s+{_CALL}\b",
    rf"\b{_CALL}{_WORDS}{{0,3}}\s+(?:zu\s+)?(?:begründen|rechtfertigen)\b",
    rf"\b(?:laut|gemäß|entsprechend)\s+(?:der\s+|meiner\s+)?(?:anweisung|aufgabenstellung|vorgabe)\b{_WORDS}{{0,3}}\s+"
    r"(?:begründ|rechtfertig|erklär|erläuter|herleit)\w*",
    rf"\b(?:wie\s+(?:angewiesen|verlangt|gefordert|vorgegeben)){_WORDS}{{0,3}}\s+(?:begründ|rechtfertig|herleit)\w*",
    rf"\b(?:justify|justifying|rationali[sz]e|rationali[sz]ing)\b{_WORDS}{{0,4}}\s+{_CALL}\b",
    r"\bas\s+(?:instructed|requested|told|asked)\b[,\s]+i\s+(?:now\s+|will\s+)*(?:justify|explain|write|give|derive|reason)\b",
    r"\b(?:asked|told|instructed|supposed|required)\s+to\s+(?:write|give|provide|produce|supply|justify)\s+(?:\w+\s+){0,2}"
    r"(?:reasoning|justification|rationale|thoughts?)\b",
    rf"\bsoll{_WORDS}{{0,5}}\s+(?:begründung|herleitung|gedankengang|überlegung(?:en)?){_WORDS}{{0,3}}\s+"
    r"(?:schreiben|liefern|verfassen|formulieren|geben|aufschreiben)\b",
    rf"\b(?:lead|leads|leading)\s+(?:\w+\s+){{0,2}}to\s+exactly\s+(?:\w+\s+){{0,2}}{_CALL}\b",
    rf"\b(?:führt|führen|hinführen)\s+(?:\w+\s+){{0,2}}genau\s+zu\s+(?:\w+\s+){{0,2}}{_CALL}\b",
    rf"\bjustifi(?:er|e|ant)\b{_WORDS}{{0,3}}\s+{_CALL}\b|\bjustific(?:ar|o|ando)\b{_WORDS}{{0,3}}\s+{_CALL}\b"
    rf"|\bgiustific(?:are|o|ando)\b{_WORDS}{{0,3}}\s+{_CALL}\b",
)
_GIVEN = re.compile("|".join(_PATTERNS), re.IGNORECASE)


def says_given(text: str) -> bool:
    """Whether `text` says that its writer knew the call: in German, English, French, Spanish or Italian."""
    return _GIVEN.search(text) is not None
