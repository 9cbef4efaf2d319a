#!/usr/bin/env bash
# Builds docker-compose.yml's images, brings the composition up, checks that it decides (checks.py), and takes it down:
# `make compose-check`. Where no registry is in reach, or with OFFLINE=1, base images are made of Debian packages (as root,
# by debootstrap), wheels are fetched outside, Kafka comes from Maven and Prometheus from Debian; Grafana stays out then.
# Needs Docker with its compose (2, or 1.29) and Python 3.11 with this package. Exit 0 where every check passed.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PYTHON=${PYTHON:-python3}
export COMPOSE_PROJECT_NAME=wirelessops-check
export PAGE_PORT=${PAGE_PORT:-18080} PROMETHEUS_PORT=${PROMETHEUS_PORT:-19090} GRAFANA_PORT=${GRAFANA_PORT:-13000}
OFFICIAL=python:3.11.13-slim-bookworm

say() { printf '%s\n' "$*"; }

scratch=$(mktemp -d)
daemon=
down() { "${COMPOSE[@]}" down --volumes --remove-orphans --timeout 5; }
clean_up() {
  trap '' INT TERM HUP # a second Ctrl-C would leave things running
  if docker info >/dev/null 2>&1; then down >"$scratch/down" 2>&1 || cat "$scratch/down" >&2; fi
  [ -z "$daemon" ] || { kill "$daemon" && wait "$daemon"; } 2>/dev/null || true
  rm -rf "$scratch"
}

if docker compose version >/dev/null 2>&1; then COMPOSE=(docker compose); else COMPOSE=(docker-compose); fi
command -v docker >/dev/null && command -v "${COMPOSE[0]}" >/dev/null ||
  { echo "compose-check needs Docker and its compose (Debian: docker.io, docker-compose)" >&2; exit 1; }
trap clean_up EXIT
trap 'exit 130' INT TERM HUP
if ! docker info >/dev/null 2>&1; then
  [ "$(id -u)" = 0 ] || { echo "no Docker engine answers, and only root can start one" >&2; exit 1; }
  # By itself, so that a Ctrl-C does not end it before what runs in it is taken down
  setsid dockerd >"$scratch/dockerd" 2>&1 &
  daemon=$!
  for _ in $(seq 60); do docker info >/dev/null 2>&1 && break; sleep 0.5; done
  docker info >/dev/null 2>&1 || { tail -5 "$scratch/dockerd" >&2; exit 1; }
fi

services=(kafka keys guard ran prometheus)
if [ -z "${OFFLINE:-}" ] && timeout 120 docker pull -q "$OFFICIAL" >/dev/null 2>&1; then
  services+=(grafana)
  "${COMPOSE[@]}" pull kafka prometheus grafana
else
  say "no registry in reach: images of Debian packages, wheels and Maven's jars, and no Grafana"
  export BASE_IMAGE=wirelessops-python-base:bookworm
  export KAFKA_IMAGE=wirelessops-kafka:4.3.1
  export PROMETHEUS_IMAGE=wirelessops-prometheus:bookworm
  deploy/image/debian-base.sh "$BASE_IMAGE" python3 python3-venv ca-certificates
  deploy/image/wheels.sh
  say "Kafka's and Prometheus's images: some minutes, the first time"
  BASE=none deploy/kafka/build-image.sh >"$scratch/kafka" 2>&1 || { cat "$scratch/kafka" >&2; exit 1; }
  if ! docker image inspect "$PROMETHEUS_IMAGE" >/dev/null 2>&1; then
    mkdir "$scratch/debs" "$scratch/root"
    chmod 755 "$scratch" && chmod 777 "$scratch/debs" # apt downloads as a user of its own
    (cd "$scratch/debs" && apt-get -qq download prometheus busybox)
    for deb in "$scratch"/debs/*.deb; do dpkg-deb -x "$deb" "$scratch/root"; done
    docker build --build-arg BASE_IMAGE="$BASE_IMAGE" -t "$PROMETHEUS_IMAGE" -f deploy/compose/prometheus.Dockerfile "$scratch" \
      >"$scratch/prometheus" 2>&1 || { cat "$scratch/prometheus" >&2; exit 1; }
  fi
fi

# Volumes of an interrupted run would bring its keys, and hide that new ones are made.
down >/dev/null 2>&1 || true
"${COMPOSE[@]}" build keys >"$scratch/build" 2>&1 || { tail -30 "$scratch/build" >&2; exit 1; }
say "images built; ${COMPOSE[*]} up: ${services[*]}"
"${COMPOSE[@]}" up --detach "${services[@]}" >"$scratch/up" 2>&1 || {
  cat "$scratch/up" >&2
  "${COMPOSE[@]}" logs --tail 20 >&2
  exit 1
}
"$PYTHON" deploy/compose/checks.py "${COMPOSE[*]}" "${services[@]}" || {
  "${COMPOSE[@]}" logs --tail 20 >&2
  exit 1
}
