// SPDX-License-Identifier: BSL-1.0
#include "safetensors_header.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

#include <nlohmann/json.hpp>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

#include "layout.hpp"

namespace muster::detail {

namespace {

using json = nlohmann::ordered_json;

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

json to_json(const safetensors_entry& each) {
  return {{"dtype", type_names[static_cast<std::size_t>(each.type)]},
          {"shape", std::vector<std::uint64_t>(each.shape.begin(), each.shape.end())},
          {"data_offsets", {each.begin, each.end}}};
}

json to_json(const safetensors_header& what, std::string_view path) {
  auto all = json::object();
  for (const auto& [name, value] : what.metadata) all[std::string(metadata_name)][name] = value;
  for (const auto& each : what.entries) {
    if (each.name == metadata_name) refuse_header(path, text("no tensor can be named '", metadata_name, "'"));
    all[each.name] = to_json(each);
  }
  return all;
}

std::string text_of(const json& what, std::string_view path) {
  try {
    return what.dump();
  } catch (const json::exception& failure) {
    refuse_header(path, text("its names and texts are to be UTF-8: ", failure.what()));
  }
}

// ---- read

/// One file's header, as it is read.
///
/// Thread safety: belongs to its thread.
class header_reader {
public:
  explicit header_reader(std::string_view path) : path_(path) {}

  [[nodiscard]] json parse(std::string_view encoded) const {
    try {
      auto value = json::parse(encoded);
      if (value.is_object()) return value;
    } catch (const json::exception& failure) {
      refuse_file(path_, text("its header is no JSON: ", failure.what()));
    }
    refuse_file(path_, "its header is no object");
  }

  [[nodiscard]] std::vector<std::pair<std::string, std::string>> metadata(const json& given) const {
    std::vector<std::pair<std::string, std::string>> texts;
    if (!given.is_object()) refuse_file(path_, text(metadata_name, " is no object"));
    for (const auto& [name, value] : given.items()) {
      if (!value.is_string()) refuse_file(path_, text("of ", metadata_name, " '", name, "' is no text"));
      texts.emplace_back(name, value.get<std::string>());
    }
    return texts;
  }

  [[nodiscard]] safetensors_entry entry(std::string_view name, const json& given) const {
    safetensors_entry made{.name = std::string(name), .shape = {}};
    const auto type = given.find("dtype");
    if (!given.is_object() || type == given.end() || !type->is_string()) refuse_entry(name, "has no dtype");
    const auto known = type_of(type->get_ref<const std::string&>());
    if (!known) refuse_entry(name, text("is of dtype ", type->get<std::string>(), ", which muster has not"));
    made.type = *known;
    const auto sizes = numbers(name, given, "shape");
    if (sizes.size() > tensor_shape::most) refuse_entry(name, text("has ", sizes.size(), " dimensions of at most 8"));
    for (const auto size : sizes) made.shape.push_back(static_cast<std::size_t>(size));
    const auto offsets = numbers(name, given, "data_offsets");
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

  [[nodiscard]] std::vector<std::uint64_t> numbers(std::string_view name, const json& all, const char* which) const {
    const auto found = all.find(which);
    if (found == all.end() || !found->is_array()) refuse_entry(name, text("has no ", which));
    std::vector<std::uint64_t> made;
    for (const auto& each : *found) {
      if (!each.is_number_unsigned()) refuse_entry(name, text("has a number in ", which, " that is no size"));
      made.push_back(each.get<std::uint64_t>());
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

std::string safetensors_header::encode(std::string_view path) const {
  auto made = text_of(to_json(*this, path), path);
  made.resize((made.size() + 7) / 8 * 8, ' ');
  if (made.size() > most_bytes) refuse_header(path, text("its header takes ", made.size(), " bytes of ", most_bytes));
  std::string all;
  for (unsigned byte = 0; byte < length_bytes; ++byte) all += static_cast<char>(made.size() >> (8 * byte) & 0xFFU);
  return all + made;
}

// Of two tensors of one name the parser keeps one: the other leaves a gap, or has no elements.
safetensors_header safetensors_header::decode(std::string_view encoded, std::uint64_t bytes, std::string_view path) {
  const header_reader reader(path);
  const auto all = reader.parse(encoded);
  safetensors_header made;
  for (const auto& [name, value] : all.items()) {
    if (name == metadata_name) {
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
