"""Streams of document lengths as real mixtures of data sets have them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import settings
from numpy.typing import NDArray

from tests.conftest import ROOT

settings.register_profile("no-deadline", deadline=None)  # the first call of a compiled function loads it
settings.load_profile("no-deadline")

Stream = tuple[NDArray[np.int32], NDArray[np.int16]]


@pytest.fixture(scope="session")
def stream() -> Callable[..., Stream]:
    """`stream("even")`: lengths in tokens and data sets of a million documents, as the published figures had."""
    path = ROOT / "benchmarks" / "length_streams.py"
    spec = importlib.util.spec_from_file_location("length_streams", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return cache(lambda kind, n=1_000_000: module.draw(n, kind))
