#!/usr/bin/env bash
# Compiles the binaries for the systems that they are meant for: all five for
# Linux and macOS, the clients and the administration for Windows too.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

all="./cmd/smq-broker ./cmd/smq-master ./cmd/smq-pub ./cmd/smq-sub ./cmd/smq-admin"
clients="./cmd/smq-pub ./cmd/smq-sub ./cmd/smq-admin"
for arch in amd64 arm64; do
  for os in linux darwin windows; do
    what=$all
    [ "$os" = windows ] && what=$clients
    echo "build $os/$arch"
    # shellcheck disable=SC2086
    CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -o "$out/" $what
  done
done
