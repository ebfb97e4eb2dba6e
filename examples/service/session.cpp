// SPDX-License-Identifier: BSL-1.0
#include "session.hpp"

#include <cstdint>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

namespace service {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

namespace {

constexpr std::uint32_t longest_header = 16 << 10;

using request = http::request<http::empty_body>;
using response = http::response<http::string_body>;
using request_parser = http::request_parser<http::empty_body>;

// Whether the client has sent something, which was no request; else it has gone, or is too slow.
bool is_malformed(const beast::error_code& failure) {
  return failure.category() == http::make_error_code(http::error::bad_method).category() &&
         failure != http::error::end_of_stream && failure != http::error::partial_message;
}

answer answer_to_malformed(const beast::error_code& failure) {
  const bool too_long = failure == http::error::header_limit;
  return {too_long ? 431U : 400U,
          "this is no request that can be answered: " + failure.message() + "; expected: GET of a target, no body\n"};
}

response response_of(const answer& text, unsigned version) {
  response made(http::int_to_status(text.status()), version, text.text());
  made.set(http::field::content_type, text.type());
  if (text.status() == 405) made.set(http::field::allow, "GET, HEAD");
  made.prepare_payload();
  return made;
}

asio::awaitable<answer> answer_of(const handler& answer_to, const request& asked) {
  if (asked.method() != http::verb::get && asked.method() != http::verb::head) {
    co_return answer(405, "the method is " + std::string(asked.method_string()) + "; expected: GET or HEAD\n");
  }
  co_return co_await answer_to(std::string(asked.target()));
}

// Answers what was no request. The client may still be sending: closing at once could take the answer from it.
asio::awaitable<void> refuse(beast::tcp_stream& stream, beast::flat_buffer& received,
                             const beast::error_code& failure) {
  auto refusal = response_of(answer_to_malformed(failure), 11);
  refusal.keep_alive(false);
  co_await http::async_write(stream, refusal, asio::use_awaitable);
  stream.socket().shutdown(asio::ip::tcp::socket::shutdown_send);
  for (std::size_t taken = 0; taken < (1U << 20);) {  // until it closes, or the time is over
    taken += co_await stream.async_read_some(received.prepare(4096), asio::use_awaitable);
  }
}

}  // namespace

asio::awaitable<void> serve(asio::ip::tcp::socket socket, const handler& answer_to, std::chrono::nanoseconds patience,
                            session& state) {
  beast::tcp_stream stream(std::move(socket));
  stream.socket().set_option(asio::ip::tcp::no_delay(true));
  beast::flat_buffer received;
  // The server may have set it while the answer was being written.
  for (bool more = true; more && !state.last;) {
    request_parser parser;
    parser.header_limit(longest_header);
    stream.expires_after(patience);
    const auto [failure, size] =
        co_await http::async_read(stream, received, parser, asio::as_tuple(asio::use_awaitable));
    if (failure && is_malformed(failure)) co_await refuse(stream, received, failure);
    if (failure) co_return;

    state.answering = true;
    const auto& asked = parser.get();
    const auto found = co_await answer_of(answer_to, asked);
    auto reply = response_of(found, asked.version());
    if (asked.method() == http::verb::head) reply.body().clear();
    more = asked.keep_alive() && !state.last;
    reply.keep_alive(more);
    stream.expires_after(patience);
    co_await http::async_write(stream, reply, asio::use_awaitable);
    state.answering = false;
  }
  stream.socket().shutdown(asio::ip::tcp::socket::shutdown_send);
}

}  // namespace service
