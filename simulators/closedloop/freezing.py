"""The preregistered protocol, made anew:

    python -m simulators.closedloop.freezing > simulators/closedloop/protocol.json

A module and no command of `wirelessops`: what it changes is this software's own source, after a change of the study's
code, and whoever runs the study must have no way to freeze by the way. With `--master-seed N` it prints the protocol of
another study, for `wirelessops study run --protocol`.

It runs the development and the pilot block, clean, chooses the cutoff by them, and builds and hashes the masks; no
fault is run, and no episode of the current or the null block is drawn.
"""

from __future__ import annotations

import argparse
import sys

from simulators.closedloop.protocol import Protocol, made
from simulators.closedloop.running import prepare
from simulators.closedloop.schedule import MASTER_SEED, blocks


def freeze(master_seed: int = MASTER_SEED) -> Protocol:
    """The protocol of this software. Raises ValueError where the seed is out of range, or development episodes bear out
    no cutoff.
    """
    seeds = blocks()
    return made(master_seed, seeds, prepare(master_seed, seeds))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--master-seed", type=int, default=MASTER_SEED)
    try:
        found = freeze(parser.parse_args().master_seed)
    except ValueError as error:
        parser.error(str(error))
    sys.stdout.buffer.write(found.content())
