// SPDX-License-Identifier: BSL-1.0
#pragma once

// Lets the errors of groups cross from a task to its caller as themselves. Included by one source that every program
// with groups links. Code and text are those of their base, muster::error, which are restored by themselves.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <muster/collectives/group_error.hpp>
#include <muster/serialize/archive.hpp>
#include <muster/serialize/exception_type.hpp>

namespace muster {

template <>
struct exception_encoding<group_error> {
  static void save(output_archive& out, const group_error& error) {
    out(error.operation(), error.sequence(), error.missing(), error.lost(), error.broken_by());
  }
  [[nodiscard]] static group_error load(input_archive& in, const error_info& info) {
    return {errc::peer_lost, info.message(), load_particulars(in)};
  }
  [[nodiscard]] static group_error::particulars load_particulars(input_archive& in) {
    group_error::particulars about;
    in(about.operation, about.sequence, about.missing, about.lost, about.broken_by);
    return about;
  }
};

template <>
struct exception_encoding<peer_lost> {
  static void save(output_archive& out, const peer_lost& error) { exception_encoding<group_error>::save(out, error); }
  [[nodiscard]] static peer_lost load(input_archive& in, const error_info& info) {
    return {info.message(), exception_encoding<group_error>::load_particulars(in)};
  }
};

template <>
struct exception_encoding<member_failed> {
  static void save(output_archive& out, const member_failed& error) { out(error.failed()); }
  [[nodiscard]] static member_failed load(input_archive& in, const error_info& info) {
    std::vector<group_member> failed;
    in(failed);
    return {errc::remote_exception, info.message(), std::move(failed)};
  }
};

}  // namespace muster

MUSTER_REGISTER_EXCEPTION(muster::group_error)
MUSTER_REGISTER_EXCEPTION(muster::peer_lost)
MUSTER_REGISTER_EXCEPTION(muster::member_failed)
