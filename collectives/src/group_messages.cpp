// SPDX-License-Identifier: BSL-1.0
// Messages and objects.
#include <algorithm>
#include <cstring>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

#include "group_impl.hpp"

namespace muster {

namespace {

// A receive that nobody waits for any more must not take the next message away.
void wait_or_withdraw(detail::rank_end& end, detail::transfer& what, const call_options& how) {
  const auto timeout = how.timeout.value_or(end.memory().shape().timeout);
  try {
    if (what.wait(deadline::after(timeout))) {
      if (const auto failure = what.failure()) std::rethrow_exception(failure);
      return;
    }
  } catch (...) {
    what.cancel();
    throw;
  }
  const bool is_withdrawn = what.cancel();
  if (!is_withdrawn && what.has_ended()) {  // just now
    if (const auto failure = what.failure()) std::rethrow_exception(failure);
    return;
  }
  throw group_error(errc::timed_out,
                    text(what.describe(), " timed out in rank ", end.rank(),
                         is_withdrawn ? "" : "; it cannot be withdrawn any more, and arrives if it is received later"),
                    {.operation = what.name(), .missing = what.missing(), .lost = {}});
}

}  // namespace

work group::isend(const tensor& what, std::size_t to, std::uint32_t tag) {
  return work(joined().mail->send(what, to, tag));
}

work group::irecv(const tensor& into, std::size_t from, std::uint32_t tag) {
  return work(joined().mail->receive(&into, from, tag));
}

work group::irecv(std::size_t from, std::uint32_t tag) { return work(joined().mail->receive(nullptr, from, tag)); }

void group::send(const tensor& what, std::size_t to, std::uint32_t tag, const call_options& how) {
  if (!joined().mail->send_now(what, to, tag))
    wait_or_withdraw(*joined().end, *joined().mail->send(what, to, tag), how);
}

std::size_t group::recv(const tensor& into, std::size_t from, std::uint32_t tag, const call_options& how) {
  if (joined().mail->receive_soon(into, from, tag)) return from;
  const auto received = joined().mail->receive(&into, from, tag);
  wait_or_withdraw(*joined().end, *received, how);
  return received->source();
}

tensor group::recv(std::size_t from, std::uint32_t tag, const call_options& how) {
  const auto received = joined().mail->receive(nullptr, from, tag);
  wait_or_withdraw(*joined().end, *received, how);
  return received->result();
}

// ---- objects

std::vector<std::uint8_t> group::as_elements(const std::vector<std::byte>& bytes) {
  std::vector<std::uint8_t> elements(bytes.size());
  if (!bytes.empty()) std::memcpy(elements.data(), bytes.data(), bytes.size());
  return elements;
}

void group::refuse(const call_options& how) {
  const auto failure = std::current_exception();
  joined().make([&] { joined().calls.refuse(failure, how); });
  std::rethrow_exception(failure);
}

std::vector<std::byte> group::broadcast_bytes(std::span<const std::byte> bytes, std::size_t root,
                                              const call_options& how) {
  return joined().make([&] { return joined().calls.broadcast_bytes(bytes, root, how); });
}

namespace {

tensor row_of(const std::vector<std::byte>& bytes) {
  auto made = tensor::empty<std::uint8_t>({bytes.size()});
  if (!bytes.empty()) std::memcpy(made.data(), bytes.data(), bytes.size());
  return made;
}

tensor joined_row_of(const std::vector<std::vector<std::byte>>& parts) {
  std::vector<std::byte> all;
  for (const auto& each : parts) all.insert(all.end(), each.begin(), each.end());
  return row_of(all);
}

std::vector<std::byte> bytes_of(const tensor& row, std::size_t first, std::size_t count) {
  return {row.const_data() + first, row.const_data() + first + count};
}

}  // namespace

// Their sizes first, which tells where each begins. What may lack room is made where the others are told: between two
// calls nobody would know.
std::vector<std::vector<std::byte>> group::gather_bytes(const std::vector<std::byte>& own,
                                                        std::optional<std::size_t> root, const call_options& how) {
  const auto own_row = made_or_refused([&] { return row_of(own); }, how);
  const auto own_size = tensor::full<std::uint64_t>({1}, own.size(), memory::local);
  const auto sizes = tensor::zeros<std::uint64_t>({size()}, memory::local);
  root ? gather(own_size, sizes, *root, how) : all_gather(own_size, sizes, how);
  const auto all = root ? gather(own_row, *root, how) : all_gather(own_row, how);
  std::vector<std::vector<std::byte>> parts;
  if (root && rank() != *root) return parts;
  std::size_t first = 0;
  for (const auto size : sizes.span<const std::uint64_t>()) {
    parts.push_back(bytes_of(all, first, size));
    first += size;
  }
  return parts;
}

std::vector<std::byte> group::scatter_bytes(const std::vector<std::vector<std::byte>>& parts, std::size_t root,
                                            const call_options& how) {
  const auto all = made_or_refused([&] { return joined_row_of(parts); }, how);
  std::vector<std::uint64_t> sizes(parts.size());
  std::ranges::transform(parts, sizes.begin(), [](const auto& each) { return each.size(); });
  const auto own_size = tensor::zeros<std::uint64_t>({1}, memory::local);
  // Refused by all unless there is one for each.
  scatter(tensor::from(sizes, {sizes.size()}, memory::local), own_size, root, how);
  const auto own = made_or_refused([&] { return tensor::empty<std::uint8_t>({own_size.item<std::uint64_t>()}); }, how);
  scatter(all, own, root, how);
  return bytes_of(own, 0, own.size());
}

}  // namespace muster
