// SPDX-License-Identifier: BSL-1.0
#include <memory>

#include <muster/pool/pool.hpp>

struct shape {
  virtual ~shape() = default;
  template <class Archive>
  void serialize(Archive& /*archive*/) {}
};

int corners(const std::unique_ptr<shape>& given) { return given == nullptr ? 0 : 4; }

int call(const muster::pool& pool) { return pool.apply(corners, std::make_unique<shape>()); }
