// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/error_info.hpp>

#include <exception>
#include <new>
#include <string_view>

#include <muster/base/detail/demangle.hpp>
#include <muster/base/text.hpp>
#include <muster/serialize/exception_type.hpp>
#include <muster/serialize/exceptions.hpp>

#include "standard_exceptions.hpp"

namespace muster {

namespace {

std::string text_of_place(const task_place& place) {
  if (place.task == 0) return {};
  auto where = text("task ", place.task);
  if (!place.label.empty()) where += text(" '", place.label, '\'');
  if (place.element) where += text(", element ", *place.element);
  if (place.attempt > 1) where += text(", attempt ", place.attempt);
  if (place.worker >= 0) where += text(", worker ", place.worker);
  if (!place.device.is_cpu()) where += text(" on ", place.device);
  if (place.worker >= 0) where += text(" (process ", place.pid, ')');
  return where + ": ";
}

// "TITLE" and the lines of `lines`, each behind `margin`.
void append_lines(std::string& whole, std::string_view title, std::string_view margin, std::string_view lines) {
  if (lines.empty()) return;
  whole += title;
  while (!lines.empty()) {
    const auto end = lines.find('\n');
    whole.append("\n").append(margin).append(lines.substr(0, end));
    lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
  }
}

// Throws an exception, without regard to its inner ones, except that it is made in their handler.
[[noreturn]] void raise_outermost(const error_info& info) {
  if (const auto& encoded = info.exception(); encoded != nullptr && encoded->save_failure.empty()) {
    if (const auto* type = exception_type::find(encoded->saved_type)) type->raise(info);
    if (const auto* type = detail::standard_exception::find(encoded->standard_type)) type->raise(info);
  }
  detail::throw_with_inner(remote_exception(info), info);
}

}  // namespace

const last_words& error_info::words() const noexcept {
  static const last_words none;
  return words_ ? *words_ : none;
}

void error_info::set_words(const last_words& words) noexcept {
  try {
    words_ = words.some() ? std::make_shared<const last_words>(words) : nullptr;
  } catch (const std::bad_alloc&) {
    words_ = nullptr;
  }
}

error_info error_info::died(const exit_status& how, std::string_view who) noexcept {
  auto error = described(errc::worker_died, [&] { return text(who, ' ', to_string(how)); });
  error.status_ = how;
  return error;
}

error_info error_info::quarantined(const exit_status& how, unsigned deaths) noexcept {
  auto error = described(errc::quarantined, [&] {
    return text("it has killed ", deaths, " workers, the last of which ", to_string(how),
                ": it is not tried again (pool_options::quarantine_after)");
  });
  error.status_ = how;
  return error;
}

error_info error_info::copy_of(const error_info& other) noexcept {
  try {
    return other;
  } catch (const std::bad_alloc&) {
    error_info made;
    made.code_ = other.code_;
    made.status_ = other.status_;
    return made;
  }
}

std::string error_info::describe() const {
  auto whole = text_of_place(place_);
  if (!type_name_.empty()) whole += type_name_ + ": ";
  if (message_.empty() && type_name_.empty()) {
    whole += text("error ", static_cast<int>(code_), "; there was no memory for its text");
  }
  whole += message_;
  if (!save_failure().empty()) whole += "; the exception could not be restored: " + save_failure();
  for (const auto& inner : nested_) whole += text("; caused by ", inner.type_name, ": ", inner.message);
  if (const auto& reason = words().reason; !reason.empty()) whole += "; " + reason;
  append_lines(whole, "\nit crashed:", "  ", crash());
  append_lines(whole, "\nit had written last:", "  | ", last_output());
  return whole;
}

bool error_info::is_of(const std::type_info& type) const {
  if (type_name_ != name_of(type)) return false;
  return exception_ == nullptr || exception_->local_type == local_token_of(type);
}

const std::string& error_info::save_failure() const noexcept {
  static const std::string none;
  if (exception_ == nullptr) return none;
  return exception_->save_failure;
}

error_info error_info::inner() const {
  error_info made(nested_.front());
  made.nested_.assign(nested_.begin() + 1, nested_.end());
  made.place_ = place_;
  return made;
}

void error_info::raise() const {
  if (type_name_.empty()) {
    if (code_ == errc::worker_died) throw muster::worker_died(*this);
    throw task_error(*this);
  }
  if (nested_.empty()) raise_outermost(*this);
  try {
    inner().raise();
  } catch (...) {  // in whose handler the outer one is made
    raise_outermost(*this);
  }
}

void detail::raise_unrestored(const error_info& info, const std::string& reason) {
  auto why = info;
  auto changed = info.exception() != nullptr ? *info.exception() : encoded_exception();
  changed.save_failure = reason;
  why.exception_ = std::make_shared<const encoded_exception>(std::move(changed));
  throw_with_inner(muster::remote_exception(why), why);
}

}  // namespace muster
