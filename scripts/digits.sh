# SPDX-License-Identifier: BSL-1.0
# Read by scripts/demo, after setup.sh: gets the handwritten digits, once, into out/digits.csv.gz. They lie in Debian's
# package of scikit-learn, of which nothing else is wanted: it is not installed.

package_with_digits() {
  local download=(apt-get "${apt_options[@]}" download python3-sklearn)
  "${download[@]}" || { apt_get update; "${download[@]}"; }
}

unpack_digits() {
  dpkg-deb --fsys-tarfile "$1"/python3-sklearn_*.deb | tar -x --to-stdout --wildcards '*/digits.csv.gz' >"$1/digits.csv.gz" &&
    gzip -t "$1/digits.csv.gz" && mv "$1/digits.csv.gz" out/digits.csv.gz
}

# Fails where they cannot be had, and no_digits says why then.
get_digits() {
  local where status=1
  [ -s out/digits.csv.gz ] && return
  no_digits="there is no apt-get and dpkg-deb here to get it with"
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return
  no_digits="it could not be got (out/log/demo-digits.log says why)"
  mkdir -p out/log
  where=$(mktemp -d)
  if { (cd "$where" && package_with_digits) && unpack_digits "$where"; } >out/log/demo-digits.log 2>&1; then status=0; fi
  rm -rf "$where"
  return "$status"
}

say_why_no_digits() {
  say "digits is left out: it learns from the file digits.csv.gz of Debian's package python3-sklearn, and $no_digits;"
  say "scripts/demo --data FILE takes it from where it is"
}
