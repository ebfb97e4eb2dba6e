// SPDX-License-Identifier: BSL-1.0
#include <muster/rpc/detail/group_table.hpp>

#include <algorithm>
#include <cstring>
#include <new>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

constexpr std::uint64_t magic = 0x0002'6370'5274'736dULL;  // "mstRpc", layout version 2

struct alignas(64) table_header {
  static constexpr std::size_t most_name_bytes = 192;

  std::uint64_t magic;
  table_shape shape;
  std::uint64_t name_bytes;
  std::array<char, most_name_bytes> name;
  alignas(64) std::atomic<std::uint64_t> names_used;
  std::atomic<std::uint64_t> changes;
  std::atomic<std::uint32_t> news;
};

template <class Line>
Line* lines_at(std::byte* where) noexcept {
  return reinterpret_cast<Line*>(where);
}

std::size_t modules_offset() noexcept { return sizeof(table_header); }
std::size_t members_offset() noexcept { return modules_offset() + module_directory_size * sizeof(module_entry); }
std::size_t names_offset(const table_shape& shape) noexcept {
  return members_offset() + shape.members * sizeof(member_line);
}
std::size_t calls_offset(const table_shape& shape) noexcept {
  return names_offset(shape) + shape.names * sizeof(name_line);
}

// The figures may have been overwritten: sums of them must not wrap.
bool is_possible(const table_shape& shape) noexcept {
  constexpr std::uint64_t most = 1U << 24U;
  return shape.members != 0 && shape.members <= table_shape::most_members && shape.named <= shape.members &&
         shape.names <= most && shape.calls != 0 && shape.calls <= most && shape.inbox != 0 && shape.inbox <= most;
}

}  // namespace

std::size_t table_shape::total_bytes() const noexcept {
  return calls_offset(*this) + members * calls * sizeof(rpc_call_line);
}

group_table::group_table(std::span<std::byte> bytes, const table_shape& shape) noexcept
    : shape_(shape),
      header_(bytes.data()),
      modules_(lines_at<module_entry>(header_ + modules_offset())),
      members_(lines_at<member_line>(header_ + members_offset())),
      names_(lines_at<name_line>(header_ + names_offset(shape))),
      calls_(lines_at<rpc_call_line>(header_ + calls_offset(shape))),
      names_used_(&lines_at<table_header>(header_)->names_used),
      changes_(&lines_at<table_header>(header_)->changes),
      news_(&lines_at<table_header>(header_)->news) {}

group_table group_table::make(std::span<std::byte> bytes, const table_shape& shape, std::string_view name) noexcept {
  std::memset(bytes.data(), 0, calls_offset(shape) + shape.named * shape.calls * sizeof(rpc_call_line));
  auto& header = *lines_at<table_header>(bytes.data());
  header.shape = shape;
  header.name_bytes = std::min(name.size(), table_header::most_name_bytes);
  std::memcpy(header.name.data(), name.data(), header.name_bytes);
  header.magic = magic;
  return group_table(bytes, shape);
}

group_table group_table::attach(std::span<std::byte> bytes) {
  if (bytes.size() >= sizeof(table_header)) {
    const auto& header = *lines_at<table_header>(bytes.data());
    const auto shape = header.shape;
    if (header.magic == magic && is_possible(shape) && shape.total_bytes() <= bytes.size()) {
      return group_table(bytes, shape);
    }
  }
  throw error(errc::corrupted, text("a block of ", bytes.size(),
                                    " bytes was received as an RPC group, and is none of this version: somebody has "
                                    "overwritten it, or it was sent by another version of muster"));
}

std::string group_table::name() const {
  const auto& header = *lines_at<table_header>(header_);
  return {header.name.data(), std::min<std::size_t>(header.name_bytes, table_header::most_name_bytes)};
}

void group_table::clear_calls_of(std::size_t member) const noexcept {
  for (auto& each : calls_of(member)) new (&each) rpc_call_line{};
}

std::string group_table::name_of(std::size_t member) const {
  const auto& line = members_[member];
  const auto size = line.name_bytes.load(std::memory_order_acquire);
  return {line.name.data(), std::min<std::size_t>(size, member_line::most_name_bytes)};
}

void group_table::set_name(std::size_t member, std::string_view name) const noexcept {
  auto& line = members_[member];
  line.name_bytes.store(0, std::memory_order_release);
  std::memcpy(line.name.data(), name.data(), name.size());
  line.name_bytes.store(static_cast<std::uint32_t>(name.size()), std::memory_order_release);
}

std::optional<std::size_t> group_table::find(std::string_view name) const {
  if (name.empty()) return std::nullopt;
  for (std::size_t index = 0; index < shape_.members; ++index) {
    if (members_[index].name_bytes.load(std::memory_order_acquire) == name.size() && name_of(index) == name) {
      return index;
    }
  }
  return std::nullopt;
}

// One whose process has died while it joined is lost too.
member_state member_view::told_as(const domain& where) const noexcept {
  if (state == presence::left) return member_state::left;
  if (is_lost(where) || has_died_joining(where)) return member_state::lost;
  return state == presence::joined ? member_state::joined : member_state::expected;
}

// Presence is written behind the identity, and read before it: so it is that process's, or of one before it, whose end
// is known then.
member_view member_view::of(const group_table& table, std::size_t member) noexcept {
  const auto& line = table.member(member);
  const auto found = line.presence.load(std::memory_order_seq_cst);
  return {.who = rank_identity::unpack(line.identity.load(std::memory_order_seq_cst)),
          .incarnation = static_cast<std::uint32_t>(found >> 32U),
          .state = static_cast<detail::presence>(found & 0xffU),
          .serves = (found & 0x100U) != 0,
          .before_left = (found & presence_before_left) != 0};
}

}  // namespace muster::detail
