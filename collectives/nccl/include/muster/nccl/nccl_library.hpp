// SPDX-License-Identifier: BSL-1.0
#pragma once

// The one place where NCCL is called: found at run time, so that programs start on machines without it, and checked, so
// that a failure names the call, what it was given and the cause.
//
// Programs need not call it: those that are linked with muster::nccl have groups whose collectives over tensors on
// devices go by NCCL (muster/collectives/group.hpp).

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <nccl.h>

#include <muster/base/text.hpp>
#include <muster/nccl/nccl_error.hpp>

namespace muster {

namespace detail {

template <class Argument>
void print_nccl_argument(std::ostringstream& out, const char*& separator, const Argument& argument) {
  out << separator;
  separator = ", ";
  if constexpr (std::is_same_v<Argument, ncclUniqueId>)
    out << "id";
  else if constexpr (std::is_pointer_v<Argument>)
    out << reinterpret_cast<const void*>(argument);
  else if constexpr (std::is_enum_v<Argument>)
    out << static_cast<int>(argument);
  else
    out << argument;
}

}  // namespace detail

/// One function of NCCL.
///
/// Thread safety: safe, for different communicators.
template <class Function>
class nccl_function;

/// One function of NCCL, by the type that nccl.h declares it with.
template <class... Parameters>
class nccl_function<ncclResult_t(Parameters...)> {
public:
  using pointer = ncclResult_t (*)(Parameters...);
  /// Returns the text of an error: ncclGetErrorString.
  using describe = const char* (*)(ncclResult_t);

  /// `name`: as in nccl.h. `address`: where the library has it. `says`: what the text of a failure is taken from.
  nccl_function(const char* name, pointer address, describe says) noexcept
      : name_(name), address_(address), says_(says) {}

  /// Calls it. Throws muster::error when it fails; that it is still in progress is no failure.
  void operator()(Parameters... arguments) const {
    const auto result = address_(arguments...);
    if (result != ncclSuccess && result != ncclInProgress) fail(result, arguments...);
  }
  /// Calls it, and says how that went: for failures that are expected, and for destructors.
  [[nodiscard]] ncclResult_t attempt(Parameters... arguments) const noexcept { return address_(arguments...); }

  /// Returns its name in nccl.h.
  [[nodiscard]] const char* name() const noexcept { return name_; }

private:
  [[noreturn]] void fail(ncclResult_t cause, const Parameters&... arguments) const {
    detail::text_writer out;
    [[maybe_unused]] const char* separator = "";
    (detail::print_nccl_argument(out, separator, arguments), ...);
    detail::throw_nccl_error(cause, name_, std::move(out).str(), says_(cause));
  }

  const char* name_;
  pointer address_;
  describe says_;
};

// Name here, name in nccl.h.
#define MUSTER_NCCL_FUNCTIONS(X)        \
  X(version, ncclGetVersion)            \
  X(unique_id, ncclGetUniqueId)         \
  X(comm_init, ncclCommInitRankConfig)  \
  X(comm_finalize, ncclCommFinalize)    \
  X(comm_destroy, ncclCommDestroy)      \
  X(comm_abort, ncclCommAbort)          \
  X(async_error, ncclCommGetAsyncError) \
  X(all_reduce, ncclAllReduce)          \
  X(reduce, ncclReduce)                 \
  X(reduce_scatter, ncclReduceScatter)  \
  X(broadcast, ncclBroadcast)           \
  X(all_gather, ncclAllGather)          \
  X(send, ncclSend)                     \
  X(receive, ncclRecv)                  \
  X(group_start, ncclGroupStart)        \
  X(group_end, ncclGroupEnd)

/// NCCL, as this machine has it.
///
/// Thread safety: distinct objects: safe. Shared objects: safe, all members are const.
/// Lifetime: the library stays open until the process ends, since threads of its own may run until then.
class nccl_library {
public:
  /// The oldest that is used, as ncclGetVersion counts: 2.18, by which communicators that do not block can be aborted.
  static constexpr int least_version = 21800;

  /// Opens libnccl.so.2. Throws errc::no_device, with why and what to do, where there is none, or it is too old.
  [[nodiscard]] static std::shared_ptr<const nccl_library> load();
  /// Why load() would throw; nothing where it would not.
  [[nodiscard]] static std::optional<std::string> problem();

  /// As ncclGetVersion counts: 22809 for 2.28.9.
  [[nodiscard]] int version_number() const noexcept { return version_number_; }
  /// "2.28.9"
  [[nodiscard]] static std::string version_text(int number);
  /// What NCCL says of an error.
  [[nodiscard]] const char* describe(ncclResult_t what) const noexcept { return describe_(what); }

private:
  const char* (*describe_)(ncclResult_t);  // before the functions, which are given it

public:
// NOLINTNEXTLINE(bugprone-macro-parentheses): a member's name stands in none
#define MUSTER_NCCL_MEMBER(name, function) const nccl_function<decltype(function)> name;
  MUSTER_NCCL_FUNCTIONS(MUSTER_NCCL_MEMBER)
#undef MUSTER_NCCL_MEMBER

private:
  explicit nccl_library(void* library);

  int version_number_ = 0;
};

}  // namespace muster
