#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# Where scripts/demo has the digits from, and what it says where they cannot be had. Argument: the directory of scripts.
# apt-get is one of our own here: it is not there, or has nothing, or a package of a few bytes.
set -euo pipefail
. "$1/setup.sh"
. "$1/digits.sh"
as_root() { "$@"; }

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
mkdir bin

expect() { case $2 in *"$1"*) ;; *) fail "'$1' was to be in: $2" ;; esac; }
apt_get_that() {
  printf '#!/bin/sh\n%s\n' "$1" >bin/apt-get
  chmod +x bin/apt-get
}
# try PATH: what is said when digits cannot be had with it.
try() { (PATH=$1 && if get_digits; then say "got"; else say_why_no_digits; fi); }

found=$(try "$place/bin")
expect "digits.csv.gz of Debian's package python3-sklearn, and there is no apt-get" "$found"
expect "--data FILE" "$found"
[ ! -e out ] || fail "something was left behind"

if command -v dpkg-deb >/dev/null; then
  apt_get_that 'echo "no such package"; exit 1'
  found=$(try "$place/bin:$PATH")
  expect "it could not be got (out/log/demo-digits.log says why)" "$found"
  expect "--data FILE" "$found"
  grep -q "no such package" out/log/demo-digits.log || fail "the log does not say why"

  mkdir -p package/DEBIAN package/usr/share
  printf 'Package: python3-sklearn\nVersion: 1\nArchitecture: all\nMaintainer: a test\nDescription: digits\n' \
    >package/DEBIAN/control
  echo "0,1,2" | gzip >package/usr/share/digits.csv.gz
  apt_get_that "dpkg-deb --build '$place/package' python3-sklearn_1_all.deb"
  expect "got" "$(try "$place/bin:$PATH")"
  [ "$(gzip -dc out/digits.csv.gz)" = "0,1,2" ] || fail "these are not the digits of the package"
  rm bin/apt-get
  expect "got" "$(try "$place/bin")"
fi
say "the digits are found where they can be had"
