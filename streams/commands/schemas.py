"""`wirelessops schemas`: the JSON Schemas of all messages."""

from __future__ import annotations

from pathlib import Path

import orjson


def schemas(out: Path | None) -> str:
    """All schemas as one JSON document by format, or a file for each in the folder `out`; gives what to print."""
    from streams.messages import schemas as all_schemas

    found = all_schemas()
    if out is None:
        return orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode()
    out.mkdir(parents=True, exist_ok=True)
    lines = []
    for name, schema in sorted(found.items()):
        path = out / f"{name.removeprefix('wirelessops.').replace('/', '.v')}.schema.json"
        path.write_bytes(orjson.dumps(schema, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")
        lines.append(str(path))
    return "\n".join(lines)
