"""Minimum-cost hitting sets over compiled conflicts: exact, and a greedy rule to compare it with.

A conflict is a set of components of which at least one is at fault; a *support* is a set that meets every conflict.
Section 3.3: exactness is about the conflicts as compiled; it says nothing of whether their ambiguity is genuine, nor of
whether the support names the fault.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

Family = tuple[frozenset[int], ...]


@dataclass(frozen=True, slots=True)
class Support:
    """Components that meet every conflict, ascending, and the sum of their costs."""

    components: tuple[int, ...]
    cost: int


@dataclass(frozen=True, slots=True)
class Propagation:
    """What singletons force, and the conflicts (each of at least two components) that this leaves unmet."""

    forced: frozenset[int]
    residual: Family


def minimal(conflicts: Iterable[Collection[int]]) -> Family:
    """The conflicts that contain no other, each once, ordered by size and then components: the others follow from them.

    Raises ValueError naming an empty conflict by its place: nothing can meet it.
    """
    distinct: set[frozenset[int]] = set()
    for place, conflict in enumerate(conflicts):
        if not conflict:
            raise ValueError(f"conflict {place} is empty: no component can meet it")
        distinct.add(frozenset(conflict))
    kept: list[frozenset[int]] = []
    for conflict in sorted(distinct, key=lambda found: (len(found), sorted(found))):
        if not any(smaller <= conflict for smaller in kept):
            kept.append(conflict)
    return tuple(kept)


def propagate(conflicts: Iterable[Collection[int]]) -> Propagation:
    """Take what singletons force and drop what it meets. Raises ValueError for an empty conflict."""
    family = minimal(conflicts)
    forced = frozenset(component for conflict in family if len(conflict) == 1 for component in conflict)
    return Propagation(forced, tuple(conflict for conflict in family if not conflict & forced))


def exact(conflicts: Iterable[Collection[int]], costs: Mapping[int, int]) -> Support:
    """The support of least cost; of these the one of fewest components; of these the lexicographically smallest tuple.

    `costs`: a positive integer for each component that a conflict names (integers, so that a tie is a tie). Raises
    ValueError for an empty conflict, and for a component without a positive cost that is an `int`.
    """
    propagation = _checked(conflicts, costs)
    return _support(propagation.forced | _cheapest(propagation.residual, costs), costs)


def greedy(conflicts: Iterable[Collection[int]], costs: Mapping[int, int]) -> Support:
    """What singletons force; then, while conflicts are unmet, the component that meets most of them for its cost.

    Of equals the lowest component. What a later choice makes superfluous stays. Costs and errors as for `exact`.
    """
    propagation = _checked(conflicts, costs)
    chosen, unmet = set(propagation.forced), list(propagation.residual)
    while unmet:
        best, best_met = -1, 0
        for component in sorted(frozenset().union(*unmet)):
            met = sum(component in conflict for conflict in unmet)
            if best < 0 or met * costs[best] > best_met * costs[component]:
                best, best_met = component, met
        chosen.add(best)
        unmet = [conflict for conflict in unmet if best not in conflict]
    return _support(chosen, costs)


def _checked(conflicts: Iterable[Collection[int]], costs: Mapping[int, int]) -> Propagation:
    family = list(conflicts)
    for component in sorted(frozenset().union(*family)):
        if component not in costs:
            raise ValueError(f"component {component} has no cost")
        if type(costs[component]) is not int:  # a tie of floats is none, and integers of numpy overflow
            raise ValueError(f"component {component} costs {costs[component]!r}: a cost must be an int")
        if costs[component] < 1:
            raise ValueError(f"component {component} costs {costs[component]}: a cost must be positive")
    return propagate(family)


def _support(components: Iterable[int], costs: Mapping[int, int]) -> Support:
    ordered = tuple(sorted(components))
    return Support(ordered, sum(costs[component] for component in ordered))


def _cheapest(family: Family, costs: Mapping[int, int]) -> frozenset[int]:
    """Branch and bound over bitmasks; bit k is the k-th of the components named, ascending.

    Cost and the tie-break are one integer weight, so that the optimum is unique and a branch that can only equal the
    best so far is cut. To the cost of the k-th of n is added 2^n − 2^(n−1−k), in units that all of these together do
    not fill. Of s components these sum to more than (s−1)·2^n and less than s·2^n, so fewer weigh less; of two sets of
    one size the lexicographically smaller, which holds the least component in which they differ, weighs less.
    """
    components = sorted(frozenset().union(*family))
    n = len(components)
    place = {component: k for k, component in enumerate(components)}
    weights = [(costs[c] * n << n) + (1 << n) - (1 << (n - 1 - k)) for k, c in enumerate(components)]
    by_weight = sorted(range(n), key=weights.__getitem__)
    conflicts = [sum(1 << place[component] for component in conflict) for conflict in family]
    best_weight, best = sum(weights) + 1, 0

    def cheapest_member(allowed: int) -> int:
        return next(weights[k] for k in by_weight if allowed >> k & 1)

    def search(unmet: list[int], chosen: int, weight: int, excluded: int) -> None:
        nonlocal best_weight, best
        if not unmet:
            if weight < best_weight:
                best_weight, best = weight, chosen
            return
        open_conflicts = sorted((conflict & ~excluded for conflict in unmet), key=lambda bits: (bits.bit_count(), bits))
        if not open_conflicts[0]:
            return
        bound, taken = weight, 0
        for conflict in open_conflicts:  # disjoint conflicts need a component each
            if not conflict & taken:
                bound, taken = bound + cheapest_member(conflict), taken | conflict
        if bound >= best_weight:
            return
        for k in by_weight:
            if open_conflicts[0] >> k & 1:
                rest = [conflict for conflict in open_conflicts if not conflict >> k & 1]
                search(rest, chosen | 1 << k, weight + weights[k], excluded)
                excluded |= 1 << k

    search(conflicts, 0, 0, 0)
    return frozenset(component for component, k in place.items() if best >> k & 1)
