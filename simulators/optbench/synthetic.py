"""Three synthetic proposers: a calibrated noise model, never a model of language, and never called one.

A synthetic proposer reads the sealed part of the cases that it is built for: whether the reference is APPLY, to meet
the rates of table IV (before repair) exactly, and the item's own answer, to have something to be wrong about. No method
sees either: all that leaves it is the text of a reply. Everything is drawn by SHA-256, so a prompt has one completion.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, TypeVar

from simulators.optbench.agents import Completion, Prompt
from simulators.optbench.model import Case, Scalar
from simulators.optbench.replies import ACTIONS, Unreadable, read_reply

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Profile:
    """The rates of one proposer.

    `applies_blocking`, `applies_applicable`: shares of the blocking and of the APPLY cases on which it proposes APPLY
    (table IV before repair: FP of 400, TP of 200). The rest are shares of all proposals that have an error of a kind,
    drawn independently of each other and of the label. They are our choice, for the paper publishes none, and are not
    fitted to table III: with them about 37, 30 and 39 % of the proposals are right in the whole of plan and answer.
    """

    applies_blocking: Fraction
    applies_applicable: Fraction
    wrong_arithmetic: float
    unit_slip: float
    omitted_unit: float
    omitted_field: float
    incomplete_plan: float


PROFILES: Final[Mapping[str, Profile]] = {
    "synthetic-a": Profile(Fraction(369, 400), Fraction(187, 200), 0.40, 0.15, 0.12, 0.12, 0.10),
    "synthetic-b": Profile(Fraction(342, 400), Fraction(198, 200), 0.45, 0.20, 0.15, 0.15, 0.12),
    "synthetic-c": Profile(Fraction(357, 400), Fraction(194, 200), 0.38, 0.13, 0.10, 0.10, 0.08),
}

MENDED: Final = 0.6
"""Chance that a revision mends what a critique disputes; our choice."""

# Where it proposes another action than APPLY: cumulative shares, on blocking cases and on APPLY cases.
_REFUSALS: Final = ((0.50, "HOLD"), (0.75, "ESCALATE"), (0.95, "RETRY"), (1.0, "ABSTAIN"))
_NEEDLESS_REFUSALS: Final = ((0.80, "HOLD"), (0.90, "ESCALATE"), (1.0, "RETRY"))

_FACTORS: Final = (0.5, 0.7, 1.3, 1.5, 3.0)
_OTHER_SLICE: Final = {"eMBB": "URLLC", "URLLC": "eMBB"}
# Units without SI prefixes: who slips there slips by a factor of ten (dB for bel), elsewhere by a thousand.
_UNPREFIXED: Final = frozenset({"dB", "dBm", "%", "deg", "PRB"})

# Planned or derived field → where the answer states it, for those whose place is not the field's own name.
_IN_ANSWER: Final[Mapping[str, tuple[str, ...]]] = {
    "answer": ("value",),
    "position_x": ("predicted_position", "x"),
    "position_y": ("predicted_position", "y"),
}
_ANSWER_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "WCHW": ("value", "unit"),
    "WCNS": ("slice_type", "cqi", "bandwidth", "throughput"),
    "WCMSA": ("predicted_position", "predicted_cqi", "slice_type", "bandwidth", "throughput", "qos_satisfied"),
}

_WRAPPINGS: Final = (
    "{}",
    "```json\n{}\n```",
    "I checked the evidence at time t and solved the task.\n\n```json\n{}\n```\nThis is my proposal.",
    "Proposal: {} That is all.",
)


def _digest(*parts: object) -> bytes:
    return hashlib.sha256(json.dumps(parts).encode()).digest()


def _share(*parts: object) -> float:
    """A number in [0, 1) drawn by `parts`."""
    return int.from_bytes(_digest(*parts)[:6], "big") / 2**48


def _pick(options: Sequence[_T], *parts: object) -> _T:
    return options[int(_share(*parts) * len(options))]


def _quotas(sizes: Mapping[tuple[str, str], int], total: int, *ties: object) -> dict[tuple[str, str], int]:
    """`total` over strata in proportion to `sizes`, by largest remainder; ties in an order drawn by `ties`."""
    everything = sum(sizes.values())
    exact = {stratum: Fraction(total * size, everything) for stratum, size in sizes.items()}
    quotas = {stratum: int(share) for stratum, share in exact.items()}
    by_remainder = sorted(exact, key=lambda s: (quotas[s] - exact[s], _digest(*ties, *s)))
    for stratum in by_remainder[: total - sum(quotas.values())]:
        quotas[stratum] += 1
    return quotas


def _applying(cases: Iterable[Case], rate: Fraction, seed: int, name: str) -> frozenset[str]:
    """The episodes of `cases` on which APPLY is proposed: round(rate · n) of them, spread over domains and tasks."""
    strata: dict[tuple[str, str], list[str]] = {}
    for case in cases:
        strata.setdefault((case.sealed.domain, case.sealed.item.task), []).append(case.episode_id)
    sizes = {stratum: len(ids) for stratum, ids in strata.items()}
    quotas = _quotas(sizes, round(rate * sum(sizes.values())), seed, name)
    chosen: list[str] = []
    for stratum, ids in strata.items():
        chosen += sorted(ids, key=lambda episode_id: _digest(seed, name, episode_id))[: quotas[stratum]]
    return frozenset(chosen)


def _canonical(name: str) -> str:
    return name.lower().replace(" ", "_").replace("-", "_")


def _newest(view: Mapping[str, Any], field: str) -> str | None:
    """The id of the newest observation under a name of `field`, of the first source in contract order that has one."""
    stated = view["episode"]["contract"]["fields"][field]
    names = {_canonical(name) for name in (field, *stated.get("aliases", ()))}
    for source in stated["sources"]:
        told = [
            (o["event_time_ms"], place, str(o["id"]))
            for place, o in enumerate(view["episode"]["observations"])
            if o["source"] == source and _canonical(o["name"]) in names
        ]
        if told:
            return max(told)[2]
    return None


def _observed(contract: Mapping[str, Any]) -> list[str]:
    return [name for name, field in contract["fields"].items() if field["kind"] == "observed"]


def _state(answer: dict[str, Any], field: str, entry: Mapping[str, Any]) -> None:
    """Write a plan entry into the answer too, where the task's answer states that field."""
    *outer, last = _IN_ANSWER.get(field, (field,))
    for key in outer:
        answer = answer.setdefault(key, {})
    if last not in answer:
        return
    answer[last] = entry["value"]
    if "unit" in answer:
        answer["unit"] = entry["unit"]


