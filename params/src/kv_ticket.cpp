// SPDX-License-Identifier: BSL-1.0
#include <muster/params/kv_ticket.hpp>

#include <string>
#include <vector>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

#include "kv_names.hpp"

namespace muster {

namespace {

[[noreturn]] void refuse_kv(const std::string& why) {
  throw error(errc::invalid_argument, text("a key-value store cannot be made: ", why));
}

void require(kv_kind kind, const kv_options& options) {
  constexpr std::size_t most = 1024;
  const auto all = options.workers + options.spare_owners;
  if (kind != kv_kind::sync && kind != kv_kind::async && all != 1) {
    refuse_kv(text("of kind ", kind, " there is one worker, and no spare owner: sync and async have ", all));
  }
  if (options.workers == 0 || options.workers > most || options.spare_owners > most) {
    refuse_kv(text("it has ", options.workers, " workers and ", options.spare_owners,
                   " spare owners; there can be 1 to ", most, " workers, and as many owners besides"));
  }
  if (options.owners > all) refuse_kv(text("kv_options::owners is ", options.owners, ", of ", all, " that take part"));
  if (options.timeout <= std::chrono::nanoseconds::zero()) refuse_kv("kv_options::timeout is not positive");
  if (options.enough > options.workers) {
    refuse_kv(text("kv_options::enough is ", options.enough, ", of ", options.workers, " workers"));
  }
  if (options.enough != 0 && kind != kv_kind::sync) refuse_kv("kv_options::enough is for sync");
  if (options.window == 0) refuse_kv("kv_options::window is 0");
  if (kind == kv_kind::sync && options.staleness) refuse_kv("kv_options::staleness is for async");
}

std::vector<std::string> names_of(const kv_options& options) {
  std::vector<std::string> all;
  for (std::size_t rank = 0; rank < options.workers + options.spare_owners; ++rank) {
    all.push_back(detail::member_of_rank(rank));
  }
  return all;
}

}  // namespace

kv_ticket::kv_ticket(kv_kind kind, const kv_options& options) : kind_(kind), options_(options) {
  require(kind, options);
  timeout_ = options.timeout.count();
  staleness_ = options.staleness ? static_cast<std::int64_t>(*options.staleness) : -1;
  values_ = store_ticket({.depth = 1,
                          .most_keys = (1 + detail::keys_of_a_value) * options.most_keys + options.workers + 2,
                          .timeout = options.timeout});
  members_ = rpc_ticket(
      "key-value store", names_of(options),
      {.timeout = options.timeout, .most_names = 1 + options.workers + options.spare_owners, .most_actors = 0});
}

}  // namespace muster
