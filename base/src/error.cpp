// SPDX-License-Identifier: BSL-1.0
#include <muster/base/error.hpp>

namespace muster {

namespace {

class category final : public std::error_category {
public:
  [[nodiscard]] const char* name() const noexcept override { return "muster"; }

  [[nodiscard]] std::string message(int value) const override {
    switch (static_cast<errc>(value)) {
      case errc::invalid_argument: return "invalid argument";
      case errc::not_initialized: return "muster::init was not called";
      case errc::pool_closed: return "the pool is closed";
      case errc::pool_broken: return "the pool is broken";
      case errc::overflow: return "too many pending tasks";
      case errc::out_of_memory: return "out of memory";
      case errc::worker_died: return "the worker died";
      case errc::timed_out: return "timed out";
      case errc::cancelled: return "cancelled";
      case errc::quarantined: return "quarantined";
      case errc::not_serializable: return "not serializable";
      case errc::corrupted: return "corrupted shared memory";
      case errc::remote_exception: return "exception in the worker";
      case errc::module_mismatch: return "parent and worker run different builds";
      case errc::start_failed: return "a worker could not be started";
      case errc::peer_lost: return "a member of the group was lost";
      case errc::forked: return "it belongs to the process that this one was forked from";
      case errc::device_lost: return "the device cannot be used any more";
      case errc::no_device: return "no such device, or no driver for it";
      case errc::would_deadlock: return "calls would wait for one another";
    }
    return "unknown error " + std::to_string(value);
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const category instance;  // an error category is compared by address, so there can be only one
  return instance;
}

std::error_code make_error_code(errc code) noexcept { return {static_cast<int>(code), error_category()}; }

error::error(errc code, std::string what) : std::system_error(code), what_(std::move(what)) {}
error::error(std::error_code code, std::string what) : std::system_error(code), what_(std::move(what)) {}

}  // namespace muster
