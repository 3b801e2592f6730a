"""The ids that a mistyped one may have meant, in one pass over all of them."""

from __future__ import annotations

import heapq

_SHOWN = 3
_ALIKE = 0.5


class NearIds:
    """Remembers the few ids that share most with the wanted one at their beginning and end, the earlier ones first."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted
        self._folded = wanted.casefold()
        self._best: list[tuple[float, int, str]] = []
        self.seen = 0

    def add(self, identity: str) -> None:
        self.seen += 1
        entry = (self._likeness(identity.casefold()), -self.seen, identity)
        if len(self._best) < _SHOWN:
            heapq.heappush(self._best, entry)
        else:
            heapq.heappushpop(self._best, entry)

    def hint(self) -> str:
        """The hint for whoever asked for an id that is not there."""
        if self.near:
            return f"near it: {', '.join(self.near)}"
        return f"an id there is {max(self._best)[2]}" if self._best else "it holds no records"

    @property
    def near(self) -> list[str]:
        """Those that are alike enough to have been meant, the most alike first."""
        return [identity for likeness, _, identity in sorted(self._best, reverse=True) if likeness >= _ALIKE]

    def _likeness(self, identity: str) -> float:
        """Share of the longer id that both have in common at their ends, 0 to 1."""
        if identity == self._folded:
            return 1.0
        begin = _common_length(identity, self._folded)
        end = _common_length(identity[begin:][::-1], self._folded[begin:][::-1])
        return (begin + end) / max(len(identity), len(self._folded), 1)


def _common_length(first: str, second: str) -> int:
    differing = (place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    return next(differing, min(len(first), len(second)))
