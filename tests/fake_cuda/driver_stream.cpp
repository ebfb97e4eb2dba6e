// SPDX-License-Identifier: BSL-1.0
// Functions of the driver: streams, events, and what streams do.
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "call.hpp"
#include "execute.hpp"
#include "fake_cuda.hpp"

using namespace fake_cuda;

namespace {

using place = address_space::place;

// What a stream answers: what its context was broken by.
void require_whole(const context& which) {
  require(!which.is_destroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  if (const auto code = which.broken_by.load(); code != CUDA_SUCCESS) throw failure{code};
}

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool is_met(std::uint64_t found, std::uint64_t wanted, unsigned flags) {
  switch (flags & 3U) {
    case CU_STREAM_WAIT_VALUE_GEQ: return static_cast<std::int64_t>(found - wanted) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ: return found == wanted;
    case CU_STREAM_WAIT_VALUE_AND: return (found & wanted) != 0;
    default: return ~(found | wanted) != 0;
  }
}

// A device looks again and again, too.
void wait_for_value(const context& in, CUdeviceptr where, std::uint64_t value, unsigned flags) {
  for (unsigned looks = 0; !in.is_over(); ++looks) {
    {
      const address_space::in_use use(the_machine().space);
      const auto* const word = static_cast<const std::uint64_t*>(pointer(where));
      if (is_met(__atomic_load_n(word, __ATOMIC_ACQUIRE), value, flags)) return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(looks < 100 ? 1 : 50));
  }
}

void require_word(CUdeviceptr where, const context& in) {
  require(where % sizeof(std::uint64_t) == 0, CUDA_ERROR_INVALID_VALUE);
  const auto found = the_machine().space.find(where, sizeof(std::uint64_t), in.physical);
  require(found.where != place::elsewhere, CUDA_ERROR_INVALID_VALUE);
}

// Memory that is not registered is read before the call returns, and written before it returns.
void copy(const std::shared_ptr<stream>& on, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  auto& all = the_machine();
  const auto physical = on->in()->physical;
  const auto is_on_device = [&](CUdeviceptr where) {
    return all.space.find(where, bytes, physical).where == place::device;
  };
  const auto direction = !is_on_device(to)    ? fake_cuda_downloads
                         : is_on_device(from) ? fake_cuda_moves
                                              : fake_cuda_uploads;
  all.copied.at(direction) += bytes;
  const bool waits = all.space.find(to, bytes, physical).where == place::elsewhere;
  if (all.space.find(from, bytes, physical).where == place::elsewhere) {
    const auto* const first = static_cast<const std::byte*>(pointer(from));
    execute(on, "copy", [to, staged = std::vector<std::byte>(first, first + bytes)] {
      std::memcpy(pointer(to), staged.data(), staged.size());
    });
  } else {
    execute(on, "copy", [to, from, bytes] { std::memmove(pointer(to), pointer(from), bytes); });
  }
  if (waits) {
    on->state()->wait(on->state()->last());
    require_whole(*on->in());
  }
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream which) {
  return call_in_context("cuMemcpyAsync", [&](const std::shared_ptr<context>& here) {
    const auto on = the_machine().find_stream(which, here);
    require_whole(*on->in());
    if (bytes != 0) copy(on, to, from, bytes);
  });
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t bytes, CUstream which) {
  return call_in_context("cuMemsetD8Async", [&](const std::shared_ptr<context>& here) {
    const auto on = the_machine().find_stream(which, here);
    require_whole(*on->in());
    if (bytes == 0) return;
    require(the_machine().space.find(to, bytes, on->in()->physical).where != place::elsewhere,
            CUDA_ERROR_INVALID_VALUE);
    execute(on, "memset", [to, value, bytes] { std::memset(pointer(to), value, bytes); });
  });
}

CUresult CUDAAPI cuStreamCreate(CUstream* made, unsigned int flags) {
  return call_in_context("cuStreamCreate", [&](const std::shared_ptr<context>& here) {
    require((flags & ~unsigned{CU_STREAM_NON_BLOCKING}) == 0, CUDA_ERROR_INVALID_VALUE);
    *made = the_machine().make_stream(here, flags == 0);
  });
}

CUresult CUDAAPI cuStreamDestroy(CUstream which) {
  auto& all = the_machine();
  return call_to_destroy("cuStreamDestroy", all.streams, which, [&] { all.retire(which); });
}

CUresult CUDAAPI cuStreamQuery(CUstream which) {
  return call_in_context("cuStreamQuery", [&](const std::shared_ptr<context>& here) {
    const auto on = the_machine().find_stream(which, here);
    require_whole(*on->in());
    require(on->state()->is_done(on->state()->last()), CUDA_ERROR_NOT_READY);
  });
}

CUresult CUDAAPI cuStreamSynchronize(CUstream which) {
  return call_in_context("cuStreamSynchronize", [&](const std::shared_ptr<context>& here) {
    const auto on = the_machine().find_stream(which, here);
    on->state()->wait(on->state()->last());
    require_whole(*on->in());
  });
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream which, CUevent what, unsigned int) {
  return call_in_context("cuStreamWaitEvent", [&](const std::shared_ptr<context>& here) {
    auto& all = the_machine();
    const auto on = all.find_stream(which, here);
    const auto last = all.events.find(what)->last();
    if (last != nullptr) all.submit(on, [last] { last->of->wait(last->number); });
  });
}

CUresult CUDAAPI cuStreamWaitValue64(CUstream which, CUdeviceptr where, cuuint64_t value, unsigned int flags) {
  return call_in_context("cuStreamWaitValue64", [&](const std::shared_ptr<context>& here) {
    const auto on = the_machine().find_stream(which, here);
    require_word(where, *on->in());
    the_machine().submit(on, [in = on->in(), where, value, flags] { wait_for_value(*in, where, value, flags); });
  });
}

CUresult CUDAAPI cuStreamWriteValue64(CUstream which, CUdeviceptr where, cuuint64_t value, unsigned int) {
  return call_in_context("cuStreamWriteValue64", [&](const std::shared_ptr<context>& here) {
    const auto on = the_machine().find_stream(which, here);
    require_word(where, *on->in());
    execute(on, "write",
            [where, value] { __atomic_store_n(static_cast<std::uint64_t*>(pointer(where)), value, __ATOMIC_SEQ_CST); });
  });
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream which, CUhostFn function, void* argument) {
  return call_in_context("cuLaunchHostFunc", [&](const std::shared_ptr<context>& here) {
    const auto on = the_machine().find_stream(which, here);
    require_whole(*on->in());
    the_machine().submit(on, [function, argument] { function(argument); });
  });
}

// Called also where what was before it failed.
CUresult CUDAAPI cuStreamAddCallback(CUstream which, CUstreamCallback function, void* data, unsigned int flags) {
  return call_in_context("cuStreamAddCallback", [&](const std::shared_ptr<context>& here) {
    const auto on = the_machine().find_stream(which, here);
    require(flags == 0, CUDA_ERROR_INVALID_VALUE);
    require_whole(*on->in());
    const auto tell = [which, function, data, in = on->in()] {
      const auto broken_by = in->broken_by.load();
      function(which, in->is_destroyed && broken_by == CUDA_SUCCESS ? CUDA_ERROR_CONTEXT_IS_DESTROYED : broken_by,
               data);
    };
    the_machine().submit(on, tell, true);
  });
}

CUresult CUDAAPI cuEventCreate(CUevent* made, unsigned int flags) {
  return call_in_context("cuEventCreate", [&](const std::shared_ptr<context>& here) {
    const bool has_time = (flags & CU_EVENT_DISABLE_TIMING) == 0;
    require(!has_time || (flags & CU_EVENT_INTERPROCESS) == 0, CUDA_ERROR_INVALID_VALUE);
    *made = the_machine().events.add(std::make_shared<event>(here, has_time));
  });
}

CUresult CUDAAPI cuEventDestroy(CUevent which) {
  auto& all = the_machine();
  return call_to_destroy("cuEventDestroy", all.events, which, [&] { all.events.remove(which); });
}

CUresult CUDAAPI cuEventRecord(CUevent which, CUstream stream_of_it) {
  return call_in_context("cuEventRecord", [&](const std::shared_ptr<context>& here) {
    auto& all = the_machine();
    const auto found = all.events.find(which);
    const auto on = all.find_stream(stream_of_it, here);
    require(found->in == on->in(), CUDA_ERROR_INVALID_HANDLE);
    require_whole(*on->in());
    const auto made = std::make_shared<recording>();
    made->of = on->state();
    made->number = all.submit(on, [made] { made->time_ns = now_ns(); });
    found->set(made);
  });
}

CUresult CUDAAPI cuEventQuery(CUevent which) {
  return call("cuEventQuery", [&] {
    const auto found = the_machine().events.find(which);
    require_whole(*found->in);
    const auto last = found->last();
    require(last == nullptr || last->is_done(), CUDA_ERROR_NOT_READY);
  });
}

CUresult CUDAAPI cuEventSynchronize(CUevent which) {
  return call_in_context("cuEventSynchronize", [&](const auto&) {
    const auto found = the_machine().events.find(which);
    if (const auto last = found->last()) last->of->wait(last->number);
    require_whole(*found->in);
  });
}

CUresult CUDAAPI cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  return call_in_context("cuEventElapsedTime", [&](const auto&) {
    const auto begin = the_machine().events.find(from);
    const auto end = the_machine().events.find(to);
    const auto first = begin->last();
    const auto second = end->last();
    require(begin->has_time && end->has_time && first != nullptr && second != nullptr, CUDA_ERROR_INVALID_HANDLE);
    require(first->is_done() && second->is_done(), CUDA_ERROR_NOT_READY);
    *milliseconds = static_cast<float>(second->time_ns - first->time_ns) / 1e6F;
  });
}
}
