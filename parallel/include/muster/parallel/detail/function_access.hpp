// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the templates of functions ask of a world, which is declared only: programs do not compile it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <muster/base/detail/duration.hpp>
#include <muster/device/tensor.hpp>
#include <muster/parallel/call_profile.hpp>
#include <muster/parallel/detail/function_spec.hpp>
#include <muster/parallel/detail/share_run.hpp>
#include <muster/parallel/row_selection.hpp>
#include <muster/serialize/detail/function_token.hpp>

namespace muster::detail {

class local_core;
class world_core;
/// A function of a world without its types.
class function_core;

/// A function, as the caller keeps it and as it is sent.
struct registered_function {
  function_spec spec;
  function_token factory{};
  std::vector<std::byte> sent{};
  std::shared_ptr<rank_function> code{};  ///< for the caller's own share
  std::uint64_t since = 0;                ///< which change of the world it came with
  std::uint64_t changed = 0;              ///< and which was its last
  std::uint64_t steps = 0;                ///< how often its rules were applied
};

/// An input whose rows are dealt out.
struct call_input {
  tensor value;
  bool is_minibatch = false;
};

/// What run_options say.
struct call_selections {
  const row_selection* batch = nullptr;
  const std::vector<row_selection>* resident = nullptr;
  unsigned slices = 1;
  std::chrono::nanoseconds timeout{};
};

/// One call, as the typed part asks for it.
struct run_request {
  std::vector<call_input> inputs;
  call_selections options;
  std::uint64_t outputs = 0;
  std::function<void(frame_writer&)> write_values{};
  std::function<void(frame_reader&)> read_outputs{};
  std::function<void()> finish_outputs{};
};

/// In all ranks; see parallel_function.
void run_in_ranks(function_core& which, run_request& request);
/// In this thread alone.
void run_here(function_core& which, run_request& request);

/// Lifetime: as the function's.
[[nodiscard]] const function_spec& spec_of(const function_core& which) noexcept;
[[nodiscard]] std::vector<output_op> output_modes_of(const function_core& which);
[[nodiscard]] std::vector<output_op> update_modes_of(const function_core& which);
[[nodiscard]] call_profile profile_of(const function_core& which);
/// The thread that makes calls of that world in the background, in the order in which they were asked for.
/// Throws errc::pool_closed.
[[nodiscard]] std::shared_ptr<local_core> conductor_of(function_core& which);

}  // namespace muster::detail
