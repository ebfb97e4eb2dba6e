// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/kv_async.hpp>

#include <utility>

#include <muster/base/start_thread.hpp>

namespace muster::detail {

kv_async::kv_async(kv_sender& sender, puller pull, std::shared_ptr<future_home> home, std::size_t window,
                   std::function<deadline()> end_of_call)
    : sender_(sender),
      pull_(std::move(pull)),
      home_(std::move(home)),
      end_of_call_(std::move(end_of_call)),
      schedule_(window) {}

kv_async::~kv_async() {
  std::thread thread;
  {
    const scoped_lock lock(mutex_);
    closes_ = true;
    changed_.notify_all();
    thread.swap(thread_);
  }
  if (thread.joinable()) thread.join();
}

bool kv_async::is_used() const {
  const scoped_lock lock(mutex_);
  return thread_.joinable();
}

future<void> kv_async::push(const store_key& key, kv_gradient gradient, int priority) {
  auto made = std::make_shared<local_state<void>>();
  add(key, priority, {.key = key, .gradient = std::move(gradient), .pushed = made});
  return future_access::of_source(home_, std::shared_ptr<future_source<void>>(std::move(made)));
}

future<tensor> kv_async::pull(const store_key& key, int priority) {
  auto made = std::make_shared<local_state<tensor>>();
  add(key, priority, {.key = key, .pulled = made});
  return future_access::of_source(home_, std::shared_ptr<future_source<tensor>>(std::move(made)));
}

void kv_async::add(const store_key& key, int priority, operation what) {
  const scoped_lock lock(mutex_);
  if (!thread_.joinable()) {
    thread_ = start_thread([this] { run(); });
  }
  all_.emplace(schedule_.add(key, priority), std::move(what));
  changed_.notify_all();
}

void kv_async::run() {
  for (;;) {
    std::optional<ended> over;
    std::optional<kv_schedule::number> next;
    operation* what = nullptr;
    {
      scoped_lock lock(mutex_);
      while (ended_.empty() && !(next = schedule_.begin_next())) {
        if (closes_ && schedule_.is_empty()) return;
        changed_.wait(lock);
      }
      if (!ended_.empty()) {
        over.emplace(std::move(ended_.front()));
        ended_.pop_front();
      }
      what = &all_.at(over ? over->which : *next);
    }
    if (over) {
      judge(over->which, *what, std::move(over->how));
    } else {
      begin(*next, *what);
    }
  }
}

void kv_async::begin(kv_schedule::number which, operation& what) {
  if (what.pulled != nullptr) {
    auto how = outcome<tensor>::of_call([&] { return pull_(what.key); });
    const auto pulled = what.pulled;
    end(which);
    return pulled->complete(std::move(how));
  }
  try {
    what.sending = sender_.begin(what.key, *std::exchange(what.gradient, {}), end_of_call_());
    listen(which, what);
  } catch (...) {
    const auto pushed = what.pushed;
    end(which);
    pushed->complete(outcome<void>::of_exception(std::current_exception()));
  }
}

void kv_async::listen(kv_schedule::number which, operation& what) {
  future_access::when_done<kv_answer>(*std::exchange(what.sending->call, {}), [this, which](outcome<kv_answer> how) {
    take({.which = which, .how = std::move(how)});
  });
}

void kv_async::judge(kv_schedule::number which, operation& what, outcome<kv_answer> how) {
  auto result = outcome<void>::of_value();
  try {
    if (!sender_.judge(*what.sending, std::move(how))) {
      sender_.send(*what.sending);
      return listen(which, what);
    }
  } catch (...) {
    result = outcome<void>::of_exception(std::current_exception());
  }
  const auto pushed = what.pushed;
  end(which);
  pushed->complete(std::move(result));
}

void kv_async::end(kv_schedule::number which) {
  std::map<kv_schedule::number, operation>::node_type over;  // goes without the lock
  const scoped_lock lock(mutex_);
  schedule_.end(which);
  over = all_.extract(which);
}

void kv_async::take(ended what) {
  const scoped_lock lock(mutex_);
  ended_.push_back(std::move(what));
  changed_.notify_all();
}

}  // namespace muster::detail
