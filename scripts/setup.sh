# SPDX-License-Identifier: BSL-1.0
# Read by the other scripts: brings what building and testing muster needs, and says what it does.

# What the gate and the demo need; on top of it the benchmarks and models; the sanitizers, lints and fuzzers.
gate_packages=(g++ cmake ninja-build git libboost1.81-dev libcereal-dev libgtest-dev libgmock-dev libcli11-dev
  libeigen3-dev nlohmann-json3-dev pkg-config libxxhash-dev python3-numpy)
gate_compiler=(clang-19 lld-19)  # what builds the gate fastest
bench_packages=(libbenchmark-dev libtbb-dev)
peer_packages=(python3-venv python3-pip)  # for the peers that scripts/bench measures beside
store_peer_packages=(redis-server)
rpc_peer_packages=(libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev libcapnp-dev capnproto)
old_mpi_packages=(openmpi-bin libopenmpi-dev)  # where PyPI cannot be had
check_packages=(binutils lld llvm-19 clang-tidy-19 clang-format-19 libclang-rt-19-dev)

say() { printf '%s\n' "$*"; }
fail() { printf 'muster: %s\n' "$*" >&2; exit 1; }

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null)" = "ii " ]; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

apt_lock_timeout=600  # seconds
apt_lock_pause=2
# Packages that the network breaks off are fetched again.
apt_options=(-o DPkg::Lock::Timeout=$apt_lock_timeout -o Acquire::Retries=3 -o APT::Update::Error-Mode=any)

# apt_get WORD… : apt-get as root; waits while another apt-get runs. apt-get itself waits for the lock of dpkg alone: for
# those of the lists and the archives it is called again.
apt_get() {
  local output status deadline=$((SECONDS + apt_lock_timeout))
  while true; do
    status=0
    output=$(as_root env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get "${apt_options[@]}" "$@" 2>&1) || status=$?
    printf '%s\n' "$output"
    [ "$status" != 0 ] && [ "$SECONDS" -lt "$deadline" ] && [[ $output == *"Could not get lock"* ]] || return "$status"
    sleep "$apt_lock_pause"
  done
}

# install_packages LOG PACKAGE… : the lists, then the packages; both once more where something could not be fetched. Lists
# that are not all there are no failure: whether the packages can be had decides.
install_packages() {
  local log=$1 each
  shift
  for each in first second; do
    apt_get update >"$log" || true
    apt_get install -y --no-install-recommends "$@" >>"$log" && return
    grep -qE "(Failed|Unable) to fetch" "$log" || return
  done
  return 1
}

# install_missing PACKAGE… : quiet and quick when all are there.
install_missing() {
  local missing=() each
  if ! command -v dpkg-query >/dev/null; then
    need_commands
    return
  fi
  for each in "$@"; do is_installed "$each" || missing+=("$each"); done
  [ "${#missing[@]}" = 0 ] && return
  . /etc/os-release
  if [ "${ID:-}" != debian ] || [ "${VERSION_ID:-}" != 12 ]; then
    say "This is ${PRETTY_NAME:-not Debian 12}; the scripts set up Debian 12 only. Install what corresponds to: ${missing[*]}"
    need_commands
    return
  fi
  if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    fail "these packages are missing, and installing them needs root or sudo: ${missing[*]}"
  fi
  say "Installing ${#missing[@]} packages: ${missing[*]}"
  local log
  log=$(mktemp)
  if ! install_packages "$log" "${missing[@]}"; then
    tail -n 20 "$log" >&2
    fail "apt-get could not install them (the whole output: $log)"
  fi
  rm -f "$log"
}

# install_peers PACKAGE… : each that can be had; says which cannot.
install_peers() {
  local each
  for each in "$@"; do
    (install_missing "$each") || say "$each could not be had: what needs it is left out"
  done
}

# make_peer_environment NAME PACKAGE… : an environment of Python's under out/peers with these packages of PyPI. Those that
# are there already stay as they are; false where they cannot be had.
make_peer_environment() {
  local where=out/peers/$1
  shift
  [ "$(cat "$where/packages" 2>/dev/null)" = "$*" ] && return
  say "Installing into $where: $* (the output goes to out/log)"
  mkdir -p out/log
  { python3 -m venv --clear "$where" && "$where/bin/pip" install "$@"; } >"out/log/peers-$(basename "$where").log" 2>&1 || return 1
  printf '%s\n' "$*" >"$where/packages"
}

# Not with the other peers of Python: it needs an older NumPy.
make_mxnet_environment() { make_peer_environment mxnet mxnet==1.9.1 'numpy<1.24'; }

# newest_cuda [MOST]: of names of packages, a line each, the newest version of CUDA, as 13-0, whose compiler, runtime and
# cuBLAS are among them; 12-4 at least, MOST at most. Nothing where there is none.
newest_cuda() {
  awk -v most="${1:-}" '
    function number(major, minor) { return major * 1000 + minor }
    BEGIN { limit = split(most, parts, "-") == 2 ? number(parts[1], parts[2]) : 1000000 }
    match($0, /^(cuda-nvcc|cuda-cudart-dev|libcublas-dev)-[0-9]+-[0-9]+$/) {
      split($0, parts, "-"); count = length(parts)
      version = parts[count - 1] "-" parts[count]
      this = number(parts[count - 1], parts[count])
      if (this >= 12004 && this <= limit) ++found[version]
    }
    END { for (each in found) if (found[each] == 3) print each }' | sort -t- -k1,1n -k2,2n | tail -n 1
}

# The newest CUDA that the machine's driver knows, as 12-4; nothing where there is no driver.
cuda_of_driver() {
  { nvidia-smi 2>/dev/null || true; } | sed -nE 's/.*CUDA Version: *([0-9]+)\.([0-9]+).*/\1-\2/p' | head -n 1
}

has_nvcc() { command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; }

# install_cuda: the CUDA Toolkit and NCCL, where there are none and the machine's sources of packages have them, which
# are NVIDIA's and not Debian's. A build without them is whole, but for muster::cuda and muster::nccl.
install_cuda() {
  has_nvcc && return
  command -v apt-cache >/dev/null || return 0
  local version
  version=$(apt-cache pkgnames | newest_cuda "$(cuda_of_driver)")
  [ -n "$version" ] || return 0
  install_peers "cuda-nvcc-$version" "cuda-cudart-dev-$version" "libcublas-dev-$version" libnccl-dev
}

# Elsewhere than on Debian: names what cannot be found, and lets the build tell the rest.
need_commands() {
  local each missing=()
  for each in g++ cmake ninja git; do command -v "$each" >/dev/null || missing+=("$each"); done
  [ "${#missing[@]}" = 0 ] || fail "not found: ${missing[*]}. muster needs GCC 12 or newer, CMake 3.25, Ninja, Boost 1.81, cereal and nlohmann-json; its examples CLI11, Eigen and xxHash; its tests GoogleTest, Clang 19 and its linker lld; its benchmarks Google Benchmark and TBB"
}

# quietly LOG COMMAND… : runs it with its output in LOG; shows the end of that if it fails.
quietly() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 && return
  local status=$?
  say "failed: $*"
  tail -n 60 "$log"
  say "(the whole output: $log)"
  return $status
}
