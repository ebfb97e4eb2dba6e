// SPDX-License-Identifier: BSL-1.0
#include "safetensors_header.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

#include <boost/json/src.hpp>  // this source has the library

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

#include "layout.hpp"

namespace muster::detail {

namespace {

namespace json = boost::json;

constexpr std::string_view metadata_name = "__metadata__";

// By dtype's number; the format has no c128.
constexpr std::array<std::string_view, dtype_count> type_names = {
    "BOOL", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "F16", "BF16", "F32", "F64", "C64", ""};

std::optional<dtype> type_of(std::string_view name) {
  const auto found = std::find(type_names.begin(), type_names.end(), name);
  if (name.empty() || found == type_names.end()) return std::nullopt;
  return static_cast<dtype>(found - type_names.begin());
}

[[noreturn]] void refuse_header(std::string_view path, const std::string& why) {
  throw error(errc::invalid_argument, text("the file ", path, " was not written: ", why));
}

// ---- written

json::object entry_to_json(const safetensors_entry& each) {
  json::array shape;
  for (const auto size : each.shape) shape.emplace_back(static_cast<std::uint64_t>(size));
  return {{"dtype", type_names[static_cast<std::size_t>(each.type)]},
          {"shape", std::move(shape)},
          {"data_offsets", {each.begin, each.end}}};
}

json::object to_json(const safetensors_header& what, std::string_view path) {
  json::object all;
  if (!what.metadata.empty()) {
    json::object texts;
    for (const auto& [name, value] : what.metadata) texts[name] = value;
    all[metadata_name] = std::move(texts);
  }
  for (const auto& each : what.entries) {
    if (each.name == metadata_name) refuse_header(path, text("no tensor can be named '", metadata_name, "'"));
    all[each.name] = entry_to_json(each);
  }
  return all;
}

// ---- read

/// One file's header, as it is read.
///
/// Thread safety: belongs to its thread.
class header_reader {
public:
  explicit header_reader(std::string_view path) : path_(path) {}

  [[nodiscard]] json::object parse(std::string_view encoded) const {
    json::error_code problem;
    auto value = json::parse(encoded, problem);
    if (problem) refuse_file(path_, text("its header is no JSON: ", problem.message()));
    if (!value.is_object()) refuse_file(path_, "its header is no object");
    return std::move(value.as_object());
  }

  [[nodiscard]] std::vector<std::pair<std::string, std::string>> metadata(const json::value& given) const {
    std::vector<std::pair<std::string, std::string>> texts;
    if (!given.is_object()) refuse_file(path_, text(metadata_name, " is no object"));
    for (const auto& [name, value] : given.get_object()) {
      if (!value.is_string())
        refuse_file(path_, text("of ", metadata_name, " '", std::string_view(name), "' is no text"));
      texts.emplace_back(std::string_view(name), std::string_view(value.get_string()));
    }
    return texts;
  }

  [[nodiscard]] safetensors_entry entry(std::string_view name, const json::value& given) const {
    safetensors_entry made{.name = std::string(name), .shape = {}};
    if (!given.is_object()) refuse_entry(name, "is no object");
    const auto& all = given.get_object();
    const auto* const type = all.if_contains("dtype");
    if (type == nullptr || !type->is_string()) refuse_entry(name, "has no dtype");
    const auto known = type_of(std::string_view(type->get_string()));
    if (!known)
      refuse_entry(name, text("is of dtype ", std::string_view(type->get_string()), ", which muster has not"));
    made.type = *known;
    const auto sizes = numbers(name, all, "shape");
    if (sizes.size() > tensor_shape::most) refuse_entry(name, text("has ", sizes.size(), " dimensions of at most 8"));
    for (const auto size : sizes) made.shape.push_back(static_cast<std::size_t>(size));
    const auto offsets = numbers(name, all, "data_offsets");
    if (offsets.size() != 2) refuse_entry(name, "has not two data_offsets");
    made.begin = offsets[0];
    made.end = offsets[1];
    require_fit(made);
    return made;
  }

private:
  [[noreturn]] void refuse_entry(std::string_view name, const std::string& why) const {
    refuse_file(path_, text("its tensor '", name, "' ", why));
  }

  [[nodiscard]] std::vector<std::uint64_t> numbers(std::string_view name, const json::object& all,
                                                   std::string_view which) const {
    const auto* const found = all.if_contains(which);
    if (found == nullptr || !found->is_array()) refuse_entry(name, text("has no ", which));
    std::vector<std::uint64_t> made;
    for (const auto& each : found->get_array()) {
      json::error_code problem;
      made.push_back(each.to_number<std::uint64_t>(problem));
      if (problem || each.is_double()) refuse_entry(name, text("has a number in ", which, " that is no size"));
    }
    return made;
  }

  void require_fit(const safetensors_entry& each) const {
    const auto bytes = bytes_of(each.type, each.shape);
    if (bytes && each.begin <= each.end && each.end - each.begin == *bytes) return;
    refuse_entry(each.name, text("lies at bytes ", each.begin, " to ", each.end, ", which is not what ", each.type, ' ',
                                 each.shape, " takes"));
  }

  std::string_view path_;
};

// Each begins where the one before ends, and the last one ends with the file.
void require_without_gaps(const safetensors_header& header, std::uint64_t bytes, std::string_view path) {
  std::uint64_t end = 0;
  for (const auto& each : header.entries) {
    if (each.begin != end) {
      refuse_file(path, text("its tensor '", each.name, "' begins at byte ", each.begin, " and not at ", end,
                             ", where the one before ends"));
    }
    end = each.end;
  }
  if (end == bytes) return;
  refuse_file(path, text("its tensors take ", end, " bytes, and ", bytes,
                         " are there: ", end > bytes ? "it is torn" : "it has more than its header says"));
}

}  // namespace

void refuse_file(std::string_view path, const std::string& why) {
  throw error(errc::corrupted, text("the file ", path, " is no whole safetensors file: ", why));
}

// What cannot be read again is not written: names that are no UTF-8, and too many of them.
std::string safetensors_header::encode(std::string_view path) const {
  auto made = json::serialize(to_json(*this, path));
  json::error_code problem;
  static_cast<void>(json::parse(made, problem));
  if (problem) refuse_header(path, text("its names cannot be written: ", problem.message(), "; they are to be UTF-8"));
  made.resize((made.size() + 7) / 8 * 8, ' ');
  if (made.size() > most_bytes) refuse_header(path, text("its header takes ", made.size(), " bytes of ", most_bytes));
  std::string all;
  for (unsigned byte = 0; byte < length_bytes; ++byte) all += static_cast<char>(made.size() >> (8 * byte) & 0xFFU);
  return all + made;
}

safetensors_header safetensors_header::decode(std::string_view encoded, std::uint64_t bytes, std::string_view path) {
  const header_reader reader(path);
  safetensors_header made;
  for (const auto& [name, value] : reader.parse(encoded)) {
    if (std::string_view(name) == metadata_name) {
      made.metadata = reader.metadata(value);
    } else {
      made.entries.push_back(reader.entry(name, value));
    }
  }
  std::sort(made.entries.begin(), made.entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  require_without_gaps(made, bytes, path);
  return made;
}

}  // namespace muster::detail
