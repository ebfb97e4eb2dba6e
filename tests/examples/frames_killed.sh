#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# frames whose only filter is killed: it says so, and ends. Arguments: the program, and where it may write a picture.
set -euo pipefail

# Of the program $1: the process that filters, if there is one yet.
filter_of() {
  local child
  for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do
    case $(cat "/proc/$child/comm" 2>/dev/null) in pool*) echo "$child" ;; esac
  done
}

"$1" --frames 1000000 --ring 2 --workers 1 --output "$2" 2>&1 &
program=$!
# More than once: one that dies before it has begun its task is replaced, and nothing is lost.
while kill -0 "$program" 2>/dev/null; do
  for filter in $(filter_of "$program"); do kill -KILL "$filter" 2>/dev/null || true; done
  sleep 0.2
done
status=0
wait "$program" || status=$?
[ "$status" = 1 ] || echo "it ended with $status"
