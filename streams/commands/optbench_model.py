"""The language model that `wirelessops optbench` is asked to ask: its options checked, its cache opened."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from streams.commands.answering import NotRun

if TYPE_CHECKING:
    from streams.commands.optbench_options import ModelOptions
    from streams.language_model import LanguageModel
    from streams.language_model_cache import ReplyCache

_SCHEMES: Final = ("http", "https")


def check_model(asked: ModelOptions) -> None:
    """Before anything is built: what a model needs is there, and nothing is said that has no model. Raises NotRun."""
    belongs = (asked.base_url, asked.api_key_env, asked.price_in, asked.price_out, asked.cache)
    if asked.model is None:
        if asked.replay_only or any(value is not None for value in belongs):
            raise NotRun(
                "--base-url, --api-key-env, --price-in, --price-out, --cache and --replay-only belong to a --model"
            )
        return
    if not asked.model.strip():
        raise NotRun("--model: a name is wanted")
    if asked.replay_only and asked.cache is None:
        raise NotRun("--replay-only needs the --cache that it answers from")
    numbers = {"--price-in": asked.price_in, "--price-out": asked.price_out, "--timeout": asked.timeout_s}
    for name, value in numbers.items():
        if value is not None and not math.isfinite(value):
            raise NotRun(f"{name}: a number is wanted")
    if asked.base_url is not None:
        address(asked.base_url)
    api_key(asked)


def address(base_url: str) -> str:
    """A server's address, in one spelling. Raises NotRun; what is refused is not repeated, for it may hold a secret."""
    if "@" in base_url:
        raise NotRun("--base-url holds a password, or an @; --api-key-env is the place for a key")
    if "?" in base_url or "#" in base_url:
        raise NotRun("--base-url holds a query, which cannot be sent; --api-key-env is the place for a key")
    text = base_url.strip()
    try:
        server = urlsplit(text)
        sound = server.scheme in _SCHEMES and server.hostname and (server.port is None or server.port > 0)
    except ValueError:  # brackets that do not close, a port that is none
        sound = False
    if not sound or not text.isprintable() or " " in text or "\\" in text:
        raise NotRun("--base-url: http://HOST/… or https://HOST/… is wanted, as http://localhost:8000/v1")
    return f"{server.scheme}://{server.netloc.lower()}{server.path.rstrip('/')}"


def api_key(asked: ModelOptions) -> str | None:
    """The key in the environment, without white space round it. Raises NotRun where it cannot be one."""
    if asked.api_key_env is None:
        return None
    key = os.environ.get(asked.api_key_env, "").strip()
    if not key:
        raise NotRun(f"--api-key-env: {asked.api_key_env} is not set")
    if not (key.isascii() and key.isprintable()):
        raise NotRun(f"--api-key-env: {asked.api_key_env} holds characters that a key cannot have")
    return key


def language_model(asked: ModelOptions, model: str) -> LanguageModel:
    """The backbone. Its first failure is told on standard error at once. Raises NotRun."""
    from streams.language_model import LanguageModel

    base_url = None if asked.base_url is None else address(asked.base_url)
    cache = None if asked.cache is None else _cache(asked.cache, asked.replay_only)
    try:
        return LanguageModel(
            model, model, base_url, api_key(asked), cache=cache, replay_only=asked.replay_only,
            timeout_s=asked.timeout_s, price_in=asked.price_in, price_out=asked.price_out, tell=_tell,
        )  # fmt: skip
    except ValueError as error:
        raise NotRun(f"{asked.cache}: {error}; --base-url says which is meant") from error


def settings(asked: ModelOptions, server: str) -> str:
    """What tells kept results of this model from others of its name: who served it, and what its tokens cost."""
    if asked.price_in is None and asked.price_out is None:
        return server
    return f"{server}, US dollars per million tokens: {asked.price_in} in, {asked.price_out} out"


def _cache(path: Path, replay_only: bool) -> ReplyCache:
    from streams.language_model_cache import ReplyCache

    try:
        cache = ReplyCache(path)
        with path.open("rb" if replay_only else "ab"):  # before a reply is paid for that cannot be kept
            pass
    except OSError as error:
        raise NotRun(f"{path}: {error.strerror or error}") from error
    if cache.damaged:
        _tell(f"{path}: {cache.damaged} damaged lines are passed over")
    return cache


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
