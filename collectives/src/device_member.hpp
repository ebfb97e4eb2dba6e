// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <muster/base/detail/mutex.hpp>
#include <muster/collectives/detail/rank_end.hpp>
#include <muster/collectives/device_transport.hpp>
#include <muster/collectives/group_options.hpp>
#include <muster/device/tensor.hpp>

namespace muster::detail {

/// What a rank of a group has of the transport between devices, if it has one.
///
/// Works as follows. In the first call for which all ranks' tensors lie on devices, each tells the others what its
/// transport offers, or why there is none. From the same texts all come to the same decision, and either join, or none
/// does, and then never in this group. Joined or not, all have told one another how that went before anything else.
/// What fails later is dropped by all ranks, and the next call joins anew.
///
/// While the device is busy the group's members are watched: a death, an abort or the timeout ends the wait, and what
/// the device was given.
///
/// Thread safety: distinct objects: safe. Shared objects: one call at a time; way() is safe.
/// Lifetime: borrows the rank's end.
class device_member {
public:
  explicit device_member(rank_end& end) : end_(end) {}
  device_member(const device_member&) = delete;
  device_member& operator=(const device_member&) = delete;
  ~device_member() { close(); }

  /// Another rank could not do its part: call_frame::confirm throws why.
  struct another_failed {};

  /// Whether this rank would do an operation with these tensors directly. `null` ones are left out.
  [[nodiscard]] bool offers(std::initializer_list<const tensor*> tensors);
  /// The transport. Requires: offers() has been true.
  [[nodiscard]] device_transport& transport() const noexcept { return *transport_; }

  /// All ranks offer it: whether they have joined. Throws group_error when some do not come.
  [[nodiscard]] bool join(const char* operation, const call_options& how);
  /// Returns when the device has done it. Requires: join() was true. Throws muster::error when it cannot; group_error;
  /// another_failed.
  void carry_out(const char* operation, const call_options& how, std::span<const device_step> steps,
                 std::vector<tensor> kept);

  /// Ends what the device was given, and leaves.
  void drop() noexcept MUSTER_EXCLUDES(guard_);
  /// Leaves. Requires: nothing is under way.
  void close() noexcept MUSTER_EXCLUDES(guard_);

  [[nodiscard]] device_way way() const MUSTER_EXCLUDES(guard_);

private:
  [[nodiscard]] std::vector<std::byte> own_note();
  [[nodiscard]] std::optional<std::string> problem_in(const std::vector<std::vector<std::byte>>& notes) const;
  bool join_with(std::span<const std::vector<std::byte>> offers, const char* operation, const call_options& how);
  void await(const char* operation, const call_options& how);
  void refuse(const std::string& why) MUSTER_EXCLUDES(guard_);
  void set_way(const device_way& what) MUSTER_EXCLUDES(guard_);

  rank_end& end_;
  device_transport* transport_ = nullptr;
  device where_;  // of the channel, and before that of the tensors that were offered last
  std::unique_ptr<device_channel> channel_;
  bool is_refused_ = false;
  mutable mutex guard_;
  std::optional<device_way> way_ MUSTER_GUARDED_BY(guard_);
};

}  // namespace muster::detail
