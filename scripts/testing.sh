# SPDX-License-Identifier: BSL-1.0
# Read by scripts/test, verify and steady: building, running ctest, and reading what it says.

passed=0
failed=0
skipped=0

# build PRESET [TARGET…]
build() {
  local preset=$1
  shift
  if command -v ccache >/dev/null; then
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_SLOPPINESS=pch_defines,time_macros
  fi
  quietly "out/log/$preset-configure.log" cmake --preset "$preset" || return
  quietly "out/log/$preset-build.log" cmake --build --preset "$preset" ${1+--target "$@"}
}

# How many tests run at once: most of them wait most of the time.
tests_at_once() {
  local most=16 wanted=$(($(nproc) * 2))
  echo $((wanted < most ? wanted : most))
}

# run_ctest LOG [ctest arguments]: keeps the output in LOG, and on a terminal shows how far it is.
run_ctest() {
  local log=$1 status=0
  shift
  mkdir -p "$(dirname "$log")"
  : >"$log"
  ctest "$@" >"$log" 2>&1 &
  local runner=$!
  if [ -t 1 ]; then
    while kill -0 "$runner" 2>/dev/null; do
      printf '\r  %s ' "$(grep -oE '^ *[0-9]+/[0-9]+ Test' "$log" | tail -n 1 | tr -d ' Test')"
      sleep 1
    done
    printf '\r%20s\r' ''
  fi
  wait "$runner" || status=$?
  return "$status"
}

# count_tests LOG: adds what ctest says there to passed, failed and skipped.
count_tests() {
  local all bad without
  read -r bad all < <(sed -nE 's/^[0-9]+% tests passed, ([0-9]+) tests failed out of ([0-9]+)$/\1 \2/p' "$1")
  without=$(grep -cE '\*\*\*Skipped' "$1" || true)
  passed=$((passed + ${all:-0} - ${bad:-0} - without))
  failed=$((failed + ${bad:-0}))
  skipped=$((skipped + without))
}

# failed_tests LOG: their names, a line each.
failed_tests() {
  sed -n '/tests FAILED/,$p' "$1" | sed -nE 's/^[[:space:]]+[0-9]+ - (.+) \([A-Za-z ]+\).*$/\1/p'
}

# regex_of NAME: what ctest takes for that test and no other.
regex_of() { printf '^%s$' "$(printf '%s' "$1" | sed -E 's/[][().+*?^$|\\]/\\&/g')"; }

# output_of NAME LOG: what the test printed, from a log of ctest.
output_of() {
  awk -v name="$1" '
    /^ *[0-9]+\/[0-9]+ Test +#[0-9]+: / { inside = index($0, ": " name " ") > 0 }
    /^ +Start +[0-9]+: / { inside = 0 }
    /^[0-9]+% tests passed/ { inside = 0 }
    inside' "$2"
}

# file_of NAME: the test's name, fit for a file.
file_of() { printf '%s' "$1" | tr -c 'A-Za-z0-9._-' '_'; }

# skip_reasons LOG: how many were skipped for which reason, from ctest's log of everything.
skip_reasons() {
  grep -A1 -hE ': Skipped$' "$1" | grep -vE ': Skipped$|^--$' | sort | uniq -c | sed -E 's/^ *([0-9]+) (.*)/  \1 skipped: \2/' || true
}

check_shared_memory() {
  local leftovers
  leftovers=$(ls -A /dev/shm 2>/dev/null | grep -i muster || true)
  [ -z "$leftovers" ] || fail "left behind in /dev/shm: $leftovers"
}

minutes_since() { printf '%d min %02d s' $((($SECONDS - $1) / 60)) $((($SECONDS - $1) % 60)); }
