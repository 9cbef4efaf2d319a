"""`wirelessops keys`: make a signing key, or an operator's token; say which key a file holds."""

from __future__ import annotations

import sys
from pathlib import Path

from streams.keys import KeyFault, holds_private_key, public_keys, public_pem, read_signing_key, write_new
from streams.web.operators import line_of, new_token
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


def new_operator_token(operator: str) -> int:
    """A new token, and the line of the tokens file for it. The token is told here and never again."""
    token = new_token()
    try:
        line = line_of(operator, token)
    except ValueError as fault:
        return _complain(fault)
    print(f"token: {token}\nline:  {line}")
    return OK


def _complain(fault: ValueError) -> int:
    sys.stderr.write(f"{fault}\n")
    return INVALID
