"""What is arbitrary in an episode: names, the time base, delays, first versions, one of several spellings.

Each draw is a function of the item's public part and of what it is for alone, so that it is the same whatever is done
to the evidence: two episodes of one item differ in their evidence and in nothing else. A generator of random numbers
that goes on from draw to draw would not do: how far it has come says what was told before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

_T = TypeVar("_T")
_BYTES: Final = 8
_PRECISION: Final = 53
_BELOW: Final = 8 * _BYTES - _PRECISION


@dataclass(frozen=True, slots=True)
class Nonces:
    """Draws under a key. Stateless: the same question has the same answer, in any order."""

    key: str

    def of(self, *what: object) -> Nonces:
        """The draws of a part."""
        return Nonces("\x1f".join((self.key, *map(str, what))))

    def share(self, *what: object) -> float:
        """A number in [0, 1)."""
        return (self._draw(what) >> _BELOW) / 2.0**_PRECISION

    def between(self, low: int, high: int, *what: object) -> int:
        """An integer from `low` to `high`, both included."""
        return low + self._draw(what) % (high - low + 1)

    def one_of(self, options: Sequence[_T], *what: object) -> _T:
        """One of `options`."""
        return options[self._draw(what) % len(options)]

    def _draw(self, what: tuple[object, ...]) -> int:
        asked = "\x1f".join((self.key, *map(str, what)))
        return int.from_bytes(hashlib.blake2b(asked.encode(), digest_size=_BYTES).digest(), "big")
