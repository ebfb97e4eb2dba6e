// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/detail/sent_block.hpp>

#include <cstdint>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/memory/domain.hpp>
#include <muster/serialize/archive.hpp>

namespace muster {

namespace {

shared_block kept_block(domain& where, std::uint64_t name, const std::string& what) {
  try {
    auto found = where.blocks().borrow(name);
    where.blocks().keep(found);
    return found;
  } catch (const error& failure) {
    if (failure.code() == errc::out_of_memory) throw;
    detail::throw_block_gone(what);
  }
}

}  // namespace

void detail::throw_block_gone(const std::string& what) {
  throw error(errc::invalid_argument, text(what,
                                           ", which is not there any more, has come: keep one in the program "
                                           "while others are on their way"));
}

void detail::save_block(output_archive& archive, const shared_block& block) {
  const bool goes_along = archive.attaches();
  archive(goes_along, goes_along ? std::uint64_t{0} : block.owner()->name_of(block));
  if (goes_along) archive.attach(block);
}

shared_block detail::load_block(input_archive& archive, domain& where, const std::string& what) {
  bool came_along = false;
  std::uint64_t name = 0;
  archive(came_along, name);
  auto found = came_along ? archive.take_attachment() : kept_block(where, name, what);
  static_cast<void>(where.blocks().name_of(found));  // throws when it is of another domain
  return found;
}

}  // namespace muster
