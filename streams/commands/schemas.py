"""`wirelessops schemas`: the JSON Schemas of all messages, and the AsyncAPI document of all topics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson


def schemas(out: Path | None) -> str:
    """All schemas as one JSON document by format, or a file for each in the folder `out`; gives what to print.

    The folder gets `asyncapi.json` too: the topics, who may use them, and an example of each message.
    """
    from streams.messages import schemas as all_schemas

    found = all_schemas()
    if out is None:
        return orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode()
    from streams.asyncapi import document

    files: dict[str, Any] = {
        f"{name.removeprefix('wirelessops.').replace('/', '.v')}.schema.json": schema for name, schema in found.items()
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, content in {**files, "asyncapi.json": document()}.items():
        (out / name).write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")
    return "\n".join(str(out / name) for name in (*sorted(files), "asyncapi.json"))
