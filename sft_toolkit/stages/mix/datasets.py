"""Are the data sets that a mixture takes in the input at all?"""

from __future__ import annotations

from collections.abc import Collection

from sft_toolkit.errors import ToolkitError
from sft_toolkit.near_ids import NearIds
from sft_toolkit.stages.mix.mixture_file import Mixture

_LISTED = 20


def require_datasets(mixture: Mixture, present: Collection[str]) -> None:
    """Raise ToolkitError, which lists those `present`, for an ingredient whose data sets are none of them."""
    known = sorted(filter(None, present))
    for name, ingredient in mixture.ingredients.items():
        sources = ingredient.sources or [name]
        if not set(sources) & set(present):
            raise ToolkitError(f"{name}: no record is of data set {' or '.join(sources)}", _hint(sources, known))


def _hint(wanted: list[str], known: list[str]) -> str:
    if not known:
        return "the records name no data set: `convert(dataset=NAME)` does"
    near = [name for one in wanted for name in _near(one, known)]
    listed = ", ".join(known[:_LISTED]) + (f" and {len(known) - _LISTED} more" if len(known) > _LISTED else "")
    return (f"near it: {', '.join(dict.fromkeys(near))}; " if near else "") + f"there are {listed}"


def _near(wanted: str, known: list[str]) -> list[str]:
    found = NearIds(wanted)
    for name in known:
        found.add(name)
    return found.near
