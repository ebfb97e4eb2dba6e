// SPDX-License-Identifier: BSL-1.0
// A program that has its own functions for paths, as cereal had none, may keep them; also with -std=c++20, where
// numbers of 128 bits are sent all the same.
#include <filesystem>
#include <string>

#include <cereal/cereal.hpp>
#include <cereal/types/string.hpp>

#define BESIDE_THE_CLASS 1
#define MINIMAL 2
#define OF_CEREAL 3
#define OF_CEREAL_LATER 4

#define DEFINE_FOR_CEREAL                                       \
  namespace cereal {                                            \
  template <class Archive>                                      \
  void save(Archive& archive, const std::filesystem::path& p) { \
    archive(p.string());                                        \
  }                                                             \
  template <class Archive>                                      \
  void load(Archive& archive, std::filesystem::path& p) {       \
    std::string text;                                           \
    archive(text);                                              \
    p = text;                                                   \
  }                                                             \
  }

#if INSIDE == BESIDE_THE_CLASS
namespace std::filesystem {
template <class Archive>
void serialize(Archive& archive, path& p) {
  auto text = p.string();
  archive(text);
  p = text;
}
}  // namespace std::filesystem
#elif INSIDE == MINIMAL
namespace std::filesystem {
template <class Archive>
std::string save_minimal(const Archive& /*archive*/, const path& p) {
  return p.string();
}
template <class Archive>
void load_minimal(const Archive& /*archive*/, path& p, const std::string& text) {
  p = text;
}
}  // namespace std::filesystem
#elif INSIDE == OF_CEREAL
DEFINE_FOR_CEREAL
#endif

#include <muster/serialize/detail/codec.hpp>

#if INSIDE == OF_CEREAL_LATER
DEFINE_FOR_CEREAL
#endif

__extension__ using widest_integer = __int128;

std::size_t size_of(const std::filesystem::path& path, widest_integer number) {
  return muster::codec<std::filesystem::path, widest_integer>::size(path, number);
}
std::tuple<std::filesystem::path> decoded(std::span<const std::byte> frame) {
  return muster::codec<std::filesystem::path>::decode(frame);
}
