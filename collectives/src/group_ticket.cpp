// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/group_ticket.hpp>

#include <utility>

#include <muster/base/effective_cpus.hpp>
#include <muster/base/error.hpp>
#include <muster/collectives/detail/group_memory.hpp>
#include <muster/memory/domain.hpp>
#include <muster/memory/wait/spin_policy.hpp>
#include <muster/serialize/archive.hpp>

namespace muster {

namespace {

std::chrono::nanoseconds spin_of(const group_options& options) {
  return options.spin ? *options.spin : spin_policy::of_process().budget;
}

}  // namespace

group_ticket::group_ticket(std::size_t ranks, const group_options& options)
    : group_ticket(ranks, options, domain::of_program()) {}

group_ticket::group_ticket(std::size_t ranks, const group_options& options, std::shared_ptr<domain> where)
    : domain_(std::move(where)) {
  auto shape =
      detail::group_shape::of(ranks, options.inline_bytes, options.timeout, spin_of(options), ranks > effective_cpus());
  shape.is_ordered = options.is_ordered_on_devices;
  block_ = domain_->blocks().allocate_shared(shape.total_bytes());
  detail::group_memory::make(block_.bytes(), shape);
}

group_ticket::group_ticket(std::shared_ptr<domain> where, shared_block block) noexcept
    : domain_(std::move(where)), block_(std::move(block)) {}

std::size_t group_ticket::ranks() const {
  if (!block_) throw error(errc::invalid_argument, "an empty group_ticket was used: it is for no group");
  domain_->require_mapped("a group_ticket");
  return detail::group_memory::attach(block_.bytes()).shape().ranks;
}

void group_ticket::save(output_archive& archive) const {
  if (!archive.attaches() || !block_) {
    throw error(errc::not_serializable,
                "a group_ticket was to be sent where only copies can go (elements and results of maps, initializers), "
                "or it is for no group. Send it as an argument of a call, or bind it (muster::bind_front)");
  }
  archive.attach(block_);
}

void group_ticket::load(input_archive& archive) {
  auto block = archive.take_attachment();
  auto where = domain::of_program();
  static_cast<void>(detail::group_memory::attach(block.bytes()));
  static_cast<void>(where->blocks().name_of(block));  // throws when it is of another domain
  block_ = std::move(block);
  domain_ = std::move(where);
}

}  // namespace muster
