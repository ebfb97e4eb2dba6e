// SPDX-License-Identifier: BSL-1.0
// Decoders meet any bytes: they return a value or throw, and stay within the bytes. The first byte of an input chooses
// what it is decoded as; the rest is the frame. Values that come out are encoded and decoded again: nothing may change.
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <muster/base/error.hpp>
#include <muster/process/detail/offered.hpp>
#include <muster/serialize/detail/codec.hpp>
#include <muster/serialize/detail/modules.hpp>
#include <muster/serialize/error_info.hpp>
#include <muster/serialize/result.hpp>

#include "block_decoders.hpp"
#include "channel.hpp"
#include "descriptor_messages.hpp"
#include "fuzz_frame.hpp"
#include "join_messages.hpp"

namespace {

using muster::fuzz::check_round_trip;
using muster::fuzz::decoder;
using muster::fuzz::frame;
using muster::fuzz::require;

struct plain {
  int a;
  double b;
};
struct with_serialize {
  std::string name;
  std::vector<std::uint16_t> numbers;
  std::optional<std::string> maybe;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, numbers, maybe);
  }
};

template <class... Ts>
void decode(std::span<const std::byte> bytes) {
  check_round_trip(muster::codec<Ts...>::decode(bytes));
}

// For unordered containers, which have no order to compare, and for classes with padding.
template <class... Ts>
void decode_only(std::span<const std::byte> bytes) {
  static_cast<void>(muster::codec<Ts...>::decode(bytes));
}

// Whatever an error says of itself, it is thrown as something.
void raise_error(std::span<const std::byte> bytes) {
  const auto error = muster::codec<muster::error_info>::decode_value(bytes);
  try {
    error.raise();
  } catch (...) {
    static_cast<void>(muster::capture_current_exception().describe());
    return;
  }
}

// A message of a control socket.
template <class Content>
void decode_body(std::span<const std::byte> bytes) {
  using muster::detail::body_of;
  const auto read = [](std::vector<std::byte> body) {
    return muster::detail::message{.kind = {}, .body = std::move(body), .descriptors = {}}.read<Content>();
  };
  const auto once = body_of(read({bytes.begin(), bytes.end()}));
  require(body_of(read(once)) == once);
}

constexpr std::array decoders{
    decoder(decode<int, double>),
    decoder(decode_only<plain>),
    decoder(decode<std::string>),
    decoder(decode<std::vector<int>, std::string>),
    decoder(decode<std::vector<std::string>>),
    decoder(decode<std::vector<std::vector<std::uint64_t>>>),
    decoder(decode<std::map<std::string, std::vector<int>>>),
    decoder(decode_only<std::unordered_map<std::string, int>>),
    decoder(decode<std::set<int>>),
    decoder(decode<std::optional<std::string>, std::variant<int, std::string>>),
    decoder(decode<std::unique_ptr<int>, std::shared_ptr<std::string>>),
    decoder(decode<with_serialize>),
    decoder(decode_only<std::vector<plain>>),
    decoder(decode<std::tuple<int, std::string>, std::pair<char, std::vector<bool>>>),
    decoder(decode<std::array<std::string, 3>>),
    decoder(decode<muster::error_info>),
    decoder(decode<std::vector<muster::module_info>>),
    decoder(muster::fuzz::decode_tensor),
    decoder(muster::fuzz::decode_shared_image),
    decoder(muster::fuzz::decode_queue),
    decoder(decode_body<muster::detail::hello_message>),
    decoder(decode_body<muster::detail::welcome_message>),
    decoder(decode_body<muster::detail::join_message>),
    decoder(decode_body<muster::detail::joined_message>),
    decoder(decode_body<muster::detail::ask_message>),
    decoder(decode_body<muster::detail::list_message>),
    decoder(decode_body<muster::detail::names_message>),
    decoder(decode_body<muster::detail::found_value>),
    decoder(decode_body<muster::detail::descriptor_request>),
    decoder(decode_body<muster::detail::descriptor_answer>),
    decoder(decode<std::error_code, std::error_condition>),
    decoder(raise_error),
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const frame input(std::as_bytes(std::span(data + 1, size - 1)));
  try {
    decoders[data[0] % decoders.size()](input.bytes());
  } catch (const muster::error&) {
    return 0;
  } catch (const std::exception&) {  // cereal's own: an index that is no alternative
    return 0;
  }
  return 0;
}
