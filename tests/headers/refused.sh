#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# refused LIST COMPILER FLAG…: each header of LIST, alone, before C++20, without exceptions and without run-time type
# information. Fails for one of which the compiler does not say in one error what is missing, and then stop.
set -euo pipefail
list=$1
shift
expect_refusal() {
  local name=$1 what=$2 errors
  shift 2
  errors=$(printf '#include <%s>\n' "$name" | "$@" -fsyntax-only -fno-diagnostics-color -x c++ - 2>&1 | grep 'error: ' || true)
  # The second one is that of the include that stops the compiler.
  [[ $(wc -l <<<"$errors") == 2 && $(head -n 1 <<<"$errors") == *"muster needs $what"* ]] && return
  printf 'FAILED %s with %s:\n%s\n' "$name" "${*: -1}" "$errors"
  return 1
}
refusals_of() {
  local name=$1
  shift
  [ "$name" = muster/base/version.hpp ] && return  # macros alone, for every language
  expect_refusal "$name" C++20 "$@" -std=c++17
  [[ $name != muster/?*/* ]] || return 0
  expect_refusal "$name" exceptions "$@" -std=c++20 -fno-exceptions
  expect_refusal "$name" 'run-time type information' "$@" -std=c++20 -fno-rtti
}
export -f expect_refusal refusals_of
xargs -P "$(nproc)" -I{} bash -c 'set -e; refusals_of "$@"' refusals_of {} "$@" <"$list"
