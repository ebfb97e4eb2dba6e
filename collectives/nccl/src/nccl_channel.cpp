// SPDX-License-Identifier: BSL-1.0
#include "nccl_channel.hpp"

#include <chrono>
#include <future>
#include <optional>
#include <utility>

#include <muster/base/clock.hpp>
#include <muster/base/error.hpp>
#include <muster/base/start_thread.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

constexpr std::chrono::seconds patience{10};
constexpr std::chrono::microseconds pause{200};

std::optional<ncclDataType_t> type_of(dtype type) noexcept {
  switch (type) {
    case dtype::i8: return ncclInt8;
    case dtype::u8: return ncclUint8;
    case dtype::i32: return ncclInt32;
    case dtype::u32: return ncclUint32;
    case dtype::i64: return ncclInt64;
    case dtype::u64: return ncclUint64;
    case dtype::f16: return ncclFloat16;
    case dtype::bf16: return ncclBfloat16;
    case dtype::f32: return ncclFloat32;
    case dtype::f64: return ncclFloat64;
    default: return std::nullopt;
  }
}

std::optional<ncclRedOp_t> op_of(reduction_op op) noexcept {
  switch (op) {
    case reduction_op::sum: return ncclSum;
    case reduction_op::prod: return ncclProd;
    case reduction_op::min: return ncclMin;
    case reduction_op::max: return ncclMax;
    default: return std::nullopt;
  }
}

void* pointer(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): the device's, not ours
}

}  // namespace

bool nccl_reduces(dtype type, reduction_op op) noexcept { return type_of(type).has_value() && op_of(op).has_value(); }

nccl_channel::parts::parts(std::shared_ptr<const nccl_library> with, std::shared_ptr<cuda_device> where)
    : library(std::move(with)),
      on(std::move(where)),
      stream(on->driver()),
      before(on->driver()),
      behind(on->driver()) {}

nccl_channel::nccl_channel(std::shared_ptr<const nccl_library> library, std::shared_ptr<cuda_device> on,
                           const ncclUniqueId& id, std::size_t rank, std::size_t size) {
  const cuda_device::scope current(*on);
  parts_ = std::make_shared<parts>(std::move(library), std::move(on));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  try {
    parts_->library->comm_init(&parts_->communicator, static_cast<int>(size), id, static_cast<int>(rank), &config);
  } catch (...) {
    abort();  // there may be one all the same
    throw;
  }
}

// ---- what is done

void nccl_channel::launch(std::span<const device_step> steps, std::vector<tensor> kept) {
  auto& with = *parts_;
  const cuda_device::scope current(*with.on);
  with.on->compute().record(with.before);
  with.stream.wait_for(with.before);
  with.kept = std::move(kept);
  stage_ = stage::launching;
  with.library->group_start();
  try {
    for (const auto& each : steps) add(each);
  } catch (...) {
    static_cast<void>(with.library->group_end.attempt());  // what was added is of no use; the communicator goes
    throw;
  }
  with.library->group_end();
}

void nccl_channel::add(const device_step& step) {
  const auto& call = *parts_->library;
  auto* const comm = parts_->communicator;
  auto* const stream = parts_->stream.handle();
  auto* const from = pointer(step.from);
  auto* const to = pointer(step.to);
  const auto type = type_of(step.type);
  const auto op = op_of(step.op);
  if (!type || !op) throw error(errc::invalid_argument, text("NCCL does not do ", step.op, " of ", step.type));
  const auto rank = static_cast<int>(step.rank);
  switch (step.what) {
    case device_step::kind::all_reduce: return call.all_reduce(from, to, step.count, *type, *op, comm, stream);
    case device_step::kind::reduce: return call.reduce(from, to, step.count, *type, *op, rank, comm, stream);
    case device_step::kind::reduce_scatter: return call.reduce_scatter(from, to, step.count, *type, *op, comm, stream);
    case device_step::kind::broadcast: return call.broadcast(from, to, step.count, *type, rank, comm, stream);
    case device_step::kind::all_gather: return call.all_gather(from, to, step.count, *type, comm, stream);
    case device_step::kind::send: return call.send(from, step.count, *type, rank, comm, stream);
    case device_step::kind::receive: return call.receive(to, step.count, *type, rank, comm, stream);
  }
}

bool nccl_channel::is_in_progress() const {
  auto state = ncclSuccess;
  parts_->library->async_error(parts_->communicator, &state);
  if (state == ncclInProgress || state == ncclSuccess) return state == ncclInProgress;
  throw_nccl_error(state, stage_ == stage::joining ? "ncclCommInitRankConfig" : "a collective of NCCL",
                   "in the background", parts_->library->describe(state));
}

bool nccl_channel::is_done() {
  const cuda_device::scope current(*parts_->on);
  if (stage_ == stage::idle) return true;
  if (is_in_progress()) return false;
  if (stage_ == stage::launching) {
    parts_->stream.record(parts_->behind);
    stage_ = stage::running;
  }
  if (stage_ == stage::running && !parts_->behind.is_reached()) return false;
  parts_->kept.clear();
  stage_ = stage::idle;
  return true;
}

// ---- the end

namespace {

// Whether it is not in progress any more, whatever became of it.
bool becomes_quiet(const nccl_library& library, ncclComm_t communicator) {
  auto state = ncclInProgress;
  const auto until = deadline::after(patience / 2);
  while (library.async_error.attempt(communicator, &state) == ncclSuccess && state == ncclInProgress) {
    if (until.expired()) return false;
    std::this_thread::sleep_for(pause);  // NCCL has no event for that
  }
  return true;
}

}  // namespace

void nccl_channel::abort() noexcept {
  end([](parts& with) {
    static_cast<void>(with.library->comm_abort.attempt(with.communicator));
    static_cast<void>(with.on->driver().stream_synchronize.attempt(with.stream.handle()));
  });
}

void nccl_channel::close() noexcept {
  end([](parts& with) {
    static_cast<void>(with.library->comm_finalize.attempt(with.communicator));
    const bool is_quiet = becomes_quiet(*with.library, with.communicator);
    const auto& go = is_quiet ? with.library->comm_destroy : with.library->comm_abort;
    static_cast<void>(go.attempt(with.communicator));
  });
}

// Of a context that is broken there is nothing left to end.
void nccl_channel::end_here(std::shared_ptr<parts> what, const std::function<void(parts&)>& how) noexcept {
  try {
    const cuda_device::scope current(*what->on);
    if (what->communicator != nullptr) how(*what);
    what->self.reset();
    what.reset();
  } catch (const error&) {  // NOLINT(bugprone-empty-catch): its memory goes with the process
  }
}

// The thread has the parts: should it never end, they stay. Should there be none, they have themselves.
void nccl_channel::end(const std::function<void(parts&)>& how) noexcept {
  if (parts_ == nullptr) return;
  try {
    auto with = std::exchange(parts_, nullptr);
    with->self = with;
    std::promise<void> ended;
    auto has_ended = ended.get_future();
    auto thread = start_thread([with = std::move(with), how, ended = std::move(ended)]() mutable {
      end_here(std::move(with), how);
      ended.set_value();
    });
    has_ended.wait_for(patience) == std::future_status::ready ? thread.join() : thread.detach();
  } catch (...) {  // NOLINT(bugprone-empty-catch): no thread: all is left as it is
  }
}

}  // namespace muster::detail
