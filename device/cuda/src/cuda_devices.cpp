// SPDX-License-Identifier: BSL-1.0
#include "cuda_devices.hpp"

#include <bit>
#include <cstdlib>
#include <exception>
#include <new>
#include <utility>

#include <muster/base/detail/kept_for_next_task.hpp>
#include <muster/base/detail/pending_work.hpp>
#include <muster/base/error.hpp>
#include <muster/base/own_device.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/tensor.hpp>
#include <muster/device/tensor_compare.hpp>

#include "cuda_block.hpp"
#include "device_share.hpp"

// Named by the link line of whoever links muster::cuda, so that this file, and the entry below, are in the program.
extern "C" {
extern const int muster_cuda_is_linked;
const int muster_cuda_is_linked = 1;
}

namespace muster::detail {

namespace {

cuda_devices the_devices;
const device_kind_entry registered(device::kind::cuda, the_devices);

// A kernel of this build runs there, and what it wrote comes to the host.
void require_works(const cuda_device& device) {
  const auto written = tensor::full<float>({256}, 1.0F, device.where());
  scale(written, 2);
  if (equal(written, tensor::full<float>({256}, 2.0F))) return;
  throw error(errc::device_lost, text(device.where(), " (", device.name(), ") computes what is wrong: have it checked ",
                                      "(nvidia-smi -q), and leave it out of pool_options::devices"));
}

// Of a worker, whose own device is its first.
void open_own_device() {
  const auto own = cuda_device::open(device::cuda(0));
  try {
    require_works(*own);
  } catch (const error& problem) {
    if (problem.code() == errc::out_of_memory) own->trim();  // of what it has, nothing is used
    throw;
  }
  own->trim();
}

struct own_device_entry {
  own_device_entry() noexcept { own_device::note(open_own_device); }
};
const own_device_entry own_entry;

}  // namespace

cuda_devices& cuda_devices::of_program() { return the_devices; }

bool cuda_devices::is_elsewhere() const noexcept {
  const auto* const mark = mark_.load(std::memory_order_acquire);
  return mark != nullptr && !mark->is_here();
}

void cuda_devices::require_here() const {
  if (const auto* const mark = mark_.load(std::memory_order_acquire)) mark->require_here("a CUDA device");
}

// The mark is there before the driver is: who forks meanwhile has a child that asks nothing of it. A child of a process
// that found no driver may find one, and has a mark of its own then.
const std::shared_ptr<const cuda_driver>& cuda_devices::driver() {
  if (driver_ != nullptr) return driver_;
  if (made_in_ == nullptr || !made_in_->is_here()) made_in_ = std::make_unique<const process_mark>();
  mark_.store(made_in_.get(), std::memory_order_release);
  try {
    driver_ = cuda_driver::load();
  } catch (...) {
    mark_.store(nullptr, std::memory_order_release);
    throw;
  }
  std::atexit([] { the_devices.finish(); });  // before what the driver has for its end, which was there earlier
  return driver_;
}

void cuda_devices::finish() noexcept {
  if (is_elsewhere()) return;
  const scoped_lock lock(mutex_);
  for (const auto& [where, each] : open_) {
    if (each != nullptr) each->finish();
  }
}

std::vector<std::shared_ptr<cuda_device>> cuda_devices::opened() {
  const scoped_lock lock(mutex_);
  std::vector<std::shared_ptr<cuda_device>> all;
  for (const auto& [where, each] : open_) {
    if (each != nullptr) all.push_back(each);
  }
  return all;
}

void cuda_devices::note_pending() noexcept {
  pending_work::note([] { the_devices.synchronize(); });
}

// Without the lock: who waits for a device must not keep others from opening one. All are waited for before the first
// one's failure is told; the others' are left for who asks next.
void cuda_devices::synchronize() {
  if (is_elsewhere()) return;
  const auto all = opened();
  for (std::size_t other = 1; other < all.size(); ++other) all[other]->settle();
  for (const auto& each : all) each->synchronize();
}

// Null where there is none.
std::shared_ptr<cuda_device> cuda_devices::opened_behind(device which) {
  const scoped_lock lock(mutex_);
  for (auto each = open_.upper_bound(which); each != open_.end(); ++each) {
    if (each->second != nullptr) return each->second;
  }
  return nullptr;
}

// Without the lock, as synchronize(), and without memory for a list.
void cuda_devices::settle() noexcept {
  if (is_elsewhere()) return;
  for (auto each = opened_behind(device::cpu()); each != nullptr; each = opened_behind(each->where())) each->settle();
}

std::shared_ptr<const imported_extent> cuda_devices::kept_mapping(std::uint64_t name) {
  if (!kept_for_next_task::is_any() || is_elsewhere()) return nullptr;
  const scoped_lock lock(mutex_);
  for (const auto& [where, each] : open_) {
    if (each == nullptr) continue;
    if (auto found = each->kept_mapping(name)) return found;
  }
  return nullptr;
}

// Without the lock, as synchronize(): unmapping waits for what threads of the program have given to the device.
void cuda_devices::drop_kept() noexcept try {
  if (is_elsewhere()) return;
  for (const auto& each : opened()) each->drop_kept();
} catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): they go with those of another task
}

