#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# How scripts/setup.sh calls apt-get: it waits while another one holds a lock, and fetches once more after an error of
# the network. apt-get is one of the test's own here. Argument: the directory of scripts.
set -euo pipefail
. "$1/setup.sh"
as_root() { "$@"; }
apt_lock_pause=0

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
mkdir bin
PATH=$place/bin:$PATH

# apt_get_that SCRIPT: apt-get notes what it is called with, and then does that. `times WORD` is how often it has been
# called with WORD.
apt_get_that() {
  rm -f calls log
  touch calls
  { echo '#!/usr/bin/env bash'
    echo 'times() { grep -cE "(^| )$1( |$)" calls; }'
    echo 'echo "$*" >>calls'
    printf '%s\n' "$1"; } >bin/apt-get
  chmod +x bin/apt-get
}
count() { grep -cE "(^| )$1( |$)" calls || true; }
expect_calls() { [ "$(count "$1")" = "$2" ] || fail "apt-get $1 was to be called $2 times: $(cat calls)"; }
held="echo 'E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)'; exit 100"
broken="echo 'E: Failed to fetch one of the packages  Connection failed'; exit 100"

apt_get_that 'exit 0'
install_packages log one two || fail "nothing went wrong, and it failed"
expect_calls update 1
expect_calls install 1
grep -qE "DPkg::Lock::Timeout=[0-9]+ .*install .*one two$" calls || fail "install has no timeout for the lock: $(cat calls)"

apt_get_that "case \"\$*\" in *update*) [ \"\$(times update)\" -gt 3 ] || { $held; } ;; *) [ \"\$(times install)\" -gt 2 ] || { $held; } ;; esac"
install_packages log one || fail "it did not wait for the locks: $(cat log)"
expect_calls update 4
expect_calls install 3

apt_get_that "case \"\$*\" in *install*) [ \"\$(times install)\" -gt 1 ] || { $broken; } ;; esac"
install_packages log one || fail "it did not try a second time: $(cat log)"
expect_calls update 2
expect_calls install 2

apt_get_that "$broken"
if install_packages log one; then fail "it took a network that stays broken for a success"; fi
expect_calls install 2

apt_get_that "case \"\$*\" in *install*) echo 'E: Unable to locate package one'; exit 100 ;; esac"
if install_packages log one; then fail "it took a package that does not exist for installed"; fi
expect_calls install 1
grep -q "Unable to locate" log || fail "the log does not say why"

apt_lock_timeout=0
apt_get_that "$held"
if install_packages log one; then fail "it took a lock that stays held for a success"; fi
expect_calls install 1
say "setup waits for another apt-get and tries a second time"
