// SPDX-License-Identifier: BSL-1.0
// Functions of the driver: modules and kernels; and what tests ask.
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "call.hpp"
#include "execute.hpp"
#include "fake_cuda.hpp"

using namespace fake_cuda;

namespace {

// Of what nvcc -fatbin makes. The kernels that run are those compiled for the host.
constexpr std::uint32_t magic_of_fatbin = 0xba55'ed50;
constexpr int oldest_capability = 80;

const kernel* find_kernel(std::string_view name) {
  for (const auto* each = all_kernels(); each->name != nullptr; ++each) {
    if (name == each->name) return each;
  }
  throw failure{CUDA_ERROR_NOT_FOUND};
}

std::vector<std::byte> copied(const void* argument, std::size_t bytes) {
  const auto* const first = static_cast<const std::byte*>(argument);
  return {first, first + bytes};
}

bool fits(unsigned x, unsigned y, unsigned z, std::uint64_t most) {
  return x != 0 && y != 0 && z != 0 && std::uint64_t{x} * y * z <= most;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuModuleLoadData(CUmodule* made, const void* image) {
  return call_in_context("cuModuleLoadData", [&](const std::shared_ptr<context>& here) {
    require(image != nullptr, CUDA_ERROR_INVALID_VALUE);
    std::uint32_t magic = 0;
    std::memcpy(&magic, image, sizeof(magic));
    require(magic == magic_of_fatbin, CUDA_ERROR_INVALID_IMAGE);
    require(the_machine().devices().capability() >= oldest_capability, CUDA_ERROR_NO_BINARY_FOR_GPU);
    *made = the_machine().modules.add(std::make_shared<module>(module{here}));
  });
}

CUresult CUDAAPI cuModuleUnload(CUmodule which) {
  auto& all = the_machine();
  return call_to_destroy("cuModuleUnload", all.modules, which, [&] {
    const auto removed = all.modules.remove(which, CUDA_ERROR_INVALID_VALUE);
    all.functions.remove_if([&](const function& each) { return each.of == removed; });
  });
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction* found, CUmodule which, const char* name) {
  return call_in_context("cuModuleGetFunction", [&](const auto&) {
    auto of = the_machine().modules.find(which, CUDA_ERROR_INVALID_VALUE);
    *found = the_machine().functions.add(std::make_shared<function>(function{std::move(of), find_kernel(name)}));
  });
}

CUresult CUDAAPI cuLaunchKernel(CUfunction which, unsigned int blocks_x, unsigned int blocks_y, unsigned int blocks_z,
                                unsigned int threads_x, unsigned int threads_y, unsigned int threads_z, unsigned int,
                                CUstream stream_of_it, void** arguments, void** extra) {
  return call_in_context("cuLaunchKernel", [&](const std::shared_ptr<context>& here) {
    const auto found = the_machine().functions.find(which);
    const auto on = the_machine().find_stream(stream_of_it, here);
    require(found->of->in == here && on->in() == here, CUDA_ERROR_INVALID_HANDLE);
    require(fits(threads_x, threads_y, threads_z, 1024) && fits(1, blocks_y, blocks_z, 65535U * 65535ULL) &&
                fits(blocks_x, 1, 1, 0x7fff'ffff) && extra == nullptr,
            CUDA_ERROR_INVALID_VALUE);
    execute(on, "kernel",
            [what = found->what, argument = copied(arguments[0], found->what->argument_bytes), blocks_x, blocks_y,
             blocks_z, threads_x, threads_y, threads_z] {
              what->run(argument.data(), {blocks_x, blocks_y, blocks_z}, {threads_x, threads_y, threads_z});
            });
  });
}

std::size_t fake_cuda_copied(fake_cuda_direction which) { return the_machine().copied.at(which).load(); }

std::size_t fake_cuda_live(fake_cuda_kind kind) {
  auto& all = the_machine();
  switch (kind) {
    case fake_cuda_contexts: return all.retained();
    case fake_cuda_streams: return all.streams.count();
    case fake_cuda_events: return all.events.count();
    case fake_cuda_modules: return all.modules.count();
    case fake_cuda_allocations: return all.allocations.count();
    case fake_cuda_reservations: return all.space.reservations();
    case fake_cuda_mappings: return all.space.mappings();
    case fake_cuda_registrations: return all.space.registrations();
    case fake_cuda_blocks: return all.blocks.allocated();
    case fake_cuda_opened_blocks: return all.blocks.opened();
  }
  return 0;
}

std::size_t fake_cuda_copies_between(int directly) {
  return directly != 0 ? the_machine().direct_copies : the_machine().staged_copies;
}

std::size_t fake_cuda_forked_calls() { return the_machine().forked_calls; }

std::size_t fake_cuda_stale() { return the_machine().stale; }

void fake_cuda_fail(const char* function, CUresult code, int after_calls) {
  the_machine().failures.add(function, code, after_calls);
}

void fake_cuda_no_failures() { the_machine().failures.clear(); }

CUresult fake_cuda_run(CUstream where, void (*function)(void*), void* argument) {
  return call_in_context("fake_cuda_run", [&](const std::shared_ptr<context>& here) {
    execute(the_machine().find_stream(where, here), "library", [function, argument] { function(argument); });
  });
}

int fake_cuda_physical() {
  const auto here = any_current_context();
  return here == nullptr ? -1 : here->physical;
}
}
