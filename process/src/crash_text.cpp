// SPDX-License-Identifier: BSL-1.0
#include "crash_text.hpp"

#include <algorithm>
#include <cstring>
#include <iomanip>
#include <string_view>
#include <vector>

#include <muster/base/detail/demangle.hpp>
#include <muster/base/exit_status.hpp>
#include <muster/base/text.hpp>

#include "crash_handler.hpp"
#include "symbols.hpp"

namespace muster::detail {

namespace {

std::string name_of_module(const crash_record& record, std::uint32_t module) {
  const auto& name = record.modules[module];
  return {name.data(), ::strnlen(name.data(), name.size())};
}

// By frame; mangled.
std::vector<std::string> find_functions(const crash_record& record, const std::string& program) {
  std::vector<std::string> functions(record.frames_count);
  for (std::uint32_t module = 0; module < record.modules_count; ++module) {
    std::vector<std::uint64_t> addresses;
    std::vector<std::size_t> frames;
    for (std::size_t index = 0; index < record.frames_count; ++index) {
      const auto& each = record.frames[index];
      if (each.module != module) continue;
      addresses.push_back(each.address -
                          (each.is_exact != 0 ? 0 : 1));  // the call may be a function's last instruction
      frames.push_back(index);
    }
    const auto name = name_of_module(record, module);
    auto found = find_symbols(name.empty() ? program : name, addresses);
    for (std::size_t index = 0; index < frames.size(); ++index) functions[frames[index]] = std::move(found[index]);
  }
  return functions;
}

std::string describe_cause(const crash_record& record) {
  auto cause = signal_name(record.signal);
  if (record.has_address != 0) cause += text(" at address 0x", std::hex, record.address);
  if (record.sender != 0) cause += text(", sent by process ", record.sender);
  return cause;
}

std::string describe_frame(const crash_record& record, const crash_record::frame& frame, const std::string& function) {
  if (frame.module >= record.modules_count) return text("address 0x", std::hex, frame.address);
  auto module = name_of_module(record, frame.module);
  module.erase(0, module.rfind('/') + 1);
  const auto place = text(module.empty() ? "the program" : module, "+0x", std::hex, frame.address);
  return function.empty() ? place : text(function, " (", place, ')');
}

}  // namespace

std::string describe_crash(std::span<const std::byte> bytes, const std::string& program) {
  crash_record record;
  if (bytes.size() != sizeof record) return {};
  std::memcpy(&record, bytes.data(), sizeof record);
  record.frames_count = std::min<std::uint32_t>(record.frames_count, crash_record::most_frames);
  record.modules_count = std::min<std::uint32_t>(record.modules_count, crash_record::most_modules);
  auto whole = describe_cause(record) + '\n';
  const auto functions = find_functions(record, program);
  for (std::size_t index = 0; index < functions.size(); ++index) {
    const auto function = demangle(functions[index].c_str());
    if (function.starts_with("muster::worker_end::run(")) break;  // what called the task is the same for all
    whole += text('#', index, ' ', describe_frame(record, record.frames[index], function), '\n');
  }
  return whole;
}

}  // namespace muster::detail
