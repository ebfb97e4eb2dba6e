#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# pages ROOT: each header that a page names by its path from ROOT is there.
set -euo pipefail
cd "$1"
status=0
while read -r path; do
  [ -e "$path" ] || { echo "FAILED no such header, which a page names: $path"; status=1; }
done < <(cat ./*.md docs/*.md docs/*/*.md examples/*/*.md | grep -oE '[a-z]+(/[a-z]+)?/(include|internal)/muster/[a-z_/]+\.hpp' | sort -u)
exit "$status"
