"""Loading contracts: from a document to a frozen `Contract`, refused with the place of each error (section 1)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, TypeVar

import orjson
from pydantic import ValidationError

from xapp import units
from xapp.address import digest
from xapp.contract import EFFECT, PLACEHOLDER, Constraint, Contract, ContractError, DocumentFaults, Field, normalise
from xapp.contract_document import ConstraintDocument, ContractDocument, ControlDocument, Document, FieldDocument
from xapp.expression import Expression, ExpressionError, compile_expression

UNKNOWN_KEY: Final = "unknown key"
EFFECT_PATH: Final = "$.control.effect.expr"
Form = TypeVar("Form", bound=Document)
_PLAIN_PATH: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def _json_path(location: tuple[Any, ...]) -> str:
    path = "$"
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{part}" if _PLAIN_PATH.match(part) else f"[{orjson.dumps(part).decode()}]"
    return path


def document_errors(error: ValidationError) -> list[tuple[str, str]]:
    """(JSON path, reason) of each fault that pydantic found."""
    plain = {"extra_forbidden": UNKNOWN_KEY, "missing": "is required"}
    return [
        (_json_path(tuple(e["loc"])), plain.get(e["type"], e["msg"][0].lower() + e["msg"][1:])) for e in error.errors()
    ]


def parsed_as(form: type[Form], document: Any, refused: type[DocumentFaults]) -> Form:
    """A document in its JSON form. Raises `refused` with the place of each error."""
    if not isinstance(document, dict):
        raise refused([("$", "must be an object")])
    try:
        return form.model_validate(document)
    except ValidationError as error:
        faults = document_errors(error)
        # A misspelled key first: what else is wrong (a key that is required) may follow from it
        raise refused(sorted(faults, key=lambda fault: fault[1] != UNKNOWN_KEY)) from error


def load_contract(document: Any) -> Contract:
    """Validate and compile a contract document. Raises ContractError with the place of each error."""
    parsed = parsed_as(ContractDocument, document, ContractError)
    errors: list[tuple[str, str]] = []
    types = {name: spec.type for name, spec in parsed.fields.items()}
    silent = {name for name, spec in parsed.fields.items() if spec.kind == "observed" and not spec.critical}

    def expression(text: str, path: str, wanted: str) -> Expression | None:
        try:
            compiled = compile_expression(text, types)
        except ExpressionError as error:
            errors.append((path, f"bad expression: {error}"))
            return None
        errors.extend((path, f"reads the non-critical field '{name}'") for name in compiled.names if name in silent)
        if compiled.type != wanted:
            errors.append((path, f"gives a {compiled.type} where a {wanted} is needed"))
        return compiled

    fields = {
        name: _field(name, spec, _json_path(("fields", name)), expression, errors)
        for name, spec in parsed.fields.items()
    }
    constraints = tuple(
        _constraint(spec, f"$.constraints[{i}]", expression) for i, spec in enumerate(parsed.constraints)
    )
    if len({c.id for c in constraints}) < len(constraints):
        errors.append(("$.constraints", "two constraints share one id"))
    if not any(f.kind == "observed" and f.critical for f in fields.values()):
        errors.append(("$.fields", "no critical observed field: such a contract guards nothing"))
    order = _order(fields, errors)
    bindings = dict.fromkeys(name for f in fields.values() for name in f.bindings)
    effect: Expression | None = None
    if parsed.control is not None:
        bindings |= dict.fromkeys(_check_control(parsed.control, fields, errors))
        if parsed.control.effect is not None:
            effect = expression(parsed.control.effect.expr, EFFECT_PATH, "boolean")
    inputs = {} if errors else _inputs(fields, constraints, order, effect)
    if effect is not None and not errors and not inputs[EFFECT]:
        errors.append((EFFECT_PATH, "reads no observed field: nothing that is measured could show it"))
    if errors:
        raise ContractError(errors)
    raw = orjson.dumps(document)
    return Contract(
        contract_id=parsed.contract_id,
        fields=fields,
        constraints=constraints,
        control=parsed.control,
        max_clock_skew_ms=parsed.max_clock_skew_ms,
        override_intent=parsed.override_intent,
        order=order,
        inputs=inputs,
        bindings=tuple(bindings),
        by_name=_by_name(fields),
        document=raw,
        digest=digest(raw),
        effect=effect,
    )


def read_contract(text: bytes | str) -> Contract:
    """Load a contract from JSON or YAML text. Raises ContractError."""
    return load_contract(json_or_yaml(text, ContractError))


def json_or_yaml(text: bytes | str, refused: type[DocumentFaults]) -> Any:
    """The value that a JSON or YAML text holds. Raises `refused` where it is neither."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        import yaml

        try:
            document = yaml.safe_load(text)
            orjson.dumps(document)
        except (yaml.YAMLError, RecursionError, TypeError, ValueError) as error:  # a 99th month, say
            reason = " ".join(str(error).split())
            raise refused([("$", f"neither JSON nor YAML: {reason}")]) from error
    return document


def _template(text: str, path: str, errors: list[tuple[str, str]]) -> tuple[str, ...]:
    if any(brace in PLACEHOLDER.sub("", text) for brace in "{}"):
        errors.append((path, f"'{text}': a binding is written {{name}}"))
    return tuple(dict.fromkeys(PLACEHOLDER.findall(text)))


