// SPDX-License-Identifier: BSL-1.0
#pragma once

// Naming a function in another process of the same build, without registration.
//
// A token is {module:16, check:16, offset:32}: the offset of the function in an executable or library, which is the
// same wherever the loader puts it, and the index of that module in a directory that lies in shared memory and gives
// its build-id. The check lets nobody jump to where a token leads that was overwritten in shared memory. The receiver
// looks the build-id up among its own modules, so a token can only ever mean the same code; a module without a
// build-id, or with the build-id of another one, is refused (fail closed). A library of which a function was named, or
// called by its token, stays loaded from then on, whoever closes it: no other can come to where it was. Source: the
// cross-code-segment relocation of UPC++ (its ccs.cpp), with the table agreed at run time instead of by a collective
// call.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <muster/base/detail/mutex.hpp>
#include <muster/serialize/detail/modules.hpp>

namespace muster {

/// Names a function across processes; meaningful together with a module directory.
enum class function_token : std::uint64_t {};

/// One line of the shared directory of modules. Written once, by the parent or the process that has claimed it;
/// complete when `length` is neither 0 nor `claimed`.
struct module_entry {
  static constexpr std::size_t most_bytes = 60;
  static constexpr std::uint32_t claimed = ~std::uint32_t{0};

  std::atomic<std::uint32_t> length;
  std::array<char, most_bytes> build_id;
};
static_assert(sizeof(module_entry) == 64);

/// How many modules may define functions that are sent.
inline constexpr std::size_t module_directory_size = 64;

using module_directory = std::span<module_entry, module_directory_size>;

/// Makes tokens, and enters modules into the directory when one of their functions is first named.
///
/// A library stays loaded once a function of it was named: dlclose() does not unload it any more, and dlopen() of its
/// path gives it again, also when another build lies there. Load a new build by another path.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: one encoder per directory enters modules, in the parent; workers have encoders that do not. Or all
/// do
/// (`shared`): then each claims an entry first, so that a process that dies meanwhile costs one.
class token_encoder {
public:
  struct entered_only {};  ///< says that an encoder is to name only functions of modules that the parent has entered

  struct shared {};  ///< says that encoders of several processes enter modules into the directory

  /// Lifetime: borrows the directory.
  /// Throws errc::module_mismatch when the executable itself has no build-id.
  ///@{
  explicit token_encoder(module_directory directory);
  token_encoder(module_directory directory, shared /*tag*/);
  ///@}
  token_encoder(module_directory directory, entered_only /*tag*/) noexcept : directory_(directory), way_(way::finds) {}

  /// Which entry the module has that a function is of.
  [[nodiscard]] static std::size_t entry_of(function_token token) noexcept {
    return static_cast<std::uint64_t>(token) >> 48U;
  }
  /// That of the executable. Requires: this encoder enters modules.
  [[nodiscard]] std::size_t executable() const noexcept { return known_[0].entry; }

  /// Throws errc::module_mismatch, with the table of modules, when the code lies in no module, in one without a
  /// build-id, in one of two with the same build-id, in one that is to be entered and must not, in one that is being
  /// unloaded, or when the directory is full.
  /// Cost: about a nanosecond for a function of the executable.
  template <class Function>
    requires std::is_function_v<Function>
  [[nodiscard]] function_token encode(Function* function) {
    return encode_address(reinterpret_cast<std::uintptr_t>(function));
  }

  /// Writes the directory again, in case somebody has overwritten it; true if somebody had.
  bool restore_directory() MUSTER_EXCLUDES(mutex_);

private:
  struct known_module {
    std::uintptr_t base = 0;
    std::uintptr_t code_begin = 0;
    std::uintptr_t code_end = 0;
    std::size_t entry = 0;  // in the directory
  };

  enum class way : std::uint8_t { enters, shares, finds };

  void enter_executable();
  function_token encode_address(std::uintptr_t address);
  function_token enter_module_of(std::uintptr_t address) MUSTER_EXCLUDES(mutex_);
  std::size_t enter(const module_info& module) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] std::size_t claim_entry(const module_info& module, std::span<const module_info> modules) const;
  [[nodiscard]] std::size_t find_entry(const module_info& module, std::span<const module_info> modules) const;

  const module_directory directory_;
  const way way_ = way::enters;
  std::array<known_module, module_directory_size> known_;
  std::atomic<std::size_t> count_ = 0;  // entries before it never change: release when added, acquire when read
  mutex mutex_;                         // for adding
  std::vector<std::string> build_ids_ MUSTER_GUARDED_BY(mutex_);
};

/// Turns tokens into addresses of this process. A library stays loaded once a token has led there, as with an encoder.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: each process has its own decoder over the same directory.
class token_decoder {
public:
  /// Lifetime: borrows the directory.
  explicit token_decoder(module_directory directory) : directory_(directory) {}

  /// Throws errc::module_mismatch when this process has not loaded the module, and errc::corrupted when the token
  /// does not lie in a module's code.
  template <class Function>
  [[nodiscard]] Function* decode(function_token token) {
    return reinterpret_cast<Function*>(decode_address(token));  // NOLINT(performance-no-int-to-ptr): it is one
  }

private:
  struct resolved_module {
    std::atomic<bool> known = false;  // release after the rest was written, acquire before it is read
    std::uintptr_t base = 0;
    std::uintptr_t code_begin = 0;
    std::uintptr_t code_end = 0;
  };

  std::uintptr_t decode_address(function_token token);
  const resolved_module& resolve(std::size_t index) MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] module_info find_module(std::size_t index) const;

  const module_directory directory_;
  std::array<resolved_module, module_directory_size> resolved_;
  mutex mutex_;  // for resolving
};

}  // namespace muster
