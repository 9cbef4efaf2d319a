"""Reading WirelessBench's files: the validation split, and the larger test split, which has the same form.

Every row becomes an item or an exclusion with its reason. Names of files say the task: `wchw_*.jsonl`, `wcns_*.jsonl`,
`wcmsa_*.jsonl`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from simulators.optbench.base.gold import agrees, contradicted_by, gold_of, is_in_its_digits
from simulators.optbench.base.lookup import look_up
from simulators.optbench.base.wchw import wchw_item
from simulators.optbench.base.wcmsa import wcmsa_item
from simulators.optbench.base.wcns import wcns_item
from simulators.optbench.model import TASKS, BaseItem, Task

Metres = Annotated[float, Field(ge=-5000, le=5000, allow_inf_nan=False)]
Users = Annotated[int, Field(ge=0, le=1000, strict=True)]
Cqi = Annotated[int, Field(ge=1, le=15, strict=True)]
SliceType = Literal["eMBB", "URLLC"]


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)
    id: int | str
    question: Annotated[str, Field(min_length=1)]


class _WchwRow(_Row):
    answer: str
    cot: str = ""


class _WcnsInput(BaseModel):
    embb_users: Users
    urllc_users: Users
    user_x: Metres
    user_y: Metres
    region: str
    service_request: str


class _RayTracing(BaseModel):
    cqi: Cqi
    rx_power_dBm: Annotated[float, Field(ge=-125, le=0, allow_inf_nan=False)]  # RSRP within its reported range


class _SliceAnswer(BaseModel):
    model_config = ConfigDict(extra="allow")
    slice_type: SliceType


class _WcnsRow(_Row):
    input: _WcnsInput
    ray_tracing_result: _RayTracing
    answer: _SliceAnswer


class _Position(BaseModel):
    x: Metres
    y: Metres


class _WcmsaInput(BaseModel):
    trajectory: Annotated[list[_Position], Field(min_length=2)]
    current_position: _Position
    region: str
    service_request: str
    min_rate: Annotated[int | float, Field(ge=0, le=10000, allow_inf_nan=False)]
    latency_requirement: str
    embb_users: Users
    urllc_users: Users


class _WcmsaRow(_Row):
    input: _WcmsaInput
    ray_tracing_result: _RayTracing
    answer: _SliceAnswer


class Excluded(NamedTuple):
    """A row that is not used, and why. `item_id`: file and id, or file and line where it has none."""

    task: Task
    item_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Files:
    """What a directory holds: usable items of each task, in the order of the files, and what was left out."""

    items: Mapping[Task, tuple[BaseItem, ...]]
    excluded: tuple[Excluded, ...]


class Unusable(ValueError):
    """A row that can be read, but not used; the message is the reason."""


def read_files(directory: Path) -> Files:
    """All WirelessBench files in `directory`. Raises FileNotFoundError where there is none, OSError where one fails."""
    paths = {task: sorted(directory.glob(f"{task.lower()}_*.jsonl")) for task in TASKS}
    if not any(paths.values()):
        raise FileNotFoundError(f"{directory} holds no WirelessBench files (wchw_*.jsonl, wcns_*.jsonl, wcmsa_*.jsonl)")
    items: dict[Task, tuple[BaseItem, ...]] = {}
    excluded: list[Excluded] = []
    for task in TASKS:
        found: list[BaseItem] = []
        for item_id, outcome in _outcomes(task, paths[task]):
            if isinstance(outcome, str):
                excluded.append(Excluded(task, item_id, outcome))
            else:
                found.append(outcome)
        items[task] = tuple(found)
    return Files(items, tuple(excluded))


def content(item: BaseItem) -> str:
    """What an item asks, whatever the wording: two items of one content are one item."""
    observed = {name: value for name, value in item.observed.items() if name != "load"}
    return json.dumps([item.contract["contract_id"], item.input, observed], sort_keys=True)


def _outcomes(task: Task, paths: list[Path]) -> Iterator[tuple[str, BaseItem | str]]:
    """(Item id, the item or why there is none) of every row."""
    asked: dict[str, str] = {}
    contents: dict[str, str] = {}
    for path in paths:
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            if not line.strip():
                continue
            place = f"{path.name}:{number}"
            unreadable = f"unreadable: {path.name}, line {number}: "
            try:
                row = _ROWS[task].model_validate_json(line)
            except ValidationError as error:
                first = error.errors()[0]
                where = ".".join(map(str, first["loc"])) or "the row"
                yield place, f"{unreadable}{where}: {first['msg']}"
                continue
            item_id = f"{path.stem}:{row.id}"
            question = " ".join(row.question.split())
            if question in asked:
                yield item_id, f"duplicate of {asked[question]}"
                continue
            if item_id in asked.values():
                item_id = f"{item_id}:{number}"  # two rows under one id
            asked[question] = item_id
            try:
                item = _READERS[task](item_id, row)
                _require_limits(item)
                same = contents.setdefault(content(item), item_id)
            except Unusable as reason:
                yield item_id, str(reason)
                continue
            except Exception as error:  # a row that nobody foresaw costs itself, not the files
                yield item_id, f"{unreadable}{type(error).__name__}: {error}"
                continue
            yield item_id, item if same == item_id else f"duplicate of {same} in other words"


def _wchw(item_id: str, row: Any) -> BaseItem:
    gold = gold_of(row.answer)
    if gold is None:
        raise Unusable("no formula tool: the gold is not one number")
    steps = contradicted_by(row.cot, gold)
    if steps is not None:
        raise Unusable(f"wrong gold: its own steps give {steps:g} where the gold says {row.answer}")
    found = look_up(row.question)
    if found is None:
        raise Unusable("no formula tool")
    value = gold.in_unit_of(found.formula)
    if value is None or not agrees(value, found.result):
        said = f"{found.result:.4g} {found.formula.spoken or found.formula.unit}".removesuffix(" 1")
        both = f"the tool {found.formula.name} gives {said} where the gold says {row.answer}"
        if is_in_its_digits(gold, found.result, found.formula):
            raise Unusable(f"the gold is too coarse for the contract's tolerance: {both}")
        raise Unusable(f"tool and gold disagree: {both}")
    if any(found.parameters[p.name] == 0.0 for p in found.formula.parameters if p.unit == "1"):
        raise Unusable("a parameter is 0: no disagreement about it could be immaterial")
    return wchw_item(item_id, "file", row.question, found, value)


def _wcns(item_id: str, row: Any) -> BaseItem:
    gold, traced = row.answer, row.ray_tracing_result
    item = wcns_item(item_id, "file", row.question, row.input.model_dump(), gold.slice_type, traced.cqi)
    _require_gold(item, gold.model_dump())
    return item


def _wcmsa(item_id: str, row: Any) -> BaseItem:
    gold, traced, item_input = row.answer, row.ray_tracing_result, row.input.model_dump()
    item = wcmsa_item(item_id, "file", row.question, item_input, gold.slice_type, traced.cqi, traced.rx_power_dBm)
    _require_gold(item, gold.model_dump())
    if not item.answer["qos_satisfied"]:
        raise Unusable("its own answer is infeasible: qos_satisfied is false")
    return item


def _require_gold(item: BaseItem, gold: Mapping[str, Any]) -> None:
    for key, value in item.answer.items():
        if gold.get(key) != value:
            raise Unusable(f"wrong gold: the rules give {key} {value} where the gold says {gold.get(key)}")


def _require_limits(item: BaseItem) -> None:
    """Refuses what the item's contract would refuse in clean evidence."""
    samples = [(name, value) for name, series in item.series.items() for _, value in series]
    for name, value in (*item.observed.items(), *item.plan.items(), *samples):
        field = item.contract["fields"][name]
        low, high = field.get("min", -math.inf), field.get("max", math.inf)
        if not isinstance(value, str) and not low <= value <= high:
            raise Unusable(f"a value beyond its contract's limits: {name} {value:g}, not {low:g} to {high:g}")


_ROWS: Final[Mapping[Task, type[_Row]]] = {"WCHW": _WchwRow, "WCNS": _WcnsRow, "WCMSA": _WcmsaRow}
_READERS: Final = {"WCHW": _wchw, "WCNS": _wcns, "WCMSA": _wcmsa}
