// SPDX-License-Identifier: BSL-1.0
#pragma once

// Values that are encoded and decoded again in one process.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <muster/serialize/archive.hpp>

namespace muster::detail {

/// Keeps the blocks that go along with a value for whoever decodes it here.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class kept_blocks final : public attachment_sink, public attachment_source {
public:
  [[nodiscard]] std::uint64_t attach(const shared_block& what) override;
  /// Throws errc::corrupted when there is no such block.
  [[nodiscard]] shared_block take(std::uint64_t name) override;

private:
  std::vector<shared_block> blocks_;
};

/// The value with a content of its own, also where it names another one's: of tensors, or of what a shared pointer
/// leads to. Events and queues in it are the same ones.
template <class T>
[[nodiscard]] T with_own_content(const T& value) {
  const auto write = [&value](output_archive& out) {
    const frame_writer::copying content(out);
    out(value);
  };
  output_archive counter(true);
  write(counter);
  std::vector<std::byte> bytes(counter.written());
  kept_blocks blocks;
  output_archive out(bytes, &blocks);
  write(out);
  input_archive in(bytes, &blocks);
  T made{};
  in(made);
  return made;
}

}  // namespace muster::detail
