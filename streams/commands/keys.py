"""`wirelessops keys`: make a signing key, or an operator's token; say which key a file holds."""

from __future__ import annotations

import sys
from pathlib import Path

from streams.keys import KeyFault, holds_private_key, public_keys, public_pem, read_signing_key, write_new
from streams.web.operators import line_of, new_token, read_entries
from xapp.signing import keyid_of

OK, INVALID = 0, 2


def new_key(out: Path) -> int:
    """A private key at `out`, its public half beside it. Exit 2 where one exists: no key is ever overwritten."""
    try:
        signer, public_path = write_new(out)
    except KeyFault as fault:
        return _complain(fault)
    print(f"{signer.keyid}\nprivate: {out}\npublic:  {public_path}")
    return OK


def show_keys(path: Path) -> int:
    """The keyid of each key in a file, and its public half as PEM."""
    try:
        keys = [read_signing_key(path).public_key] if holds_private_key(path) else public_keys(path)
    except KeyFault as fault:
        return _complain(fault)
    for key in keys:
        print(f"{keyid_of(key)}\n{public_pem(key).decode()}", end="")
    return OK


def new_operator_token(operator: str, out: Path) -> int:
    """A new token, told on standard output and never again; its line is added to the tokens file `out`.

    Exit 2 for a bad name, and for a file that cannot be written or would not be read then; it stays as it was.
    """
    token = new_token()
    try:
        line = line_of(operator, token)
        with out.open("a+", encoding="utf-8") as file:
            file.seek(0)
            held = file.read()
            added = ("" if not held or held.endswith("\n") else "\n") + line + "\n"
            read_entries(held + added)
            # Told first: a token that was kept and never told is of no use to anybody
            sys.stderr.write(f"the token of {operator}, told this once ({out} holds its digest):\n")
            print(token, flush=True)
            file.write(added)
    except OSError as fault:
        return _complain(f"{out}: {fault.strerror or fault}")
    except ValueError as fault:
        return _complain(f"{out}: not UTF-8" if isinstance(fault, UnicodeDecodeError) else str(fault))
    return OK


def _complain(fault: ValueError | str) -> int:
    sys.stderr.write(f"{fault}\n")
    return INVALID
