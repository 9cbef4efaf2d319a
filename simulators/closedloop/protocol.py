"""The protocol: what was fixed before the run, read strictly, and held against what this software does.

The preregistered one is shipped beside this module; `python -m simulators.closedloop.freezing` makes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from itertools import pairwise
from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from simulators.closedloop.draws import MASTER_SEEDS
from simulators.closedloop.frozen import FORMULAS, constants, cutoff_rule, schema_digest, thresholds
from simulators.closedloop.loop import EPISODES, PARTITIONS
from simulators.closedloop.rows import Block
from simulators.closedloop.running import Prepared
from simulators.closedloop.schedule import BLOCKS, Seeds
from simulators.closedloop.sources import code_digest, validator_digest
from simulators.closedloop.tables import FileFault, document
from xapp import address

FORMAT: Final = "wirelessops.study-protocol/1"
FREEZE: Final = "python -m simulators.closedloop.freezing"
"""The command that prints a protocol anew."""
FILE: Final = "protocol.json"
_OF_THE_RUN: Final = frozenset({"environment", "commit"})
"""Members that a run adds: they say where it ran, and are not frozen."""

Digest = Annotated[str, Field(pattern="^sha256:[0-9a-f]{64}$")]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class SeedsPart(_Part):
    """Episode seeds of a block."""

    first: Annotated[int, Field(ge=0, le=10**18 - PARTITIONS * EPISODES)]
    """Seeds have 18 digits at most, as all integers of the tables."""
    count: Annotated[int, Field(ge=PARTITIONS * EPISODES, le=PARTITIONS * EPISODES)]


class SeedPart(_Part):
    """All seeds."""

    master: Annotated[int, Field(ge=0, lt=MASTER_SEEDS)]
    blocks: dict[str, SeedsPart]


class CutoffPart(_Part):
    """The cutoff of the signal: what was chosen, from what, how, and what development episodes showed."""

    chosen: float
    grid: list[float]
    rule: str
    shown: dict[str, Any]


class HashesPart(_Part):
    """Hashes of what the protocol rests on; docs/study.md says over what. `environment` is of a run."""

    code: Digest
    validator: Digest
    policies: dict[str, Digest]
    masks: Digest
    schema_: Annotated[Digest, Field(alias="schema")]
    frozen: Digest
    environment: Digest | None = None


class ProtocolPart(_Part):
    """A protocol, with or without what a run adds."""

    format: Literal["wirelessops.study-protocol/1"]
    constants: dict[str, Any]
    seeds: SeedPart
    formulas: dict[str, str]
    thresholds: dict[str, Any]
    cutoff: CutoffPart
    hashes: HashesPart
    environment: dict[str, Any] | None = None
    commit: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Protocol:
    """A protocol that was read. `document`: its members, as they are written."""

    document: Mapping[str, Any]

    @property
    def master_seed(self) -> int:
        """The first word of every key."""
        return int(self.document["seeds"]["master"])

    @property
    def blocks(self) -> dict[Block, Seeds]:
        """The episode seeds of each block."""
        of = self.document["seeds"]["blocks"]
        return {block: Seeds(of[block]["first"], of[block]["count"]) for block in BLOCKS}

    @property
    def cutoff(self) -> float:
        """The frozen cutoff of z."""
        return float(self.document["cutoff"]["chosen"])

    @property
    def digest(self) -> str:
        """The hash of all that is frozen."""
        return str(self.document["hashes"]["frozen"])

    def content(self) -> bytes:
        """As it is written."""
        return document(self.document)


def read(name: str, content: bytes) -> Protocol:
    """The protocol of a file. Raises FileFault, with file and place, where it is none or was changed by hand."""
    try:
        found = orjson.loads(content)
        part = ProtocolPart.model_validate_json(content)
    except orjson.JSONDecodeError as error:
        raise FileFault(f"{name}: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise FileFault(f"{name}: {'.'.join(map(str, first['loc'])) or 'document'}: {first['msg']}") from None
    for fault in _faults(part, found):
        raise FileFault(f"{name}: {fault}")
    return Protocol(found)


def shipped() -> Protocol:
    """The preregistered protocol. Raises FileFault where the one that is shipped is broken."""
    return read(FILE, (files(__package__) / FILE).read_bytes())


def differences(protocol: Protocol) -> list[str]:
    """How a protocol differs from this software, before anything is run: a line for each member; none: it does not."""
    told, here = protocol.document, _of_this_software()
    found = [line for name in here for line in _compared(name, told[name], here[name])]
    found += _compared("cutoff", {name: told["cutoff"][name] for name in cutoff_rule()}, cutoff_rule())
    return found + _compared("hashes", {name: told["hashes"][name] for name in _hashes()}, _hashes())


def prepared_differences(protocol: Protocol, prepared: Prepared) -> list[str]:
    """How cutoff, policies and masks differ from the protocol's: a line for each. Asked before any fault is run."""
    hashes, cutoff = protocol.document["hashes"], _cutoff(prepared)
    found = _compared("cutoff", {name: protocol.document["cutoff"][name] for name in cutoff}, cutoff)
    found += _compared("hashes.policies", hashes["policies"], prepared.policy_digests())
    return found + _compared("hashes.masks", hashes["masks"], prepared.masks_digest())


