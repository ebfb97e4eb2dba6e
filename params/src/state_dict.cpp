// SPDX-License-Identifier: BSL-1.0
#include <muster/params/state_dict.hpp>

#include <algorithm>
#include <span>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/detail/device_block.hpp>

namespace muster {

namespace {

constexpr std::size_t alignment = 64;

std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

tensor_shape shape_of_sizes(const std::vector<std::size_t>& each) { return tensor_shape(std::span(each)); }

std::string list_of_names(const std::vector<std::string>& which) {
  std::string all;
  for (const auto& each : which) all += text(all.empty() ? "'" : ", '", each, "'");
  return all.empty() ? "none" : all;
}

}  // namespace

state_dict::state_dict(const std::vector<std::pair<std::string, tensor>>& tensors) { make(tensors); }

state_dict::state_dict(std::initializer_list<std::pair<std::string, tensor>> tensors) { make(tensors); }

void state_dict::make(const std::vector<std::pair<std::string, tensor>>& tensors) {
  std::size_t end = 0;
  for (const auto& [name, value] : tensors) {
    if (contains(name)) throw error(errc::invalid_argument, text("a state_dict was given two tensors '", name, "'"));
    places_.push_back({.name = name,
                       .type = value.dtype(),
                       .shape = std::vector<std::size_t>(value.shape().begin(), value.shape().end()),
                       .offset = end});
    end = aligned(end + value.nbytes());
  }
  bytes_ = tensor::empty(dtype::u8, {end});
  for (std::size_t each = 0; each < tensors.size(); ++each) over(places_[each]).copy_from(tensors[each].second);
}

// What came from elsewhere lies within its block, or it is refused as soon as it is used.
void state_dict::require() const {
  for (const auto& each : places_) static_cast<void>(over(each));
}

// Where the first byte lies in its memory; there is none where all tensors are empty.
std::size_t state_dict::begin() const {
  const auto& memory = bytes_.storage();
  if (memory == nullptr) return 0;
  if (const auto* const there = memory->on_device()) return bytes_.device_address() - there->address();
  return static_cast<std::size_t>(bytes_.const_data() - memory->bytes().data());
}

tensor state_dict::over(const place& which) const {
  return tensor::over(bytes_.storage(), which.type, shape_of_sizes(which.shape), begin() + which.offset);
}

std::vector<std::string> state_dict::names() const {
  std::vector<std::string> all;
  all.reserve(places_.size());
  for (const auto& each : places_) all.push_back(each.name);
  return all;
}

bool state_dict::contains(std::string_view name) const noexcept {
  return std::any_of(places_.begin(), places_.end(), [&](const auto& each) { return each.name == name; });
}

tensor state_dict::at(std::string_view name) const {
  for (const auto& each : places_) {
    if (each.name == name) return over(each);
  }
  throw error(errc::invalid_argument,
              text("a state_dict has no tensor '", name, "': there are ", list_of_names(names())));
}

std::size_t state_dict::nbytes() const {
  std::size_t all = 0;
  for (const auto& each : places_) all += over(each).nbytes();
  return all;
}

bool state_dict::is_like(const state_dict& other) const noexcept { return places_ == other.places_; }

void state_dict::load(const state_dict& other) {
  if (!is_like(other)) {
    throw error(errc::invalid_argument,
                text("a state_dict of ", list_of_names(other.names()), " was to be loaded into one of ",
                     list_of_names(names()), ": names, dtypes and shapes are to be the same, in the same order"));
  }
  bytes_.copy_from(other.bytes_);
  version_ = other.version_;
}

state_dict state_dict::clone() const {
  state_dict made = *this;
  made.bytes_ = bytes_.clone();
  return made;
}

state_dict state_dict::to(device where) const {
  state_dict made = *this;
  made.bytes_ = bytes_.to(where);
  return made;
}

state_dict state_dict::zeros_like() const {
  state_dict made = *this;
  made.bytes_ = tensor::zeros(dtype::u8, bytes_.shape());
  made.version_ = 0;
  return made;
}

}  // namespace muster
