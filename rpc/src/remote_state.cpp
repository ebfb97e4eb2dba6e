// SPDX-License-Identifier: BSL-1.0
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/rpc/detail/remote_handle.hpp>
#include <muster/rpc/detail/remote_state.hpp>
#include <muster/rpc/detail/rpc_core.hpp>
#include <muster/rpc/detail/served_call.hpp>
#include <muster/serialize/archive.hpp>

namespace muster::detail {

namespace {

/// A reference as it travels.
struct sent_reference {
  std::uint64_t id = 0;
  std::uint64_t identity = 0;  ///< of the owner's process
  std::uint32_t member = 0;
  std::uint32_t incarnation = 0;
  std::uint32_t actor = none;  ///< which member it is, where it is one
  std::uint64_t group = 0;     ///< of whose members it speaks

  static constexpr std::uint32_t none = ~std::uint32_t{0};
};

// The block of its first member's inbox, which is no other group's as long as this one is there.
std::uint64_t identity_of(const group_table& table) noexcept {
  return table.member(0).requests.load(std::memory_order_relaxed);
}

}  // namespace

// The cell first: the owner, when it is told, looks whether others have it.
remote_state::~remote_state() {
  if (!core_->is_here() || !cell_) return;
  cell_.reset();
  core_->push_notice(owner_.member, request_kind::look, id_);
}

void remote_state::require_made() const {
  if (creation_ == nullptr) return;
  if (!creation_->is_done()) core_->reader().catch_up();
  if (!creation_->is_done()) return;
  if (creation_->failure() != nullptr) std::rethrow_exception(creation_->failure());
  if (creation_->kind() == reply_kind::lost)
    std::rethrow_exception(core_->loss_of(owner_, false, creation_->subject()));
  if (creation_->kind() != reply_kind::error) return;
  codec<error_info>::decode_value(creation_->reply().frame().subspan(sizeof(reply_head))).raise();
}

remote_state& remote_handle::state() const {
  if (state_ != nullptr) return *state_;
  throw error(errc::invalid_argument, "a remote_ref that refers to nothing was used");
}

std::string remote_handle::owner() const { return state().core()->table().name_of(state().place()); }

std::uint32_t remote_handle::incarnation() const {
  const auto& self = state();
  return self.is_actor() ? member_view::of(self.core()->table(), self.actor()).incarnation : self.owner().incarnation;
}

bool remote_handle::is_local() const { return state().is_local(); }

void* remote_handle::local() const {
  auto& self = state();
  self.core()->require_member();
  if (!self.is_local()) {
    throw error(errc::invalid_argument,
                text("the value is at '", owner(), "', not at '", self.core()->table().name_of(self.core()->index()),
                     "': call a function of it (call), or copy it (to_here)"));
  }
  const auto found = self.core()->values().find(self.id());
  if (found == nullptr || found->value == nullptr) throw error(errc::invalid_argument, "the value is not made yet");
  return found->value.get();
}

bool remote_handle::is_same(const remote_handle& other) const noexcept {
  if (state_ == nullptr || other.state_ == nullptr) return state_ == other.state_;
  return state_->id() == other.state_->id();
}

bool remote_handle::is_confirmed() const {
  auto& self = state();
  self.require_made();
  return self.creation() == nullptr || self.creation()->is_done();
}

void remote_handle::save(output_archive& out) const {
  auto& self = state();
  if (!out.attaches()) {
    throw error(errc::not_serializable,
                "a remote_ref was to be sent where only copies can go: send it without transfer::copy, as an argument "
                "or result of a call");
  }
  const sent_reference sent{.id = self.id(),
                            .identity = self.owner().who.pack(),
                            .member = static_cast<std::uint32_t>(self.owner().member),
                            .incarnation = self.owner().incarnation,
                            .actor = self.is_actor() ? static_cast<std::uint32_t>(self.actor()) : sent_reference::none,
                            .group = identity_of(self.core()->table())};
  out(sent.id, sent.identity, sent.member, sent.incarnation, sent.actor, sent.group);
  out.attach(self.cell());
}

void remote_handle::load(input_archive& in) {
  sent_reference sent;
  in(sent.id, sent.identity, sent.member, sent.incarnation, sent.actor, sent.group);
  auto cell = in.take_attachment();
  auto* const core = acting_member::current();
  if (core == nullptr || sent.member >= core->table().shape().members ||
      (sent.actor != sent_reference::none && sent.actor >= core->table().shape().members)) {
    throw error(errc::invalid_argument,
                "a remote_ref came to a process outside of a call of its RPC group: it belongs to the member that it "
                "comes to; send it as an argument or result of the group's calls");
  }
  if (sent.group != identity_of(core->table())) {
    throw error(errc::invalid_argument,
                text("a remote_ref of another RPC group came in a call of '", core->table().name(),
                     "': send it by a call of its own group, or call it where it is"));
  }
  const call_peer owner{
      .member = sent.member, .incarnation = sent.incarnation, .who = rank_identity::unpack(sent.identity)};
  state_ = std::make_shared<remote_state>(core->shared_from_this(), owner, sent.id, std::move(cell),
                                          sent.actor == sent_reference::none ? remote_state::no_actor : sent.actor);
}

}  // namespace muster::detail
