// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>

#include <muster/base/error.hpp>
#include <muster/collectives/detail/rank_end.hpp>
#include <muster/device/tensor.hpp>

#include "device_member.hpp"

namespace muster::detail {

/// A tensor of another rank: the name of its block, and where in the block its elements begin.
struct tensor_place {
  std::uint64_t name = 0;
  std::uint64_t offset = 0;
};

/// One call of a group in one rank: what is written into the slot's payload and read from the others' payloads.
///
/// A payload is some words, *extras*, whose number the operation fixes, and then either the elements themselves or, for
/// a call that is_in_place(), the places of the tensor to read and the tensor to write.
///
/// Thread safety: an object belongs to one thread.
/// Lifetime: borrows the rank's end.
class call_frame {
public:
  call_frame(rank_end& end, collective kind, std::size_t extras, const call_options& how);

  call_header own;
  bool counts_differ = false;  ///< of the ranks' contributions; otherwise they must be equal
  bool confirms = false;       ///< all wait until all have succeeded, however small it is
  /// Where the call is of several tensors: these, kept until it has ended. A refusal says which of them differ.
  std::span<const tensor> several;

  // ---- before the exchange
  [[nodiscard]] bool fits(std::size_t bytes) const noexcept {
    return head_bytes() + bytes <= end_.own_payload().size();
  }
  void set_extra(std::size_t index, std::uint64_t value) noexcept;
  /// Where this rank's elements go. Requires: they fit.
  [[nodiscard]] std::byte* own_data() const noexcept { return end_.own_payload().data() + head_bytes(); }
  /// Says that this rank's elements are read where they are, and where its results go. Requires: contiguous tensors in
  /// the group's domain; kept until the call has ended. nullptr: none.
  void set_places(const tensor* in, const tensor* out);

  // ---- the call
  /// `prepare` fills the frame in; what it throws makes all ranks refuse the call. `work` computes from what the others
  /// gave; what it throws is reported to all ranks if they wait for one another.
  template <class Prepare, class Work>
  void run(Prepare prepare, Work work) {
    run(prepare, work, [] {}, false);
  }
  /// The same, with another step of work, after all ranks are done with the first.
  template <class Prepare, class First, class Second>
  void run(Prepare prepare, First work, Second then, bool in_two_steps = true) {
    begin();
    prepare_or_refuse(prepare);
    exchange();
    if (!confirms && !somebody_is_in_place()) return work();
    work_and_confirm(work);
    if (in_two_steps) work_and_confirm(then);
  }

  /// The same for what devices may do directly, where all ranks offer that (device_member::offers, in `describe`). Then
  /// `direct` does it, which throws what a rank alone cannot mend, and all are told. Otherwise `contribute` writes this
  /// rank's elements, or where they are, into the payload, for `work`.
  template <class Describe, class Contribute, class Direct, class Work, class Then>
  void run_anywhere(device_member& devices, Describe describe, Contribute contribute, Direct direct, Work work,
                    Then then, bool in_two_steps) {
    const auto on_host = [&] {
      if (!confirms && !somebody_is_in_place()) return work();
      work_and_confirm(work);
      if (in_two_steps) work_and_confirm(then);
    };
    try {
      begin();
      const auto prepare = [&] {
        describe();
        if (!own.is_on_device()) contribute();
      };
      prepare_or_refuse(prepare);
      exchange();
      if (goes_directly(devices)) return run_directly(devices, direct);
      if (somebody_is_on_device()) contribute_late(contribute);
      on_host();
    } catch (const group_error&) {
      devices.drop();  // nobody knows how far the others are
      throw;
    }
  }
  template <class Describe, class Contribute, class Direct, class Work>
  void run_anywhere(device_member& devices, Describe describe, Contribute contribute, Direct direct, Work work) {
    run_anywhere(devices, describe, contribute, direct, work, [] {}, false);
  }

  // ---- after the exchange
  [[nodiscard]] std::span<const call_header> headers() const noexcept { return headers_; }
  [[nodiscard]] std::size_t size() const noexcept { return end_.size(); }
  [[nodiscard]] std::size_t rank() const noexcept { return end_.rank(); }
  [[nodiscard]] std::uint64_t extra(std::size_t rank, std::size_t index) const noexcept;
  [[nodiscard]] const std::byte* data(std::size_t rank) const noexcept {
    return end_.payload(rank).data() + head_bytes();
  }
  [[nodiscard]] tensor_place in_of(std::size_t rank) const noexcept { return place(rank, 0); }
  [[nodiscard]] tensor_place out_of(std::size_t rank) const noexcept { return place(rank, 1); }
  /// Refuses the call on all ranks alike. Requires: all ranks come to the same decision.
  [[noreturn]] void refuse(const std::string& why) const;

private:
  [[nodiscard]] std::size_t head_bytes() const noexcept { return extras_ * sizeof(std::uint64_t); }
  [[nodiscard]] tensor_place place(std::size_t rank, std::size_t which) const noexcept;
  template <class Prepare>
  void prepare_or_refuse(Prepare prepare) {
    try {
      prepare();
    } catch (const std::exception& failure) {
      refuse_own(failure.what());
      throw;
    } catch (...) {
      refuse_own("what it threw is no std::exception");
      throw;
    }
  }
  template <class Work>
  void work_and_confirm(Work work) {
    std::exception_ptr failure;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    confirm(failure);
  }
  // Others may wait for this rank's part of it: they are told before anything is undone.
  template <class Direct>
  void run_directly(device_member& devices, Direct direct) {
    std::exception_ptr failure;
    try {
      direct();
    } catch (const group_error&) {
      throw;
    } catch (const device_member::another_failed&) {  // NOLINT(bugprone-empty-catch): confirm() says which
    } catch (...) {
      if (is_refused_) throw;  // by all ranks, which have begun nothing
      failure = std::current_exception();
    }
    confirm_direct(devices, failure);
  }
  // Of ranks that were ready for their devices, when others are not: each has read all headers.
  template <class Contribute>
  void contribute_late(Contribute contribute) {
    work_and_confirm([&] {
      if (own.is_on_device()) contribute();
      end_.amend(own);
    });
    headers_ = end_.look_again();
  }

  void begin();
  void exchange();
  void confirm(const std::exception_ptr& failure);
  void confirm_direct(device_member& devices, const std::exception_ptr& failure);
  [[nodiscard]] bool goes_directly(device_member& devices);
  void refuse_own(const std::string& why);
  void check_fit();
  [[nodiscard]] std::string difference();
  [[nodiscard]] bool somebody_is_in_place() const noexcept;
  [[nodiscard]] bool somebody_is_on_device() const noexcept;
  void throw_failed() const;
  [[nodiscard]] std::string who(std::size_t rank) const;

  rank_end& end_;
  const std::size_t extras_;
  const call_options how_;
  std::span<const call_header> headers_;
  mutable bool is_refused_ = false;  // by all ranks, for the same reason
};

}  // namespace muster::detail
