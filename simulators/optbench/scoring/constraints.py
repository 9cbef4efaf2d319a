"""The contract's constraints on a released plan (paper, section III-C: capacity and QoS feasibility are recomputed).

An interpreter of its own for the expressions of contracts, so that an error of the guard's shows. Everything but the
plan is the item's own: nominal values, and for a window (eq. 4) the item's series.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from simulators.optbench.model import BaseItem, Scalar
from simulators.optbench.scoring.terms import Terms

_BINARY: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: math.pow,
}  # fmt: skip
_COMPARISONS: Final[Mapping[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "min": min, "max": max, "abs": abs, "sqrt": math.sqrt, "log2": math.log2, "log10": math.log10, "exp": math.exp,
    "round": lambda value, digits=0: round(value, int(digits)),
}  # fmt: skip
_IF: Final = re.compile(r"""("[^"]*"|'[^']*')|\bif(?=\s*\()""")
_CHOICE: Final = "if_"


def failing(item: BaseItem, fields: Mapping[str, Terms], planned: Mapping[str, Scalar]) -> tuple[str, ...]:
    """Ids of the constraints that do not hold where `planned` (field → value in its unit) is executed.

    Derived fields are recomputed. One that reads a planned field without a value is not judged; one that cannot be
    computed fails.
    """
    return tuple(
        str(constraint["id"])
        for constraint in item.contract.get("constraints", ())
        if any(_breaks(constraint["expr"], at, fields) for at in _instants(item, constraint, planned))
    )


def _breaks(expr: str, given: Mapping[str, Scalar], fields: Mapping[str, Terms]) -> bool:
    """Whether a constraint does not hold for these values of observed and planned fields."""
    values, reads = dict(given), _reads(expr, fields)
    if any(name not in values and fields[name].kind != "derived" for name in reads):
        return False
    try:
        return _evaluated(expr, values, fields) is not True
    except (ArithmeticError, ValueError, TypeError, KeyError):
        return True


def _reads(expr: str, fields: Mapping[str, Terms]) -> frozenset[str]:
    """The fields that an expression reads, those behind derived ones included."""
    direct = _names(expr) & fields.keys()
    behind = [_reads(fields[name].expr, fields) for name in direct if fields[name].kind == "derived"]
    return direct.union(*behind)


def _instants(
    item: BaseItem, constraint: Mapping[str, Any], planned: Mapping[str, Scalar]
) -> Iterator[dict[str, Scalar]]:
    """The values at t, and at every instant of the window at which a sample comes in; each sample holds to the next."""
    now = {**item.observed, **planned}
    yield now
    window = constraint.get("window_ms")
    if window is None:
        return
    ages = {age for samples in item.series.values() for age, _ in samples if age <= window}
    for instant in sorted({window, *ages}):
        held = {name: min((age, value) for age, value in samples if age >= instant)[1]
                for name, samples in item.series.items() if any(age >= instant for age, _ in samples)}  # fmt: skip
        yield {**now, **held}


def _evaluated(expr: str, values: Mapping[str, Scalar], fields: Mapping[str, Terms]) -> Any:
    def value(node: ast.AST) -> Any:
        match node:
            case ast.Constant(value=constant):
                return constant
            case ast.Name(id=name) if name in values:
                return values[name]
            case ast.Name(id=name):
                return _evaluated(fields[name].expr, values, fields)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return +value(operand)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not value(operand)
            case ast.BinOp(left=left, op=op, right=right):
                return _BINARY[type(op)](value(left), value(right))
            case ast.BoolOp(op=op, values=parts):
                return (all if isinstance(op, ast.And) else any)([value(part) for part in parts])
            case ast.Compare(left=left, ops=ops, comparators=rest):
                terms = [value(term) for term in (left, *rest)]
                return all(_COMPARISONS[type(op)](*pair) for op, *pair in zip(ops, terms, terms[1:], strict=False))
            case ast.Call(func=ast.Name(id=name), args=[condition, one, other]) if name == _CHOICE:
                return value(one) if value(condition) else value(other)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return _FUNCTIONS[name](*map(value, arguments))
        raise ValueError(f"{expr}: {ast.dump(node)}")

    return value(_tree(expr))


@lru_cache(maxsize=1024)
def _names(expr: str) -> frozenset[str]:
    return frozenset(node.id for node in ast.walk(_tree(expr)) if isinstance(node, ast.Name))


@lru_cache(maxsize=1024)
def _tree(expr: str) -> ast.expr:
    return ast.parse(_IF.sub(lambda found: found[1] or _CHOICE, expr.strip()), mode="eval").body
