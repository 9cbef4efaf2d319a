#!/bin/sh
# The keys of the composition, made once: the guard's signing key, its public half for the RAN, and a token with which
# OPERATOR may act on the page. A token is printed when it is made, and is nowhere to be read again.
set -eu
umask 077
PRIVATE=/var/lib/wirelessops/private
PUBLIC=/var/lib/wirelessops/public
OPERATOR=${OPERATOR:-operator}

[ -e "$PRIVATE/guard.pem" ] || wirelessops keys new --out "$PRIVATE/guard.pem"
cp "$PRIVATE/guard.pub.pem" "$PUBLIC/guard.pub.pem"
chmod 644 "$PUBLIC/guard.pub.pem"

if cut -d ' ' -f 1 "$PRIVATE/operators" 2>/dev/null | grep -qxF -- "$OPERATOR"; then
  echo "$OPERATOR has a token; another one, for another name: docker compose run --rm -e OPERATOR=name keys"
else
  echo "operator: $OPERATOR"
  printf 'token: '
  wirelessops keys token --operator "$OPERATOR" --out "$PRIVATE/operators"
fi