void cuda_devices::require_index(device which) {
  int count = 0;
  driver()->device_count(&count);
  if (which.index() < count) return;
  throw error(errc::invalid_argument, text("the device ", which, " was asked for, but this process has ", count,
                                           ", from cuda:0 on: CUDA_VISIBLE_DEVICES may hide others"));
}

std::shared_ptr<cuda_device> cuda_devices::open_one(device which) {
  require_here();
  const scoped_lock lock(mutex_);
  const auto& loaded = driver();
  auto& found = open_[which];
  if (found == nullptr) {
    require_index(which);
    found = cuda_device::make(loaded, which);
  }
  return found;
}

const std::map<device_uuid, device>& cuda_devices::names() {
  if (!names_.empty()) return names_;
  int count = 0;
  driver()->device_count(&count);
  for (int index = 0; index < count; ++index) {
    CUdevice handle = 0;
    driver()->device_get(&handle, index);
    CUuuid uuid{};
    driver()->device_uuid(&uuid, handle);
    names_.emplace(std::bit_cast<device_uuid>(uuid), device::cuda(static_cast<std::uint16_t>(index)));
  }
  return names_;
}

std::shared_ptr<cuda_device> cuda_devices::open_one(const device_uuid& which) {
  require_here();
  std::optional<device> found;
  {
    const scoped_lock lock(mutex_);
    if (const auto named = names().find(which); named != names_.end()) found = named->second;
  }
  if (found) return open_one(*found);
  throw error(errc::invalid_argument,
              "a tensor on a GPU came that this process does not see: let CUDA_VISIBLE_DEVICES "
              "show it here too, or send the tensor as a copy (transfer::copy)");
}

std::optional<device> cuda_devices::find(const device_uuid& which) noexcept {
  if (is_elsewhere()) return std::nullopt;
  const scoped_lock lock(mutex_);
  if (has_no_driver_ && driver_ == nullptr) return std::nullopt;
  try {
    const auto named = names().find(which);
    return named != names_.end() ? std::optional(named->second) : std::nullopt;
  } catch (const std::exception&) {
    has_no_driver_ = driver_ == nullptr;
    return std::nullopt;
  }
}

unsigned cuda_devices::count() {
  require_here();
  const scoped_lock lock(mutex_);
  if (driver_ == nullptr && cuda_driver::problem()) return 0;
  int count = 0;
  driver()->device_count(&count);
  return static_cast<unsigned>(count);
}

std::vector<std::pair<device, std::uint64_t>> cuda_devices::free_memory() {
  std::vector<std::pair<device, std::uint64_t>> all;
  const auto devices = count();
  for (unsigned index = 0; index < devices; ++index) {
    const auto which = device::cuda(static_cast<std::uint16_t>(index));
    all.emplace_back(which, open_one(which)->memory().free_bytes);
  }
  return all;
}

void cuda_devices::log_to(log_sink where) {
  const scoped_lock lock(log_mutex_);
  log_ = std::move(where);
  noted_.clear();
}

// A sink may wait: not under the lock. Without memory for it, nothing is said.
void cuda_devices::note_copied(copy_cause why, device where) noexcept try {
  log_sink log;
  {
    const scoped_lock lock(log_mutex_);
    if (!noted_.insert(why).second) return;
    log = log_;
  }
  const auto* const cause = why == copy_cause::foreign
                                ? "another library has allocated its memory (DLPack), of which the driver gives no "
                                  "descriptor: clone() it once where it is to be sent often"
                                : "the driver exports no memory of this device, neither by descriptor nor by cudaIpc";
  if (log) {
    log(log_level::warning, text("a tensor on ", where, " goes to another process as a copy, by way of the host: ",
                                 cause, ". This is said once"));
  }
} catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no memory for a warning
}

std::shared_ptr<const device_block> cuda_devices::over(device where, std::uintptr_t address, std::size_t bytes,
                                                       std::shared_ptr<void> keeper) {
  return std::make_shared<const foreign_block>(open_one(where), address, bytes, std::move(keeper));
}

std::shared_ptr<const device_block> cuda_devices::read_from(frame_reader& in) { return received_block::read_from(in); }

}  // namespace muster::detail
