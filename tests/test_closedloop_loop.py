"""Laws of the study's loop: its policy, its random numbers, its traces and its masks."""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import Generator, Philox
from scipy.stats import binom, poisson

from simulators.closedloop import draws, loop, masks, policy, rollout
from xapp.support.rule import Rule

MASTER = 20260
PARTITIONS = 3

CAPS = [0, 1, 2, 3, 5, 7, 9, 12]
VALUES = [0.5, 0.75, 1, 1.3, 1.6, 2]
RAW_LOADS = [math.exp(0.35 * level) for level in (-1.5, -0.9, -0.3, 0.3, 0.9, 1.5)]
SPEC_LOADS = [load / (sum(RAW_LOADS) / 6) for load in RAW_LOADS]


@pytest.fixture(scope="module")
def policies() -> dict[int, np.ndarray]:
    return {regime: policy.fit(regime) for regime in loop.REGIMES}


@pytest.fixture(scope="module")
def drawn() -> np.ndarray:
    return draws.uniforms(MASTER, 0, loop.EPISODES * PARTITIONS)


@pytest.fixture(scope="module")
def reference() -> np.ndarray:
    return draws.uniforms(MASTER, 10_000, loop.EPISODES * loop.PARTITIONS)


@pytest.fixture(scope="module")
def clean_visits(policies: dict[int, np.ndarray], reference: np.ndarray) -> dict[int, np.ndarray]:
    return {regime: rollout.occupancy(table, regime, reference) for regime, table in policies.items()}


# The loop


def test_loads_are_those_of_the_spec_with_mean_one() -> None:
    assert pytest.approx(SPEC_LOADS) == loop.LOADS
    assert np.mean(loop.LOADS) == pytest.approx(1)
    assert list(loop.CAPS) == CAPS
    assert list(loop.VALUES) == VALUES


def test_a_channel_class_stays_with_one_half_and_otherwise_any_comes() -> None:
    np.testing.assert_allclose(loop.TRANSITION, 0.5 * np.eye(6) + 0.5 / 6)


def test_components_cover_exactly_the_states_with_credit_and_each_is_as_large_as_another() -> None:
    table = loop.component_table()
    assert table.dtype == np.int8
    assert (table[:, 0] == loop.NO_COMPONENT).all()
    assert set(np.bincount(table[:, 1:].ravel())) == {6 * 55 * 2}
    assert table[:, 1:].max() + 1 == loop.COMPONENTS == 24


@pytest.mark.parametrize(
    ("step", "credit", "channel", "quarter", "half", "third"),
    [(0, 110, 0, 0, 1, 0), (5, 56, 1, 0, 1, 0), (6, 55, 2, 1, 0, 1), (17, 1, 3, 2, 0, 1), (23, 110, 5, 3, 1, 2)],
)
def test_a_component_is_its_quarter_half_and_third(
    step: int, credit: int, channel: int, quarter: int, half: int, third: int
) -> None:
    number = loop.component_table()[step, credit, channel]
    assert number == (quarter * 2 + half) * 3 + third
    assert loop.parts(int(number)) == (quarter, half, third)


def test_each_component_has_its_own_name_and_nothing_else_has_one() -> None:
    assert len({loop.component_name(number) for number in range(24)}) == 24
    for number in (-1, 24):
        with pytest.raises(ValueError, match=f"component {number}"):
            loop.component_name(number)


def test_the_demand_law_is_poisson() -> None:
    np.testing.assert_allclose(loop.demand_law(6.5, 60), poisson.pmf(np.arange(60), 6.5), rtol=1e-12)


# The policy


def expected_values(regime: float, step: int, onward: np.ndarray) -> np.ndarray:
    """[credit, channel, action] from the definition: over every demand that a Poisson can show, one by one."""
    demand = np.arange(150)
    chance = np.mean([poisson.pmf(demand, regime * load) for load in SPEC_LOADS], axis=0)
    credit = np.arange(111)
    found = np.empty((111, 6, 8))
    for action, cap in enumerate(CAPS):
        served = np.minimum(np.minimum(demand[:, None], cap), credit[None, :])
        unmet = demand[:, None] - served
        for channel, value in enumerate(VALUES):
            after = 0.5 * onward[:, channel] + 0.5 * onward.mean(axis=1)
            reward = value * served**0.6 - 0.10 * unmet - 0.10 * cap
            found[:, channel, action] = chance @ (reward + after[credit[None, :] - served])
    return found


