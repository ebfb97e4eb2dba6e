// SPDX-License-Identifier: BSL-1.0
#pragma once

// Registers the categories of Boost.Asio and the exception that its functions throw, so that both cross processes.
// Included by one source that every program links: registrations happen before main().

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <muster/serialize/archive.hpp>
#include <muster/serialize/boost_error_code.hpp>
#include <muster/serialize/exception_type.hpp>

namespace muster {

/// It has neither a default constructor nor one from text alone.
template <>
struct exception_encoding<boost::system::system_error> {
  static void save(output_archive& out, const boost::system::system_error& exception) { out(exception.code()); }
  [[nodiscard]] static boost::system::system_error load(input_archive& in, const error_info& /*info*/) {
    boost::system::error_code code;
    in(code);
    return boost::system::system_error(code);
  }
};

}  // namespace muster

MUSTER_REGISTER_EXCEPTION(boost::system::system_error)
MUSTER_REGISTER_ERROR_CATEGORY(boost::asio::error::get_netdb_category())
MUSTER_REGISTER_ERROR_CATEGORY(boost::asio::error::get_addrinfo_category())
MUSTER_REGISTER_ERROR_CATEGORY(boost::asio::error::get_misc_category())
