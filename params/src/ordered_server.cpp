// SPDX-License-Identifier: BSL-1.0
#include <muster/params/ordered_server.hpp>

#include <algorithm>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster {

bool detail::ordered_index::fits(std::optional<std::int64_t> previous) const {
  return kept.empty() || kept.front().version == previous;
}

std::uint64_t detail::ordered_index::free_place() const {
  std::uint64_t place = 0;
  const auto is_taken = [&] {
    return std::any_of(kept.begin(), kept.end(), [&](const auto& each) { return each.place == place; });
  };
  while (is_taken()) ++place;
  return place;
}

std::pair<detail::ordered_index, std::vector<std::uint64_t>> detail::ordered_index::with(entry added,
                                                                                         std::size_t depth) const {
  std::pair<ordered_index, std::vector<std::uint64_t>> made;
  made.first.kept.push_back(added);
  for (const auto& each : kept) {
    const bool stays = each.version != added.version && made.first.kept.size() < depth;
    if (stays) {
      made.first.kept.push_back(each);
    } else {
      made.second.push_back(each.place);
    }
  }
  return made;
}

const detail::ordered_index::entry* detail::ordered_index::find(std::optional<std::int64_t> version) const {
  for (const auto& each : kept) {
    if (!version || each.version == *version) return &each;
  }
  return nullptr;
}

ordered_server::ordered_server(const store_ticket& box, std::string name, const ordered_options& how)
    : store_(box), name_(std::move(name)), depth_(how.depth) {
  if (depth_ == 0) throw error(errc::invalid_argument, "ordered_options::depth is 0: at least one version is kept");
  const store_key key = text(name_.size(), ':', name_, "/depth");
  static_cast<void>(store_.push(key, depth_, {.expected = 0}));
  const auto found = store_.pull<std::size_t>(key).value;
  if (found == depth_) return;
  throw error(errc::invalid_argument, text("the ordered server '", name_, "' has been made with the depth ", found,
                                           ", and was opened with the depth ", depth_));
}

store_key ordered_server::index_key(const std::string& key) const { return text(name_.size(), ':', name_, "/v/", key); }

store_key ordered_server::place_key(const std::string& key, std::uint64_t place) const {
  return text(name_.size(), ':', name_, "/", place, "/", key);
}

void ordered_server::throw_lost(const store_key& place) {
  throw error(errc::invalid_argument, text("the value ", place, " of an ordered server is not in its store any more"));
}

}  // namespace muster
