// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/detail/output_accumulator.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

void throw_no_rows(const value_name& what, output_op op) {
  throw error(errc::invalid_argument, text(what, " was called for no rows, and ", output_op_name(op),
                                           " of nothing has no value: only sum, prod, gather and none have one"));
}

// ---- means of numbers

void weighted_mean::merge(const weighted_mean& other, bool counts_once) noexcept {
  if (other.is_empty()) return;
  const auto mean = other.value();
  counts_once ? join(mean, mean, 1) : join(other.sum_, mean, other.weight_);
}

double weighted_mean::value() const noexcept { return count_ > 1 && std::isfinite(sum_) ? sum_ / weight_ : mean_; }

// Where the difference of two is too large they are on both sides of 0, so that parts of them are not.
void weighted_mean::join(double sum, double mean, double weight) noexcept {
  sum_ += sum;
  weight_ += weight;
  if (count_++ == 0) {
    mean_ = mean;
    return;
  }
  const auto part = weight / weight_;
  const auto step = mean - mean_;
  mean_ = std::isfinite(step) ? mean_ + step * part : mean_ * (1 - part) + mean * part;
}

void weighted_mean::write_to(frame_writer& out) const {
  const auto mean = value();
  out.write(&sum_, sizeof sum_);
  out.write(&mean, sizeof mean);
  out.write(&weight_, sizeof weight_);
}

weighted_mean weighted_mean::read_from(frame_reader& in) {
  weighted_mean read;
  in.read(&read.sum_, sizeof read.sum_);
  in.read(&read.mean_, sizeof read.mean_);
  in.read(&read.weight_, sizeof read.weight_);
  read.count_ = read.weight_ == 0 ? 0 : 1;
  return read;
}

// ---- lists

namespace {

// What shared memory comes in: what is smaller goes to the caller within the frame.
constexpr std::size_t shared_piece = std::size_t{64} << 10U;

memory compact_memory(std::size_t bytes) { return bytes < shared_piece ? memory::local : memory::shared; }

bool is_small(const tensor& which) { return compact_memory(which.nbytes()) == memory::local; }

tensor compact_clone(const tensor& which) { return which.clone(compact_memory(which.nbytes())); }

}  // namespace

void tensor_list::add(const tensor& value, double /*weight*/) {
  is_last_own_ = !value.device().is_cpu();
  const auto here = value.to(device::cpu());
  all_.push_back(is_last_own_ && is_small(here) ? compact_clone(here) : here);
}

void tensor_list::make_own() {
  if (std::exchange(is_last_own_, true)) return;
  auto& last = all_.back();
  last = last.is_shared() ? compact_clone(last) : last.clone(memory::local);
}

void tensor_list::save(frame_writer& out) const {
  const std::uint64_t count = all_.size();
  out.write(&count, sizeof count);
  for (const auto& each : all_) each.write_to(out);
}

void tensor_list::merge(frame_reader& in) {
  std::uint64_t count = 0;
  in.read(&count, sizeof count);
  in.expect(count, 1);
  for (; count > 0; --count) all_.push_back(tensor::read_from(in));
}

// One after the other: what is read of a frame is in shared memory until it is copied.
void tensor_list::merge_copies(frame_reader& in) {
  std::uint64_t count = 0;
  in.read(&count, sizeof count);
  in.expect(count, 1);
  for (; count > 0; --count) all_.push_back(compact_clone(tensor::read_from(in)));
}

std::vector<tensor> own_copy(const std::vector<tensor>& result) {
  std::vector<tensor> made;
  made.reserve(result.size());
  for (const auto& each : result) made.push_back(compact_clone(each));
  return made;
}

void tensor_list::join_small() {
  if (all_.size() < 2 || std::ranges::none_of(all_, is_small)) return;
  std::size_t bytes = 0;
  for (const auto& each : all_) bytes += each.nbytes();
  all_ = {joined(compact_memory(bytes))};
}

void tensor_list::require_rows(const tensor& value) const {
  if (value.dimensions() > 0) return;
  throw error(errc::invalid_argument,
              text(what_, " has no dimensions, so no rows to gather: give it shape (1,), or use none()"));
}

void tensor_list::require_joinable(std::size_t first_unknown) const {
  for (auto index = first_unknown; index < all_.size(); ++index) {
    const auto& first = all_.front();
    const auto& each = all_[index];
    const bool fits = each.dimensions() > 0 && each.dtype() == first.dtype() &&
                      each.dimensions() == first.dimensions() &&
                      each.shape().without_first() == first.shape().without_first();
    if (!fits) {
      throw error(errc::invalid_argument,
                  text(what_, " is ", each.dtype(), " of shape ", each.shape(), " in one place and ", first.dtype(),
                       " of shape ", first.shape(), " in another: gather needs rows of the same type and shape"));
    }
  }
}

tensor tensor_list::joined(memory where) const {
  if (all_.empty()) return {};
  std::size_t rows = 0;
  for (const auto& each : all_) rows += each.rows();
  const auto& first = all_.front();
  auto shape = first.shape();
  shape[0] = rows;
  auto made = tensor::empty(first.dtype(), shape, where);
  std::size_t at = 0;
  for (const auto& each : all_) {
    made.slice(at, at + each.rows()).copy_from(each);
    at += each.rows();
  }
  return made;
}

// ---- one tensor

namespace {

// An unrounded tensor, or one of its own dtype; so it is also joined when a rank is broken that wrote something else.
void require_sent_dtype(output_op op, const tensor& value, dtype type) {
  const auto number = static_cast<std::size_t>(type);
  const bool is_summed = op != output_op::prod && op != output_op::min && op != output_op::max;
  const bool is_count = op == output_op::count_true;
  const bool is_wide =
      is_summed && !is_count && type >= dtype::f16 && number < dtype_count && value.dtype() == unrounded_type(type);
  if (is_wide || (value.dtype() == type && (!is_count || type == dtype::i64))) return;
  throw error(errc::corrupted, text("an output came as ", value.dtype(), " that is to be dtype number ", number,
                                    ": whoever sent it misbehaves"));
}

}  // namespace

void tensor_output::save(frame_writer& out) {
  const double weight = joined_.weight();
  const bool some = !joined_.is_empty();
  out.write(&weight, sizeof weight);
  out.write(&some, sizeof some);
  if (!some) return;
  const auto type = joined_.result_dtype();
  out.write(&type, sizeof type);
  if (!sent_) sent_ = joined_.unrounded().to(device::cpu());
  sent_->write_to(out);
}

void tensor_output::merge(frame_reader& in) {
  double weight = 0;
  in.read(&weight, sizeof weight);
  if (*in.take(1) == std::byte{0}) return;
  dtype type{};
  in.read(&type, sizeof type);
  const auto value = tensor::read_from(in);
  require_sent_dtype(op_, value, type);
  joined_.add(value, op_ == output_op::mean_of_ranks ? 1.0 : weight, type);
}

tensor tensor_output::finish() const {
  if (joined_.is_empty()) {
    if (!has_identity(op_)) throw_no_rows(what_, op_);
    if (op_ == output_op::count_true) return tensor::zeros<std::int64_t>({});
    return tensor::full<float>({}, op_ == output_op::prod ? 1.0F : 0.0F);  // its shape is not known
  }
  const auto made = joined_.value();
  return joined_.is_borrowed() ? made.clone() : made;
}

}  // namespace muster::detail