@pytest.mark.parametrize("regime", sorted(loop.REGIMES))
def test_every_action_value_is_the_expected_reward_and_what_follows_the_best_next_action(regime: int) -> None:
    values = policy.action_values(regime)
    for step in range(loop.HORIZON):
        onward = values[step + 1].max(axis=-1) if step + 1 < loop.HORIZON else np.zeros((111, 6))
        np.testing.assert_allclose(values[step], expected_values(regime, step, onward), rtol=0, atol=1e-9)


@pytest.mark.parametrize("regime", sorted(loop.REGIMES))
def test_the_policy_takes_the_first_of_the_best_actions(regime: int, policies: dict[int, np.ndarray]) -> None:
    values, fitted = policy.action_values(regime), policies[regime]
    assert fitted.dtype == np.int8
    assert fitted.shape == (24, 111, 6)
    chosen = np.take_along_axis(values, fitted[..., None].astype(np.int64), axis=-1)
    assert (chosen >= values).all()
    earlier = np.arange(8) < fitted[..., None]
    assert (values[earlier] < np.broadcast_to(chosen, values.shape)[earlier]).all()
    assert (values == values.round(9)).all()


@pytest.mark.parametrize("regime", sorted(loop.REGIMES))
def test_more_credit_or_a_better_channel_is_never_worth_less(regime: int) -> None:
    best = policy.action_values(regime).max(axis=-1)
    assert (np.diff(best, axis=1) >= -1e-7).all()
    assert (np.diff(best, axis=2) >= -1e-7).all()


@pytest.mark.parametrize("regime", sorted(loop.REGIMES))
def test_in_the_last_step_caps_rise_with_credit_and_channel(regime: int, policies: dict[int, np.ndarray]) -> None:
    assert (np.diff(policies[regime][-1], axis=0) >= 0).all()
    assert (np.diff(policies[regime][-1], axis=1) >= 0).all()


@pytest.mark.parametrize("regime", sorted(loop.REGIMES))
def test_without_credit_nothing_is_granted(regime: int, policies: dict[int, np.ndarray]) -> None:
    assert (policies[regime][:, 0] == 0).all()


def test_the_hash_of_a_policy_is_over_each_of_its_actions(policies: dict[int, np.ndarray]) -> None:
    table = policies[7]
    changed = table.copy()
    changed[-1, -1, -1] ^= 1
    found = [policy.digest(each) for each in (table, table.copy(), np.asfortranarray(table), changed)]
    assert found[0] == found[1] == found[2] != found[3]
    assert found[0].startswith("sha256:")


# Common random numbers


def test_an_episode_has_the_same_numbers_alone_and_in_any_batch() -> None:
    batch = draws.uniforms(MASTER, 100, 9)
    assert (batch[4:7] == draws.uniforms(MASTER, 104, 3)).all()
    assert (batch[8] == draws.uniforms(MASTER, 108, 1)).all()


def test_an_episode_is_philox_under_its_master_seed_and_its_own() -> None:
    key = np.array([2**64 - 1, 2**63 - 1], dtype=np.uint64)
    expected = Generator(Philox(key=key)).random(draws.DRAWS)
    assert (draws.uniforms(2**64 - 1, 2**63 - 1, 1)[0] == expected).all()


def test_no_two_episodes_or_master_seeds_share_a_number() -> None:
    found = np.concatenate([draws.uniforms(MASTER, 0, 500), draws.uniforms(MASTER + 1, 0, 500)])
    assert len(np.unique(found)) == found.size


def test_what_is_no_episode_draws_under_keys_that_no_episode_has() -> None:
    last = Generator(Philox(key=np.array([MASTER, 2**63 + 5], dtype=np.uint64))).random(8)
    assert (draws.other_uniforms(MASTER, 5, 8) == last).all()
    assert not np.isin(draws.other_uniforms(MASTER, 5, 49), draws.uniforms(MASTER, 0, 200)).any()