def _miscalculated(value: Scalar, stated: Mapping[str, Any], factor: float) -> Scalar:
    """A value that lies beyond every tolerance of `value`: the other slice, or another number."""
    if isinstance(value, str):
        return _OTHER_SLICE.get(value, "eMBB")
    if isinstance(value, bool):
        return not value
    tolerance, relative = stated.get("tolerance", 0), stated.get("rel_tolerance", 0)
    wrong = float(f"{value * factor:.6g}")
    larger = max(abs(value), abs(wrong))
    if abs(wrong - value) > 1.01 * max(tolerance, relative * larger):  # rounding takes a thousandth at most
        return wrong
    return value + 2 * float(tolerance + relative * abs(value)) + 1


def _slipped(value: Scalar, unit: str, up: bool) -> Scalar:
    """`value` counted in a neighbouring unit, but still named in `unit`."""
    factor = 10 if unit in _UNPREFIXED else 1000
    return value if isinstance(value, str | bool) else (value * factor if up else value / factor)


class SyntheticProposer:
    """A backbone that draws its replies (module docstring). Stateless: the same prompt has the same completion."""

    synthetic = True

    def __init__(self, name: str, cases: Sequence[Case], seed: int) -> None:
        """Raises KeyError for a name that has no profile, ValueError where two cases share an episode id."""
        self.name = name
        self._profile = PROFILES[name]
        self._seed = seed
        self._cases = {case.episode_id: case for case in cases}
        if len(self._cases) < len(cases):
            raise ValueError("two cases share an episode id")
        applicable = [case for case in cases if case.sealed.reference == "APPLY"]
        blocking = [case for case in cases if case.sealed.reference != "APPLY"]
        self._applying = _applying(applicable, self._profile.applies_applicable, seed, name) | _applying(
            blocking, self._profile.applies_blocking, seed, name
        )

    def complete(self, prompt: Prompt) -> Completion:
        """A proposal, or its revision: each disputed name is mended with a chance of `MENDED`, the rest stays.

        An episode that it was not built for is an error in the completion.
        """
        case = self._cases.get(prompt.episode_id)
        if case is None:
            return Completion("", error=f"{self.name} was not built for episode {prompt.episode_id}")
        if prompt.purpose == "propose":
            proposal = self._proposal(case)
        else:
            proposal = self._previous(case, prompt)
            for disputed in prompt.disputed:
                if _share(self._seed, self.name, case.episode_id, prompt.round, disputed) < MENDED:
                    self._mend(case, proposal, disputed)
        wrapping = _pick(_WRAPPINGS, self._seed, self.name, case.episode_id, "wrapping", prompt.round)
        text = wrapping.replace("{}", json.dumps(proposal))
        return Completion(text, tokens_in=sum(len(said) for _, said in prompt.messages) // 4, tokens_out=len(text) // 4)

    def _draw(self, case: Case, what: str) -> float:
        return _share(self._seed, self.name, case.episode_id, what)

    def _chosen(self, case: Case, what: str, options: Sequence[_T]) -> _T:
        return _pick(options, self._seed, self.name, case.episode_id, what)

    def _action(self, case: Case) -> str:
        if case.episode_id in self._applying:
            return "APPLY"
        refusals = _NEEDLESS_REFUSALS if case.sealed.reference == "APPLY" else _REFUSALS
        drawn = self._draw(case, "refusal")
        return next(action for up_to, action in refusals if drawn < up_to)

    def _proposal(self, case: Case) -> dict[str, Any]:
        action = self._action(case)
        plan, answer = self._content(case)
        return {"action": action, "answer": answer, "plan": plan, "fields": self._claims(case, action)}

    def _claims(self, case: Case, action: str) -> dict[str, Any]:
        """What it says of the evidence: all supported, but for one critical field where it would not apply."""
        contract = case.view["episode"]["contract"]
        observed = _observed(contract)
        claims: dict[str, Any] = {
            field: {"state": "supported", "observation": _newest(case.view, field)} for field in observed
        }
        critical = [field for field in observed if contract["fields"][field].get("critical", True)]
        if action != "APPLY" and critical:
            claims[self._chosen(case, "blocked", critical)] = {"state": "blocked", "observation": None}
        return claims

    def _content(self, case: Case) -> tuple[dict[str, Any], dict[str, Any]]:
        """Plan and answer: the item's own, then the errors. Depends on nothing that the label touches."""
        fields, profile = case.view["episode"]["contract"]["fields"], self._profile
        plan = {field: _right(case, field) for field in case.sealed.item.plan}
        answer = _right_answer(case)
        dimensioned = [field for field, entry in plan.items() if entry["unit"] != "1"]

        def make(entry: dict[str, Any], field: str) -> None:
            plan[field] = entry
            _state(answer, field, entry)

        if self._draw(case, "wrong arithmetic") < profile.wrong_arithmetic:
            field = self._chosen(case, "miscalculated", list(plan))
            factor = self._chosen(case, "factor", _FACTORS)
            make({**plan[field], "value": _miscalculated(plan[field]["value"], fields[field], factor)}, field)
        if dimensioned and self._draw(case, "unit slip") < profile.unit_slip:
            field = self._chosen(case, "slipped", dimensioned)
            up = self._draw(case, "slipped up") < 0.5
            make({**plan[field], "value": _slipped(plan[field]["value"], plan[field]["unit"], up)}, field)
        if dimensioned and self._draw(case, "omitted unit") < profile.omitted_unit:
            field = self._chosen(case, "without unit", dimensioned)
            make({**plan[field], "unit": None}, field)
        if self._draw(case, "omitted field") < profile.omitted_field:
            del plan[self._chosen(case, "omitted", list(plan))]
        if self._draw(case, "incomplete plan") < profile.incomplete_plan:
            plan = {field: entry for field, entry in plan.items() if fields[field]["kind"] != "planned"}
        return plan, answer

    def _previous(self, case: Case, prompt: Prompt) -> dict[str, Any]:
        """Its own last reply in the conversation; its first proposal where there is none that reads."""
        said = [text for role, text in prompt.messages if role == "assistant"]
        read = read_reply(said[-1]) if said else Unreadable("nothing said yet")
        if isinstance(read, Unreadable):
            return self._proposal(case)
        return {"action": read.action, "answer": read.answer, "plan": dict(read.plan), "fields": dict(read.fields)}

    def _mend(self, case: Case, proposal: dict[str, Any], disputed: str) -> None:
        """Put one disputed thing right, in place; what it does not know by that name it leaves."""
        about, _, name = disputed.partition(":")
        if about == "plan" and name in case.sealed.item.plan:
            proposal["plan"][name] = _right(case, name)
            if isinstance(proposal["answer"], dict):
                _state(proposal["answer"], name, proposal["plan"][name])
        elif about == "action" and name in ACTIONS:
            proposal["action"] = name
        elif about == "fields" and name in _observed(case.view["episode"]["contract"]):
            proposal["fields"][name] = {"state": "blocked", "observation": None}


def _right(case: Case, field: str) -> dict[str, Any]:
    stated = case.view["episode"]["contract"]["fields"][field]
    return {"value": case.sealed.item.plan[field], "unit": stated.get("unit", "1")}


def _right_answer(case: Case) -> dict[str, Any]:
    """A copy of the item's answer, with the task's own keys."""
    item = case.sealed.item
    answer = {key: item.answer[key] for key in _ANSWER_KEYS[item.task]}
    return {key: dict(value) if isinstance(value, Mapping) else value for key, value in answer.items()}


def proposer(name: str, cases: Sequence[Case], seed: int) -> SyntheticProposer:
    """The synthetic proposer `name` (one of `PROFILES`) for `cases`."""
    return SyntheticProposer(name, cases, seed)


def proposers(cases: Sequence[Case], seed: int) -> tuple[SyntheticProposer, ...]:
    """All three, in the order of table IV."""
    return tuple(SyntheticProposer(name, cases, seed) for name in PROFILES)
