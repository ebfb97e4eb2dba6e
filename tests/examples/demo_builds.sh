#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# The demo builds what it runs: each "$programs/…" of scripts/demo is a target of the preset "demo".
# Argument: the folder of the sources.
set -euo pipefail
cd "$1"
built=$(grep '"name": "demo", "configurePreset"' CMakePresets.json)
for program in $(grep -o '"$programs/[^"]*"' scripts/demo | tr -d '"' | xargs -n 1 basename | sort -u); do
  case $built in *"\"$program\""*) echo "$program: built" ;; *) echo "$program: run by scripts/demo, and not built"; exit 1 ;; esac
done
