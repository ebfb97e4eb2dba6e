// SPDX-License-Identifier: BSL-1.0
#include <muster/device/safetensors.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>

#include <muster/base/error.hpp>
#include <muster/base/replaced_file.hpp>
#include <muster/base/text.hpp>

#include "safetensors_header.hpp"

namespace muster {

namespace {

[[noreturn]] void refuse_writing(const std::string& path, const std::string& why) {
  throw error(errc::invalid_argument, text("the file ", path, " was not written: ", why));
}

std::string list_of_names(const safetensors& all) {
  std::string names;
  for (const auto& [name, value] : all.tensors) names += text(names.empty() ? "'" : ", '", name, "'");
  return names.empty() ? "none" : names;
}

using named_tensor = std::pair<std::string, tensor>;

// So that all lie at multiples of their sizes.
std::vector<const named_tensor*> larger_first(const safetensors& what) {
  std::vector<const named_tensor*> order;
  order.reserve(what.tensors.size());
  for (const auto& each : what.tensors) order.push_back(&each);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    const auto size_of = [](const auto* each) { return dtype_size(each->second.dtype()); };
    return size_of(a) != size_of(b) ? size_of(a) > size_of(b) : a < b;
  });
  return order;
}

void require_writable_as_file(const std::string& path, const safetensors& what) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : what.tensors) {
    if (value.dtype() == dtype::c128) {
      refuse_writing(path, text("'", name,
                                "' is of dtype c128, which safetensors has not: convert() it to c64, or "
                                "view it as f64"));
    }
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) refuse_writing(path, text("there are two tensors '", *twice, "'"));
}

// Bools are written as 0 and 1, whatever their bytes are.
void write_elements(detail::replaced_file& file, const tensor& what) {
  const auto here = what.to(device::cpu());
  const auto row = here.dtype() == dtype::boolean ? here.clone(memory::local) : here.contiguous();
  if (row.size() != 0) file.write({row.const_data(), row.nbytes()});
}

}  // namespace

bool safetensors::contains(std::string_view name) const noexcept {
  return std::any_of(tensors.begin(), tensors.end(), [&](const auto& each) { return each.first == name; });
}

const tensor& safetensors::at(std::string_view name) const {
  for (const auto& [own, value] : tensors) {
    if (own == name) return value;
  }
  throw error(errc::invalid_argument,
              text("there is no tensor '", name, "' among those of a file, which are ", list_of_names(*this)));
}

void write_safetensors(const std::string& path, const safetensors& what) {
  require_writable_as_file(path, what);
  const auto order = larger_first(what);
  detail::safetensors_header header{.entries = {}, .metadata = what.metadata};
  std::uint64_t end = 0;
  for (const auto* each : order) {
    const auto& value = each->second;
    header.entries.push_back({each->first, value.dtype(), value.shape(), end, end + value.nbytes()});
    end += value.nbytes();
  }
  const auto encoded = header.encode(path);
  detail::replaced_file file(path);
  file.write(std::as_bytes(std::span(encoded)));
  for (const auto* each : order) write_elements(file, each->second);
  file.commit();
}

}  // namespace muster
