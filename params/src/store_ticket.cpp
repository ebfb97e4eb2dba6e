// SPDX-License-Identifier: BSL-1.0
#include <muster/params/store_ticket.hpp>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/memory/domain.hpp>
#include <muster/params/detail/store_table.hpp>
#include <muster/serialize/archive.hpp>
#include <muster/serialize/detail/sent_block.hpp>

#include "store_keeper.hpp"

namespace muster {

namespace {

[[noreturn]] void refuse_store(const std::string& why) {
  throw error(errc::invalid_argument, text("a store cannot be made: ", why));
}

detail::store_shape shape_of(domain& where, const store_options& options) {
  const auto require = [](const char* what, std::size_t given, std::size_t most) {
    if (given == 0 || given > most) refuse_store(text(what, " is ", given, "; it can be 1 to ", most));
  };
  require("store_options::depth", options.depth, detail::store_shape::most_depth);
  require("store_options::most_keys", options.most_keys, detail::store_shape::most_keys);
  if (options.timeout <= std::chrono::nanoseconds::zero()) {
    refuse_store("store_options::timeout is not positive: waits would be over before they begin");
  }
  return {.keys = options.most_keys,
          .depth = options.depth,
          .participants = where.participants().capacity(),
          .timeout = options.timeout};
}

}  // namespace

store_ticket::store_ticket(const store_options& options) : domain_(domain::of_program()) {
  if (domain_->self() != participant_id::host) {
    refuse_store(
        "only the program can make a ticket, which looks after the store when processes die; make it there, and pass "
        "it to the task as an argument");
  }
  const auto shape = shape_of(*domain_, options);
  block_ = domain_->blocks().allocate_shared(shape.total_bytes());
  detail::store_keeper::keep(*domain_, block_, detail::store_table::make(block_.bytes(), shape));
}

void store_ticket::save(output_archive& archive) const {
  if (!block_) throw error(errc::not_serializable, "an empty store_ticket was to be sent: it is for no store");
  detail::save_block(archive, block_);
}

void store_ticket::load(input_archive& archive) {
  auto where = domain::of_program();
  auto block = detail::load_block(archive, *where, "a store_ticket of a store");
  static_cast<void>(detail::store_table::attach(block.bytes()));
  block_ = std::move(block);
  domain_ = std::move(where);
}

}  // namespace muster
