#!/usr/bin/env bash
# Builds the image wirelessops-kafka:4.3.1 that the tests run where Docker answers. Needs Docker, Java's Maven and
# Python with this package; where no registry is reachable, debootstrap (and so root) as well.
set -euo pipefail
cd "$(dirname "$0")"
BASE=${BASE:-debian:12-slim}
PYTHON=${PYTHON:-python3}

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT

if ! docker image inspect "$BASE" >/dev/null 2>&1 && ! docker pull -q "$BASE"; then
  BASE=wirelessops-kafka-base:bookworm
  ../image/debian-base.sh "$BASE" openjdk-17-jre-headless ca-certificates-java
fi

jars=$(cd ../.. && "$PYTHON" -c 'from streams.kafka_distribution import kafka_jars; print(kafka_jars())')
cp -r "$jars" "$context/libs"
cp Dockerfile run log4j2.properties "$context"
docker build --build-arg BASE="$BASE" -t wirelessops-kafka:4.3.1 "$context"
