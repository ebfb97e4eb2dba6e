// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/batch_access.hpp>

#include <string>
#include <utility>

#include <muster/async/detail/end_notice.hpp>
#include <muster/async/detail/future_source.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/pool/detail/batch_run.hpp>
#include <muster/pool/detail/pool_core.hpp>
#include <muster/pool/detail/progress.hpp>
#include <muster/pool/detail/stream_engine.hpp>

namespace muster::detail {

namespace {

/// The source of map_async's future. Results are decoded by the thread that takes them.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class map_source final : public untyped_source, public std::enable_shared_from_this<map_source> {
public:
  explicit map_source(std::shared_ptr<batch_run> run) : run_(std::move(run)) {}

  void start() {
    run_->start([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->tell();
    });
  }

  [[nodiscard]] const batch_run& run() const noexcept { return *run_; }
  bool wait(deadline until) override { return run_->wait(until); }
  [[nodiscard]] bool is_done() const override { return run_->is_done(); }
  bool cancel(cancellation how) override { return how != cancellation::withdraw && run_->cancel(); }

  void when_done(std::unique_ptr<end_notice> notice) override MUSTER_EXCLUDES(mutex_) {
    {
      const scoped_lock lock(mutex_);
      if (!told_) {
        notice_.swap(notice);
        return;
      }
    }
    end_notice::tell(std::move(notice));
  }

private:
  void tell() noexcept MUSTER_EXCLUDES(mutex_) {
    std::unique_ptr<end_notice> notice;
    {
      const scoped_lock lock(mutex_);
      told_ = true;
      notice = std::move(notice_);
    }
    end_notice::tell(std::move(notice));
  }

  const std::shared_ptr<batch_run> run_;
  mutex mutex_;
  bool told_ MUSTER_GUARDED_BY(mutex_) = false;
  std::unique_ptr<end_notice> notice_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<map_job> make_map_job(pool_core& core, const job_terms& terms, std::size_t state_bytes) {
  const bool stops = terms.fail_fast && !(terms.options.retries > 0 && terms.options.retry_on.after_exceptions());
  if (core.names_functions()) core.name_function(terms.code, terms.callable);
  return std::make_shared<map_job>(core.memory(), state_bytes, terms.code, terms.fail_fast, stops);
}

std::span<std::byte> state_of(const map_job& job) noexcept { return job.state(); }

attachment_list& attachments_of(map_job& job) noexcept { return job.attachments(); }

std::shared_ptr<progress_meter> make_meter(const task_options& options, std::optional<std::size_t> total) {
  return std::make_shared<progress_meter>(std::string(options.label.view()), total);
}

batch_results results_of(const batch_run& run) noexcept {
  return {.count = run.count(),
          .first_element = run.first_element(),
          .array = run.result_array(),
          .pieces = run.pieces(),
          .failures = run.failures()};
}

held_source start_map_of(const std::shared_ptr<pool_core>& core, std::shared_ptr<map_job> job, packed_batch batch,
                         const task_options& options, const task_terms& terms, lane_route route,
                         std::shared_ptr<progress_meter> progress) {
  auto run = std::make_shared<batch_run>(core, std::move(job), std::move(batch),
                                         batch_run::settings{.retries = options.retries,
                                                             .terms = terms,
                                                             .urgency = options.priority,
                                                             .label = std::string(options.label.view()),
                                                             .first_element = 0,
                                                             .chunking = {.workers = route.workers(core->workers()),
                                                                          .given = options.chunk,
                                                                          .most = core->max_tasks_per_worker()},
                                                             .route = route,
                                                             .needs_place = true,
                                                             .progress = std::move(progress)});
  auto source = std::make_shared<map_source>(std::move(run));
  source->start();
  std::shared_ptr<untyped_source> untyped = std::move(source);
  return {.home = core, .what = std::move(untyped)};
}

batch_results map_results(const held_source& map) noexcept {
  return results_of(static_cast<const map_source*>(static_cast<untyped_source*>(map.what.get()))->run());
}

void engine_disposal::operator()(stream_engine* engine) const noexcept { delete engine; }

stream_engine_ptr make_stream_engine(const std::shared_ptr<pool_core>& core, std::shared_ptr<map_job> job,
                                     std::unique_ptr<stream_input> input, bool ordered, const task_options& options,
                                     const task_terms& terms, lane_route route,
                                     std::shared_ptr<progress_meter> progress) {
  return stream_engine_ptr(new stream_engine(core, std::move(job), std::move(input),
                                             stream_engine::settings{.ordered = ordered,
                                                                     .retries = options.retries,
                                                                     .terms = terms,
                                                                     .urgency = options.priority,
                                                                     .label = std::string(options.label.view()),
                                                                     .chunk = options.chunk,
                                                                     .window = options.window,
                                                                     .route = route,
                                                                     .progress = std::move(progress)}));
}

std::shared_ptr<batch_run> next_batch(stream_engine& engine, std::size_t consumed) {
  return engine.next_batch(consumed);
}

std::optional<std::chrono::nanoseconds> when_next(stream_engine& engine, std::size_t consumed,
                                                  std::function<void()> then) {
  return engine.when_next(consumed, std::move(then));
}

void pull_one(stream_engine& engine) { engine.pull_one(); }

}  // namespace muster::detail
