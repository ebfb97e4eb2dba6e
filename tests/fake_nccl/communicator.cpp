// SPDX-License-Identifier: BSL-1.0
#include "communicator.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>

namespace fake_nccl {

namespace {

template <class Function>
Function find(void* library, const char* name) {
  auto* const found = library == nullptr ? nullptr : ::dlsym(library, name);
  if (found == nullptr) throw ncclUnhandledCudaError;
  return reinterpret_cast<Function>(found);
}

// As NCCL has it: who has the same is on one machine.
std::uint64_t host_identity() {
  const auto* const named = std::getenv("NCCL_HOSTID");
  return named == nullptr ? 0 : std::hash<std::string>()(named) | 1U;
}

void pause() { std::this_thread::sleep_for(std::chrono::microseconds(100)); }

}  // namespace

const driver& driver::of_process() {
  static const auto found = [] {
    auto* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return driver{find<decltype(get_current)>(library, "cuCtxGetCurrent"),
                  find<decltype(set_current)>(library, "cuCtxSetCurrent"),
                  find<decltype(run)>(library, "fake_cuda_run"),
                  find<decltype(physical)>(library, "fake_cuda_physical")};
  }();
  return found;
}

communicator::communicator(const ncclUniqueId& id, std::size_t rank, std::size_t size) : rank_(rank), size_(size) {
  if (driver::of_process().get_current(&context_) != CUDA_SUCCESS || context_ == nullptr) throw ncclUnhandledCudaError;
  board_ = open_board(id);
  auto& mine = board_->cards[rank];
  mine.physical = driver::of_process().physical();
  mine.host = host_identity();
  mine.is_here.store(1);
  begin([this, id] { join(id); });
}

// Signals are for the program's threads.
void communicator::begin(std::function<void()> what) {
  if (background_.joinable()) background_.join();
  state_ = ncclInProgress;
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  background_ = std::thread([this, call = std::move(what)] {
    try {
      driver::of_process().set_current(context_);
      call();
      state_ = ncclSuccess;
    } catch (const ncclResult_t& code) {
      state_ = code;
    }
  });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void communicator::join(ncclUniqueId id) {
  for (std::size_t each = 0; each < size_; ++each) {
    while (board_->cards[each].is_here.load() == 0) {
      if (is_aborted_) break;
      pause();
    }
  }
  if (rank_ == 0) forget_board(id);
  if (is_aborted_) throw ncclInternalError;
  require_own_device();
}

void communicator::require_own_device() const {
  const auto& mine = board_->cards[rank_];
  for (std::size_t each = 0; each < size_; ++each) {
    const auto& other = board_->cards[each];
    if (each != rank_ && other.host == mine.host && other.physical == mine.physical) throw ncclInvalidUsage;
  }
}

// ---- operations

// In a context that is over it is never run, and never deleted.
struct communicator::launched {
  communicator& by;
  operation what;
};

void communicator::start(std::vector<request> requests, CUstream where) {
  begin([this, where, all = std::move(requests)] {
    auto made = std::make_unique<launched>(launched{*this, operation(*board_, rank_, size_)});
    for (const auto& each : all) made->what.add(each);
    {
      const std::scoped_lock lock(mutex_);
      ++under_way_;
    }
    const auto run = [](void* argument) {
      const std::unique_ptr<launched> mine(static_cast<launched*>(argument));
      mine->by.run(*mine);
    };
    if (driver::of_process().run(where, run, made.get()) != CUDA_SUCCESS) throw ncclUnhandledCudaError;
    static_cast<void>(made.release());
  });
}

void communicator::run(launched& what) {
  try {
    what.what.run([this] { return is_aborted_.load(); });
  } catch (const ncclResult_t& code) {
    state_ = code;
    while (!is_aborted_) pause();  // what is behind it in the stream must not happen
  }
  const std::scoped_lock lock(mutex_);
  --under_way_;
  ended_.notify_all();
}

void communicator::abort() {
  is_aborted_ = true;
  if (background_.joinable()) background_.join();
  std::unique_lock lock(mutex_);
  ended_.wait_for(lock, std::chrono::seconds(5), [this] { return under_way_ == 0; });  // of a context that is over
}

}  // namespace fake_nccl
