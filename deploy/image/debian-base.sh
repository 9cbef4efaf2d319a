#!/usr/bin/env bash
# debian-base.sh TAG PACKAGE…: a base image of Debian 12 packages, for where no registry is in reach. Needs root,
# debootstrap and Docker. An image that Docker has under TAG already is left as it is.
set -euo pipefail
TAG=$1
shift
MIRROR=${MIRROR:-http://deb.debian.org/debian}

docker image inspect "$TAG" >/dev/null 2>&1 && exit 0
echo "no registry gives a base: making $TAG of Debian packages from $MIRROR" >&2
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase --include="$(IFS=,; echo "$*")" bookworm "$root" "$MIRROR" >&2
tar -C "$root" --exclude=./var/cache/apt --exclude=./var/lib/apt/lists --exclude=./usr/share/doc -c . | docker import - "$TAG" >&2
