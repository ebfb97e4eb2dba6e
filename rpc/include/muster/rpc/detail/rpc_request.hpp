// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <typeinfo>

#include <muster/serialize/detail/attachments.hpp>
#include <muster/serialize/detail/codec.hpp>
#include <muster/serialize/detail/function_token.hpp>
#include <muster/serialize/error_info.hpp>

namespace muster::detail {

/// The reply of a call that is answered later, when what served it has returned.
///
/// Thread safety: the thread for which try_begin() was true uses it.
class deferred_reply {
public:
  deferred_reply() = default;
  deferred_reply(const deferred_reply&) = delete;
  deferred_reply& operator=(const deferred_reply&) = delete;
  virtual ~deferred_reply() = default;

  /// Whether it is to be made now: once.
  [[nodiscard]] virtual bool try_begin() noexcept = 0;
  /// As of rpc_request.
  ///@{
  [[nodiscard]] virtual std::span<std::byte> make_reply(std::size_t bytes, std::size_t attachments) = 0;
  [[nodiscard]] virtual attachment_sink* reply_attachments() = 0;
  ///@}
  virtual void send() = 0;
  /// Sends that instead.
  virtual void fail(const error_info& why) noexcept = 0;
};

/// One call at the member that serves it, as its function sees it: arguments in, reply out.
///
/// Thread safety: an object belongs to the thread that serves the call.
class rpc_request {
public:
  rpc_request() = default;
  rpc_request(const rpc_request&) = delete;
  rpc_request& operator=(const rpc_request&) = delete;

  [[nodiscard]] virtual std::span<const std::byte> arguments() const = 0;
  [[nodiscard]] virtual attachment_source& attachments() = 0;
  [[nodiscard]] virtual token_decoder& functions() = 0;
  /// What is called is of that type.
  virtual void is_of(const std::type_info& callable) noexcept = 0;
  /// The arguments have been decoded, and are not asked for again.
  virtual void drop_arguments() noexcept = 0;
  /// The value that a method is called of.
  [[nodiscard]] virtual void* object() const = 0;
  /// Room for an encoded result of so many bytes, with which so many blocks go. To be called once.
  [[nodiscard]] virtual std::span<std::byte> make_reply(std::size_t bytes, std::size_t attachments) = 0;
  /// Where the blocks of the result go; nullptr where they are to be copied.
  [[nodiscard]] virtual attachment_sink* reply_attachments() = 0;
  /// The call is answered later, by what is returned.
  [[nodiscard]] virtual std::shared_ptr<deferred_reply> defer() = 0;
  /// Whether what is returned stays here: then keep() gets it, and the reply is empty.
  [[nodiscard]] virtual bool keeps_result() const = 0;
  /// Keeps what was made, for references to it.
  virtual void keep(std::shared_ptr<void> made) = 0;

protected:
  ~rpc_request() = default;
};

/// What a request's token names: decodes, runs and replies. One type for all.
using rpc_thunk = void(rpc_request&);

/// Writes a result as the reply, to an rpc_request or a deferred_reply.
template <class R>
void reply_with(auto& call, const R& value) {
  auto* const attachments = call.reply_attachments();
  const auto needed = codec<R>::measure(attachments != nullptr, value);
  codec<R>::encode_with(call.make_reply(needed.bytes, needed.attachments), attachments, value);
}

}  // namespace muster::detail
