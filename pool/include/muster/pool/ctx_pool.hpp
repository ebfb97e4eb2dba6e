// SPDX-License-Identifier: BSL-1.0
#pragma once

// A pool whose workers have an object each, which every task gets.
//
//     struct model { explicit model(const std::string& file); float score(const std::string& text); };
//
//     muster::ctx_pool<model> pool([] { return model("weights.bin"); }, {.workers = 4});
//     auto scores = pool.map([](model& m, const std::string& text) { return m.score(text); }, texts);

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <muster/base/detail/duration.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/pool/detail/context.hpp>
#include <muster/pool/pool.hpp>

namespace muster {

/// A pool of worker processes with a context each: an object that is made in the worker before its first task, lives as
/// long as its process, and is the first argument of everything that is called there. For what is dear to make and
/// cheap to use: a loaded model, a connection, a cache.
///
/// Callables take `C&` first, then bound arguments, then arguments or elements; otherwise everything is as in `pool`.
/// What tasks change in their context stays there for the next task of that worker. A worker that takes the place of
/// another starts with its index's context anew, as it was given or as the factory makes it: what tasks had changed is
/// gone with the process. Calls that tasks make themselves (this_pool.hpp) do not get the context.
///
/// Thread safety and process safety: as `pool`.
template <class C>
class ctx_pool : public basic_process_pool<detail::context_first<C>> {
  using base = basic_process_pool<detail::context_first<C>>;
  static_assert(std::is_object_v<C> && !std::is_const_v<C>, "muster: the context of a ctx_pool is an object type");

public:
  /// With a context for each worker, which is sent there: `C` must be copyable, and transportable as arguments are.
  /// `options.workers` is 0 or the number of contexts; otherwise errc::invalid_argument is thrown, also when there are
  /// none. Throws what pool's constructor throws.
  explicit ctx_pool(const std::vector<C>& contexts, const pool_options& options = {})
      : base(detail::lane_route(), options_for(contexts.size(), options), nullptr, given(contexts)) {}
  /// The same on a loop, as pool's.
  ctx_pool(boost::asio::io_context& loop, const std::vector<C>& contexts, const pool_options& options = {})
      : base(detail::lane_route(), options_for(contexts.size(), options), &loop, given(contexts)) {}

  /// With contexts that `factory` makes in each worker: a callable that can be sent, `() -> C` or
  /// `(std::size_t worker) -> C`, with bound arguments before that. `C` need not be transportable, nor movable. It runs
  /// after pool_options::initializer and is treated as that is: a factory that keeps failing breaks the pool, and the
  /// calls then say why. Also on a loop, as pool's.
  ///@{
  template <detail::factory_like<C> F>
  explicit ctx_pool(F factory, const pool_options& options = {})
      : base(detail::lane_route(), options, nullptr, std::vector{made_by(std::move(factory))}) {}
  template <detail::factory_like<C> F>
  ctx_pool(boost::asio::io_context& loop, F factory, const pool_options& options = {})
      : base(detail::lane_route(), options, &loop, std::vector{made_by(std::move(factory))}) {}
  ///@}

private:
  static pool_options options_for(std::size_t contexts, pool_options options) {
    const bool matches = contexts > 0 && (options.workers == 0 || options.workers == contexts);
    if (!matches) {
      throw error(errc::invalid_argument,
                  text(contexts, " contexts were given for ", options.workers,
                       " workers: give one for each worker, and pool_options::workers 0 or their number"));
    }
    options.workers = static_cast<unsigned>(contexts);
    options.max_workers = options.workers;  // there is no context for more
    return options;
  }

  static std::vector<worker_task> given(const std::vector<C>& contexts) {
    std::vector<worker_task> tasks;
    for (const auto& each : contexts) tasks.push_back(made_by(muster::bind_front(detail::copy_given<C>(), each)));
    return tasks;
  }

  template <class F>
  static worker_task made_by(F factory) {
    using parts = detail::callable_parts<F>;
    detail::require_sendable<typename parts::innermost>();
    detail::require_transportable_call<F>();
    detail::require_factory<C, F>();
    return worker_task(detail::wrap<detail::context_setter, C>(std::move(factory)));
  }
};

}  // namespace muster
