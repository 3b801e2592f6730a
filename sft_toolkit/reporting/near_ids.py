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
        """What to tell whoever asked for an id that is not there."""
        ranked = sorted(self._best, reverse=True)
        near = [identity for likeness, _, identity in ranked if likeness >= _ALIKE]
        if near:
            return f"near it: {', '.join(near)}"
        return f"an id there is {ranked[0][2]}" if ranked else "it holds no records"

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
