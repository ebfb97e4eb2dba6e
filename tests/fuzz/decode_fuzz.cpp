// SPDX-License-Identifier: BSL-1.0
// Decoders meet any bytes: they return a value or throw, and stay within the bytes. The first byte of an input chooses
// what it is decoded as; the rest is the frame. Values that come out are encoded and decoded again: nothing may change.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

#include <muster/base/error.hpp>
#include <muster/serialize/codec.hpp>
#include <muster/serialize/error_info.hpp>
#include <muster/serialize/modules.hpp>
#include <muster/serialize/result.hpp>

namespace {

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

// Bytes of their own, so that a sanitizer sees every step beyond. operator new aligns them to frame_alignment.
class frame {
public:
  explicit frame(std::size_t size) : bytes_(new std::byte[size]), size_(size) {}
  [[nodiscard]] std::span<std::byte> bytes() const { return {bytes_.get(), size_}; }

private:
  static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= muster::frame_alignment);
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_;
};

// Twice encoded is the same; compared as bytes, because not all types have an ==.
template <class... Ts>
void check_round_trip(const std::tuple<Ts...>& values) {
  using codec = muster::codec<Ts...>;
  const auto encode = [](const std::tuple<Ts...>& from) {
    return std::apply(
        [](const Ts&... each) {
          frame made(codec::size(each...));
          codec::encode(made.bytes(), each...);
          return made;
        },
        from);
  };
  const auto once = encode(values);
  const auto again = encode(codec::decode(once.bytes()));
  if (!std::ranges::equal(once.bytes(), again.bytes())) std::abort();
}

template <class... Ts>
void decode(std::span<const std::byte> bytes) {
  check_round_trip(muster::codec<Ts...>::decode(bytes));
}

// For unordered containers, which have no order to compare, and for classes with padding.
template <class... Ts>
void decode_only(std::span<const std::byte> bytes) {
  static_cast<void>(muster::codec<Ts...>::decode(bytes));
}

using decoder = void (*)(std::span<const std::byte>);
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
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const frame input(size - 1);
  std::ranges::copy(std::as_bytes(std::span(data + 1, size - 1)), input.bytes().begin());
  try {
    decoders[data[0] % decoders.size()](input.bytes());
  } catch (const muster::error&) {
    return 0;
  } catch (const std::exception&) {  // cereal's own: an index that is no alternative
    return 0;
  }
  return 0;
}
