// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/reduction.hpp>

#include <array>
#include <ostream>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster {

namespace {

constexpr std::array<std::string_view, 9> names = {"sum", "avg", "prod", "min", "max", "band", "bor", "bxor", "custom"};

bool is_integer(dtype type) { return type >= dtype::i8 && type <= dtype::u64; }

bool is_complex(dtype type) { return type == dtype::c64 || type == dtype::c128; }

// Of an op that is not custom.
bool is_possible(reduction_op op, dtype type) {
  if (static_cast<std::size_t>(type) >= dtype_count) return false;
  switch (op) {
    case reduction_op::sum:
    case reduction_op::prod: return true;
    case reduction_op::avg: return type != dtype::boolean;
    case reduction_op::min:
    case reduction_op::max: return !is_complex(type);
    default: return type == dtype::boolean || is_integer(type);
  }
}

std::string possible_ops(dtype type) {
  std::string listed;
  for (std::size_t number = 0; number < static_cast<std::size_t>(reduction_op::custom); ++number) {
    if (is_possible(static_cast<reduction_op>(number), type)) listed += text(names[number], ", ");
  }
  return listed;
}

// FNV-1a, because it must not change with the standard library.
std::uint64_t hash(std::string_view name, dtype type) {
  std::uint64_t mixed = 0xcbf2'9ce4'8422'2325U;
  const auto mix = [&mixed](std::uint8_t byte) { mixed = (mixed ^ byte) * 0x100'0000'01b3U; };
  for (const char each : name) mix(static_cast<std::uint8_t>(each));
  mix(static_cast<std::uint8_t>(type));
  return mixed;
}

void require_same(const detail::element_function& function, dtype type) {
  if (function.type() == type) return;
  throw error(errc::invalid_argument,
              text("elements of dtype ", type, " cannot be reduced by \"", function.name(), "\", a function of ",
                   function.type(), ": give elements of that dtype, or make a reduction of a function of ", type));
}

}  // namespace

std::string_view reduction_op_name(reduction_op op) noexcept {
  const auto number = static_cast<std::size_t>(op);
  return number < names.size() ? names[number] : "unknown";
}

std::ostream& operator<<(std::ostream& out, reduction_op op) { return out << reduction_op_name(op); }

reduction::reduction(reduction_op op) : op_(op) {
  if (op < reduction_op::custom) return;
  throw error(errc::invalid_argument, text("a reduction was made of the reduction_op ", static_cast<unsigned>(op), " (",
                                           op, "): give one of sum to bxor, or a function to reduction::custom"));
}

reduction::reduction(std::shared_ptr<const detail::element_function> function)
    : op_(reduction_op::custom), function_(std::move(function)) {
  if (!function_->name().empty()) return;
  throw error(errc::invalid_argument,
              "a function to reduce by was given no name: give it one, by which all ranks can tell that theirs is the "
              "same");
}

std::string_view reduction::name() const noexcept { return function_ ? function_->name() : reduction_op_name(op_); }

std::uint64_t reduction::fingerprint() const noexcept {
  // The upper bit keeps them apart.
  constexpr auto of_function = std::uint64_t{1} << 63U;
  return function_ ? hash(function_->name(), function_->type()) | of_function : static_cast<std::uint64_t>(op_);
}

void reduction::require(dtype type) const {
  if (function_) return require_same(*function_, type);
  if (is_possible(op_, type)) return;
  // Who averages bools wants a number.
  const auto* const advice =
      type == dtype::boolean && op_ == reduction_op::avg
          ? "; for the fraction that is true, or how many are, convert() them to f32, or i64, and give avg, or sum"
          : "";
  throw error(errc::invalid_argument, text("elements of dtype ", type, " cannot be reduced by ", op_, ": give ",
                                           possible_ops(type), "or a function to reduction::custom", advice));
}

}  // namespace muster
