#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# The Debian packages, built by cpack, installed in a fresh Debian (debootstrap, from where this machine's packages come
# from), and used there: the template by CMake, the README's program by pkg-config. Needs root.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/setup.sh
[ "$(id -u)" = 0 ] || fail "debian: needs root, to make a file system of its own"
install_missing debootstrap dpkg-dev file

cmake --preset debian
cmake --build --preset debian
rm -f out/debian/*.deb
(cd out/debian && cpack)
version=$(sed -n 's/.*VERSION_STRING "\(.*\)"/\1/p' base/include/muster/base/version.hpp)
soversion=${version%.*}
for each in "libmuster$soversion" libmuster-dev; do
  [ -e out/debian/"${each}_${version}"_*.deb ] || fail "debian: cpack has not made $each"
done
names() { dpkg-deb --contents "$1" | awk '{print $6}'; }
names out/debian/"libmuster${soversion}"_*.deb | grep -q "/libmuster_pool.so.$soversion$" || fail "debian: no SONAME in the runtime package"
! names out/debian/libmuster-dev_*.deb | grep -q "cuda" || fail "debian: libmuster-dev has what belongs to CUDA"

# Where this machine has its packages from.
mirror=$(apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
  awk '$1 == "bookworm" && $2 == "main" {print $3; exit}')
[ -n "$mirror" ] || fail "debian: this machine has no source of Debian 12's packages"
root=$PWD/out/debian-root
cleanup() { mountpoint -q "$root/proc" && umount "$root/proc"; rm -rf "$root"; }
trap cleanup EXIT
cleanup || true
debootstrap --variant=minbase bookworm "$root" "$mirror"
mount -t proc proc "$root/proc"
cp out/debian/"libmuster${soversion}"_*.deb out/debian/libmuster-dev_*.deb "$root/tmp"
cp -r examples/template examples/quickstart.cpp "$root/root"
chroot "$root" /usr/bin/env -i PATH="$PATH" HOME=/root LC_ALL=C /bin/bash -euo pipefail -c '
  export DEBIAN_FRONTEND=noninteractive
  apt-get update
  apt-get install -y --no-install-recommends g++ cmake ninja-build libgtest-dev pkg-config ca-certificates
  apt-get install -y --no-install-recommends /tmp/libmuster*.deb
  cd /root
  g++ -std=c++20 -O2 quickstart.cpp $(pkg-config --cflags --libs muster-pool) -o quickstart
  ./quickstart
  cmake -S template --preset release -B build
  cmake --build build
  ctest --test-dir build --output-on-failure --no-tests=error
  build/my_service /usr/share/common-licenses/*
  apt-get remove -y "libmuster*"
  [ -z "$(ls -d /usr/lib/*/libmuster* /usr/include/muster 2>/dev/null)" ]
'
