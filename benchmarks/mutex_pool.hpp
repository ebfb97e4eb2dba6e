// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace bench {

/// The thread pool that everybody writes first: a queue under a mutex.
class mutex_pool {
public:
  explicit mutex_pool(unsigned threads) {
    for (unsigned index = 0; index < threads; ++index) threads_.emplace_back([this] { work(); });
  }
  mutex_pool(const mutex_pool&) = delete;
  mutex_pool& operator=(const mutex_pool&) = delete;
  ~mutex_pool() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    there_is_work_.notify_all();
  }

  void submit(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    there_is_work_.notify_one();
  }

private:
  void work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      there_is_work_.wait(lock, [&] { return closed_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable there_is_work_;
  std::deque<std::function<void()>> tasks_;
  bool closed_ = false;
  std::vector<std::jthread> threads_;  // joined first
};

}  // namespace bench
