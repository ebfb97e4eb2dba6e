// SPDX-License-Identifier: BSL-1.0
// A code of Boost's is bytes with an address of its category, as far as programs know that do not include
// muster/serialize/boost_error_code.hpp.
#include <boost/system/error_code.hpp>

#include <muster/serialize/transportable.hpp>

void call() { muster::detail::require_transportable<boost::system::error_code>(); }
