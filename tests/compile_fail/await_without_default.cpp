// SPDX-License-Identifier: BSL-1.0
#include <boost/asio/use_future.hpp>

#include <muster/pool/async.hpp>
#include <muster/pool/pool.hpp>

struct chosen {
  explicit chosen(int of) : number(of) {}
  int number;
};

void wait(muster::future<chosen> what) { static_cast<void>(what(boost::asio::use_future)); }
