#!/usr/bin/env bash
# Builds the image wirelessops-kafka:4.3.1 that the tests run where Docker answers. Needs Docker, Java's Maven and
# Python with this package; where no registry is reachable, debootstrap (and so root) as well.
set -euo pipefail
cd "$(dirname "$0")"
BASE=${BASE:-debian:12-slim}
MIRROR=${MIRROR:-http://deb.debian.org/debian}
PYTHON=${PYTHON:-python3}

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT

if ! docker image inspect "$BASE" >/dev/null 2>&1 && ! docker pull -q "$BASE"; then
  echo "no registry gives $BASE: making a base of Debian packages from $MIRROR" >&2
  BASE=wirelessops-kafka-base:bookworm
  if ! docker image inspect "$BASE" >/dev/null 2>&1; then
    debootstrap --variant=minbase --include=openjdk-17-jre-headless,ca-certificates-java bookworm "$context/root" "$MIRROR" >&2
    tar -C "$context/root" --exclude=./var/cache/apt --exclude=./var/lib/apt/lists -c . | docker import - "$BASE" >&2
    rm -rf "$context/root"
  fi
fi

jars=$(cd ../.. && "$PYTHON" -c 'from streams.kafka_distribution import kafka_jars; print(kafka_jars())')
cp -r "$jars" "$context/libs"
cp Dockerfile serve.sh log4j2.properties "$context"
docker build --build-arg BASE="$BASE" -t wirelessops-kafka:4.3.1 "$context"
