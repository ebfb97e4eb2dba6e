// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace muster::detail {

/// Which GPUs CUDA would show to this program, without a call of CUDA's: what the driver says in /proc, what of that
/// has a file in /dev, and what CUDA_VISIBLE_DEVICES leaves of it.
///
/// Thread safety: distinct objects: safe. Shared objects: safe, all members are const. To make one, nobody changes the
/// environment meanwhile.
class device_survey {
public:
  /// One that is shown.
  struct found_device {
    std::string name;     ///< by which CUDA_VISIBLE_DEVICES selects it
    std::string address;  ///< on the PCI bus; empty: not known
  };

  /// Of the machine whose files are below `system_root`.
  explicit device_survey(const std::filesystem::path& system_root);

  /// In CUDA's order: the first is the program's device 0.
  [[nodiscard]] const std::vector<found_device>& shown() const noexcept { return shown_; }
  /// What there is, where that was looked for, and what hides the rest; for errors.
  [[nodiscard]] std::string describe() const;
  /// What to do where none is shown.
  [[nodiscard]] std::string advice() const;

private:
  struct gpu {
    std::string address;
    std::string uuid;  // empty: not known
    std::optional<unsigned> minor;
  };

  void look_in_proc();
  void look_in_dev();
  void leave_out_unusable();
  void show_all();
  void show_listed(const std::string& list);
  [[nodiscard]] std::optional<found_device> find(const std::string& entry) const;
  [[nodiscard]] std::optional<found_device> find_index(const std::string& entry) const;
  [[nodiscard]] std::optional<found_device> find_uuid(const std::string& entry) const;
  [[nodiscard]] std::optional<found_device> find_instance(const std::string& entry) const;

  std::filesystem::path proc_;
  std::filesystem::path dev_;
  std::optional<std::string> list_;  // CUDA_VISIBLE_DEVICES
  bool by_address_;                  // devices are numbered so
  std::vector<gpu> gpus_;            // of the machine, by address
  std::vector<found_device> shown_;
};

}  // namespace muster::detail
