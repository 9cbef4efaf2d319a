"""Contracts, expressions and units: what is accepted, what is refused, and where the fault is said to be."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
from episodes import CONTRACT
from hypothesis import given
from hypothesis import strategies as st

from xapp import units
from xapp.contract import BindingError, ContractError
from xapp.contract_loading import load_contract, read_contract
from xapp.expression import ExpressionError, NoValue, compile_expression

TYPES = {"a": "number", "b": "number", "flag": "boolean", "mode": "string"}


def value_of(text: str, **values: Any) -> Any:
    return compile_expression(text, TYPES).evaluate(values)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-2 ** 2", -4.0),
        ("2 ** 3 ** 2", 512.0),
        ("1 < 2 < 3", True),
        ("1 < 3 < 2", False),
        ("round(2.5) + round(3.5)", 6.0),
        ("round(2.675, 2)", 2.67),  # the double 2.675 lies below 2.675
        ("if(a > 1, a, -a)", 3.0),
        ("min(a, 2, 5)", 2.0),
        ("not flag or a == 3", True),
        ("mode == 'if(' or mode != \"y\"", True),
        ("a / 4 + log2(8) + log10(100) + sqrt(4) + abs(-1) + exp(0)", 9.75),
        ("sum(a) + max(a) + min(a)", 9.0),
    ],
)
def test_expressions_mean_what_they_mean_in_python(text: str, expected: Any) -> None:
    assert value_of(text, a=3.0, flag=True, mode="x") == expected


@pytest.mark.parametrize(
    "text",
    [
        "a.real", "a[0]", "__import__('os')", "open('x')", "a % 2", "a // 2", "a if flag else b", "lambda: 1", "[1]",
        "(a := 1)", "f'{a}'", "a is b", "a in b", "mode + 1", "mode < 'x'", "mode == 1", "min()", "if(a, 1)", "unknown",
        "1e999", "True", "None", "a;b", "", "a +", "round(a, 1, 2)", "*a", "min(*a)", "a @ b", "~a", "1j",
        "+".join("a" * 400), "(" * 250 + "a" + ")" * 250, "a" * 3000,
    ],
)  # fmt: skip
def test_everything_else_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        compile_expression(text, TYPES)


@pytest.mark.parametrize(
    "text",
    ["a / 0", "log2(0)", "sqrt(-1)", "exp(1000)", "10 ** 400", "(-8) ** (1/3)", "1e300 * 1e300", "0 ** -1",
     "if(a > 0, 1, 1/0)", "flag or 1/0 > 0", "min(1e308 * 10, 1)", "round(a, 0.5)"],
)  # fmt: skip
def test_what_fails_or_is_not_finite_has_no_value_even_in_a_branch_not_taken(text: str) -> None:
    with pytest.raises(NoValue):
        value_of(text, a=3.0, flag=True)


def test_over_members_arithmetic_is_element_wise_and_reducers_reduce() -> None:
    a, b = {"7": 1.0, "8": 2.0}, {"7": 10.0, "8": 20.0}
    assert value_of("a * 2 + b", a=a, b=b) == {"7": 12.0, "8": 24.0}
    assert value_of("max(a, 1.5)", a=a) == {"7": 1.5, "8": 2.0}
    assert value_of("if(a > 1, a, b)", a=a, b=b) == {"7": 10.0, "8": 2.0}
    assert value_of("sum(a) <= 3 and all(b > a)", a=a, b=b) is True
    with pytest.raises(NoValue):
        value_of("a + b", a=a, b={"7": 1.0})


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e9, max_value=1e9), st.sampled_from("kMG"))
def test_a_conversion_and_its_way_back_agree(value: float, prefix: str) -> None:
    there, back = units.converter("Hz", f"{prefix}Hz"), units.converter(f"{prefix}Hz", "Hz")
    assert there is not None
    assert back is not None
    assert math.isclose(back(there(value)), value, rel_tol=1e-12, abs_tol=1e-300)


@pytest.mark.parametrize(
    ("value", "unit", "target", "expected"),
    [
        (90_000, "kHz", "MHz", 90.0), (30, "dBm", "W", 1.0), (0, "dBm", "mW", 1.0), (1, "W", "dBm", 30.0),
        (50, "%", "1", 0.5), (0.5, "1", "%", 50.0), (2, "Gbps", "Mbit/s", 2000.0), (3, "ms", "s", 0.003),
        (1, "µs", "us", 1.0), (5, "MB", "kbyte", 5000.0),
    ],
)  # fmt: skip
def test_units_convert_exactly(value: float, unit: str, target: str, expected: float) -> None:
    function = units.converter(unit, target)
    assert function is not None
    assert function(value) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [("dB", "dBm"), ("dB", "1"), ("PRB", "1"), ("%", "PRB"), ("Hz", "bit/s"), ("s", "Hz"), ("deg", "1")],
)
def test_other_dimensions_do_not_convert(one: str, other: str) -> None:
    assert units.converter(one, other) is None


@pytest.mark.parametrize("unit", ["mhz", "MHZ", "furlong", "mbps", "kdB", "k", "", "Mb", "dBW"])
def test_units_are_case_sensitive_and_the_list_is_closed(unit: str) -> None:
    assert not units.known(unit)


def broken(change: Any) -> dict[str, Any]:
    document = copy.deepcopy(CONTRACT)
    change(document)
    return document


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda c: c["fields"]["rate"].update(expr="bandwidth +"), "$.fields.rate.expr"),
        (lambda c: c["fields"]["rate"].update(expr="bandwith * 2"), "$.fields.rate.expr"),
        (lambda c: c["fields"]["cqi"].update(colour="red"), "$.fields.cqi.colour"),
        (lambda c: c.update(colour="red"), "$.colour"),
        (lambda c: c["fields"]["bandwidth"].update(expr="rate"), "$.fields"),
        (lambda c: c["fields"]["cqi"].update(unit="furlong"), "$.fields.cqi.unit"),
        (lambda c: c["fields"]["rate"].update(expr="bandwidth * note"), "$.fields.rate.expr"),
        (lambda c: c["constraints"][1].update(expr="note > 1"), "$.constraints[1].expr"),
        (lambda c: c["fields"]["cqi"].update(min=16), "$.fields.cqi.min"),
        (lambda c: [f.update(critical=False) for f in c["fields"].values() if f["kind"] == "observed"], "$.fields"),
        (lambda c: c["constraints"][0].update(expr="bandwidth"), "$.constraints[0].expr"),
        (lambda c: c["fields"]["cqi"].pop("freshness_ms"), "$.fields.cqi.freshness_ms"),
        (lambda c: c["fields"]["cqi"].pop("sources"), "$.fields.cqi.sources"),
        (lambda c: c["fields"]["cqi"].update(subject="ue:{ue"), "$.fields.cqi.subject"),
        (lambda c: c["fields"]["cqi"].update(tolerance=-1), "$.fields.cqi.tolerance"),
        (lambda c: c["fields"]["cqi"].update(min="0"), "$.fields.cqi.min"),
        (lambda c: c["fields"]["cqi"].pop("kind"), "$.fields.cqi.kind"),
        (lambda c: c["fields"]["rate"].pop("expr"), "$.fields.rate.expr"),
        (lambda c: c.update(max_clock_skew_ms=True), "$.max_clock_skew_ms"),
        (lambda c: c["constraints"].append({"id": "qos", "expr": "rate > 0"}), "$.constraints"),
    ],
)
def test_a_contract_at_fault_is_refused_with_the_place(change: Any, place: str) -> None:
    with pytest.raises(ContractError) as refused:
        load_contract(broken(change))
    assert place in [path for path, _ in refused.value.errors]


def test_all_errors_of_a_contract_are_named_at_once() -> None:
    document = broken(lambda c: c["fields"]["cqi"].update(unit="furlong", min=16))
    document["constraints"][0]["expr"] = "1 +"
    with pytest.raises(ContractError) as refused:
        load_contract(document)
    assert {path for path, _ in refused.value.errors} == {
        "$.fields.cqi.unit", "$.fields.cqi.min", "$.constraints[0].expr",
    }  # fmt: skip


def test_yaml_and_json_give_the_same_contract() -> None:
    text = """
contract_id: y/1
fields:
  load: {kind: observed, unit: "%", freshness_ms: 1000, sources: [e2]}
constraints:
  - {id: low, expr: load < 80}
"""
    assert read_contract(text).contract_id == "y/1"
    with pytest.raises(ContractError) as refused:
        read_contract("fields: [")
    assert refused.value.errors[0][0] == "$"


def test_bindings_fill_subjects_and_sources_and_a_missing_one_is_named() -> None:
    document = broken(
        lambda c: c["fields"]["cqi"].update(subject="cell:{cell}/ue:{ue}", sources=["e2:{cell}", "o1:{cell}"])
    )
    contract = load_contract(document)
    resolution = contract.resolve({"cell": "1", "ue": ("7", "8")})
    members = resolution.by_field["cqi"]
    assert [m.subject for m in members] == ["cell:1/ue:7", "cell:1/ue:8"]
    assert members[0].sources == ("e2:1", "o1:1")
    with pytest.raises(BindingError, match="needs this binding") as missing:
        contract.resolve({"ue": "7"})
    assert missing.value.name == "cell"
    with pytest.raises(BindingError):
        contract.resolve({"cell": ("1", "2"), "ue": ("7", "8")})
