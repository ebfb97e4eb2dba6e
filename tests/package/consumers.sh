#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# Every public header, in both orders, and the README's program, as programs compile them: by each compiler of Debian that
# this machine has or can get, in each standard, with warnings as errors in headers that are no system's.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/setup.sh
rooms=(base memory serialize async device queue process collectives pool rpc parallel params)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
folders=()
for each in "${rooms[@]}"; do folders+=("-I$each/include"); done
git ls-files '*/include/muster/**.hpp' | grep -vE '^device/cuda|^collectives/nccl|boost_error_code|eigen.hpp' |
  sed 's#^[^/]*/include/\(.*\)#\#include <\1>#' >"$work/headers.cpp"
tac "$work/headers.cpp" >"$work/headers_reversed.cpp"
cp examples/quickstart.cpp "$work"

common=(-O1 -Wall -Wextra -Wconversion -Wshadow -Werror -fsyntax-only)
compile() {  # COMPILER STANDARD FLAG…
  local compiler=$1 standard=$2 source
  shift 2
  for source in headers headers_reversed quickstart; do
    say "$compiler $standard $* $source"
    "$compiler" "-std=$standard" "${common[@]}" "$@" "${folders[@]}" "$work/$source.cpp"
  done
}
for version in 12 14; do
  (install_missing "g++-$version") || say "g++-$version cannot be had here"
  if command -v "g++-$version" >/dev/null; then
    for standard in c++20 c++23; do compile "g++-$version" "$standard" -Wuseless-cast; done
  fi
done
for version in 16 19; do
  (install_missing "clang-$version") || say "clang-$version cannot be had here"
  if command -v "clang++-$version" >/dev/null; then
    for standard in c++20 c++2b; do compile "clang++-$version" "$standard"; done
  fi
done
