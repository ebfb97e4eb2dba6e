// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/error_info.hpp>

#include <cxxabi.h>

#include <exception>
#include <new>
#include <string_view>

#include <muster/base/demangle.hpp>
#include <muster/base/text.hpp>
#include <muster/serialize/exception_type.hpp>
#include <muster/serialize/exceptions.hpp>

namespace muster {

namespace {

// std::throw_with_nested throws an unnamed-to-users type derived from the one that was given.
std::string without_nesting_wrapper(std::string name) {
  constexpr std::string_view prefix = "std::_Nested_exception<";
  if (!name.starts_with(prefix) || !name.ends_with('>')) return name;
  name = name.substr(prefix.size(), name.size() - prefix.size() - 1);
  while (name.ends_with(' ')) name.pop_back();  // "A<B> >"
  return name;
}

// Where the exception that is being handled was thrown, if that is another process: it stays what it was there, however
// many it goes through. Requires: called inside a catch block, in which what is returned is used.
const error_info* origin_of_current_exception() {
  const error_info* found = nullptr;
  try {
    throw;
  } catch (const remote_details& exception) {
    found = &exception.info();
  } catch (const task_error& exception) {
    found = &exception.info();
  } catch (...) {  // NOLINT(bugprone-empty-catch): it is of here
  }
  return found != nullptr && !found->type_name().empty() ? found : nullptr;
}

nested_error describe_current_exception() {
  if (const auto* origin = origin_of_current_exception()) {
    return {.type_name = origin->type_name(), .message = origin->message()};
  }
  const auto* type = ::abi::__cxa_current_exception_type();
  nested_error found{.type_name = type != nullptr ? without_nesting_wrapper(name_of(*type)) : "unknown",
                     .message = "an exception that is not derived from std::exception"};
  try {
    throw;
  } catch (const std::exception& exception) {
    found.message = text_or_none(exception.what());
  } catch (const std::string& message) {
    found.message = message;
  } catch (const char* message) {
    found.message = text_or_none(message);
  } catch (...) {  // NOLINT(bugprone-empty-catch): the type is all there is to tell
  }
  return found;
}

// Requires: called inside a catch block.
void append_nested(std::vector<nested_error>& chain) {
  constexpr std::size_t longest_chain = 64;  // an exception may be nested in itself
  if (chain.size() == longest_chain) return;
  try {
    throw;
  } catch (const std::nested_exception& outer) {
    if (outer.nested_ptr() == nullptr) return;
    try {
      outer.rethrow_nested();
    } catch (...) {
      chain.push_back(describe_current_exception());
      append_nested(chain);
    }
  } catch (...) {  // of another process, or the end of the chain
    if (const auto* origin = origin_of_current_exception()) {
      chain.insert(chain.end(), origin->nested().begin(), origin->nested().end());
    }
  }
}

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
  for (const auto& inner : nested_) whole += text("; caused by ", inner.type_name, ": ", inner.message);
  if (const auto& reason = words().reason; !reason.empty()) whole += "; " + reason;
  append_lines(whole, "\nit crashed:", "  ", crash());
  append_lines(whole, "\nit had written last:", "  | ", last_output());
  return whole;
}

void error_info::raise() const {
  if (!type_name_.empty()) {
    if (const auto* type = exception_type::find(type_name_)) type->raise(*this, state_);
    throw muster::remote_exception(*this);
  }
  if (code_ == errc::worker_died) throw muster::worker_died(*this);
  throw task_error(*this);
}

error_info capture_current_exception() noexcept {
  try {
    error_info captured;
    auto outermost = describe_current_exception();
    captured.message_ = std::move(outermost.message);
    captured.type_name_ = std::move(outermost.type_name);
    append_nested(captured.nested_);
    if (const auto* origin = origin_of_current_exception()) {
      captured.state_ = origin->state_;
    } else if (const auto* type = exception_type::find(captured.type_name_)) {
      captured.state_ = type->save(std::current_exception());
    }
    return captured;
  } catch (const std::exception& failure) {  // the state could not be encoded, or memory has run out
    try {
      return {errc::remote_exception, text("an exception that could not be described: ", text_or_none(failure.what()))};
    } catch (const std::bad_alloc&) {
      return {};
    }
  } catch (...) {
    return {};
  }
}

}  // namespace muster
