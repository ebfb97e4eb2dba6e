// SPDX-License-Identifier: BSL-1.0
#include <muster/rpc/detail/change_finder.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace muster::detail {

namespace {

constexpr auto at_last = std::numeric_limits<std::uint64_t>::max();

}  // namespace

change_finder::change_finder(const group_table& table, const name_table& names, const domain& where)
    : table_(table), names_(names), domain_(where), members_(table.shape().members), lines_(table.shape().names) {
  static_cast<void>(look());
}

std::vector<rpc_change> change_finder::look() {
  found_.clear();
  for (std::size_t member = 0; member < members_.size(); ++member) look_at_member(member);
  for (std::size_t line = 0; line < names_.used(); ++line) look_at_name(line);
  std::sort(found_.begin(), found_.end(),
            [](const stamped& a, const stamped& b) { return std::pair(a.at, a.order) < std::pair(b.at, b.order); });
  std::vector<rpc_change> all;
  all.reserve(found_.size());
  for (auto& each : found_) all.push_back(std::move(each.what));
  return all;
}

void change_finder::add(std::uint64_t at, rpc_change_kind kind, std::size_t member, std::uint32_t incarnation,
                        const named_thing* name) {
  found_.push_back({.at = at,
                    .order = static_cast<std::uint32_t>(found_.size()),
                    .what = {.kind = kind,
                             .member = table_.name_of(member),
                             .name = name != nullptr ? name->name : std::string(),
                             .incarnation = incarnation}});
}

void change_finder::add_end(std::uint64_t at, const named_thing& what) {
  add(at, what.kind == named_kind::service ? rpc_change_kind::unserved : rpc_change_kind::withdrawn, what.member,
      what.incarnation, &what);
}

// A member that is another incarnation by now has gone meanwhile, and so have those between: whether they left or died
// only the last of them is known.
void change_finder::look_at_member(std::size_t member) {
  auto& seen = members_[member];
  const auto now = member_view::of(table_, member);
  const auto stamp = table_.member(member).joined_at.load(std::memory_order_seq_cst);  // written before it
  const bool is_new = now.incarnation != seen.incarnation;
  const auto gone = now.before_left ? rpc_change_kind::left : rpc_change_kind::lost;
  if (is_new && now.state == presence::expected) {  // it is joining: a later look, which may never come
    if (std::exchange(seen.is_here, false)) add(at_last, gone, member, seen.incarnation);
    if (!now.has_died_joining(domain_)) return;
    seen = {.incarnation = now.incarnation, .is_here = false};
    return add(at_last, rpc_change_kind::lost, member, now.incarnation);
  }
  if (is_new && seen.is_here) add(stamp, gone, member, seen.incarnation);
  for (auto each = seen.incarnation + 1; is_new && each < now.incarnation; ++each) {
    add(stamp, rpc_change_kind::joined, member, each);
    add(stamp, gone, member, each);
  }
  if (is_new) add(stamp, rpc_change_kind::joined, member, now.incarnation);
  const bool was_here = is_new || seen.is_here;
  seen = {.incarnation = now.incarnation, .is_here = now.is_here(domain_)};
  if (!was_here || seen.is_here) return;
  const auto left_at = table_.member(member).left_at.load(std::memory_order_seq_cst);
  if (now.state == presence::left) return add(left_at, rpc_change_kind::left, member, now.incarnation);
  add(at_last, rpc_change_kind::lost, member, now.incarnation);
}

// When a name went that its owner did not give up: with it, and so before the owner's name was joined anew.
std::uint64_t change_finder::end_with_owner(const named_thing& what) const noexcept {
  const bool is_another = member_view::of(table_, what.member).incarnation != what.incarnation;
  return is_another ? table_.member(what.member).joined_at.load(std::memory_order_seq_cst) : at_last;
}

// The line of a dead owner's name is as it was. Of an owner that has died since its own line was looked at the death is
// told first, at the next look.
void change_finder::look_at_name(std::size_t line) {
  auto& seen = lines_[line];
  auto now = names_.view(line);
  if (!now) return;
  const auto& owner = members_[now->what.member];
  now->is_there |= now->is_ready && owner.is_here && owner.incarnation == now->what.incarnation;
  const bool is_new = now->generation != seen.generation;
  const bool before_went_before = now->gone_at != 0 && (now->made_at == 0 || now->gone_at < now->made_at);
  const auto own_end = now->gone_at > now->made_at ? now->gone_at : end_with_owner(now->what);
  if (seen.is_there && is_new) {
    add_end(before_went_before ? now->gone_at : std::min(now->made_at, end_with_owner(seen.what)), seen.what);
  }
  if (seen.is_there && !is_new && !now->is_there) add_end(own_end, seen.what);
  if (is_new && now->made_at != 0) {
    add(now->made_at, now->what.kind == named_kind::service ? rpc_change_kind::served : rpc_change_kind::published,
        now->what.member, now->what.incarnation, &now->what);
    if (!now->is_there) add_end(own_end, now->what);
  }
  seen = {.generation = now->generation, .is_there = now->is_there, .what = now->what};
}

}  // namespace muster::detail
