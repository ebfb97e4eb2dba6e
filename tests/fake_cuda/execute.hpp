// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>
#include <utility>

#include "machine.hpp"

namespace fake_cuda {

/// Queues what touches the memory of devices. `kind` is what a test may ask to fail: it has no caller then, so it
/// breaks the context.
template <class Body>
void execute(const std::shared_ptr<stream>& on, const char* kind, Body body) {
  the_machine().submit(on, [in = on->in(), kind, what = std::move(body)] {
    if (const auto code = the_machine().failures.next(kind); code != CUDA_SUCCESS) {
      in->break_by(code);
      return;
    }
    const address_space::in_use use(the_machine().space);
    what();
  });
}

}  // namespace fake_cuda
