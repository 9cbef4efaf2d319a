"""What `wirelessops optbench` is asked for: the suite, the methods, the backbones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from simulators.optbench.agents import Backbone, Bundle
from simulators.optbench.backbones import RecordedReplies
from streams.commands.answering import NotRun
from streams.commands.optbench_agents import is_own
from streams.commands.optbench_lines import left_out, read_proposals, stem
from streams.commands.optbench_model import check_model, language_model, settings

if TYPE_CHECKING:
    from simulators.optbench.suite import Suite

HEADLINE_METHODS: Final = ("direct", "wirelessagent-contract", "critic", "wirelessopsagent")
SANITY: Final = ("always-apply", "always-block")
ALL, ABLATIONS = "all", "ablations"


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The language model that is asked, if one is. Prices are US dollars per million tokens."""

    model: str | None
    base_url: str | None
    api_key_env: str | None
    price_in: float | None
    price_out: float | None
    cache: Path | None
    replay_only: bool
    timeout_s: float


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Which methods over which backbones, and how they are scored and kept. Empty names: the defaults."""

    methods: tuple[str, ...]
    backbones: tuple[str, ...]
    proposals: str | None
    model: ModelOptions
    evaluator: str
    scorer: str
    results: Path | None
    as_json: bool
    parallel: int


@dataclass(frozen=True, slots=True)
class Proposer:
    """A backbone; `settings` tells it from others of its name; `unasked`: episodes that it has nothing for, and why.

    `gave_up`: asked after each episode; why it answers no more, None while it does.
    """

    backbone: Backbone
    settings: str
    unasked: Mapping[str, Bundle]
    gave_up: Callable[[], str | None] = lambda: None


def method_names(names: Sequence[str]) -> list[str]:
    """Methods, ablations and own agents, groups resolved, each once, in the order asked for. Raises NotRun."""
    from simulators.optbench.methods import ABLATIONS as ablations
    from simulators.optbench.methods import METHODS

    groups = {ALL: tuple(METHODS), ABLATIONS: tuple(ablations)}
    found: dict[str, None] = {}
    for name in names or (*HEADLINE_METHODS, *SANITY):
        for one in groups.get(name, (name,)):
            if one not in METHODS and one not in ablations and not is_own(one):
                known = ", ".join((*METHODS, *ablations, *groups))
                raise NotRun(f"no method {one!r}: {known}, or an agent of your own as FILE.py:NAME")
            found[one] = None
    return list(found)


def check_backbones(options: RunOptions) -> None:
    """Before anything is built: what is named exists, and what a model needs is there."""
    from simulators.optbench.synthetic import PROFILES

    for name in options.backbones:
        if name not in PROFILES:
            raise NotRun(f"no backbone {name!r}: {', '.join(PROFILES)}; --model and --proposals name others")
    check_model(options.model)
    taken = {*PROFILES} | ({_name_of(options.proposals)} if options.proposals is not None else set())
    if options.model.model in taken:
        raise NotRun(f"--model {options.model.model}: another backbone has this name, and rows are told by it")


def proposers_of(suite: Suite, options: RunOptions) -> list[Proposer]:
    """What proposes: the synthetic ones that are named, or all where nothing is; then the user's. Raises NotRun."""
    from simulators.optbench.synthetic import PROFILES, proposer

    elsewhere = options.model.model is not None or options.proposals is not None
    names = options.backbones or (() if elsewhere else tuple(PROFILES))
    seed = suite.manifest["seed"]
    found = [Proposer(proposer(name, suite.cases, seed), f"seed {seed}", {}) for name in dict.fromkeys(names)]
    if options.proposals is not None:
        found.append(_recorded(suite, options.proposals))
    if options.model.model is not None:
        model = language_model(options.model, options.model.model)
        found.append(Proposer(model, settings(options.model, model.server), {}, model.gave_up))
    return found


def _recorded(suite: Suite, file: str) -> Proposer:
    replies = read_proposals(file, suite)
    told = hashlib.sha256(orjson.dumps(replies, option=orjson.OPT_SORT_KEYS)).hexdigest()
    backbone = RecordedReplies(_name_of(file), replies)
    return Proposer(backbone, f"sha256:{told}", left_out(suite, replies, file))


def _name_of(file: str) -> str:
    return f"proposals:{stem(file)}"
