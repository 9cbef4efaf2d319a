"""Laws of the benchmark's base items: contracts, published rules, formula tools and their lookup, files, anchors."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulators.optbench.base.anchors import ANCHORS, GENERATORS, SPLITS, Anchors, anchors
from simulators.optbench.base.channel import NOISE_DBM, TX_POWER_DBM, path_loss_db
from simulators.optbench.base.files import content, read_files
from simulators.optbench.base.formulas import FORMULAS
from simulators.optbench.base.gold import AGREEMENT, Gold, contradicted_by, gold_of, is_in_its_digits
from simulators.optbench.base.lookup import compute, coverage, look_up
from simulators.optbench.base.rules import SLICES, bandwidth_mhz, cqi_of_snr, predicted_m, qos_satisfied
from simulators.optbench.base.rules import throughput_mbit_s as throughput
from simulators.optbench.base.wchw import worded
from simulators.optbench.base.wcmsa import SAMPLE_AGES_MS
from simulators.optbench.contracts import (
    A3_GAP_MS,
    A3_OFFSET_DB,
    A3_WINDOW_MS,
    wchw_contract,
    wcmsa_contract,
    wcns_contract,
)
from simulators.optbench.model import TASKS, BaseItem
from xapp.contract_loading import load_contract
from xapp.engine import assure
from xapp.episode import parse_episode

T = 1_800_000_000_000
DATA = Path(__file__).parents[2] / "shared" / "data" / "wirelessbench"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="WirelessBench's files are not here")

CONTRACTS = [wcns_contract(), wcmsa_contract(), *map(wchw_contract, FORMULAS.values())]
seeds = st.integers(0, 2**32)
tasks = st.sampled_from(TASKS)


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_bytes().splitlines()]


def observed(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: spec for name, spec in document["fields"].items() if spec["kind"] == "observed"}


def written(directory: Path, name: str, *lines: Any) -> Path:
    directory.mkdir(exist_ok=True)
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (directory / name).write_text(text + "\n")
    return directory


# contracts


@pytest.mark.parametrize("document", CONTRACTS, ids=lambda d: d["contract_id"])
def test_every_contract_loads_and_leaves_room_for_each_kind_of_stress(document: dict[str, Any]) -> None:
    contract = load_contract(document)
    assert contract.override_intent
    fields = observed(document)
    assert not document["fields"]["load"]["critical"]
    own = [alias for spec in fields.values() for alias in spec["aliases"]]
    for spec in fields.values():
        assert len(spec["sources"]) == 2
        assert spec["schemas"]
        assert any(own.count(alias) == 1 for alias in spec["aliases"])
        if spec.get("type") != "string":
            assert spec.get("tolerance", 0) > 0 or spec.get("rel_tolerance", 0) > 0
    assert any(len(names) == 2 for names in contract.by_name.values()), "a shared name"
    assert len({spec["sources"][0] for spec in fields.values()}) > 1, "failures can be independent"
    planned = [spec for spec in document["fields"].values() if spec["kind"] == "planned"]
    assert planned
    assert all(spec["repairable"] for spec in planned)


@given(tasks, seeds)
def test_no_parent_may_be_older_than_its_child_may_be(task: str, seed: int) -> None:
    item = GENERATORS[task](random.Random(seed), 1)
    limit = {name: spec["freshness_ms"] for name, spec in observed(item.contract).items()}
    for child, parents in item.lineage.items():
        assert parents
        assert all(limit[parent] <= limit[child] for parent in parents)


def test_positions_users_capacities_and_levels_share_a_name_in_pairs() -> None:
    shared = {name: fields for name, fields in load_contract(wcmsa_contract()).by_name.items() if len(fields) > 1}
    assert shared == {
        "users": ("embb_users", "urllc_users"),
        "capacity": ("embb_capacity", "urllc_capacity"),
        "position": ("x", "y"),
        "previous_position": ("x_previous", "y_previous"),
        "rsrp": ("rsrp_serving", "rsrp_target"),
    }


def test_the_contracts_of_the_slicing_tasks_say_what_the_published_rules_say() -> None:
    for document in (wcns_contract(), wcmsa_contract()):
        contract = load_contract(document)
        for (name, part), users, cqi in itertools.product(SLICES.items(), range(31), range(1, 16)):
            state = {"slice_type": name, "embb_users": users, "urllc_users": users, "cqi": cqi}
            state |= {f"{other.lower()}_capacity": SLICES[other].capacity_mhz for other in SLICES}
            wanted = bandwidth_mhz(name, users)
            state["bandwidth"] = wanted
            assert contract.fields["bandwidth"].expr.evaluate(state) == wanted
            assert contract.fields["throughput"].expr.evaluate(state) == throughput(wanted, cqi)
            assert part.least_mhz <= wanted <= part.most_mhz


# the engine on clean evidence


def episode(item: BaseItem, plan: Mapping[str, Any]) -> bytes:
    """Every source tells every field its value 60 ms ago, and the older samples of a windowed one."""
    told: list[dict[str, Any]] = []

    def tell(name: str, value: Any, source: str, age_ms: int, parents: list[str]) -> str:
        unit = item.contract["fields"][name].get("unit", "1")
        told.append(
            {
                "id": f"o{len(told)}", "name": name, "value": value, "unit": None if unit == "1" else unit,
                "source": source, "event_time_ms": T - age_ms, "ingest_time_ms": T - age_ms + 5, "parents": parents,
                "schema": item.contract["fields"][name]["schemas"][0],
            }
        )  # fmt: skip
        return str(told[-1]["id"])

    for place in (0, 1):
        ids: dict[str, str] = {}
        for name in sorted(item.observed, key=lambda name: name in item.lineage):
            source = item.contract["fields"][name]["sources"][place]
            for age_ms, value in item.series.get(name, ()):
                tell(name, value, source, age_ms, [])
            ids[name] = tell(name, item.observed[name], source, 60, [ids[p] for p in item.lineage.get(name, ())])
    document = {
        "format": "wirelessops.episode/1", "episode_id": "e", "decided_at_ms": T, "contract": item.contract,
        "observations": told,
        "proposal": {"proposal_id": "p", "proposer": "x", "created_at_ms": T, "control_key": "k", "plan": plan},
    }  # fmt: skip
    return json.dumps(document).encode()


def assert_applied(item: BaseItem) -> None:
    fields = item.contract["fields"]
    assert item.observed.keys() == observed(item.contract).keys()
    assert item.plan.keys() == fields.keys() - item.observed.keys()
    whole = {name: {"value": value, "unit": fields[name].get("unit", "1")} for name, value in item.plan.items()}
    for plan in (whole, {}):
        decision = assure(parse_episode(episode(item, plan), {}))
        assert decision.action == "APPLY", (item.item_id, decision.violations)
        assert decision.released is not None
        assert {name: entry["value"] for name, entry in decision.released.items()} == dict(item.plan)


@given(tasks, seeds)
def test_the_guard_applies_a_generated_item_on_clean_evidence_and_rebuilds_its_plan(task: str, seed: int) -> None:
    assert_applied(GENERATORS[task](random.Random(seed), 1))


@needs_data
@pytest.mark.parametrize("task", TASKS)
def test_the_guard_applies_items_from_files_on_clean_evidence_and_rebuilds_their_plans(task: str) -> None:
    for item in from_files().final[task][:20]:
        assert item.origin == "file"
        assert_applied(item)


# published rules


@needs_data
def test_the_rules_are_exact_on_every_published_slicing_item() -> None:
    for row in rows("wcns_validate.jsonl"):
        gold, asked = row["answer"], row["input"]
        assert gold["bandwidth"] == bandwidth_mhz(gold["slice_type"], asked[f"{gold['slice_type'].lower()}_users"])
        assert gold["throughput"] == throughput(gold["bandwidth"], gold["cqi"])
        assert_channel(row["ray_tracing_result"], asked["user_x"], asked["user_y"], gold["cqi"])


@needs_data
def test_the_rules_are_exact_on_every_published_mobility_item() -> None:
    for row in rows("wcmsa_validate.jsonl"):
        gold, asked = row["answer"], row["input"]
        before, now = asked["trajectory"][-2:]
        position = {axis: predicted_m(before[axis], now[axis]) for axis in ("x", "y")}
        assert gold["predicted_position"] == position
        assert gold["bandwidth"] == bandwidth_mhz(gold["slice_type"], asked[f"{gold['slice_type'].lower()}_users"])
        assert gold["throughput"] == throughput(gold["bandwidth"], gold["predicted_cqi"])
        assert gold["qos_satisfied"] == qos_satisfied(gold["throughput"], asked["min_rate"])
        assert_channel(row["ray_tracing_result"], position["x"], position["y"], gold["predicted_cqi"])


def assert_channel(traced: Mapping[str, Any], x_m: float, y_m: float, cqi: int) -> None:
    assert cqi_of_snr(traced["snr_dB"]) == traced["cqi"] == cqi
    # two decimals of the position are worth some hundredths of a dB close to the base station
    loss = path_loss_db(x_m, y_m, traced["has_los"])
    assert loss == pytest.approx(traced["path_loss_dB"], abs=0.02)
    assert TX_POWER_DBM - traced["path_loss_dB"] == pytest.approx(traced["rx_power_dBm"], abs=0.011)
    assert traced["rx_power_dBm"] - NOISE_DBM == pytest.approx(traced["snr_dB"], abs=0.011)


# generated items


@given(tasks, seeds)
def test_generation_is_deterministic_in_its_seed(task: str, seed: int) -> None:
    assert GENERATORS[task](random.Random(seed), 7) == GENERATORS[task](random.Random(seed), 7)


@given(seeds)
def test_event_a3_holds_with_room_at_every_sample_and_the_samples_cover_the_window(number: int) -> None:
    item = GENERATORS["WCMSA"](random.Random(number), number)
    room = sum(item.contract["fields"][name]["tolerance"] for name in ("rsrp_serving", "rsrp_target"))
    samples = {name: [*(v for _, v in item.series[name]), item.observed[name]] for name in item.series}
    for serving, target in zip(samples["rsrp_serving"], samples["rsrp_target"], strict=True):
        assert target - serving >= A3_OFFSET_DB + room
    ages = [age for age, _ in item.series["rsrp_serving"]]
    assert ages == [age for age, _ in item.series["rsrp_target"]] == sorted(ages, reverse=True)
    assert ages[0] >= A3_WINDOW_MS
    assert all(older - newer <= A3_GAP_MS for older, newer in itertools.pairwise([*SAMPLE_AGES_MS, 0]))


def test_the_rate_of_every_generated_mobility_item_can_be_reached() -> None:
    assert all(GENERATORS["WCMSA"](random.Random(seed), 1).answer["qos_satisfied"] for seed in range(2000))


@given(seeds)
def test_a_generated_walk_is_smooth(seed: int) -> None:
    trail = GENERATORS["WCMSA"](random.Random(seed), 1).input["trajectory"]
    steps = [(b["x"] - a["x"], b["y"] - a["y"]) for a, b in itertools.pairwise(trail)]
    for first, second in itertools.pairwise(steps):
        turn = math.remainder(math.atan2(*second) - math.atan2(*first), 2 * math.pi)
        assert abs(turn) < 0.8
        assert 0.5 < math.hypot(*second) / math.hypot(*first) < 2.0


# formula tools


def combinations(name: str) -> list[dict[str, float]]:
    """Every combination of values that generated questions give a formula."""
    parameters = FORMULAS[name].parameters
    names = [p.name for p in parameters]
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*[p.draws for p in parameters])]


def draws(name: str) -> list[dict[str, float]]:
    """Some of them."""
    found = combinations(name)
    return found[:: max(1, len(found) // 8)]


@pytest.mark.parametrize("name", FORMULAS)
def test_lookup_reads_a_generated_question_back_exactly(name: str) -> None:
    formula = FORMULAS[name]
    for parameters in draws(name):
        found = look_up(worded(formula, parameters))
        assert found is not None, worded(formula, parameters)
        assert (found.formula.name, dict(found.parameters)) == (name, parameters)
        assert found.result == compute(formula, parameters)


@given(seeds)
def test_the_reference_answer_of_a_generated_question_is_the_tools_value_in_four_digits(seed: int) -> None:
    item = GENERATORS["WCHW"](random.Random(seed), 1)
    found = look_up(item.question)
    assert found is not None
    assert item.observed["result"] == item.plan["answer"] == found.result
    assert item.lineage["result"] == tuple(found.parameters)
    assert item.answer["value"] == pytest.approx(found.result, rel=AGREEMENT / 5)
    assert item.answer["unit"] == found.formula.unit


INVERSES = [
    ("ber_bpsk", "ebn0", "ebn0_antipodal"), ("ber_on_off_db", "ebn0", "ebn0_on_off"),
    ("ber_dbpsk", "ebn0", "ebn0_dbpsk"),
    ("ber_fsk_noncoherent", "ebn0", "ebn0_fsk_noncoherent"), ("ber_16qam", "ebn0", "ebn0_16qam"),
    ("ber_on_off", "snr", "snr_unipolar"), ("watts", "level", "dbm"), ("ratio_linear", "level", "ratio_db"),
    ("efficiency_of_snr", "snr", "snr_of_efficiency"), ("clipping_probability", "amplitude", "clipping_amplitude"),
    ("am_efficiency", "depth", "am_depth"), ("sequence_period", "degree", "sequence_degree"),
    ("information", "probability", "probability_of_information"),
    ("fade_of_symbol_rate", "symbol_rate", "symbol_rate_of_fade"),
    ("tail_near_zero", "argument", "argument_near_zero"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "parameter", "inverse"), INVERSES)
def test_a_tool_and_its_inverse_undo_each_other(name: str, parameter: str, inverse: str) -> None:
    for parameters in draws(name):
        there = FORMULAS[name].compute(*parameters.values())
        assert FORMULAS[inverse].compute(there) == pytest.approx(parameters[parameter], rel=1e-9)


@pytest.mark.parametrize(
    ("name", "parameters", "known"),
    [
        ("watts", {"level": 30}, 1.0),
        ("capacity", {"bandwidth": 1, "snr": 0}, 1.0),  # log2(2)
        ("ber_bpsk", {"ebn0": 9.588}, 1e-5),  # the textbooks' 9.6 dB
        ("tdm_rate", {"channels": 32, "sampling": 8, "bits": 8}, 2.048),  # E1
        ("outage", {"mean": 0, "shadowing": 1, "threshold": -1.6448536}, 0.05),  # tables of the normal distribution
        ("carson", {"message": 15, "deviation": 75}, 180.0),  # FM broadcasting
        ("free_space_power", {"frequency": 2.4, "distance": 1, "received": -10.05}, 1.0),  # 40.05 dB in the first metre
        ("round_trip", {"distance": 36000}, 240.0),  # a geostationary orbit
        ("bsc_capacity", {"crossover": 0.11}, 0.5),
        ("radiation_efficiency", {"radiation": 73, "loss": 73}, 50.0),
        ("am_total_power", {"carrier": 100, "depth": 1}, 150.0),
    ],
)
def test_tools_give_what_every_textbook_gives(name: str, parameters: dict[str, float], known: float) -> None:
    assert compute(FORMULAS[name], parameters) == pytest.approx(known, rel=2e-3)


@pytest.mark.parametrize("blank", [" ", "\n", "  "])
@pytest.mark.parametrize("ten", ["2×10^{-6}", "2e-6", "2×10^-6", r"2\times10^{-6}", "2×10^{−6}"])
def test_lookup_reads_a_number_in_any_notation(ten: str, blank: str) -> None:
    found = look_up(f"SSB:{blank}message bandwidth 3 kHz, noise PSD n_0={ten} W/Hz. Find input noise power N_i.")
    assert found is not None
    assert found.parameters == {"bandwidth": 3.0, "density": 2e-6}


def test_lookup_reads_units_as_they_are_written() -> None:
    for text, hertz in (("3 kHz", 3e3), ("3000 Hz", 3e3), ("0.003 MHz", 3e3)):
        found = look_up(f"AM bandwidth. Message bandwidth W={text}. What is it?")
        assert found is not None
        assert found.result == pytest.approx(2 * hertz / 1e3)
    assert look_up("AM bandwidth. Message bandwidth W=3 mW. What is it?") is None
    assert look_up("AM bandwidth. Message bandwidth W=3 mHz. What is it?") is None, "a millihertz is no megahertz"


@pytest.mark.parametrize(
    "question",
    [
        "",
        "What is the best modulation?",
        "AM efficiency. If μ=x, compute η",
        "Convert 20 dBm to watts. Convert linear SNR=31 to dB.",
    ],
)
def test_what_no_tool_fits_or_two_fit_is_not_looked_up(question: str) -> None:
    assert look_up(question) is None


ANOTHER_QUESTION = [
    "Compute BER for non-coherent orthogonal BFSK at E_b/N_0=8 dB as Q(\\sqrt{E_b/N_0}).",
    "Differentially coherent BPSK over AWGN. Given E_b/N_0 = 2 dB, estimate BER P_b.",
    "Compute SSB-AM bandwidth. Message bandwidth W=5 kHz.",
    "VSB-AM bandwidth. Message bandwidth W=5 kHz.",
    "AM bandwidth. Message bandwidth W=5 kHz. For SSB, what is RF bandwidth?",
    "A PCM system samples at 8 kHz and uses n=8 bits per sample with 2 channels. Find bit rate.",
    "A stereo PCM system samples at 8 kHz and uses n=8 bits/sample. Find bit rate.",
    "A uniform quantizer has M=64 levels. Using SQNR(dB)=20log10(M)+1.76, compute SQNR.",
    "Quantizer SQNR using 20log10(M)+1.76. If M=64 levels, compute SQNR (dB).",
    "16-QAM union-bound BER. Using p_b≈(3/4)Q(\\sqrt{(2/5)E_b/N_0}), compute p_b for E_b/N_0=14 dB.",
    "8PSK nearest-neighbor union bound. Use p_b≈(1/3)Q(\\sqrt{6(E_b/N0)} sin(π/8)). For E_b/N0=10 dB, compute p_b.",
    "DBPSK over AWGN. E_b/N_0=3 dB. Compute P_b=0.25 e^{-\\gamma_b}.",
    "Coherent BPSK over AWGN. Given E_b/N_0 = 2 dB, estimate BER P_b=Q(\\sqrt{E_b/N_0}).",
    "For BPSK, if Pb=0.01, estimate required E_b/N0 (linear).",
    "Convert linear SNR=31 to dB, then subtract the noise figure.",
    "If SNR=15 dB, compute C/B in Mbit/s.",
    "If bit rate R_b=100 kbit/s, what is first-null bandwidth?",
    "RZ first-null bandwidth for R_b=100 kbit/s.",
    "Doppler shift. f_c=900 MHz, v=15 m/s, θ=60°. Compute f_D=v/λ.",
    "Two-ray critical distance. f_c=1.8 GHz, h_t=30 m, h_r=3 m. Compute d_c=2h_t h_r/λ.",
    "In same channel (B=4 kHz, α=0.5), need R_b=16 kbit/s. What minimum M (power of 2) is needed?",
    "For coherent OOK with A=1, N0=0.5, P1=0.7, P2=0.8, compute V_T.",
    "A source emits 3 symbols with probabilities {0.6,0.3,0.2}. Compute H (bits/symbol).",
    "Given E_s=10 for 64-QAM and k=4 bits/symbol, compute E_b.",
    "Convert half of 30 dBm to watts.",
]  # fmt: skip
COUNTS = [
    "Compute PCM bits per sample given L={} levels.",
    "An m-sequence has degree n={}. Find period.",
    "A maximal-length LFSR has period {}. Find degree n.",
    "A PCM system samples at 20 kHz and uses n={} bits/sample. Find bit rate.",
    "A ({},7) linear block code: how many parity bits are added?",
]
IMPOSSIBLE = [
    "Noise power is -150 W. Convert to watts.",
    "Noise power is 0 W. Convert to watts.",
    "Log-normal shadowing with μ=0 W and σ=7 dB. Find outage probability for threshold -80 dBm.",
    "Convert 99999 dBm to watts.",
    "Convert 1e999 dBm to watts.",
    "Carson bandwidth. FM with f_m=-3 kHz and Δf=12 kHz. Find B_FM.",
    "BSC capacity. For crossover probability p=1.2, compute capacity C=1-H2(p) (bits/use).",
]


@pytest.mark.parametrize("question", [*ANOTHER_QUESTION, *IMPOSSIBLE])
def test_another_question_than_the_tools_and_a_value_that_cannot_be_are_not_looked_up(question: str) -> None:
    assert look_up(question) is None


@pytest.mark.parametrize("spelling", ["noncoherent", "Non-coherent", "non-coherent"])
def test_noncoherent_is_noncoherent_however_it_is_spelt(spelling: str) -> None:
    found = look_up(f"Compute BER for {spelling} orthogonal BFSK at E_b/N_0=8 dB.")
    assert found is not None
    assert found.formula.name == "ber_fsk_noncoherent"


@pytest.mark.parametrize("question", COUNTS)
def test_counts_are_whole(question: str) -> None:
    found = look_up(question.format(255 if "period" in question or "(" in question else 16))
    assert found is not None
    assert found.result == round(found.result)
    for none in ("5.5", "0", "-4", "1e-3"):
        assert look_up(question.format(none)) is None


@pytest.mark.parametrize("question", [COUNTS[0].format(300), COUNTS[2].format(100), COUNTS[4].format(5)])
def test_a_count_that_would_not_be_whole_and_positive_is_none(question: str) -> None:
    assert look_up(question) is None


def changed(question: str) -> list[str]:
    """The question with each of its numbers changed, one at a time: for 2.4, say, it says 3.4, and once more 5.3."""
    return [
        f"{question[: match.start()]}{float(match[0]) * factor + more:.12g}{question[match.end() :]}"
        for match in re.finditer(r"\d+(?:\.\d+)?", question)
        for factor, more in ((1, 1), (2, 0.5))
    ]


def assert_every_number_matters(question: str) -> None:
    """A number that is changed is a parameter, and changes it; or the lookup says nothing."""
    before = look_up(question)
    assert before is not None, question
    for other in changed(question):
        after = look_up(other)
        assert after is None or after.parameters != before.parameters, other
        assert after is None or after.formula.name == before.formula.name, other


@pytest.mark.parametrize("name", FORMULAS)
def test_every_number_of_a_generated_question_matters(name: str) -> None:
    assert_every_number_matters(worded(FORMULAS[name], draws(name)[0]))


@needs_data
def test_every_number_of_a_published_question_matters() -> None:
    for question in dict.fromkeys(row["question"] for row in rows("wchw_validate.jsonl")):
        if look_up(question) is not None:
            assert_every_number_matters(question)


EXTREMES = ("0", "-1e308", "1e999", "100000")


def assert_no_number_raises(question: str) -> None:
    for match, extreme in itertools.product(re.finditer(r"\d+(?:\.\d+)?", question), EXTREMES):
        found = look_up(question[: match.start()] + extreme + question[match.end() :])
        assert found is None or (math.isfinite(found.result) and found.result != 0.0)


@pytest.mark.parametrize("name", FORMULAS)
def test_no_number_in_a_generated_question_raises(name: str) -> None:
    assert_no_number_raises(worded(FORMULAS[name], draws(name)[0]))


@needs_data
def test_no_number_in_a_published_question_raises() -> None:
    for question in dict.fromkeys(row["question"] for row in rows("wchw_validate.jsonl")):
        assert_no_number_raises(question)


@needs_data
def test_a_word_that_turns_a_published_question_leaves_it_without_an_answer() -> None:
    for question in dict.fromkeys(row["question"] for row in rows("wchw_validate.jsonl")):
        if look_up(question) is not None:
            words = question.split(" ")
            for place in range(len(words) + 1):
                assert look_up(" ".join([*words[:place], "twice", *words[place:]])) is None


@pytest.mark.parametrize("name", FORMULAS)
def test_every_combination_of_draws_has_a_finite_result_other_than_zero_or_is_drawn_again(name: str) -> None:
    formula, found = FORMULAS[name], [compute(FORMULAS[name], parameters) for parameters in combinations(name)]
    results = [result for result in found if result is not None]
    assert results, "else this formula is drawn in vain"
    assert all(math.isfinite(result) and result != 0.0 for result in results)
    assert not formula.whole or all(result >= 1 and result == pytest.approx(round(result)) for result in results)
    without = [p for p, result in zip(combinations(name), found, strict=True) if result is None]
    for parameters in without:

        class Drawn(random.Random):
            """Draws this formula with these values, then any other."""

            given = iter([formula, *parameters.values()])

            def choice(self, seq: Any) -> Any:
                return next(self.given, None) or super().choice(seq)

        assert GENERATORS["WCHW"](Drawn(1), 1).observed["result"] not in (None, 0.0)


@needs_data
def test_lookup_covers_most_published_questions_and_most_golds_agree_with_the_tools() -> None:
    asked = {row["question"]: row["answer"] for row in rows("wchw_validate.jsonl")}
    assert coverage(asked) >= 240
    found = {question: look_up(question) for question in asked}
    golds = [(gold_of(asked[q]), f) for q, f in found.items() if f is not None]
    told = [(None if gold is None else gold.in_unit_of(f.formula), f.result) for gold, f in golds]
    agreeing = sum(gold is not None and math.isclose(gold, result, rel_tol=AGREEMENT) for gold, result in told)
    assert agreeing >= 0.85 * len(golds)


# golds


def gold(answer: str) -> Gold:
    found = gold_of(answer)
    assert found is not None
    return found


def test_a_gold_is_one_number_in_some_unit() -> None:
    for text, number in (("2.5e-3 W", 2.5e-3), ("M = 64", 64), ("n=22", 22), ("0.338 km^2", 0.338)):
        assert gold(text).number == number
    for text, digit in (("2.5e-3 W", 1e-4), ("-20 dBm", 1.0), ("0.076", 1e-3), ("1e-99999999999999999999 W", 0.0)):
        assert gold(text).digit == pytest.approx(digit)
    for none in ("1 (0 dB)", "n=6, R_b=60 kbit/s", "A/2", "No", "238–262 kHz", "1e999 W"):
        assert gold_of(none) is None
    assert gold("22.6 kbit/s").in_unit_of(FORMULAS["capacity"]) == pytest.approx(0.0226)
    assert gold("60 ksps").in_unit_of(FORMULAS["symbol_rate"]) == 60_000
    assert gold("101.8 users").in_unit_of(FORMULAS["users_cdma"]) == 101.8


@pytest.mark.parametrize("impossible", ["-150 W", "0 W"])
def test_a_gold_that_has_no_value_in_the_results_unit_has_none(impossible: str) -> None:
    assert gold(impossible).in_unit_of(FORMULAS["dbm"]) is None


@pytest.mark.parametrize(
    ("answer", "name", "within", "beyond"),
    [
        ("4.3 dB", "ebn0_antipodal", (4.25, 4.323, 4.399), (4.24, 4.41)),  # rounded or cut
        ("-4.3 dB", "ebn0_antipodal", (-4.25, -4.323), (-4.24, -4.41, 4.3)),
        ("0.076", "outage", (0.07656, 0.0755), (0.0771, 0.0754)),
        ("10.6 dB", "ebn0_16qam", (10.55,), (10.522,)),
        ("870 m", "critical_distance", (869.5, 870.9), (1540.0,)),
        ("2.4 mW", "noise_power", (0.00236, 0.00249), (0.0023,)),
        ("n=22", "sync_length", (22.0,), (23.0, 21.6)),  # a count has all its digits
    ],
)
def test_a_value_is_a_gold_in_its_digits_where_they_are_the_values_own(
    answer: str, name: str, within: tuple[float, ...], beyond: tuple[float, ...]
) -> None:
    assert all(is_in_its_digits(gold(answer), value, FORMULAS[name]) for value in within)
    assert not any(is_in_its_digits(gold(answer), value, FORMULAS[name]) for value in beyond)


def test_steps_contradict_a_gold_only_where_their_end_holds_no_such_number() -> None:
    assert contradicted_by("Step 1: 0.361 is wrong.\nStep 2: V=0.1535.", gold("0.361")) == 0.1535
    assert contradicted_by(r"Step 1: x=2.\nStep 2: P\approx2.45\times10^{-4}.", gold("2.45e-4")) is None
    assert contradicted_by("Step 1: C=0.585e6=0.585 Mbit/s.", gold("0.585")) is None
    assert contradicted_by("Step 1: 20 W, thus 0.02 kW", gold("20")) is None, "a power of ten is a unit's"
    assert contradicted_by("Step 1: it follows from symmetry.", gold("3")) is None
    assert contradicted_by("Step 1: 10log10(2.72)=4.346 dB.", gold("4.3 dB")) is None, "to its two digits"
    assert contradicted_by("Step 1: 0.10517/39.6=0.00266 s.", gold("0.0040 s")) == 0.00266
    assert contradicted_by("Step 1: it is 1e999, or 0.", gold("3")) == 0.0


# files

CAPACITY = {"id": "a", "question": "Shannon capacity. B=3 MHz, SNR=7 (linear). Compute C.", "answer": "9 Mbps"}
REWORDED = "Channel capacity with SNR=7 (linear) and bandwidth B=3 MHz. Compute C."


def reasons(directory: Path) -> dict[str, str]:
    return {e.item_id: e.reason for e in read_files(directory).excluded}


def test_every_row_that_is_not_used_is_excluded_with_its_reason(tmp_path: Path) -> None:
    written(
        tmp_path, "wchw_test.jsonl", CAPACITY,
        {**CAPACITY, "id": "again"},
        {**CAPACITY, "id": "reworded", "question": REWORDED},
        "{not json",
        {"id": "empty"},
        {**CAPACITY, "id": "steps", "question": CAPACITY["question"] + " ", "cot": "Step 1: C=8 Mbit/s."},
        {**CAPACITY, "id": "steps2", "question": "A question.", "cot": "Step 1: C=8 Mbit/s."},
        {**CAPACITY, "id": "unknown", "question": "Another question."},
        {**CAPACITY, "id": "words", "question": "A third question.", "answer": "A/2"},
        {**CAPACITY, "id": "tool", "question": "Shannon capacity. B=1 MHz, SNR=7 (linear). Compute C."},
    )  # fmt: skip
    files = read_files(tmp_path)
    assert [item.item_id for item in files.items["WCHW"]] == ["wchw_test:a"]
    found = reasons(tmp_path)
    assert found["wchw_test:again"] == found["wchw_test:steps"] == "duplicate of wchw_test:a"
    assert found["wchw_test:reworded"] == "duplicate of wchw_test:a in other words"
    assert found["wchw_test.jsonl:4"].startswith("unreadable: wchw_test.jsonl, line 4")
    assert found["wchw_test.jsonl:5"].startswith("unreadable: wchw_test.jsonl, line 5: question")
    assert found["wchw_test:steps2"] == "wrong gold: its own steps give 8 where the gold says 9 Mbps"
    assert found["wchw_test:unknown"] == "no formula tool"
    assert found["wchw_test:words"].startswith("no formula tool")
    assert found["wchw_test:tool"] == (
        "tool and gold disagree: the tool capacity_linear gives 3 Mbit/s where the gold says 9 Mbps"
    )
    assert len(found) == 9


def test_a_row_that_nobody_foresaw_is_excluded_with_its_line_and_no_other_row_suffers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(question: str) -> Any:
        if "4 MHz" in question:
            raise KeyError("a tool that is wrong")
        return look_up(question)

    monkeypatch.setattr("simulators.optbench.base.files.look_up", broken)
    rows = [{**CAPACITY, "id": n, "question": CAPACITY["question"].replace("3 MHz", f"{n} MHz")} for n in (4, 3)]
    files = read_files(written(tmp_path, "wchw_test.jsonl", *rows))
    assert [item.item_id for item in files.items["WCHW"]] == ["wchw_test:3"]
    assert reasons(tmp_path) == {
        "wchw_test:4": "unreadable: wchw_test.jsonl, line 1: KeyError: 'a tool that is wrong'"
    }


def test_a_row_of_impossible_values_is_excluded(tmp_path: Path) -> None:
    row = {"id": "a", "question": "Noise power is -150 W. Convert to watts.", "answer": "-150 W"}
    again = {**row, "id": "b", "question": "Noise power is 0 W. Convert to watts.", "cot": "Step 1: 1e999 or 0."}
    assert reasons(written(tmp_path, "wchw_test.jsonl", row, again)) == {
        "wchw_test:a": "no formula tool", "wchw_test:b": "wrong gold: its own steps give 0 where the gold says -150 W",
    }  # fmt: skip


def test_a_row_whose_values_its_contract_would_refuse_is_excluded(tmp_path: Path) -> None:
    row = {"id": "a", "question": "Compute path gain (linear) for path loss 3000 dB.", "answer": "1e-300"}
    found = reasons(written(tmp_path, "wchw_test.jsonl", row))
    assert found == {"wchw_test:a": "a value beyond its contract's limits: loss 3000, not -400 to 400"}


def test_a_gold_that_is_right_in_its_digits_but_too_coarse_for_the_contract_is_said_to_be_that(tmp_path: Path) -> None:
    capacity = {"question": "Shannon capacity. B=3 MHz, SNR=2 (linear). Compute C."}  # 4.755 Mbit/s
    answers = {"fine": "4.75 Mbps", "exact": "4.755 Mbps", "rounded": "4.8 Mbps", "cut": "4 Mbps", "wrong": "4.9 Mbps"}
    for number, (name, answer) in enumerate(answers.items()):
        row = {**capacity, "id": name, "answer": answer, "cot": f"Step 1: C={answer}."}
        found = read_files(written(tmp_path / str(number), "wchw_test.jsonl", row))
        used = [item.item_id for item in found.items["WCHW"]]
        told = [one.reason.split(":")[0] for one in found.excluded]
        if name in ("fine", "exact"):
            assert (used, told) == ([f"wchw_test:{name}"], [])
        elif name == "wrong":
            assert (used, told) == ([], ["tool and gold disagree"])
        else:
            assert (used, told) == ([], ["the gold is too coarse for the contract's tolerance"])


@needs_data
def test_published_rows_are_excluded_for_the_reason_that_is_theirs() -> None:
    why = {e.item_id.removeprefix("wchw_validate:"): e.reason for e in read_files(DATA).excluded}
    for coarse in ("val_25", "val_285"):
        assert why[coarse].startswith("the gold is too coarse for the contract's tolerance")
    assert why["val_308"] == "no formula tool"
    for disagreeing in ("val_12", "val_27", "val_134"):
        assert why[disagreeing].startswith("tool and gold disagree")
    for wrong in ("val_4", "val_5", "val_225", "val_284"):
        assert why[wrong].startswith("wrong gold: its own steps give ")


def row_of(item: BaseItem) -> dict[str, Any]:
    cqi = item.observed["cqi"]
    traced = {"cqi": cqi, "snr_dB": 0.0, "rx_power_dBm": -80.0, "has_los": True, "path_loss_dB": 110.0}
    told = {"question": item.question, "input": item.input, "answer": item.answer}
    return {"id": 1, "ray_tracing_result": traced, **told}


@pytest.mark.parametrize("task", ["WCNS", "WCMSA"])
def test_a_slicing_item_is_read_as_it_was_written_and_one_wrong_number_excludes_it(task: Any, tmp_path: Path) -> None:
    item = GENERATORS[task](random.Random(5), 1)
    row, name = row_of(item), f"{task.lower()}_x.jsonl"
    (again,) = read_files(written(tmp_path, name, row)).items[task]
    same = ("question", "input", "plan", "answer", "lineage", "contract")
    assert all(getattr(again, key) == getattr(item, key) for key in same)
    for key, value in item.answer.items():
        if isinstance(value, float):
            bad = {**row, "answer": {**item.answer, key: value + 1}}
            assert f"the rules give {key} {value}" in reasons(written(tmp_path, name, bad))[f"{task.lower()}_x:1"]
    assert "unreadable" in reasons(written(tmp_path, name, {**row, "ray_tracing_result": {}}))[f"{name}:1"]


def test_an_item_whose_own_answer_is_infeasible_is_excluded(tmp_path: Path) -> None:
    item = GENERATORS["WCMSA"](random.Random(5), 1)
    rate = item.answer["throughput"] + 1
    row = row_of(item)
    row["input"] = {**item.input, "min_rate": rate}
    row["answer"] = {**item.answer, "min_rate_required": rate, "qos_satisfied": False}
    assert "infeasible" in reasons(written(tmp_path, "wcmsa_x.jsonl", row))["wcmsa_x:1"]


def test_a_directory_without_such_files_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="holds no WirelessBench files"):
        read_files(tmp_path)


@needs_data
def test_every_published_row_is_an_item_or_excluded() -> None:
    files = read_files(DATA)
    for task in TASKS:
        count = len(rows(f"{task.lower()}_validate.jsonl"))
        assert len(files.items[task]) + sum(e.task == task for e in files.excluded) == count
    assert len(files.items["WCHW"]) >= 150
    (infeasible,) = [e for e in files.excluded if e.task != "WCHW"]
    assert "qos_satisfied" in infeasible.reason
    assert not any(e.reason.startswith("unreadable") for e in files.excluded)


# anchors


@cache
def from_files() -> Anchors:
    return anchors(1, DATA)


def assert_whole(found: Anchors) -> None:
    for task in TASKS:
        both = (*found.final[task], *found.development[task])
        assert len(found.final[task]) == len(found.development[task]) == ANCHORS
        for key in (content, lambda item: item.item_id, lambda item: item.question):
            assert len({key(item) for item in both}) == 2 * ANCHORS, "unique, and so disjoint"
        for split in SPLITS:
            assert sum(found.counts[task][split].values()) == ANCHORS


@pytest.mark.parametrize("seed", [0, 1])
def test_generated_anchors_are_whole_and_disjoint(seed: int) -> None:
    found = anchors(seed, None)
    assert_whole(found)
    assert found == anchors(seed, None)
    assert found != anchors(seed + 2, None)
    assert not found.excluded
    assert all(found.counts[task]["final"] == {"file": 0, "generated": ANCHORS} for task in TASKS)


@needs_data
def test_anchors_come_from_the_files_first_the_final_split_before_the_other() -> None:
    started = time.perf_counter()
    found = from_files()
    assert time.perf_counter() - started < 3.0
    assert_whole(found)
    assert found == anchors(1, DATA)
    held = read_files(DATA).items
    for task in TASKS:
        final, development = (found.counts[task][split]["file"] for split in SPLITS)
        assert final == min(ANCHORS, len(held[task]))
        assert final + development == min(2 * ANCHORS, len(held[task]))


def test_any_seed_generates_a_wchw_item() -> None:
    for seed in range(3000):
        item = GENERATORS["WCHW"](random.Random(seed), seed)
        assert item.observed["result"] not in (None, 0.0)