@pytest.mark.parametrize(
    ("master", "first", "count"), [(-1, 0, 1), (2**64, 0, 1), (0, -1, 1), (0, 2**63 - 1, 2), (0, 5, -1)]
)
def test_seeds_outside_their_range_are_refused(master: int, first: int, count: int) -> None:
    with pytest.raises(ValueError, match="must lie within"):
        draws.uniforms(master, first, count)


@pytest.mark.parametrize("number", [-1, 2**63])
def test_other_streams_outside_their_range_are_refused(number: int) -> None:
    with pytest.raises(ValueError, match="must lie within"):
        draws.other_uniforms(0, number, 1)


def within(count: int, trials: int, chance: float) -> bool:
    """Whether a binomial count lies where all but 2·10⁻⁷ of its law is."""
    return bool(binom.ppf(1e-7, trials, chance) <= count <= binom.ppf(1 - 1e-7, trials, chance))


@pytest.mark.parametrize("regime", sorted(loop.REGIMES))
def test_channels_and_demands_have_their_laws(regime: int) -> None:
    drawn = draws.uniforms(MASTER, 50_000, 4_000)
    outside = draws.exogenous(regime, drawn)
    for channel in range(6):
        assert within(int((outside.channel[0] == channel).sum()), 4_000, 1 / 6)
        assert within(int((outside.channel[-1] == channel).sum()), 4_000, 1 / 6)
    before, after = outside.channel[:-1], outside.channel[1:]
    for old, new in itertools.product(range(6), repeat=2):
        of_old = before == old
        chance = 0.5 + 0.5 / 6 if old == new else 0.5 / 6
        assert within(int((after[of_old] == new).sum()), int(of_old.sum()), chance)
    for number, load in enumerate(SPEC_LOADS):
        chosen = (drawn[:, 0] * 6).astype(int) == number
        demand = outside.demand[:, chosen]
        assert within(int(chosen.sum()), 4_000, 1 / 6)
        for least in range(25):
            assert within(int((demand <= least).sum()), demand.size, float(poisson.cdf(least, regime * load)))


def test_regimes_share_loads_and_channels_and_demand_rises_with_the_regime(drawn: np.ndarray) -> None:
    low, middle, high = (draws.exogenous(regime, drawn) for regime in loop.REGIMES)
    assert (low.channel == middle.channel).all()
    assert (low.channel == high.channel).all()
    assert (low.demand <= middle.demand).all()
    assert (middle.demand <= high.demand).all()


# Episodes, against a plain account of the loop


@dataclass
class Told:
    """What one episode did, step by step."""

    states: list[tuple[int, int, int]]
    actions: list[int]
    left: list[int]
    unmet: list[int]


def told(table: np.ndarray, regime: int, numbers: np.ndarray) -> Told:
    load = SPEC_LOADS[int(numbers[0] * 6)]
    credit, channel = 110, int(numbers[1] * 6)
    found = Told([], [], [], [])
    for step in range(24):
        if step:
            row = np.cumsum(0.5 * np.eye(6)[channel] + 0.5 / 6)
            channel = next(new for new in range(6) if numbers[1 + step] < row[new] or new == 5)
        demand = int(poisson.ppf(numbers[25 + step], regime * load))
        action = int(table[step, credit, channel])
        served = min(demand, CAPS[action], credit)
        found.states.append((step, credit, channel))
        credit -= served
        found.actions.append(action)
        found.left.append(credit)
        found.unmet.append(demand - served)
    return found


