// SPDX-License-Identifier: BSL-1.0
#pragma once

// All pools, and what is done with their calls. What a program names rarely has a header of its own beside these:
// Boost.Asio's tokens (muster/pool/async.hpp), std::future (muster/async/std_future.hpp), exceptions of the program
// (muster/serialize/exception_type.hpp), single processes and threads (muster/pool/process.hpp, thread.hpp).

#include <muster/async/as_completed.hpp>
#include <muster/async/future.hpp>
#include <muster/async/when_all.hpp>
#include <muster/async/when_any.hpp>
#include <muster/pool/ctx_pool.hpp>
#include <muster/pool/ctx_thread_pool.hpp>
#include <muster/pool/input.hpp>
#include <muster/pool/p2p_pool.hpp>
#include <muster/pool/pool.hpp>
#include <muster/pool/serial_pool.hpp>
#include <muster/pool/thread_pool.hpp>
#include <muster/serialize/exceptions.hpp>
#include <muster/serialize/shared_object.hpp>