def _field(name: str, spec: FieldDocument, path: str, expression: Any, errors: list[tuple[str, str]]) -> Field:
    unit = spec.unit or units.DIMENSIONLESS
    if not units.known(unit):
        errors.append((f"{path}.unit", f"unknown unit '{unit}'"))
    if spec.min is not None and spec.max is not None and spec.min > spec.max:
        errors.append((f"{path}.min", f"min {spec.min:g} is above max {spec.max:g}"))
    observed = spec.kind == "observed"
    if observed:
        errors.extend(
            (f"{path}.{key}", "an observed field needs it") for key in ("freshness_ms", "sources")
            if getattr(spec, key) in (None, [])
        )  # fmt: skip
    elif not spec.critical:
        errors.append((f"{path}.critical", "only an observed field may be non-critical"))
    if len(set(spec.sources)) < len(spec.sources):
        errors.append((f"{path}.sources", "a source is listed twice"))
    if observed and spec.expr is not None:
        errors.append((f"{path}.expr", "an observed field has no expression: it comes from the ledger"))
    if spec.kind == "derived" and spec.expr is None:
        errors.append((f"{path}.expr", "a derived field needs an expression"))
    bindings = list(_template(spec.subject or "", f"{path}.subject", errors))
    for i, source in enumerate(spec.sources):
        bindings += _template(source, f"{path}.sources[{i}]", errors)
    return Field(
        name=name,
        kind=spec.kind,
        type=spec.type,
        unit=unit,
        names=frozenset(map(normalise, (name, *spec.aliases))),
        min=spec.min,
        max=spec.max,
        tolerance=spec.tolerance,
        rel_tolerance=spec.rel_tolerance,
        subject=spec.subject,
        bindings=tuple(dict.fromkeys(bindings)),
        freshness_ms=spec.freshness_ms or 0,
        sources=tuple(spec.sources),
        critical=spec.critical,
        schemas=None if spec.schemas is None else frozenset(spec.schemas),
        moved_by_control=spec.moved_by_control,
        repairable=spec.repairable,
        max_repair=spec.max_repair,
        expr=None if spec.expr is None or observed else expression(spec.expr, f"{path}.expr", spec.type),
    )


def _constraint(spec: ConstraintDocument, path: str, expression: Any) -> Constraint:
    return Constraint(spec.id, expression(spec.expr, f"{path}.expr", "boolean"), spec.window_ms, spec.max_gap_ms)


def _check_control(
    control: ControlDocument, fields: Mapping[str, Field], errors: list[tuple[str, str]]
) -> tuple[str, ...]:
    names = _template(control.key or "", "$.control.key", errors)
    for i, coupled in enumerate(control.coupled):
        names += _template(coupled, f"$.control.coupled[{i}]", errors)
        if coupled == control.key:
            errors.append((f"$.control.coupled[{i}]", "is the control's own key"))
        if coupled in control.coupled[:i]:
            errors.append((f"$.control.coupled[{i}]", f"'{coupled}' is listed twice"))
    if control.budget is not None:
        if control.budget.changes is not None and control.budget.per_ms is None:
            errors.append(("$.control.budget.per_ms", "is required beside changes"))
        for name in control.budget.max_step:
            path = _json_path(("control", "budget", "max_step", name))
            if name not in fields:
                errors.append((path, f"unknown field '{name}'"))
            elif fields[name].kind != "planned" or fields[name].type != "number":
                errors.append((path, f"'{name}' is no planned number: only those have a step"))
    return names


def _order(fields: Mapping[str, Field], errors: list[tuple[str, str]]) -> tuple[str, ...]:
    graph = {
        name: [i for i in f.expr.names if fields[i].expr is not None]
        for name, f in fields.items() if f.expr is not None
    }  # fmt: skip
    try:
        return tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        errors.append(("$.fields", "cycle among fields with an expression: " + " → ".join(error.args[1])))
        return ()


def _by_name(fields: Mapping[str, Field]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for f in fields.values():
        for name in f.names:
            found[name] = (*found.get(name, ()), f.name)
    return found


def _inputs(
    fields: Mapping[str, Field], constraints: tuple[Constraint, ...], order: tuple[str, ...], effect: Expression | None
) -> dict[str, tuple[str, ...]]:
    reach: dict[str, dict[str, None]] = {n: {n: None} for n, f in fields.items() if f.kind == "observed"}
    reach |= {n: {} for n in fields if n not in reach}
    for name in order:
        expr = fields[name].expr
        assert expr is not None
        reach[name] = {o: None for i in expr.names for o in reach[i]}
    found = {name: tuple(observed) for name, observed in reach.items()}
    for c in constraints:
        found["constraint:" + c.id] = tuple({o: None for i in c.expr.names for o in reach[i]})
    if effect is not None:  # a planned value is what was released, whatever it was computed from
        needed = set(effect.names)
        for name in reversed(order):
            f = fields[name]
            if name in needed and f.kind == "derived" and f.expr is not None:
                needed.update(f.expr.names)
        found[EFFECT] = tuple(name for name, f in fields.items() if name in needed and f.kind == "observed")
    return found
