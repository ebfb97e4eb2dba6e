// SPDX-License-Identifier: BSL-1.0
// Calls of members are calls like those of pools: one contract (tests/support/call_conformance.hpp).
#include <string>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

#include <muster/pool/process.hpp>
#include <muster/rpc.hpp>

#include "call_conformance.hpp"

namespace muster::rpc_call_conformance_test {
namespace {

struct bounds {
  unsigned workers = 2;
  log_sink log = [](log_level, std::string_view) {};
};

/// Calls functions at a member.
class caller {
public:
  explicit caller(const bounds& how) : group_(ticket_, "caller", {.log = how.log}) {}

  template <class F, class... Args>
  auto apply(F f, Args&&... args) const {
    if constexpr ((detail::is_future<Args> || ...)) {
      return apply_async(std::move(f), std::forward<Args>(args)...).get();
    } else {
      return group_.call("member", std::move(f), std::forward<Args>(args)...);
    }
  }
  template <class F, class... Args>
  auto apply_async(F f, Args&&... args) const {
    return group_.call_async("member", std::move(f), std::forward<Args>(args)...);
  }

protected:
  [[nodiscard]] const rpc_ticket& ticket() const { return ticket_; }

private:
  rpc_ticket ticket_{"conformance", {"caller", "member"}};
  rpc_group group_;
};

class caller_of_thread : public caller {
public:
  explicit caller_of_thread(const bounds& how)
      : caller(how), member_(ticket(), "member", {.threads = how.workers, .log = how.log}) {}

private:
  rpc_group member_;
};

void serve(const rpc_ticket& ticket, unsigned threads) {
  rpc_group(ticket, "member", {.threads = threads - 1, .runs = true}).run();
}

class caller_of_process : public caller {
public:
  explicit caller_of_process(const bounds& how) : caller(how), member_(serve, ticket(), how.workers) {}

private:
  process member_;
};

struct with_member_here {
  static constexpr bool is_serial = false;
  static caller_of_thread make(const bounds& how = {}) { return caller_of_thread(how); }
};
struct with_process {
  static constexpr bool is_serial = false;
  static caller_of_process make(const bounds& how = {}) { return caller_of_process(how); }
};

using kinds = testing::Types<with_member_here, with_process>;
class kind_names {
public:
  template <class Which>
  static std::string GetName(int) {  // NOLINT(readability-identifier-naming): GoogleTest's
    return std::is_same_v<Which, with_process> ? "process" : "member_here";
  }
};

}  // namespace
}  // namespace muster::rpc_call_conformance_test

namespace muster::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Members, CallConformance, rpc_call_conformance_test::kinds,
                               rpc_call_conformance_test::kind_names);
}  // namespace muster::test
