// SPDX-License-Identifier: BSL-1.0
#pragma once

// What lets errors of Boost.Asio cross: its categories, and the exception that its functions throw. Included by one
// source that every program links, so that all of this is registered before main().

#include <exception>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <muster/base/text.hpp>
#include <muster/serialize/archive.hpp>
#include <muster/serialize/boost_error_code.hpp>
#include <muster/serialize/exception_type.hpp>

namespace muster::detail {

/// boost::system::system_error, which has neither a default constructor nor one from text alone.
///
/// Thread safety: safe.
class boost_system_error final : public exception_type {
public:
  boost_system_error() noexcept : exception_type(typeid(boost::system::system_error)) { enrol(); }
  ~boost_system_error() = default;

  [[nodiscard]] std::optional<std::string> save(const std::exception_ptr& exception) const override {
    try {
      std::rethrow_exception(exception);
    } catch (const boost::system::system_error& caught) {
      return bytes_of(caught.code());
    } catch (...) {  // it has two of them
      return std::nullopt;
    }
  }

  [[noreturn]] void raise(const error_info& info) const override {
    std::optional<boost::system::system_error> restored;
    std::string reason;
    try {
      restored.emplace(code_in(info.exception()->state));
      restore_standard_base(*restored, info);
    } catch (const std::exception& failure) {
      restored.reset();
      reason = text_or_none(failure.what());
    }
    if (!restored) raise_unrestored(info, reason);
    throw_restored(std::move(*restored), info);
  }

private:
  static std::string bytes_of(const boost::system::error_code& code) {
    output_archive counter;
    counter(code);
    std::string bytes(counter.written(), '\0');
    output_archive out(std::as_writable_bytes(std::span(bytes)));
    out(code);
    return bytes;
  }

  static boost::system::error_code code_in(const std::string& bytes) {
    boost::system::error_code code;
    input_archive in(std::as_bytes(std::span(bytes)));
    in(code);
    return code;
  }
};

namespace {

const boost_system_error registered_system_error;

}  // namespace

}  // namespace muster::detail

MUSTER_REGISTER_ERROR_CATEGORY(boost::asio::error::get_netdb_category())
MUSTER_REGISTER_ERROR_CATEGORY(boost::asio::error::get_addrinfo_category())
MUSTER_REGISTER_ERROR_CATEGORY(boost::asio::error::get_misc_category())
