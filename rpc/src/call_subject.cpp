// SPDX-License-Identifier: BSL-1.0
#include <muster/rpc/detail/call_subject.hpp>

#include <muster/base/text.hpp>

namespace muster::detail {

std::string call_subject::name() const {
  if (service != nullptr) return *service;
  switch (kind) {
    case request_kind::method: return "a remote value";
    case request_kind::make:
    case request_kind::make_by_service: return "the making of a remote value";
    default: return "a function";
  }
}

std::string call_subject::in_words() const {
  const auto called = service != nullptr ? text("a call of the service '", *service, '\'') : text("a call of ", name());
  return label.view().empty() ? called : text('\'', label.view(), "', ", called);
}

}  // namespace muster::detail
