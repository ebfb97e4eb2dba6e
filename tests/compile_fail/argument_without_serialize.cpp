// SPDX-License-Identifier: BSL-1.0
#include <memory>

#include <muster/pool/pool.hpp>

struct connection {
  explicit connection(int descriptor) : descriptor_(descriptor) {}
  ~connection() { descriptor_ = -1; }
  int descriptor_;
};

int call(const muster::pool& pool) {
  return pool.apply([](const connection& peer) { return peer.descriptor_; }, connection(1));
}