@pytest.mark.parametrize("thrifty", [True, False])
@pytest.mark.parametrize("regime", sorted(loop.REGIMES))
def test_traces_occupancy_and_aggregates_are_those_of_a_plain_account(
    regime: int, thrifty: bool, policies: dict[int, np.ndarray], drawn: np.ndarray
) -> None:
    table = policies[regime] if thrifty else np.full(loop.STATES, 7, dtype=np.int8)
    parts, drawn = 2, drawn[: 2 * loop.EPISODES]
    accounts = [told(table, regime, numbers) for numbers in drawn]
    assert thrifty or any(0 in account.left[:12] for account in accounts)
    components = loop.component_table()
    histogram = np.zeros((parts, 24, 8), dtype=np.int64)
    visits = np.zeros(loop.STATES, dtype=np.int64)
    for episode, account in enumerate(accounts):
        for state, action in zip(account.states, account.actions, strict=True):
            visits[state] += 1
            if components[state] >= 0:
                histogram[episode // 160, components[state], action] += 1
    assert (rollout.traces(table[None], regime, drawn, parts)[0] == histogram).all()
    assert (rollout.occupancy(table, regime, drawn) == visits).all()
    seen = rollout.aggregates(table, regime, drawn, parts)
    for part in range(parts):
        mine = accounts[part * 160 : (part + 1) * 160]
        actions = np.bincount([action for each in mine for action in each.actions], minlength=8)
        np.testing.assert_allclose(seen.visits[part], histogram[part].sum(axis=1) / (160 * 24))
        np.testing.assert_allclose(seen.actions[part], actions / (160 * 24))
        np.testing.assert_allclose(
            seen.credit[part], np.mean([np.array(e.left)[[5, 11, 17, 23]] for e in mine], axis=0)
        )
        assert seen.unmet[part] == pytest.approx(np.mean([each.unmet for each in mine]))
    assert seen.features().shape == (parts, 24 + 8 + 4 + 1)


def path(table: np.ndarray, regime: int, numbers: np.ndarray) -> list[int]:
    """The cells of one episode, a step after another."""
    visits = rollout.occupancy(table, regime, numbers[None])
    assert (visits.sum(axis=(1, 2)) == 1).all()
    return np.flatnonzero(visits).tolist()


@pytest.mark.parametrize("regime", sorted(loop.REGIMES))
def test_credit_never_rises_and_never_falls_below_nothing(regime: int, drawn: np.ndarray) -> None:
    any_policy = Generator(Philox(1)).integers(0, 8, size=loop.STATES).astype(np.int8)
    greedy = np.full(loop.STATES, 7, dtype=np.int8)
    for table in (any_policy, greedy):
        for numbers in drawn[:50]:
            step, credit, _ = np.unravel_index(path(table, regime, numbers), loop.STATES)
            assert step.tolist() == list(range(24))
            assert credit[0] == 110
            assert (np.diff(credit) <= 0).all()
            assert (np.diff(credit) >= -12).all()


def test_an_episode_is_the_same_under_a_fault_until_it_enters_a_shifted_cell(
    policies: dict[int, np.ndarray], drawn: np.ndarray
) -> None:
    clean = policies[7]
    chosen = masks.cells(clean, 12).cell[::2]
    faulty = masks.shifted(clean, chosen.tolist(), "outward")
    parted = 0
    for numbers in drawn[:150]:
        a, b = path(clean, 7, numbers), path(faulty, 7, numbers)
        entered = [step for step, cell in enumerate(a) if cell in chosen]
        same = entered[0] + 1 if entered else 24
        assert a[:same] == b[:same]
        parted += a != b
    assert parted > 0


def test_no_cutting_and_no_thread_changes_a_count(policies: dict[int, np.ndarray], drawn: np.ndarray) -> None:
    clean = policies[5]
    components = [number for number in range(24) for _ in range(2)]
    faulty = np.stack(
        [
            masks.shifted(clean, masks.cells(clean, number).cell.tolist(), loop.DIRECTIONS[place % 2])
            for place, number in enumerate(components)
        ]
    )
    whole = rollout.traces(faulty, 5, drawn, PARTITIONS)
    for size, threads in itertools.product((1, 7, 48), (1, 2)):
        starts = range(0, len(faulty), size)
        with ThreadPoolExecutor(threads) as pool:
            cut = [pool.submit(rollout.traces, faulty[s : s + size], 5, drawn, PARTITIONS) for s in starts]
            assert (np.concatenate([each.result() for each in cut]) == whole).all()


def test_partitions_are_counted_apart(policies: dict[int, np.ndarray], drawn: np.ndarray) -> None:
    whole = rollout.traces(policies[7][None], 7, drawn, PARTITIONS)
    for part in range(PARTITIONS):
        alone = rollout.traces(policies[7][None], 7, drawn[part * 160 : (part + 1) * 160], 1)
        assert (whole[:, part] == alone[:, 0]).all()


def test_what_does_not_fit_is_refused(policies: dict[int, np.ndarray], drawn: np.ndarray) -> None:
    table = policies[7]
    with pytest.raises(ValueError, match="480 episodes: 4 partitions have 640"):
        rollout.traces(table[None], 7, drawn, 4)
    with pytest.raises(ValueError, match=r"policies of the shape \(24, 111, 6\)"):
        rollout.traces(table, 7, drawn, PARTITIONS)
    with pytest.raises(ValueError, match="action outside 0 to 7"):
        rollout.occupancy(table + np.int8(8), 7, drawn)
    with pytest.raises(ValueError, match="uniforms of the shape"):
        rollout.occupancy(table, 7, drawn[:, :-1])


def test_the_reference_gate_admits_about_as_many_units_as_the_spec_expects(
    policies: dict[int, np.ndarray], reference: np.ndarray
) -> None:
    rule = Rule()
    admitted = 0
    for regime, table in policies.items():
        visits = rollout.traces(table[None], regime, reference, loop.PARTITIONS)[0].sum(axis=2)
        admitted += sum(sum(rule.adequate(of.tolist())) >= rule.min_partitions for of in visits.T)
    assert abs(admitted - 57) <= 4


# Masks


def all_masks(
    policies: dict[int, np.ndarray], clean_visits: dict[int, np.ndarray]
) -> list[tuple[masks.Cells, tuple[masks.Mask, ...]]]:
    found = []
    for regime, component, family in itertools.product(loop.REGIMES, range(24), loop.FAMILIES):
        visits = clean_visits[regime]
        ordered = masks.order(masks.cells(policies[regime], component), family, visits, MASTER, regime, component)
        found.append((ordered, masks.prefixes(ordered, family, visits, regime, component)))
    return found


def test_changeable_cells_are_those_with_a_bucket_beside(policies: dict[int, np.ndarray]) -> None:
    table = np.clip(policies[9], 0, 7)
    assert {0, 7} <= set(table.ravel().tolist())
    for component in range(24):
        found = masks.cells(table, component)
        assert (loop.component_table().ravel()[found.cell] == component).all()
        assert len(np.unique(found.cell)) == len(found) == 660
        for direction, flags in (("outward", found.outward), ("inward", found.inward)):
            moved = masks.shifted(table, found.cell.tolist(), direction)
            assert ((moved != table).ravel()[found.cell] == flags).all()


@pytest.mark.parametrize("direction", loop.DIRECTIONS)
def test_a_shift_moves_selected_cells_by_one_bucket_and_no_other(
    direction: loop.Direction, policies: dict[int, np.ndarray]
) -> None:
    table, kept = policies[9], policies[9].copy()
    selected = masks.cells(table, 5).cell[3:200]
    moved = masks.shifted(table, selected.tolist(), direction)
    step = 1 if direction == "outward" else -1
    assert (table == kept).all()
    assert moved.dtype == np.int8
    assert moved.min() >= 0
    assert moved.max() <= 7
    difference = (moved.astype(int) - table).ravel()
    edge = 7 if direction == "outward" else 0
    assert (difference[selected] == np.where(table.ravel()[selected] == edge, 0, step)).all()
    assert not np.delete(difference, selected).any()


def test_masks_are_nested_and_no_other_prefix_is_nearer_or_as_near_and_shorter(
    policies: dict[int, np.ndarray], clean_visits: dict[int, np.ndarray]
) -> None:
    for ordered, found in all_masks(policies, clean_visits):
        assert [mask.target for mask in found] == [0.15, 0.30, 0.50, 0.75, 0.95]
        visits = clean_visits[found[0].regime]
        total = int(visits[loop.component_table() == found[0].component].sum())
        out = into = 0
        exact: list[tuple[Fraction, Fraction]] = []
        for cell, outward, inward in zip(ordered.cell, ordered.outward, ordered.inward, strict=True):
            out += int(visits.ravel()[cell]) * int(outward)
            into += int(visits.ravel()[cell]) * int(inward)
            exact.append((Fraction(out, total), Fraction(into, total)) if total else (Fraction(0), Fraction(0)))
        before = 0
        for mask in found:
            distances = [abs((a + b) / 2 - Fraction(str(mask.target))) for a, b in exact]
            length = distances.index(min(distances)) + 1
            assert mask.cells == tuple(ordered.cell[:length].tolist())
            assert length >= max(before, 1)
            before = length
            assert (mask.tau_outward, mask.tau_inward) == tuple(float(share) for share in exact[length - 1])
            assert mask.tau == pytest.approx(float(sum(exact[length - 1]) / 2))
            assert mask.changeable == len(ordered)
            assert mask.fraction == length / len(ordered)


def test_a_component_without_clean_visits_has_no_exposure(policies: dict[int, np.ndarray]) -> None:
    nothing = np.zeros(loop.STATES, dtype=np.int64)
    ordered = masks.order(masks.cells(policies[5], 0), "flow_weighted", nothing, MASTER, 5, 0)
    for mask in masks.prefixes(ordered, "flow_weighted", nothing, 5, 0):
        assert mask.tau == 0
        assert len(mask.cells) == 1


def test_an_order_keeps_the_cells_and_hangs_on_master_seed_regime_component_and_family(
    policies: dict[int, np.ndarray], clean_visits: dict[int, np.ndarray]
) -> None:
    changeable = masks.cells(policies[7], 9)
    args = (MASTER, 7, 9)
    first = masks.order(changeable, "uniform", clean_visits[7], *args)
    places = {cell: place for place, cell in enumerate(changeable.cell.tolist())}
    for cell, outward, inward in zip(first.cell.tolist(), first.outward, first.inward, strict=True):
        assert (outward, inward) == (changeable.outward[places[cell]], changeable.inward[places[cell]])
    assert sorted(first.cell.tolist()) == changeable.cell.tolist()
    others = [
        masks.order(changeable, family, visits, *seed).cell.tolist()
        for family, visits, seed in [
            ("uniform", clean_visits[7], args),
            ("flow_weighted", np.ones(loop.STATES, dtype=np.int64), args),
            ("uniform", clean_visits[7], (MASTER + 1, 7, 9)),
            ("uniform", clean_visits[7], (MASTER, 5, 9)),
            ("uniform", clean_visits[7], (MASTER, 7, 8)),
        ]
    ]
    assert first.cell.tolist() == others[0]
    assert len({tuple(each) for each in others}) == len(others)


def test_a_uniform_order_does_not_hang_on_visits_and_a_weighted_one_takes_unvisited_cells_last(
    policies: dict[int, np.ndarray], clean_visits: dict[int, np.ndarray]
) -> None:
    changeable, visits = masks.cells(policies[7], 9), clean_visits[7]
    nothing = np.zeros_like(visits)
    uniform = [masks.order(changeable, "uniform", v, MASTER, 7, 9).cell.tolist() for v in (visits, nothing)]
    assert uniform[0] == uniform[1]
    weights = visits.ravel()[masks.order(changeable, "flow_weighted", visits, MASTER, 7, 9).cell]
    assert 0 < (weights > 0).sum() < len(weights)
    assert (np.diff((weights > 0).astype(int)) <= 0).all()


def test_a_weighted_order_is_sampling_without_replacement_by_clean_visits() -> None:
    weights = [1, 2, 3, 6, 0]
    picked = masks.Cells(np.arange(6, 11), np.ones(5, dtype=bool), np.ones(5, dtype=bool))
    visits = np.zeros(loop.STATES, dtype=np.int64)
    visits.ravel()[picked.cell] = weights
    trials = 6_000
    orders = [masks.order(picked, "flow_weighted", visits, seed, 5, 0).cell - 6 for seed in range(trials)]
    assert all(found[-1] == 4 for found in orders)
    for a, b in itertools.permutations(range(4), 2):
        chance = weights[a] / 12 * weights[b] / (12 - weights[a])
        assert within(sum(found[0] == a and found[1] == b for found in orders), trials, chance)


def test_a_uniform_order_puts_each_cell_first_as_often_as_another() -> None:
    picked = masks.Cells(np.arange(6, 11), np.ones(5, dtype=bool), np.ones(5, dtype=bool))
    nothing = np.zeros(loop.STATES, dtype=np.int64)
    orders = [masks.order(picked, "uniform", nothing, seed, 5, 0).cell - 6 for seed in range(6_000)]
    for a, b in itertools.permutations(range(5), 2):
        assert within(sum(found[0] == a and found[1] == b for found in orders), 6_000, 1 / 20)


def test_the_hash_of_a_mask_is_over_its_cells_in_order() -> None:
    assert masks.digest([3, 14]) != masks.digest([14, 3])
    assert masks.digest([3, 14]) != masks.digest([31, 4])
    assert masks.digest([3, 14]) == masks.digest((3, 14))
