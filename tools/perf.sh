#!/usr/bin/env bash
# Measures whole processes on this machine.
#
#	tools/perf.sh [pipe] [STORE-URL]           lines published by smq-pub and read back by smq-sub, one broker
#	tools/perf.sh latency [STORE-URL]          an open loop of 1,000 messages of 1 KiB a second; a master and three brokers
#	tools/perf.sh latency-one [STORE-URL]      the same, with all of them in one process
#
# The store is a directory, with fsync, unless a URL is given. Each figure is the
# median of five runs (RUNS=…), of a minute (DURATION=…) where there is a rate; the
# machine's noise is in them, so its load is printed too. PREFIX='chrt -r 1' runs all
# that is measured by that command, here with priority over what else the machine does.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=pipe
case ${1:-} in
pipe | latency | latency-one) mode=$1 && shift ;;
esac
work=$(mktemp -d)
store=${1:-dir://$work/store}
runs=${RUNS:-5}
read -ra prefix <<<"${PREFIX:-}"
go build -o "$work/bin/" ./cmd/...
export PATH="$work/bin:$PATH" SMQ_MASTER=127.0.0.1:7399

processes=()
finish() {
  kill "${processes[@]}" 2>/dev/null && wait "${processes[@]}"
  rm -rf "$work"
}
trap finish EXIT

start() { # PROGRAM ARG… in the background
  "${prefix[@]}" "$@" >>"$work/daemons.log" 2>&1 &
  processes+=($!)
}

await_brokers() { # N: until so many are there
  until [ "$(smq-admin broker list -o name --timeout 1s 2>/dev/null | wc -l)" = "$1" ]; do
    kill -0 "${processes[@]}" || { cat "$work/daemons.log" >&2; exit 1; }
  done
}

up() { # N brokers and a master in one process
  start smq-admin up --brokers "$1" --listen "$SMQ_MASTER" --data "$work/data" --store "$store"
  await_brokers "$1"
}

processes_up() { # N brokers and a master, each a process
  start smq-master --listen "$SMQ_MASTER" --raft 127.0.0.1:0 --http off --data "$work/data" --store "$store"
  for ((i = 0; i < $1; i++)); do
    start smq-broker --listen 127.0.0.1:0 --http off
  done
  await_brokers "$1"
}

median() { sort -n | sed -n "$(((runs + 1) / 2))p"; }

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

measure_pipe() { # NAME COUNT BYTES
  lines "$2" "$3" >"$work/$1.txt"
  for ((run = 1; run <= runs; run++)); do
    seconds publish "$1-$run" "$work/$1.txt" >>"$work/$1.pub"
    seconds readback "$1-$run" >>"$work/$1.sub"
    readback "$1-$run" | cmp - "$work/$1.txt"
  done
  for what in pub sub; do
    median <"$work/$1.$what" | awk -v n="$2" -v b="$3" -v name="$1" -v what="$what" \
      '{ printf "%-6s %s  %9.0f messages/s  %6.1f MB/s  (%.2f s)\n", name, what, n / $1, n * b / $1 / 1e6, $1 }'
  done
}

column() { # NAME of a column of CSV; prints its values, one a line
  awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } $1 == "e2e" { print $at }'
}

measure_latency() { # ACKS
  for ((run = 1; run <= runs; run++)); do
    "${prefix[@]}" smq-admin bench e2e --rate 1000/s --size 1KiB --duration "${DURATION:-60s}" --acks "$1" --replicas 2 -o csv >>"$work/$1.csv"
  done
  for what in ack delivery; do
    printf '%-10s %-8s' "$1" "$what"
    for p in p50 p90 p99 p99_9 max; do
      printf '  %s %8.3f' "$p" "$(column "${what}_${p}_ms" <"$work/$1.csv" | median)"
    done
    echo " ms"
  done
}

echo "store: $store; load: $(uptime | sed 's/.*load average: //')"
case $mode in
pipe)
  up 1
  measure_pipe 100B 2000000 100
  measure_pipe 1KB 300000 1024
  ;;
latency)
  processes_up 3
  ;;&
latency-one)
  up 3
  ;;&
latency*)
  measure_latency stored
  measure_latency replicated
  ;;
esac
echo "load: $(uptime | sed 's/.*load average: //')"
