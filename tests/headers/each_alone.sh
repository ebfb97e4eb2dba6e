#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# each_alone LIST COMPILER FLAG…: preprocesses each header of LIST by itself and prints how many lines it brings, most
# first. Fails for one that names a header which is not there (those of internal folders are not), and for one that
# brings nothing.
set -euo pipefail
list=$1
shift
lines_of() {
  local name=$1 count
  shift
  if ! count=$(set -o pipefail; printf '#include <%s>\n' "$name" | "$@" -E -x c++ - | wc -l); then
    echo "FAILED $name: it does not come alone"
    return 1
  fi
  # One of macros alone has no lines of its own there, nor has the one of conditions.
  if [ "$count" -le 20 ] && [ "$name" != muster/base/requirements.hpp ] && ! printf '#include <%s>\n' "$name" | "$@" -E -dD -x c++ - | grep -q '^#define MUSTER_'; then
    echo "FAILED $name: it brings nothing"
    return 1
  fi
  printf '%8d %s\n' "$count" "$name"
}
export -f lines_of
status=0
found=$(xargs -P "$(nproc)" -I{} bash -c 'lines_of "$@"' lines_of {} "$@" <"$list") || status=$?
sort -rn <<<"$found"
[ "$status" = 0 ] && [ "$(grep -c . <<<"$found")" = "$(grep -c . "$list")" ]
