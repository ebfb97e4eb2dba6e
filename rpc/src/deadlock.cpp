// SPDX-License-Identifier: BSL-1.0
// What is said of calls that wait for one another.
#include <string>

#include <muster/base/text.hpp>
#include <muster/rpc/detail/rpc_core.hpp>

namespace muster::detail {

namespace {

std::string name_of_object(const name_table& names, std::uint64_t object) {
  if (object == 0) return "a function";
  for (const auto& each : names.all()) {
    if (each.object == object)
      return text(each.kind == named_kind::service ? "the service '" : "the value '", each.name, '\'');
  }
  return "a remote value";
}

}  // namespace

error_info rpc_core::deadlock_of(std::span<const call_id> circle) const {
  std::string all;
  for (const auto& each : circle) {
    const auto object = table_.calls_of(each.member)[each.slot].object.load(std::memory_order_relaxed);
    all += text(all.empty() ? "" : ", which waits for ", name_of_object(names_, object), " called by '",
                table_.name_of(each.member), '\'');
  }
  return {errc::would_deadlock,
          text("calls of the RPC group '", table_.name(), "' would wait for one another: ", all,
               ", which waits for the first. A serial line lets in one call at a time: do not wait for the inner call "
               "(call_async), make it concurrent, or give its service another line")};
}

}  // namespace muster::detail
