"""Freeze: what was fixed before the run, hashed again from what is there."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any, Final

from simulators.closedloop.validator import design, sources, words
from simulators.closedloop.validator.check import Check, Fault
from simulators.closedloop.validator.design import FAMILIES, REGIMES, TARGETS
from simulators.closedloop.validator.layout import FILES, MANIFEST, TABLES
from simulators.closedloop.validator.masks import CELLS, OCCUPANCY, ordered
from simulators.closedloop.validator.policy import digest, policy
from simulators.closedloop.validator.reading import Saved, at, foreign, same

FILE: Final = "protocol.json"
FORMAT: Final = "wirelessops.study-protocol/1"
CONSTANTS: Final[dict[str, Any]] = {
    "horizon": design.STEPS,
    "credit": design.CREDITS - 1,
    "channels": design.CHANNELS,
    "caps": [0, 1, 2, 3, 5, 7, 9, 12],
    "regimes": list(REGIMES),
    "values": [0.5, 0.75, 1.0, 1.3, 1.6, 2.0],
    "exponent": 0.6,
    "unmet_cost": 0.1,
    "cap_cost": 0.1,
    "stay": 0.5,
    "load_spread": 0.35,
    "load_levels": [-1.5, -0.9, -0.3, 0.3, 0.9, 1.5],
    "policy_decimals": 9,
    "quarters": 4,
    "halves": 2,
    "thirds": 3,
    "families": list(FAMILIES),
    "targets": list(TARGETS),
    "directions": list(design.DIRECTIONS),
    "partitions": design.PARTITIONS,
    "episodes": design.EPISODES,
}
THRESHOLDS: Final[dict[str, Any]] = {
    "min_visits": design.MIN_VISITS,
    "min_partitions": design.MIN_PARTITIONS,
    "partitions": design.PARTITIONS,
    "distance_unit": design.DISTANCE_SCALE,
    "gap_unit": design.GAP_SCALE,
    "false_admission_bound": design.BOUND_AT_MOST,
    "confidence": design.CONFIDENCE,
    "family_gain": 0.01,
    "bootstrap_draws": 2000,
    "bootstrap_seed": 73,
    "bootstrap_percentiles": [2.5, 97.5],
    "drift_alpha": 0.05,
}
MEMBERS: Final[dict[str, Any]] = {
    "format": None,
    "constants": dict.fromkeys(CONSTANTS),
    "seeds": {"master": None, "blocks": {block: {"first": None, "count": None} for block in design.BLOCKS}},
    "formulas": dict.fromkeys(words.FORMULAS),
    "thresholds": dict.fromkeys(THRESHOLDS),
    "cutoff": {"chosen": None, "grid": None, "rule": None, "shown": {"units": None, "cutoffs": None}},
    "hashes": dict.fromkeys(("code", "validator", "policies", "masks", "schema", "frozen", "environment")),
    "environment": None,
    "commit": {"id": None, "dirty": None, "reason": None},
}
"""Of the protocol: member → those within it, None where it is a value or a check of its own knows them."""
_OF_THE_RUN: Final = ("environment", "commit")
_VERSIONS: Final = ("python", "numpy", "scipy")


def sha256(content: bytes) -> str:
    """`sha256:` and the hash."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def canonical(value: Any) -> bytes:
    """Compact JSON with sorted members, exponents of numbers without leading zeros."""
    if isinstance(value, dict):
        members = (canonical(name) + b":" + canonical(value[name]) for name in sorted(value))
        return b"{" + b",".join(members) + b"}"
    if isinstance(value, list):
        return b"[" + b",".join(map(canonical, value)) + b"]"
    if isinstance(value, float):
        return re.sub(r"e([-+])0*", lambda found: "e" + found[1].replace("+", ""), repr(value)).encode()
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def frozen(protocol: dict[str, Any]) -> str:
    """The hash of all that is frozen: the protocol without that hash and without what a run adds."""
    kept = {name: value for name, value in protocol.items() if name not in _OF_THE_RUN}
    hashes = kept.get("hashes")
    if isinstance(hashes, dict):
        kept["hashes"] = {name: value for name, value in hashes.items() if name not in ("frozen", "environment")}
    return sha256(canonical(kept))


def _hash(saved: Saved, name: str, computed: str, of: str) -> Iterator[Fault]:
    if (said := at(saved.documents[FILE], "hashes", name)) != computed:
        yield Fault(FILE, f"hashes {name}", f"is {said!r}; {of} {computed}")


def _members(saved: Saved, part: str, wanted: dict[str, Any]) -> Iterator[Fault]:
    for name, value in wanted.items():
        if not same(said := at(saved.documents[FILE], part, name), value):
            yield Fault(FILE, f"{part} {name}", f"is {said!r}; the design has {value!r}")


def _rules(saved: Saved) -> Iterator[Fault]:
    document = saved.documents[FILE]
    if (form := document.get("format")) != FORMAT:
        yield Fault(FILE, "format", f"is {form!r}, not {FORMAT}")
    yield from _members(saved, "constants", CONSTANTS)
    yield from _members(saved, "thresholds", THRESHOLDS)
    for path in foreign(document, MEMBERS):
        yield Fault(FILE, " ".join(path), "is no member of a protocol")
    for name, wanted in words.FORMULAS.items():
        if (found := words.digest(at(document, "formulas", name))) != wanted:
            yield Fault(FILE, f"formulas {name}", f"is not worded as in the design: {found}, not {wanted}")


