#!/usr/bin/env bash
# Measures the pipe from end to end, in whole processes on this machine: a
# cluster of one broker, lines published by smq-pub and read back by smq-sub.
#
#	tools/perf.sh [STORE-URL]      default: a directory, with fsync
#
# Each figure is the median of five runs; the machine's noise is in them.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
store=${1:-dir://$work/store}
go build -o "$work/bin/" ./cmd/smq-admin ./cmd/smq-pub ./cmd/smq-sub
export PATH="$work/bin:$PATH" SMQ_MASTER=127.0.0.1:7399

smq-admin up --brokers 1 --listen "$SMQ_MASTER" --data "$work/data" --store "$store" >"$work/up.log" 2>&1 &
up=$!
trap 'kill "$up"; wait "$up"; rm -rf "$work"' EXIT
until smq-admin broker list -o name --timeout 1s >/dev/null 2>&1; do :; done

# A line is its number and filler, so that no two are alike.
lines() { # COUNT BYTES
  awk -v n="$1" -v size="$2" 'BEGIN {
    filler = sprintf("%" size "s", ""); gsub(/ /, "the quick brown fox ", filler)
    for (i = 0; i < n; i++) { at = i % 997 + 1; printf "%010d %s\n", i, substr(filler, at, size - 12) }
  }'
}

seconds() { # prints how long a command takes
  local TIMEFORMAT=%R
  { time "$@" 2>>"$work/errors" >&3; } 3>/dev/null 2>&1
}

publish() { smq-pub -q "$1" --create <"$2"; }
readback() { smq-sub -q "$1" --from earliest --until end; }

median() { sort -n | sed -n 3p; }

measure() { # NAME COUNT BYTES
  lines "$2" "$3" >"$work/$1.txt"
  for run in 1 2 3 4 5; do
    seconds publish "$1-$run" "$work/$1.txt" >>"$work/$1.pub"
    seconds readback "$1-$run" >>"$work/$1.sub"
    readback "$1-$run" | cmp - "$work/$1.txt"
  done
  for what in pub sub; do
    median <"$work/$1.$what" | awk -v n="$2" -v b="$3" -v name="$1" -v what="$what" \
      '{ printf "%-6s %s  %9.0f messages/s  %6.1f MB/s  (%.2f s)\n", name, what, n / $1, n * b / $1 / 1e6, $1 }'
  done
}

echo "store: $store"
measure 100B 2000000 100
measure 1KB 300000 1024
