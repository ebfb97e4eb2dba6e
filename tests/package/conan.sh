#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# conan create, by Conan of PyPI in an environment of its own, whose folder is in out/.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/setup.sh
install_missing python3-venv python3-pip libboost1.81-dev libcereal-dev libgtest-dev nlohmann-json3-dev
make_peer_environment conan conan || fail "conan: cannot be had from PyPI"
export CONAN_HOME=$PWD/out/conan
rm -rf "$CONAN_HOME"
conan=out/peers/conan/bin/conan
"$conan" profile detect
"$conan" create . -s compiler.cppstd=20 -c:a "tools.cmake.cmake_layout:test_folder=$CONAN_HOME/template"
"$conan" list "muster/*"
