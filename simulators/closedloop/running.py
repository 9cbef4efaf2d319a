"""A run: clean traces, masks, then every case under its fault. It counts integers: no number of threads changes a bit.

Policies and masks come first and are hashed (`Prepared`); a fault is only ever run on what was prepared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from simulators.closedloop import cutoff, draws, masks, policy, rollout, schedule
from simulators.closedloop.loop import COMPONENTS, DIRECTIONS, FAMILIES, PARTITIONS, REGIMES
from simulators.closedloop.rows import Block, Ints, MaskRow, Rows, Stream
from simulators.closedloop.schedule import Seeds
from xapp import address

Table = NDArray[np.int8]


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """What stands before any fault is run.

    `policies`: λ0 → int8[24, 111, 6]; `choice`: of the cutoff, by clean development episodes; `occupancy`:
    int64[3, 15984]; `reference`: int64[3, 24, 15, 8]; `cells`: the changeable cells of each regime, component and
    family (144) in the order of the mask; `masks`: 720.
    """

    policies: Mapping[int, Table]
    choice: cutoff.Choice
    occupancy: Ints
    reference: Ints
    cells: tuple[masks.Cells, ...]
    masks: tuple[masks.Mask, ...]

    def policy_digests(self) -> dict[str, str]:
        """λ0, as text → hash of its policy."""
        return {str(regime): policy.digest(table) for regime, table in self.policies.items()}

    def masks_digest(self) -> str:
        """`sha256:` and the hash of the masks: a line `regime component family target digest` each, in order."""
        lines = (f"{m.regime} {m.component} {m.family} {m.target!r} {m.digest}\n" for m in self.masks)
        return address.digest("".join(lines).encode())


def prepare(master_seed: int, blocks: Mapping[Block, Seeds]) -> Prepared:
    """Policies, cutoff, clean reference, and masks. No episode of the current or the null block is drawn.

    Raises ValueError for seeds outside the ranges of `draws`, and where development episodes bear out no cutoff.
    """
    drawn = _drawn(master_seed, blocks["reference"])
    policies = {regime: policy.fit(regime) for regime in REGIMES}
    pilot, development = (_clean(policies, _drawn(master_seed, blocks[name])) for name in ("pilot", "development"))
    visits = {regime: rollout.occupancy(table, regime, drawn) for regime, table in policies.items()}
    cells: list[masks.Cells] = []
    found: list[masks.Mask] = []
    for regime, table in policies.items():
        for component in range(COMPONENTS):
            changeable = masks.cells(table, component)
            for family in FAMILIES:
                ordered = masks.order(changeable, family, visits[regime], master_seed, regime, component)
                cells.append(ordered)
                found += masks.prefixes(ordered, family, visits[regime], regime, component)
    return Prepared(
        policies,
        cutoff.choose(pilot, development),
        np.stack([visits[regime].ravel() for regime in REGIMES]),
        _clean(policies, drawn),
        tuple(cells),
        tuple(found),
    )


def execute(
    prepared: Prepared, master_seed: int, blocks: Mapping[Block, Seeds], threads: int = 1
) -> Rows:
    """Every case under its fault, the clean null, and the streams of the drift alarm; units on `threads` ≥ 1."""
    current = _drawn(master_seed, blocks["current"])
    with ThreadPoolExecutor(threads) as pool:
        faulty = list(pool.map(lambda unit: _unit(prepared, unit, current), _units(prepared)))
    return Rows(
        cases=schedule.cases(),
        reference=prepared.reference,
        null=_clean(prepared.policies, _drawn(master_seed, blocks["null"])),
        current=np.concatenate(faulty),
        masks=tuple(map(_row, prepared.masks)),
        cells=tuple(np.column_stack((of.cell, of.outward, of.inward)).astype(np.int64) for of in prepared.cells),
        occupancy=prepared.occupancy,
        streams=tuple(_streams(prepared.policies, master_seed, blocks)),
    )


def _drawn(master_seed: int, seeds: Seeds) -> draws.Uniforms:
    return draws.uniforms(master_seed, seeds.first, seeds.count)


def _clean(policies: Mapping[int, Table], drawn: draws.Uniforms) -> Ints:
    found = [rollout.traces(table[None], regime, drawn, PARTITIONS)[0] for regime, table in policies.items()]
    return np.stack(found).transpose(0, 2, 1, 3)


def _units(prepared: Prepared) -> Iterator[tuple[masks.Mask, ...]]:
    """The masks of each unit, in order."""
    for _, of_unit in groupby(prepared.masks, key=lambda mask: (mask.regime, mask.component)):
        yield tuple(of_unit)


def _unit(prepared: Prepared, unit: tuple[masks.Mask, ...], drawn: draws.Uniforms) -> Ints:
    """The cases of a unit: int64[its masks · 2, 15, 8], in the order of the schedule."""
    regime, component = unit[0].regime, unit[0].component
    clean = prepared.policies[regime]
    faulty = np.stack([masks.shifted(clean, mask.cells, direction) for mask in unit for direction in DIRECTIONS])
    return rollout.traces(faulty, regime, drawn, PARTITIONS)[:, :, component]


def _row(mask: masks.Mask) -> MaskRow:
    return MaskRow(
        mask.regime, mask.component, mask.family, mask.target, len(mask.cells), mask.changeable,
        mask.tau_outward, mask.tau_inward, mask.tau, mask.fraction, mask.digest,
    )  # fmt: skip


def _streams(policies: Mapping[int, Table], master_seed: int, blocks: Mapping[Block, Seeds]) -> Iterator[Stream]:
    drawn = {block: _drawn(master_seed, blocks[block]) for block in schedule.STREAMED}
    for regime, demand, block in schedule.streams():
        features = rollout.aggregates(policies[regime], demand, drawn[block], PARTITIONS).features()
        yield Stream(regime, demand, block, features)
