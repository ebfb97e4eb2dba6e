// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <string>

#include "told_program.hpp"

namespace bench {

/// What a Python peer runs.
struct python_program {
  std::string setup;                   ///< makes `pool`
  std::string body;                    ///< statements that do the thing `count` times
  std::string end = {};                ///< at the end of the input
  std::string environment = "python";  ///< of those under out/peers
};

/// A multiprocessing.Pool of so many workers, with functions add(a, b) and add_one(x).
[[nodiscard]] python_program with_pool(unsigned workers, const std::string& body);
/// The same functions, and an executor of loky, a WorkerPool of mpire, or an actor of Ray, as `pool`; Ray's methods are
/// called as `pool.add.remote(a, b)`.
[[nodiscard]] python_program with_loky(unsigned workers, const std::string& body);
[[nodiscard]] python_program with_mpire(unsigned workers, const std::string& body);
[[nodiscard]] python_program with_ray(const std::string& body);
/// A torch.multiprocessing.Pool of one worker, a tensor `t` of so many bytes in shared memory, and function first(t).
/// Memory goes by file descriptor.
[[nodiscard]] python_program with_torch(std::size_t bytes, const std::string& body);
/// Two members of torch.distributed.rpc, 'a' and 'b', in processes of their own; `body` runs in 'a'.
[[nodiscard]] python_program with_torch_rpc(const std::string& body);
/// Two processes, each bound to a processor, that sum a tensor of so many bytes by torch.distributed and gloo.
[[nodiscard]] python_program with_gloo(std::size_t bytes);
/// Likewise, with a model of so many f32 parameters, in 25 tensors, that learns by DistributedDataParallel and SGD. Its
/// gradient is 1 everywhere.
[[nodiscard]] python_program with_ddp(std::size_t parameters);

/// A key-value store `kv` of MXNet's, of kind local, with SGD of rate 0.1 and a value 'w' of so many bytes of f32; `a`
/// and `b` are gradients, `out` is room for the value.
[[nodiscard]] python_program with_mxnet(std::size_t bytes, const std::string& body);

/// A Python interpreter that does what it is told.
class python_peer : public told_program {
public:
  explicit python_peer(const python_program& what);

  /// That of an environment of peers, under out/peers (scripts/bench); where there is none the system's.
  [[nodiscard]] static std::string interpreter(const std::string& environment = "python");
  /// Whether it finds the module.
  [[nodiscard]] static bool has(const std::string& module, const std::string& environment = "python");
  /// "2.15.0"; of a module that comes with Python, Python's. Requires: it has the module.
  [[nodiscard]] static std::string version_of(const std::string& module);
};

}  // namespace bench
