"""Where the model of language identification is found, and what is said where it is not."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from sft_toolkit.labelers import identifier


@pytest.fixture(autouse=True)
def model_is_looked_for_again() -> Iterator[None]:
    for cached in (identifier._model, identifier.known_languages):
        cached.cache_clear()
    yield
    for cached in (identifier._model, identifier.known_languages):
        cached.cache_clear()


def test_the_environment_variable_names_the_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    copy = tmp_path / "named.ftz"
    copy.write_bytes(identifier._model_path().read_bytes())
    monkeypatch.setenv(identifier.MODEL_VARIABLE, str(copy))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert identifier.identify("Das ist ein deutscher Satz.")[0] == "de"
    assert len(identifier.known_languages()) == 176


def test_a_missing_model_is_one_line_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(identifier.MODEL_VARIABLE, str(tmp_path / "none.ftz"))
    with pytest.raises(FileNotFoundError, match=r"^KOLIBRI_SFT_LID176=.*none.ftz: no such file; it names lid.176.ftz"):
        identifier.identify("a")
    monkeypatch.delenv(identifier.MODEL_VARIABLE)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match=r"download https://.*lid.176.ftz and set KOLIBRI_SFT_LID176"):
        identifier.identify("a")


def test_one_package_is_the_module_fasttext_and_it_trains() -> None:
    import fasttext

    assert callable(fasttext.train_supervised)
