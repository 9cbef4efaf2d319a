"""`/ric/v1/config`: what a guard runs with, in the xApp framework's form, and an operator's change of it.

`GET` gives a list of one `{"metadata": {"xappName", "configType"}, "config": {…, "controls": {…}}}`; `PUT` takes such
an item with a `reason`, and answers as `GET` does then (docs/xapp.md).
A change reaches this guard alone, until its end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from streams.configuration import ChangeRefused, Configuration
from xapp.contract_loading import document_errors

PATH: Final = "/ric/v1/config"

Authenticate = Callable[[web.Request], str | web.Response]
"""Gives the operator whom the request's bearer token belongs to, or the reply to a request without one."""


class _Metadata(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    xappName: str
    configType: Literal["json"] = "json"


class _Change(BaseModel):
    """A change as it is asked for."""

    model_config = ConfigDict(strict=True, extra="forbid")

    metadata: _Metadata | None = None
    config: dict[str, Any]
    reason: Annotated[str, Field(pattern=r"\S", max_length=1_000)]


def config_routes(configuration: Configuration, authenticate: Authenticate) -> list[web.RouteDef]:
    """The routes of one guard's configuration."""

    async def show(_: web.Request) -> web.Response:
        return web.json_response(configuration.document())

    async def change(request: web.Request) -> web.Response:
        operator = authenticate(request)
        if isinstance(operator, web.Response):
            return operator
        try:
            asked = _Change.model_validate_json(await request.read())
        except ValidationError as error:
            return _refused(400, "\n".join(f"{path}: {reason}" for path, reason in document_errors(error)))
        (shown,) = configuration.document()
        if asked.metadata is not None and asked.metadata.xappName != shown["metadata"]["xappName"]:
            return _refused(422, f"$.metadata.xappName: this xApp is {shown['metadata']['xappName']}")
        controls = asked.config.pop("controls", {})
        if not isinstance(controls, dict):
            return _refused(400, "$.config.controls: an object is required")
        fixed = [member for member, value in asked.config.items() if shown["config"].get(member) != value]
        if fixed:
            return _refused(422, "\n".join(f"$.config.{member}: only controls can be changed" for member in fixed))
        try:
            configuration.change(controls, "$.config.controls", operator=operator, reason=asked.reason)
        except ChangeRefused as error:
            return _refused(422, str(error))
        return web.json_response(configuration.document())

    return [web.get(PATH, show), web.put(PATH, change)]


def _refused(status: int, why: str) -> web.Response:
    return web.json_response({"error": why}, status=status)
