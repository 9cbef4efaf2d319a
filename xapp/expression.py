"""Safe expressions over field names (rules, section 1).

Arithmetic, comparison and boolean logic, with `min max abs sqrt log2 log10 exp round sum all any` and `if(c, a, b)`.
Python's own parser gives precedence and chained comparison; a closed list of node types is then turned into closures:
no attribute access, no calls out, size bounded at load, cost linear in size × members. All parts are evaluated, so an
error in a branch that was not taken is an error all the same. A result that is no finite value is no value: `evaluate`
raises `NoValue`.

A value over a list binding is a `dict` from member to value: arithmetic is element-wise, and `sum all any min max` with
one argument reduce.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

MAX_CHARACTERS: Final = 2000  # an operator reads a contract; a longer rule belongs in a derived field
MAX_NODES: Final = 300
MAX_ROUND_DIGITS: Final = 15  # a double carries no more decimals than that

Value = Any  # float | str | bool, or dict of them over a list binding
Environment = Mapping[str, Value]
Evaluator = Callable[[Environment], Value]


class NoValue(Exception):
    """The expression has no value here: an operation failed, or gave something that is not finite."""


class ExpressionError(ValueError):
    """The text is no expression of this language; the message says where."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A checked expression. `names`: the fields it reads, in order of appearance; `type`: number, string or boolean."""

    text: str
    names: tuple[str, ...]
    type: str
    _run: Evaluator

    def evaluate(self, environment: Environment) -> Value:
        """The value under `environment` (every name of `names` present). Raises NoValue."""
        try:
            return self._run(environment)
        except NoValue:
            raise
        except (ArithmeticError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise NoValue(f"{self.text}: {error}") from error


def _finite(value: float) -> float:
    if math.isfinite(value):
        return value
    raise NoValue("a result is not finite")


def _number(value: Value) -> float:
    if type(value) is float:
        return value
    if isinstance(value, (bool, int)):
        return float(value)
    raise NoValue("a number is needed")


def _truth(value: Value) -> bool:
    if isinstance(value, (bool, float, int)):
        return bool(value)
    raise NoValue("a truth value is needed")


def _elementwise(function: Callable[..., Value]) -> Callable[..., Value]:
    """Lift a function of single values over members: mappings must range over the same members."""

    def lifted(*arguments: Value) -> Value:
        members: dict[str, Any] | None = None
        for argument in arguments:
            if type(argument) is dict:
                if members is not None and members.keys() != argument.keys():
                    raise NoValue("values over different members do not combine")
                members = argument if members is None else members
        if members is None:
            return function(*arguments)
        return {member: function(*[a[member] if type(a) is dict else a for a in arguments]) for member in members}

    return lifted


def _power(base: float, exponent: float) -> float:
    return math.pow(_number(base), _number(exponent))


_BINARY: Final[dict[type[ast.operator], Callable[[Any, Any], float]]] = {
    ast.Add: lambda a, b: _finite(_number(a) + _number(b)),
    ast.Sub: lambda a, b: _finite(_number(a) - _number(b)),
    ast.Mult: lambda a, b: _finite(_number(a) * _number(b)),
    ast.Div: lambda a, b: _finite(_number(a) / _number(b)),
    ast.Pow: lambda a, b: _finite(_power(a, b)),
}


def _equal(a: Value, b: Value) -> bool:
    if isinstance(a, str) != isinstance(b, str):
        raise NoValue("a string and a number do not compare")
    return bool(a == b)


_COMPARISON: Final[dict[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Lt: lambda a, b: _number(a) < _number(b),
    ast.LtE: lambda a, b: _number(a) <= _number(b),
    ast.Gt: lambda a, b: _number(a) > _number(b),
    ast.GtE: lambda a, b: _number(a) >= _number(b),
    ast.Eq: _equal,
    ast.NotEq: lambda a, b: not _equal(a, b),
}


def _round(value: Value, digits: Value = 0.0) -> float:
    places = _number(digits)
    if places != int(places) or abs(places) > MAX_ROUND_DIGITS:
        raise NoValue(f"round takes whole digits up to {MAX_ROUND_DIGITS}")
    return float(round(_number(value), int(places)))


_FUNCTIONS: Final[dict[str, tuple[Callable[..., Value], int, int]]] = {  # name → function, least and most arguments
    "abs": (lambda a: abs(_number(a)), 1, 1),
    "sqrt": (lambda a: math.sqrt(_number(a)), 1, 1),
    "log2": (lambda a: math.log2(_number(a)), 1, 1),
    "log10": (lambda a: math.log10(_number(a)), 1, 1),
    "exp": (lambda a: _finite(math.exp(_number(a))), 1, 1),
    "round": (_round, 1, 2),
    "min": (lambda *a: min(map(_number, a)), 1, 16),
    "max": (lambda *a: max(map(_number, a)), 1, 16),
}
_REDUCERS: Final[dict[str, tuple[Callable[[list[Any]], Value], str]]] = {
    "sum": (lambda values: _finite(math.fsum(map(_number, values))), "number"),
    "min": (lambda values: min(map(_number, values)), "number"),
    "max": (lambda values: max(map(_number, values)), "number"),
    "all": (lambda values: all([_truth(v) for v in values]), "boolean"),  # noqa: C419 (all parts are evaluated)
    "any": (lambda values: any([_truth(v) for v in values]), "boolean"),  # noqa: C419 (all parts are evaluated)
}
_CONDITIONAL: Final = "__if"
_IF: Final = re.compile(r"""("[^"]*"|'[^']*')|\bif(?=\s*\()""")


def compile_expression(text: str, types: Mapping[str, str]) -> Expression:
    """Check `text` and compile it. `types`: field name → number, string or boolean.

    Raises ExpressionError, naming what is not allowed and where.
    """
    if len(text) > MAX_CHARACTERS:
        raise ExpressionError(f"longer than {MAX_CHARACTERS} characters")
    source = _IF.sub(lambda match: match.group(1) or _CONDITIONAL, text.strip())
    try:
        tree = ast.parse(source, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ExpressionError(f"cannot be read: {getattr(error, 'msg', error)}") from error
    if sum(1 for _ in ast.walk(tree)) > MAX_NODES:
        raise ExpressionError(f"more than {MAX_NODES} parts")
    names: dict[str, None] = {}
    run, kind = _Compiler(types, names).build(tree.body)
    return Expression(text, tuple(names), kind, run)


class _Compiler:
    """Turns a parsed expression into closures; refuses every node it does not know."""

    def __init__(self, types: Mapping[str, str], names: dict[str, None]) -> None:
        self._types = types
        self._names = names

    def build(self, node: ast.expr) -> tuple[Evaluator, str]:
        match node:
            case ast.Constant(value=bool() | None | complex() | bytes()):
                pass
            case ast.Constant(value=int() | float() as number):
                try:
                    constant: Value = _finite(float(number))
                except (OverflowError, NoValue) as error:
                    raise ExpressionError("a number is not finite") from error
                return (lambda _: constant), "number"
            case ast.Constant(value=str() as text):
                return (lambda _: text), "string"
            case ast.Name(id=name):
                return self._field(name)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self._typed(operand, "boolean")
                negate = _elementwise(lambda a: not _truth(a))
                return (lambda env: negate(inner(env))), "boolean"
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                inner = self._typed(operand, "number")
                unary = _elementwise((lambda a: -_number(a)) if isinstance(sign, ast.USub) else _number)
                return (lambda env: unary(inner(env))), "number"
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _BINARY:
                first, second = self._typed(left, "number"), self._typed(right, "number")
                plain = _BINARY[type(operator)]
                lifted = _elementwise(plain)

                def binary(env: Environment) -> Value:
                    a, b = first(env), second(env)
                    return plain(a, b) if type(a) is float and type(b) is float else lifted(a, b)

                return binary, "number"
            case ast.BoolOp(op=operator, values=values):
                parts = [self._typed(value, "boolean") for value in values]
                fold = all if isinstance(operator, ast.And) else any
                combine = _elementwise(lambda *a: fold([_truth(x) for x in a]))
                return (lambda env: combine(*[part(env) for part in parts])), "boolean"
            case ast.Compare(left=left, ops=operators, comparators=rest):
                return self._comparison([left, *rest], operators)
            case ast.Call(func=ast.Name(id=function), args=arguments, keywords=[]):
                return self._call(function, arguments)
            case _:
                pass
        raise ExpressionError(f"'{ast.unparse(node)}' is not allowed".replace(_CONDITIONAL, "if"))

    def _typed(self, node: ast.expr, wanted: str) -> Evaluator:
        run, kind = self.build(node)
        if kind == "string":
            raise ExpressionError(f"'{ast.unparse(node)}' is a string where a {wanted} is needed")
        return run

    def _field(self, name: str) -> tuple[Evaluator, str]:
        if name not in self._types:
            raise ExpressionError(f"unknown field '{name}'")
        self._names[name] = None
        if self._types[name] == "number":

            def read(env: Environment) -> Value:
                value = env[name]
                return value if type(value) is float or type(value) is dict else _number(value)

            return read, "number"
        return (lambda env: env[name]), self._types[name]

    def _comparison(self, nodes: list[ast.expr], operators: list[ast.cmpop]) -> tuple[Evaluator, str]:
        built = [self.build(node) for node in nodes]
        for operator, (_, left), (_, right) in zip(operators, built[:-1], built[1:], strict=True):
            if type(operator) not in _COMPARISON:
                raise ExpressionError(f"comparison '{type(operator).__name__}' is not allowed")
            if "string" in (left, right) and (left != right or not isinstance(operator, (ast.Eq, ast.NotEq))):
                raise ExpressionError("strings compare with strings, by == and != only")
        parts = [run for run, _ in built]
        checks = [_COMPARISON[type(operator)] for operator in operators]
        if len(checks) == 1:
            first, second, check = parts[0], parts[1], checks[0]
            lifted = _elementwise(check)

            def single(env: Environment) -> Value:
                a, b = first(env), second(env)
                return check(a, b) if type(a) is float and type(b) is float else lifted(a, b)

            return single, "boolean"

        def chain(*values: Value) -> bool:
            held = [check(a, b) for check, a, b in zip(checks, values[:-1], values[1:], strict=True)]
            return all(held)

        chained = _elementwise(chain)
        return (lambda env: chained(*[part(env) for part in parts])), "boolean"

    def _call(self, function: str, nodes: list[ast.expr]) -> tuple[Evaluator, str]:
        if any(isinstance(node, ast.Starred) for node in nodes):
            raise ExpressionError("'*' is not allowed in a call")
        if function == _CONDITIONAL:
            return self._conditional(nodes)
        if function in _REDUCERS and len(nodes) == 1:
            inner = self._typed(nodes[0], _REDUCERS[function][1])
            reduce, kind = _REDUCERS[function]

            def reduced(env: Environment) -> Value:
                value = inner(env)
                return reduce(list(value.values()) if type(value) is dict else [value])

            return reduced, kind
        if function not in _FUNCTIONS:
            known = function in _REDUCERS
            raise ExpressionError(f"{function} takes one argument" if known else f"unknown function '{function}'")
        apply, least, most = _FUNCTIONS[function]
        if not least <= len(nodes) <= most:
            raise ExpressionError(f"{function} takes {least} to {most} arguments")
        parts = [self._typed(node, "number") for node in nodes]
        lifted = _elementwise(apply)
        return (lambda env: lifted(*[part(env) for part in parts])), "number"

    def _conditional(self, nodes: list[ast.expr]) -> tuple[Evaluator, str]:
        if len(nodes) != 3:
            raise ExpressionError("if takes three arguments: if(condition, then, otherwise)")
        condition = self._typed(nodes[0], "boolean")
        (then, kind), (otherwise, other) = self.build(nodes[1]), self.build(nodes[2])
        if kind != other:
            raise ExpressionError(f"if gives a {kind} or a {other}: both must be of one type")
        choose = _elementwise(lambda c, a, b: a if _truth(c) else b)
        return (lambda env: choose(condition(env), then(env), otherwise(env))), kind
