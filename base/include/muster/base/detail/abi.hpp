// SPDX-License-Identifier: BSL-1.0
#pragma once

// A program whose standard library lays its types out in another way than the library that it is linked with would
// crash. Each program that includes this needs a symbol that is named after its way, and after the version of these
// headers; the library has the one that it was built in: a program that does not fit it cannot be linked, and the
// linker says which symbol it needs. Likewise of Boost.Asio, whose functions the linker takes from either side: its
// version, and the macros that change what its objects have.
//
// Thread safety: a constant.

#include <version>

#include <muster/base/requirements.hpp>
#include <muster/base/version.hpp>

#if defined(_LIBCPP_VERSION)
#define MUSTER_BUILT_WITH libcxx
#elif defined(_GLIBCXX_DEBUG)
#define MUSTER_BUILT_WITH libstdcxx_and_GLIBCXX_DEBUG
#elif defined(_GLIBCXX_USE_CXX11_ABI) && _GLIBCXX_USE_CXX11_ABI
#define MUSTER_BUILT_WITH libstdcxx
#else
#define MUSTER_BUILT_WITH libstdcxx_without_CXX11_ABI
#endif

#define MUSTER_TEXT_OF(name) #name
#define MUSTER_TEXT(name) MUSTER_TEXT_OF(name)
#define MUSTER_BUILT_WITH_STRING MUSTER_TEXT(MUSTER_BUILT_WITH)

#define MUSTER_ABI_NAME_OF(major, minor, patch, with) needs_muster_##major##_##minor##_##patch##_built_with_##with
#define MUSTER_ABI_NAME(major, minor, patch, with) MUSTER_ABI_NAME_OF(major, minor, patch, with)
#define MUSTER_ABI MUSTER_ABI_NAME(MUSTER_VERSION_MAJOR, MUSTER_VERSION_MINOR, MUSTER_VERSION_PATCH, MUSTER_BUILT_WITH)

#if __has_include(<boost/asio/version.hpp>)
#include <boost/asio/version.hpp>

#if defined(BOOST_ASIO_DISABLE_THREADS)
#define MUSTER_ASIO_THREADS _without_threads
#else
#define MUSTER_ASIO_THREADS
#endif
#if defined(BOOST_ASIO_DISABLE_EPOLL)
#define MUSTER_ASIO_EPOLL _without_epoll
#else
#define MUSTER_ASIO_EPOLL
#endif
#if defined(BOOST_ASIO_DISABLE_EVENTFD)
#define MUSTER_ASIO_EVENTFD _without_eventfd
#else
#define MUSTER_ASIO_EVENTFD
#endif
#if defined(BOOST_ASIO_DISABLE_TIMERFD)
#define MUSTER_ASIO_TIMERFD _without_timerfd
#else
#define MUSTER_ASIO_TIMERFD
#endif
#if defined(BOOST_ASIO_HAS_IO_URING_AS_DEFAULT)
#define MUSTER_ASIO_IO_URING _on_io_uring
#elif defined(BOOST_ASIO_HAS_IO_URING)
#define MUSTER_ASIO_IO_URING _with_io_uring
#else
#define MUSTER_ASIO_IO_URING
#endif
#if defined(BOOST_ASIO_ENABLE_HANDLER_TRACKING) || defined(BOOST_ASIO_CUSTOM_HANDLER_TRACKING)
#define MUSTER_ASIO_TRACKING _with_handler_tracking
#else
#define MUSTER_ASIO_TRACKING
#endif
#if defined(BOOST_ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE)
#define MUSTER_ASIO_CACHE _with_another_cache_size
#else
#define MUSTER_ASIO_CACHE
#endif

#define MUSTER_ASIO_NAME_OF(version, threads, epoll, eventfd, timerfd, io_uring, tracking, cache) \
  needs_muster_built_with_boost_asio_##version##threads##epoll##eventfd##timerfd##io_uring##tracking##cache
#define MUSTER_ASIO_NAME(...) MUSTER_ASIO_NAME_OF(__VA_ARGS__)
#define MUSTER_ASIO                                                                                 \
  MUSTER_ASIO_NAME(BOOST_ASIO_VERSION, MUSTER_ASIO_THREADS, MUSTER_ASIO_EPOLL, MUSTER_ASIO_EVENTFD, \
                   MUSTER_ASIO_TIMERFD, MUSTER_ASIO_IO_URING, MUSTER_ASIO_TRACKING, MUSTER_ASIO_CACHE)
#endif

namespace muster::abi {

extern const char MUSTER_ABI;
#if defined(MUSTER_ASIO)
extern const char MUSTER_ASIO;
#endif

namespace detail {

[[gnu::used]] inline const char* const fits = &MUSTER_ABI;
#if defined(MUSTER_ASIO)
[[gnu::used]] inline const char* const asio_fits = &MUSTER_ASIO;
#endif

}  // namespace detail

}  // namespace muster::abi
