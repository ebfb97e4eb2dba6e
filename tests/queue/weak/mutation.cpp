// SPDX-License-Identifier: BSL-1.0
#include "mutation.hpp"

#include <array>
#include <cstddef>

namespace muster::weak {

namespace {

constexpr std::array part_names{"slot",      "lane_head",  "lane_entry", "sleeping", "spinning", "parked",
                                "ring_tail", "ring_entry", "news",       "armed",    "order",    "record"};
constexpr std::array site_names{"any",    "read",  "publish", "claim",   "revoke", "request", "complete",
                                "retire", "seize", "look",    "advance", "room",   "put",     "push",
                                "drain",  "sleep", "wake",    "bell",    "order"};
constexpr std::array operation_names{"load", "store", "exchange", "fetch_or", "touch", "fetch_and", "compare"};
constexpr std::array weakening_names{"as_it_is", "no_acquire", "no_release", "no_total_order", "plain"};

template <class Names, class Enumerator>
std::string name(const Names& names, Enumerator which) {
  return names[static_cast<std::size_t>(which)];
}

}  // namespace

std::memory_order weakened(std::memory_order order, weakening how) {
  using enum std::memory_order;
  const bool is_total = order == seq_cst;
  switch (how) {
    case weakening::no_order: return is_total ? acq_rel : order;
    case weakening::no_acquire: return order == acq_rel ? release : order == acquire || is_total ? relaxed : order;
    case weakening::no_release: return order == acq_rel ? acquire : order == release || is_total ? relaxed : order;
    default: return order;
  }
}

std::vector<weakening> weakenings_of(operation what, std::memory_order order) {
  const bool changes = what != operation::load;
  const bool reads = what != operation::store;
  std::vector<weakening> found;
  if (order == std::memory_order_seq_cst) found.push_back(weakening::no_order);
  if (reads && order != std::memory_order_relaxed && order != std::memory_order_release) {
    found.push_back(weakening::no_acquire);
  }
  if (changes && order != std::memory_order_relaxed && order != std::memory_order_acquire) {
    found.push_back(weakening::no_release);
  }
  if (changes && reads) found.push_back(weakening::plain_look);
  return found;
}

std::string name_of(const mutation& which) {
  return name(site_names, which.at.where) + "_" + name(part_names, which.at.of) + "_" +
         name(operation_names, which.at.what) + "_" + name(weakening_names, which.how);
}

}  // namespace muster::weak
