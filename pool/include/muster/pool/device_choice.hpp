// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include <muster/base/device.hpp>
#include <muster/process/detail/device_assignment.hpp>

namespace muster {

/// Which GPUs a pool's workers are pinned to: pool_options::devices.
///
///     muster::pool pool({.devices = {muster::device::cuda(0), muster::device::cuda(1)}});
///     muster::pool four_each({.workers = 32, .devices = muster::device_choice::automatic()});  // of 8 devices
///
/// Worker `i` gets device `i` modulo their number, and so does each process that takes its place. In a worker its own
/// device is CUDA's number 0, whatever code it runs; the others of the choice come behind it, each in its turn, so that
/// they can be reached from there: CUDA_VISIBLE_DEVICES is, for the worker of b in {a, b, c}, "b,c,a".
/// CUDA_DEVICE_ORDER is PCI_BUS_ID there, unless the program's environment says otherwise. Where pool_options::pin is
/// not given, workers run on the processors near their device, which workers of the same device share, if the machine
/// says which those are. What a worker was given it can ask for: this_worker::device().
///
/// Devices are numbered as CUDA numbers them for the program with CUDA_DEVICE_ORDER=PCI_BUS_ID: from 0, by address, as
/// nvidia-smi does, or as the program's own CUDA_VISIBLE_DEVICES lists them, by index, GPU-… or MIG-…. A program that
/// uses devices itself sets that order too, or its numbers may be others than its workers' where models differ.
///
/// The program makes no call of CUDA's for this, and no context: it reads what the driver says in /proc.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class device_choice {
public:
  /// None: workers see what the program sees, and share it as they like.
  device_choice() noexcept = default;
  /// These, in turn; one that is named twice gets two workers where others get one.
  /// Throws errc::invalid_argument for an empty list, and for the host.
  ///@{
  device_choice(std::initializer_list<device> these) : device_choice(std::vector<device>(these)) {}
  device_choice(std::vector<device> these);  // NOLINT(google-explicit-constructor): written as the value of an option
  ///@}
  /// All that the machine shows to the program.
  [[nodiscard]] static device_choice automatic();

  /// The same on a machine whose /proc, /sys and /dev are below `system_root`: a test passes a made-up one.
  [[nodiscard]] device_choice on_machine(std::string system_root) const;

  /// The same machine, but these devices; workers see those of `seen` too, behind all others.
  [[nodiscard]] device_choice choosing(std::vector<device> these, std::vector<device> seen = {}) const;

  /// What that is on this machine: worker `i` gets assignment `i` modulo their number; none: they have no devices.
  /// Throws errc::invalid_argument when there is none of them, and says what there is and what was looked at.
  /// Cost: reads two small files for each device of the machine.
  [[nodiscard]] std::vector<device_assignment> resolve() const;

private:
  bool automatic_ = false;
  std::vector<device> these_;
  std::vector<device> seen_;
  std::string system_root_ = "/";
};

}  // namespace muster