def made(master_seed: int, blocks: Mapping[Block, Seeds], prepared: Prepared) -> Protocol:
    """The protocol of this software with these seeds, and what was prepared from them."""
    found: dict[str, Any] = {
        "format": FORMAT,
        "constants": constants(),
        "seeds": {
            "master": master_seed,
            "blocks": {block: {"first": seeds.first, "count": seeds.count} for block, seeds in blocks.items()},
        },
        "formulas": FORMULAS,
        "thresholds": thresholds(),
        "cutoff": {**_cutoff(prepared), **cutoff_rule()},
        "hashes": {**_hashes(), "policies": prepared.policy_digests(), "masks": prepared.masks_digest()},
    }
    found["hashes"]["frozen"] = frozen_digest(found)
    return read(FILE, document(found))


def of_run(protocol: Protocol, environment: Mapping[str, Any], commit: Mapping[str, Any]) -> Protocol:
    """The protocol with where it ran. `environment`: names → versions; `commit`: id, dirty, reason."""
    hashed = address.digest(_canonical(environment))
    hashes = {**protocol.document["hashes"], "environment": hashed}
    return Protocol({**protocol.document, "hashes": hashes, "environment": environment, "commit": commit})


def between(one: Protocol, other: Protocol) -> list[str]:
    """How two protocols differ, a line for each member; where they ran counts."""
    return _compared("", one.document, other.document)


def frozen_digest(told: Mapping[str, Any]) -> str:
    """`sha256:` and the hash of a protocol without its own hash, and without what a run adds.

    Over compact JSON with sorted members.
    """
    kept = {name: value for name, value in told.items() if name not in _OF_THE_RUN}
    kept["hashes"] = {k: v for k, v in told["hashes"].items() if k not in ("frozen", "environment")}
    return address.digest(_canonical(kept))


def _cutoff(prepared: Prepared) -> dict[str, Any]:
    """The cutoff that development episodes bear out, and what they showed."""
    choice = prepared.choice
    shown = {"units": choice.units, "cutoffs": [asdict(one) for one in choice.shown]}
    return {"chosen": choice.cutoff, "shown": shown}


def _of_this_software() -> dict[str, Any]:
    return {"constants": constants(), "formulas": FORMULAS, "thresholds": thresholds()}


def _hashes() -> dict[str, str]:
    return {"code": code_digest(), "validator": validator_digest(), "schema": schema_digest()}


def _faults(part: ProtocolPart, told: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a protocol in itself."""
    if list(part.seeds.blocks) != list(BLOCKS):
        yield f"seeds.blocks: must be {', '.join(BLOCKS)}, in this order"
    taken = sorted((seeds.first, seeds.count, block) for block, seeds in part.seeds.blocks.items())
    for (first, count, block), (next_first, _, next_block) in pairwise(taken):
        if next_first < first + count:
            yield f"seeds.blocks: {block} and {next_block} share episode seeds"
    if part.cutoff.chosen not in part.cutoff.grid:
        yield f"cutoff.chosen: {part.cutoff.chosen} is none of its grid"
    if part.hashes.frozen != (found := frozen_digest(told)):
        yield f"hashes.frozen: {part.hashes.frozen}, and its content is {found}: a protocol is frozen by `{FREEZE}`"


def _compared(name: str, told: Any, here: Any) -> list[str]:
    """Where two values differ, member by member: `name: … in the protocol, … here`."""
    if isinstance(told, Mapping) and isinstance(here, Mapping):
        members = dict.fromkeys((*told, *here))
        return [
            line
            for member in members
            for line in _compared(f"{name}.{member}".lstrip("."), told.get(member), here.get(member))
        ]
    return [] if told == here else [f"{name}: {_shown(told)} in the protocol, {_shown(here)} here"]


def _shown(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 90 else f"{text[:90]}…"


def _canonical(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
