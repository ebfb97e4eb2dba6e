// SPDX-License-Identifier: BSL-1.0
#include "exception_twin.hpp"

#include <exception>
#include <utility>

#include <cereal/types/string.hpp>

#include <muster/serialize/exception_type.hpp>

namespace muster::exception_type_test {
namespace {

struct twin : std::exception {
  std::string text;
  std::string more = "of the other one";

  twin() = default;
  explicit twin(std::string what) : text(std::move(what)) {}
  [[nodiscard]] const char* what() const noexcept override { return text.c_str(); }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(more, text);
  }
};

struct unregistered_twin : std::exception {};

}  // namespace

void throw_other_twin(const std::string& text) { throw twin(text); }

const std::type_info& type_of_other_twin() { return typeid(twin); }

void throw_other_stranger() { throw unregistered_twin(); }

}  // namespace muster::exception_type_test

MUSTER_REGISTER_EXCEPTION(muster::exception_type_test::twin)
