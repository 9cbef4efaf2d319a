#!/usr/bin/env bash
# Fills wheels/ of the project with the wheels that deploy/image/Dockerfile installs where it reaches no package index:
# the dependencies of pyproject.toml and what builds the package. PYTHON must be a Python 3.11, as the image's.
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}

cmp -s pyproject.toml wheels/made-for.toml && exit 0
"$PYTHON" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' ||
  { echo "$PYTHON is no Python 3.11, which the image has: PYTHON=/path/to/python3.11" >&2; exit 1; }
echo "fetching the wheels of pyproject.toml's dependencies" >&2
rm -rf wheels
mkdir wheels
mapfile -t needed < <("$PYTHON" -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb")); print(*p["project"]["dependencies"], *p["build-system"]["requires"], sep="\n")')
"$PYTHON" -m pip wheel --quiet --disable-pip-version-check --wheel-dir wheels "${needed[@]}"
cp pyproject.toml wheels/made-for.toml # last: so that half of the wheels are never taken for all
