"""Hitting sets: the exact solver against brute force and against an independent solver, the greedy one against it."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from simulators.closedloop.hitting import exact, greedy, minimal, propagate

LETTERS = "ABCDEFGHI"
TRAP = [{LETTERS.index(letter) for letter in conflict} for conflict in ("ACF", "ACG", "BCH", "BCI", "AD", "BE")]


def drawn(rng: random.Random, components: int, conflicts: int, dearest: int) -> tuple[list[set[int]], dict[int, int]]:
    """A family over so many components, at least one a conflict, and costs from 1 to the dearest."""
    family = [
        set(rng.sample(range(components), rng.randint(1, min(components, rng.choice([2, 3, 5, components])))))
        for _ in range(conflicts)
    ]
    return family, {component: rng.randint(1, dearest) for component in range(components)}


def small(count: int, seed: int) -> list[tuple[list[set[int]], dict[int, int]]]:
    rng = random.Random(seed)
    return [drawn(rng, rng.randint(1, 12), rng.randint(0, 14), rng.choice([1, 2, 9, 10**15])) for _ in range(count)]


def meets_all(components: Collection[int], family: Sequence[Collection[int]]) -> bool:
    return all(set(components) & set(conflict) for conflict in family)


def brute_force(family: Sequence[Collection[int]], costs: Mapping[int, int]) -> tuple[int, int, tuple[int, ...]]:
    """The least (cost, size, tuple) of all subsets that meet every conflict."""
    named = sorted({component for conflict in family for component in conflict})
    masks = [sum(1 << named.index(component) for component in conflict) for conflict in family]
    best: tuple[int, int, tuple[int, ...]] | None = None
    for size in range(len(named) + 1):
        for subset in combinations(range(len(named)), size):
            bits = sum(1 << k for k in subset)
            if all(bits & mask for mask in masks):
                chosen = tuple(named[k] for k in subset)
                key = (sum(costs[component] for component in chosen), size, chosen)
                best = key if best is None else min(best, key)
    assert best is not None
    return best


def test_the_exact_support_is_the_cheapest_smallest_and_first_of_all() -> None:
    families = small(2000, seed=1)
    assert {len(costs) for _, costs in families} == set(range(1, 13))
    assert sum(len({frozenset(c) for c in family}) < len(family) for family, _ in families) > 200
    assert sum(len(set(costs.values())) > 1 for _, costs in families) > 1000
    for family, costs in families:
        found = exact(family, costs)
        assert (found.cost, len(found.components), found.components) == brute_force(family, costs), (family, costs)


def test_an_independent_solver_finds_the_same_cost_in_larger_families() -> None:
    rng = random.Random(2)
    for components in [16, 20, 24, 24, 30] * 8:
        family, costs = drawn(rng, components, rng.randint(10, 40), rng.choice([1, 3, 50]))
        rows = np.array(
            [[component in conflict for component in range(components)] for conflict in family], dtype=float
        )
        solved = milp(
            [costs[component] for component in range(components)],
            constraints=LinearConstraint(rows, lb=1),
            integrality=np.ones(components),
            bounds=Bounds(0, 1),
        )
        assert solved.success
        assert exact(family, costs).cost == round(solved.fun), (family, costs)


def test_as_many_conflicts_as_a_study_never_has_are_solved_at_once() -> None:
    """24 components, 60 conflicts: milliseconds each; a search that prunes nothing would not end."""
    rng = random.Random(9)
    for smallest, largest, dearest in [(2, 2, 1), (2, 4, 3), (2, 6, 50), (3, 3, 1), (4, 6, 3), (6, 12, 1)] * 4:
        family = [set(rng.sample(range(24), rng.randint(smallest, largest))) for _ in range(60)]
        costs = {component: rng.randint(1, dearest) for component in range(24)}
        assert meets_all(exact(family, costs).components, family)
        assert exact(family, costs).cost <= greedy(family, costs).cost


def test_the_greedy_support_meets_every_conflict_and_is_never_cheaper() -> None:
    for family, costs in small(2000, seed=3):
        found = greedy(family, costs)
        assert meets_all(found.components, family)
        assert found.cost == sum(costs[component] for component in found.components)
        assert found.cost >= exact(family, costs).cost


def test_both_take_exactly_what_singletons_force_where_nothing_else_is_left() -> None:
    family, costs = [{3}, {3, 4}, {1}, {1, 5, 6}], dict.fromkeys(range(9), 1)
    assert exact(family, costs) == greedy(family, costs)
    assert exact(family, costs).components == (1, 3)


def test_a_family_in_which_the_component_that_meets_most_is_no_part_of_the_optimum() -> None:
    costs = dict.fromkeys(range(len(LETTERS)), 1)
    assert ([LETTERS[component] for component in exact(TRAP, costs).components], exact(TRAP, costs).cost) == (
        ["A", "B"],
        2,
    )
    assert greedy(TRAP, costs).cost == 3


@pytest.mark.parametrize("solve", [exact, greedy])
def test_greed_and_optimum_count_cost_not_only_number(solve) -> None:  # type: ignore[no-untyped-def]
    assert solve([{0, 1}, {0, 2}], {0: 5, 1: 1, 2: 1}).components == (1, 2)
    assert solve([{0, 1}, {0, 2}], {0: 1, 1: 1, 2: 1}).components == (0,)


def test_of_equal_cost_fewer_components_come_first_then_lower_ones() -> None:
    assert exact([{0, 2}, {1, 2}], {0: 1, 1: 1, 2: 2}).components == (2,)
    assert exact([{0, 1}, {2, 3}], dict.fromkeys(range(4), 7)).components == (0, 2)
    assert exact([{1, 2}, {0, 3}, {0, 2}], dict.fromkeys(range(4), 1)).components == (0, 1)


def test_of_equally_good_components_greed_takes_the_lowest() -> None:
    assert greedy([{0, 1}, {2, 3}], dict.fromkeys(range(4), 7)).components == (0, 2)
    assert greedy([{0, 1}, {0, 2}, {1, 2}], {0: 2, 1: 2, 2: 2}).components == (0, 1)


@pytest.mark.parametrize("solve", [exact, greedy])
def test_nothing_to_meet_needs_nothing(solve) -> None:  # type: ignore[no-untyped-def]
    assert solve([], {}).components == ()
    assert solve([], {}).cost == 0


@pytest.mark.parametrize("solve", [exact, greedy])
def test_an_empty_conflict_is_an_error_that_names_it(solve) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="conflict 1 is empty"):
        solve([{0}, set(), {1}], {0: 1, 1: 1})


@pytest.mark.parametrize("solve", [exact, greedy])
@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ({0: 1}, "1 has no cost"),
        ({0: 1, 1: 0}, "1 costs 0"),
        ({0: -2, 1: 1}, "0 costs -2"),
        ({0: 1, 1: 1.5}, r"1 costs 1\.5: a cost must be an int"),
        ({0: True, 1: 1}, "0 costs True"),
        ({0: np.int64(10**15), 1: 1}, "a cost must be an int"),
    ],
)
def test_every_component_needs_a_positive_whole_cost(solve, costs: dict[int, int], said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=said):
        solve([{0}, {0, 1}, {1}], costs)


def test_order_and_repetition_of_conflicts_never_matter() -> None:
    rng = random.Random(4)
    for family, costs in small(300, seed=5):
        again = [*family, *rng.choices(family, k=3)] if family else []
        rng.shuffle(again)
        for solve in (exact, greedy):
            assert solve(again, costs) == solve(family, costs)


def test_a_conflict_that_contains_another_never_matters() -> None:
    rng = random.Random(6)
    for family, costs in small(300, seed=7):
        wider = [conflict | {rng.choice(sorted(costs))} for conflict in family]
        for solve in (exact, greedy):
            assert solve([*wider, *family], costs) == solve(family, costs)
        assert minimal([*wider, *family]) == minimal(family)


def test_propagation_never_changes_the_optimum_and_leaves_no_singleton() -> None:
    for family, costs in small(300, seed=8):
        after = propagate(family)
        assert after.forced == {next(iter(conflict)) for conflict in family if len(conflict) == 1}
        assert all(len(conflict) > 1 and not conflict & after.forced for conflict in after.residual)
        rest = exact(after.residual, costs)
        assert tuple(sorted(after.forced | set(rest.components))) == exact(family, costs).components
        assert rest.cost + sum(costs[component] for component in after.forced) == exact(family, costs).cost
