// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/input_thread.hpp>

#include <thread>
#include <utility>

#include <muster/base/start_thread.hpp>

namespace muster::detail {

struct input_thread::impl {
  std::thread thread;
};

input_thread::input_thread() noexcept = default;
input_thread::input_thread(input_thread&& other) noexcept = default;
input_thread& input_thread::operator=(input_thread&& other) noexcept = default;
input_thread::~input_thread() = default;

void input_thread::start(std::function<void()> what) {
  auto made = std::make_unique<impl>();
  made->thread = start_thread(std::move(what));
  impl_ = std::move(made);
}

void input_thread::end() {
  if (impl_ == nullptr) return;
  auto& thread = impl_->thread;
  if (thread.get_id() == std::this_thread::get_id()) thread.detach();
  if (thread.joinable()) thread.join();
}

}  // namespace muster::detail
