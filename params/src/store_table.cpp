// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/store_table.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

constexpr std::uint64_t magic = 0x0002'726f'7453'736dULL;  // "msStor", layout version 2
constexpr std::size_t bells = store_table::bells;

struct alignas(64) own_line {
  std::atomic<std::uint32_t> bell;
};

struct alignas(64) store_header {
  std::uint64_t magic;
  store_shape shape;
  alignas(64) std::atomic<std::uint64_t> used;  // lines
  std::atomic<std::uint64_t> added;             // keys
  std::array<own_line, bells> news;
};

store_header& header_at(std::byte* where) noexcept { return *reinterpret_cast<store_header*>(where); }

std::size_t pushers_offset() noexcept { return sizeof(store_header); }
std::size_t index_offset(const store_shape& shape) noexcept {
  return pushers_offset() + shape.participants * sizeof(pusher_line);
}
std::size_t lines_offset(const store_shape& shape) noexcept {
  return index_offset(shape) + shape.places() * sizeof(std::uint64_t);
}

// The figures may have been overwritten: sums of them must not wrap.
bool is_possible(const store_shape& shape) noexcept {
  constexpr std::uint64_t most_participants = 65536;
  return shape.keys != 0 && shape.keys <= store_shape::most_keys && shape.depth != 0 &&
         shape.depth <= store_shape::most_depth && shape.participants != 0 && shape.participants <= most_participants;
}

// FNV-1a, its end mixed; never 0 in its upper half, which tells a place that is used from one that is not.
std::uint64_t hash_of(const store_key& key) noexcept {
  std::uint64_t found = key.is_number() ? 0x9e3779b97f4a7c15U : 0xcbf29ce484222325U;
  const auto add = [&](unsigned char byte) { found = (found ^ byte) * 0x100000001b3U; };
  if (key.is_number()) {
    for (unsigned shift = 0; shift < 64; shift += 8) {
      add(static_cast<unsigned char>(static_cast<std::uint64_t>(key.number()) >> shift));
    }
  }
  for (const char each : key.text()) add(static_cast<unsigned char>(each));
  found ^= found >> 32U;
  return found | std::uint64_t{1} << 63U;
}

// A place: `{upper half of the hash:32, line + 1:32}`; 0: it is free.
std::uint64_t place_for(std::uint64_t hash, std::size_t line) noexcept {
  return (hash & 0xffff'ffff'0000'0000U) | static_cast<std::uint32_t>(line + 1);
}

void write_key(key_line& line, const store_key& key) noexcept {
  line.is_number = key.is_number() ? 1 : 0;
  line.number = key.number();
  line.hash = hash_of(key);
  line.text_bytes = std::min(key.text().size(), line.text.size());
  std::memcpy(line.text.data(), key.text().data(), line.text_bytes);
}

}  // namespace

std::size_t store_shape::places() const noexcept { return std::bit_ceil(2 * keys); }

std::size_t store_shape::total_bytes() const noexcept { return lines_offset(*this) + lines() * sizeof(key_line); }

store_table::store_table(std::span<std::byte> bytes, const store_shape& shape) noexcept
    : shape_(shape),
      header_(bytes.data()),
      pushers_(reinterpret_cast<pusher_line*>(header_ + pushers_offset())),
      index_(reinterpret_cast<std::atomic<std::uint64_t>*>(header_ + index_offset(shape))),
      lines_(reinterpret_cast<key_line*>(header_ + lines_offset(shape))) {}

// A line is cleared when it is given out: a place that is not used is not looked at.
store_table store_table::make(std::span<std::byte> bytes, const store_shape& shape) noexcept {
  std::memset(bytes.data(), 0, lines_offset(shape));
  auto& header = header_at(bytes.data());
  header.shape = shape;
  header.magic = magic;
  return store_table(bytes, shape);
}