def _code(saved: Saved) -> Iterator[Fault]:
    yield from _hash(saved, "code", sources.code(), "the installed sources that make a run have")
    yield from _hash(saved, "validator", sources.validator(), "the installed validator has")


def _policies(saved: Saved) -> Iterator[Fault]:
    wanted = {str(regime): digest(policy(regime)) for regime in REGIMES}
    said = at(saved.documents[FILE], "hashes", "policies")
    for regime in sorted({*wanted, *(said if isinstance(said, dict) else ())}):
        told = at(saved.documents[FILE], "hashes", "policies", regime)
        if told != wanted.get(regime):
            why = f"is {told!r}; backward induction gives {wanted.get(regime)}"
            yield Fault(FILE, f"hashes policies {regime}", why)


def _masks(saved: Saved) -> Iterator[Fault]:
    lines = []
    for number, cells in enumerate(ordered(saved)):
        unit, family = divmod(number, len(FAMILIES))
        regime, component = divmod(unit, design.COMPONENTS)
        for target in TARGETS:
            selected = cells.cell[: cells.nearest[target]].tolist()
            of_mask = sha256(" ".join(map(str, selected)).encode())
            lines.append(f"{REGIMES[regime]} {component} {FAMILIES[family]} {target!r} {of_mask}\n")
    yield from _hash(saved, "masks", sha256("".join(lines).encode()), f"the masks of {CELLS} have")


def _schema(saved: Saved) -> Iterator[Fault]:
    for name in sorted(TABLES):
        known = tuple(column for column, _ in TABLES[name])
        if (header := saved.tables[name].header) != known:
            yield Fault(name, "line 1", f"its columns are {','.join(header)}, not {','.join(known)}")
    lines = (f"{name}: {','.join(saved.tables[name].header)}\n" for name in sorted(TABLES))
    yield from _hash(saved, "schema", sha256("".join(lines).encode()), "the headers of the tables have")


def _environment(saved: Saved) -> Iterator[Fault]:
    environment = saved.documents[FILE].get("environment")
    if not isinstance(environment, dict):
        yield Fault(FILE, "environment", "is not there")
        return
    for name in _VERSIONS:
        if not isinstance(environment.get(name), str):
            yield Fault(FILE, f"environment {name}", "has no version")
    yield from _hash(saved, "environment", sha256(canonical(environment)), "the environment named there has")


def _commit(saved: Saved) -> Iterator[Fault]:
    commit = saved.documents[FILE].get("commit")
    if not isinstance(commit, dict):
        yield Fault(FILE, "commit", "is not there")
        return
    said, dirty, reason = (commit.get(name) for name in ("id", "dirty", "reason"))
    if said is None:
        if not isinstance(reason, str) or not reason or dirty is not None:
            yield Fault(FILE, "commit", "names no commit, and not only a reason for that")
    elif not isinstance(said, str) or re.fullmatch("[0-9a-f]{40}", said) is None:
        yield Fault(FILE, "commit id", f"is {said!r}, no commit's 40 digits")
    elif not isinstance(dirty, bool) or reason is not None:
        yield Fault(FILE, "commit", "does not say whether the sources were those of the commit")


def _manifest(saved: Saved) -> Iterator[Fault]:
    manifest = saved.documents[MANIFEST]
    for name in FILES:
        if name == MANIFEST:
            continue
        if (said := manifest.get(name)) != (hashed := sha256(saved.content[name])):
            yield Fault(MANIFEST, name, f"is {said!r}; the file has {hashed}")
    for name in sorted(manifest.keys() - set(FILES)):
        yield Fault(MANIFEST, name, "is no file of a study")
    for name in saved.others:
        yield Fault(name, "", "lies among the files of the study, and is none")
    yield from _hash(saved, "frozen", frozen(saved.documents[FILE]), "what is frozen has")


def _check(name: str, says: str, find: Any, *reads: str) -> Check:
    return Check(name, "freeze", says, (FILE, *reads), find)


CHECKS: Final = (
    _check("rules", "Members, format, constants, thresholds and formulas' words are those of the design.", _rules),
    _check("code", "The hashes of the code are those of the installed sources of study and validator.", _code),
    _check("policies", "The hash of each policy is that of backward induction, done again.", _policies),
    _check("masks", "The hash of the masks, taken before any fault, is theirs.", _masks, CELLS, OCCUPANCY),
    _check(
        "schema",
        "All tables have the headers of the design, and the hash of the schema is theirs.",
        _schema,
        *sorted(TABLES),
    ),
    _check("environment", "The environment names its versions, and its hash is theirs.", _environment),
    _check("commit", "The commit is named, or why it is not.", _commit),
    _check(
        "manifest",
        "The manifest has the hash of every file of the folder, and the protocol that of all it froze.",
        _manifest,
        *sorted(set(FILES) - {FILE}),
    ),
)
