"""What a protocol and its claims say in words: pinned here by hash, so that no text is written down twice.

Whoever words a formula, the cutoff's rule or a claim anew pins it anew; the fault of the check tells the hash.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final

from simulators.closedloop.validator.reading import Document, at

_CLUSTERS: Final = re.compile(r"over [0-9]+ clusters")
"""The one count of a run in the words of a claim; `clusters` reads it."""
_WORDS: Final = ("layer", "population", "frozen_rule", "forbidden_inference")


def digest(*texts: Any) -> str:
    """The first 16 digits of the SHA-256 of texts, each as Python writes it and ended by a NUL."""
    return hashlib.sha256("".join(f"{text!r}\0" for text in texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def of_claim(claim: Document) -> str:
    """The digest of the words of a claim: layer, population, rule, what it forbids, and the name of its estimator."""
    texts = [claim.get(member) for member in _WORDS] + [at(claim, "estimator", "name")]
    return digest(*(_CLUSTERS.sub("over … clusters", text) if isinstance(text, str) else text for text in texts))


def clusters(claim: Document) -> list[str]:
    """What the words of a claim say of clusters."""
    text = claim.get("forbidden_inference")
    return _CLUSTERS.findall(text) if isinstance(text, str) else []


FORMULAS: Final = {
    "served": "a154b3af25c99fd6",
    "reward": "051c5c76c0c1bd92",
    "demand": "9ae46e8f9bd555b2",
    "policy": "16d4ecb120ce60e4",
    "component": "9ae831f87a89b0f2",
    "randomness": "65360991261cb716",
    "fault": "ade1b3d8dc2c2566",
    "tau_d": "f1cc7280c484eb7d",
    "tau": "22c63e9703d407ec",
    "fraction": "de19c8c061372715",
    "mask": "62994387a748850d",
    "order": "e825849b7307dce3",
    "reference_gate": "5e6305e8dedaf364",
    "runtime_gate": "01c94aeb6fca3be9",
    "z": "7392ff7e2709a382",
    "detected": "28ec32ca59752b48",
    "calibration": "b7cbad9a10b6be6f",
    "models": "f5bc1800a9c943b8",
    "power": "ffff3a4a04e382d0",
    "traffic_over_fraction": "01e14899da471189",
    "family_sufficiency": "e92ff58a8d2080b1",
    "alarm": "fda3882e7c7c46c0",
}
CUTOFF_RULE: Final = "de954d977115dac1"
AUDIT: Final = "38ffd2ad5d40b642"
"""Of leakage.json: fault, costs, and the published figures with the mode that each stands beside."""
CLAIMS: Final = {
    "execution.schedule": "bf532120ab87015e",
    "coverage.reference": "30453e39e46a89e3",
    "coverage.runtime": "eddfc0a480a1f2c0",
    "coverage.components": "96c6fd0ffca0a3f8",
    "safety.false_admission": "0bf7f7d904a90dd8",
    "safety.false_admission_sensitivity": "580298d490150041",
    "power.uniform": "a095176bbe76a2a8",
    "power.flow_weighted": "a095176bbe76a2a8",
    "structure.traffic_over_fraction": "637b0a24881ad306",
    "structure.traffic_over_fraction.uniform": "f0878e95167dec1c",
    "structure.traffic_over_fraction.flow_weighted": "b24551df883e0afd",
    "structure.family_sufficiency": "eedb8423b30e9a7f",
    "drift.same_demand": "5bdb8c82f7bb7731",
    "drift.other_demand": "a43eb1f47bcc88b2",
    "drift.refresh": "09f53a53c7bb418c",
    "audit.aggregate.label_dependent": "195d0c60873ec3e4",
    "audit.aggregate.singleton_reveal": "d93b14b41588ff21",
    "audit.aggregate.residual_empty": "878af7f9303eae60",
    "audit.anchor_on_all.label_dependent": "0c0e7a8dc2fecfbe",
    "audit.anchor_on_all.singleton_reveal": "6040a1ce64540c68",
    "audit.anchor_on_all.residual_empty": "12ebab97eaa038b5",
    "audit.anchor_on_planted.label_dependent": "e837897a6a66722a",
    "audit.anchor_on_planted.singleton_reveal": "a8c72ec1d68a5e0e",
    "audit.anchor_on_planted.residual_empty": "dd8b977943392fd6",
    "audit.hard_probe_on_planted.label_dependent": "906a5f8cd651c817",
    "audit.hard_probe_on_planted.singleton_reveal": "4e5951cca7940117",
    "audit.hard_probe_on_planted.residual_empty": "bafc3e64babebd25",
    "solver.exact_mhs_advantage": "7b9356835353f5e6",
    "solver.comparison.aggregate": "e78b13d21cced8cb",
    "solver.comparison.anchor_on_all": "ec7899ea7cca5d92",
    "solver.comparison.anchor_on_planted": "6681d79753abca73",
    "solver.comparison.hard_probe_on_planted": "3b0501e7ba27a9ae",
    "solver.localisation": "a20bdc44a648d233",
}
"""Every claim of a study, in the order of its ledger."""