store_table store_table::attach(std::span<std::byte> bytes) {
  if (bytes.size() >= sizeof(store_header)) {
    const auto& header = header_at(bytes.data());
    const auto shape = header.shape;
    if (header.magic == magic && is_possible(shape) && shape.total_bytes() <= bytes.size()) {
      return store_table(bytes, shape);
    }
  }
  throw error(errc::corrupted, text("a block of ", bytes.size(),
                                    " bytes was received as a store, and is none of this version: somebody has "
                                    "overwritten it, or it was sent by another version of muster"));
}

pusher_line& store_table::pusher(participant_id which) const noexcept {
  return pushers_[std::min<std::size_t>(index_of(which), shape_.participants - 1)];
}

std::atomic<std::uint32_t>& store_table::bell(std::uint64_t hash) const noexcept {
  return header_at(header_).news[hash % bells].bell;
}

std::atomic<std::uint32_t>& store_table::bell_of(const store_key& key) const noexcept { return bell(hash_of(key)); }

std::optional<std::size_t> store_table::line_in(std::uint64_t place) const noexcept {
  const auto number = static_cast<std::uint32_t>(place);
  if (number == 0 || number > shape_.lines()) return std::nullopt;
  return number - 1;
}

bool store_table::has_key(std::uint64_t place, std::uint64_t hash, const store_key& key) const noexcept {
  const auto found = line_in(place);
  if (!found || place_for(hash, *found) != place) return false;
  const auto& line = lines_[*found];
  if ((line.is_number != 0) != key.is_number()) return false;
  if (key.is_number()) return line.number == key.number();
  return line.text_bytes == key.text().size() && line.text_bytes <= line.text.size() &&
         std::memcmp(line.text.data(), key.text().data(), line.text_bytes) == 0;
}

std::optional<std::size_t> store_table::find(const store_key& key) const noexcept {
  const auto hash = hash_of(key);
  const auto mask = shape_.places() - 1;
  for (std::size_t looks = 0; looks <= mask; ++looks) {
    const auto place = index_[(hash + looks) & mask].load(std::memory_order_acquire);
    if (place == 0) return std::nullopt;
    if (has_key(place, hash, key)) return line_in(place);
  }
  return std::nullopt;
}

std::optional<std::size_t> store_table::take_line() const noexcept {
  auto& used = header_at(header_).used;
  auto found = used.load(std::memory_order_relaxed);
  do {
    if (found >= shape_.lines()) return std::nullopt;
  } while (!used.compare_exchange_weak(found, found + 1, std::memory_order_acq_rel));
  std::memset(static_cast<void*>(&lines_[found]), 0, sizeof(key_line));
  return found;
}

// Of two that add the same key at once one comes to the first free place behind it, and finds the other there.
std::optional<std::size_t> store_table::find_or_add(const store_key& key, std::optional<std::size_t>& spare) const {
  const auto hash = hash_of(key);
  const auto mask = shape_.places() - 1;
  for (std::size_t looks = 0; looks <= mask; ++looks) {
    auto& place = index_[(hash + looks) & mask];
    auto found = place.load(std::memory_order_acquire);
    if (found == 0) {
      if (header_at(header_).added.load(std::memory_order_relaxed) >= shape_.keys) return std::nullopt;
      if (!spare) spare = take_line();
      if (!spare) return std::nullopt;
      write_key(lines_[*spare], key);
      if (place.compare_exchange_strong(found, place_for(hash, *spare), std::memory_order_acq_rel)) {
        header_at(header_).added.fetch_add(1, std::memory_order_relaxed);
        return std::exchange(spare, std::nullopt);
      }
    }
    if (has_key(found, hash, key)) return line_in(found);
  }
  return std::nullopt;
}

std::size_t store_table::keys_left() const noexcept {
  const auto added = header_at(header_).added.load(std::memory_order_relaxed);
  return added < shape_.keys ? shape_.keys - static_cast<std::size_t>(added) : 0;
}

store_key store_table::key_of(std::size_t line) const {
  const auto& found = lines_[line];
  if (found.is_number != 0) return found.number;
  return std::string(found.text.data(), std::min<std::size_t>(found.text_bytes, found.text.size()));
}

}  // namespace muster::detail
