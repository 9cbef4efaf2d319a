"""What `wirelessops optbench` is asked for: the suite, the methods, the backbones."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import orjson

from simulators.optbench.agents import Backbone, Bundle
from simulators.optbench.backbones import RecordedReplies
from simulators.optbench.bundles import ProposalLine
from streams.commands.optbench_agents import is_own
from streams.commands.optbench_lines import NotRun, left_out, read_lines, stem

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
    """A backbone; `settings` tells it from others of its name; `unasked`: episodes that it has nothing for, and why."""

    backbone: Backbone
    settings: str
    unasked: Mapping[str, Bundle]


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
    asked = options.model
    if asked.model is None and (asked.base_url or asked.api_key_env or asked.cache or asked.replay_only):
        raise NotRun("--base-url, --api-key-env, --cache and --replay-only belong to a --model")
    if asked.replay_only and asked.cache is None:
        raise NotRun("--replay-only needs the --cache that it answers from")
    if asked.base_url is not None and "@" in urlsplit(asked.base_url).netloc:
        raise NotRun("--base-url holds a password; --api-key-env is the place for a key")
    if asked.api_key_env is not None and not os.environ.get(asked.api_key_env):
        raise NotRun(f"--api-key-env: {asked.api_key_env} is not set")


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
        found.append(_language_model(options.model, options.model.model))
    return found


def _recorded(suite: Suite, file: str) -> Proposer:
    _, lines = read_lines(file, suite)
    if any(isinstance(line, Bundle) for line in lines):
        raise NotRun(f"{file}: holds decision bundles, which `optbench score` takes; proposals are wanted")
    replies = {line.episode_id: line.reply for line in lines if isinstance(line, ProposalLine)}
    told = hashlib.sha256(orjson.dumps(replies, option=orjson.OPT_SORT_KEYS)).hexdigest()
    backbone = RecordedReplies(f"proposals:{stem(file)}", replies)
    return Proposer(backbone, f"sha256:{told}", left_out(suite, replies, file))


def _language_model(asked: ModelOptions, model: str) -> Proposer:
    from streams.language_model import BASE_URL, LanguageModel
    from streams.language_model_cache import ReplyCache

    base_url = asked.base_url or BASE_URL
    server = urlsplit(base_url)
    try:
        cache = None if asked.cache is None else ReplyCache(asked.cache)
    except OSError as error:
        raise NotRun(f"{asked.cache}: {error.strerror or error}") from error
    if cache is not None and cache.damaged:
        sys.stderr.write(f"{asked.cache}: {cache.damaged} damaged lines are passed over\n")
    backbone = LanguageModel(
        model, model, base_url, os.environ.get(asked.api_key_env) if asked.api_key_env else None,
        cache=cache, replay_only=asked.replay_only, timeout_s=asked.timeout_s, price_in=asked.price_in,
        price_out=asked.price_out,
    )  # fmt: skip
    return Proposer(backbone, f"{server.scheme}://{server.netloc}{server.path.rstrip('/')}", {})
