// SPDX-License-Identifier: BSL-1.0
#pragma once

// Lets rank_error cross from a task to its caller as itself. Included by one source that every program with worlds
// links.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <muster/parallel/rank_error.hpp>
#include <muster/serialize/archive.hpp>
#include <muster/serialize/exception_type.hpp>

namespace muster {

template <>
struct exception_encoding<rank_error> {
  static void save(output_archive& out, const rank_error& error) {
    out(error.info(), error.rank(), error.function(), error.others().size());
    for (const auto& each : error.others()) out(each.rank, each.info);
  }
  [[nodiscard]] static rank_error load(input_archive& in, const error_info& info) {
    error_info why;
    std::size_t rank = 0;
    std::string function;
    in(why, rank, function);
    return {std::move(why), info.message(), rank, std::move(function), load_others(in)};
  }

private:
  static std::vector<rank_failure> load_others(input_archive& in) {
    std::size_t count = 0;
    in(count);
    in.expect(count, sizeof count);
    std::vector<rank_failure> others(count);
    for (auto& each : others) in(each.rank, each.info);
    return others;
  }
};

}  // namespace muster

MUSTER_REGISTER_EXCEPTION(muster::rank_error)
