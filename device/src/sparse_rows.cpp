// SPDX-License-Identifier: BSL-1.0
#include <muster/device/sparse_rows.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/arithmetic.hpp>

namespace muster {

namespace {

[[noreturn]] void refuse_rows(const std::string& why) {
  throw error(errc::invalid_argument, text("sparse rows were refused: ", why));
}

tensor_shape shape_of_rows(const tensor& whole, std::size_t count) {
  if (whole.dimensions() == 0) refuse_rows("a tensor without dimensions has no rows");
  auto shape = whole.shape();
  shape[0] = count;
  return shape;
}

std::vector<std::int64_t> sorted_once(std::span<const std::int64_t> indices) {
  std::vector<std::int64_t> all(indices.begin(), indices.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

void require_within(std::span<const std::int64_t> sorted, std::size_t rows) {
  if (sorted.empty()) return;
  if (sorted.front() < 0) refuse_rows(text("row ", sorted.front(), " is none"));
  if (static_cast<std::size_t>(sorted.back()) >= rows) refuse_rows(text("row ", sorted.back(), " of ", rows, " rows"));
}

// A copy to or from a device takes as long as a copy of some hundred KiB more does.
constexpr std::size_t bytes_of_a_copy = std::size_t{256} << 10U;

bool goes_as_a_whole(const tensor& whole, const tensor& rows) {
  return whole.device() != rows.device() && rows.size() != 0 && whole.nbytes() / rows.shape()[0] < bytes_of_a_copy;
}

tensor indices_of(const std::vector<std::int64_t>& all) { return tensor::from(all, {all.size()}); }

}  // namespace

sparse_rows sparse_rows::of(std::span<const std::int64_t> indices, const tensor& rows) {
  if (rows.dimensions() == 0 || rows.shape()[0] != indices.size()) {
    refuse_rows(text(indices.size(), " indices were given for rows of shape ", rows.shape()));
  }
  const auto sorted = sorted_once(indices);
  if (!sorted.empty() && sorted.front() < 0) refuse_rows(text("row ", sorted.front(), " is none"));
  sparse_rows made{.indices = indices_of(sorted),
                   .rows = tensor::zeros(rows.dtype(), shape_of_rows(rows, sorted.size()))};
  for (std::size_t each = 0; each < indices.size(); ++each) {
    const auto place = std::lower_bound(sorted.begin(), sorted.end(), indices[each]) - sorted.begin();
    accumulate(made.rows.row(static_cast<std::size_t>(place)), rows.row(each));
  }
  return made;
}

sparse_rows sparse_rows::pick(const tensor& whole, std::span<const std::int64_t> indices) {
  const auto sorted = sorted_once(indices);
  sparse_rows made{.indices = indices_of(sorted),
                   .rows = tensor::empty(whole.dtype(), shape_of_rows(whole, sorted.size()))};
  require_within(sorted, whole.shape()[0]);
  const auto here = goes_as_a_whole(whole, made.rows) ? whole.to(device::cpu()) : whole;
  for (std::size_t each = 0; each < sorted.size(); ++each) {
    made.rows.row(each).copy_from(here.row(static_cast<std::size_t>(sorted[each])));
  }
  return made;
}

tensor sparse_rows::to_dense(std::size_t all) const {
  require();
  const auto whole = tensor::zeros(rows.dtype(), shape_of_rows(rows, all));
  copy_into(whole);
  return whole;
}

void sparse_rows::copy_into(const tensor& whole) const {
  require();
  if (whole.dtype() != rows.dtype() || shape_of_rows(whole, count()) != shape_of_rows(rows, count())) {
    refuse_rows(text("rows of ", rows.dtype(), " and shape ", rows.shape(), " are none of a tensor of ", whole.dtype(),
                     " and shape ", whole.shape()));
  }
  const auto places = indices.contiguous();
  require_within(places.span<const std::int64_t>(), whole.shape()[0]);
  const bool by_way_of_the_host = goes_as_a_whole(whole, rows);
  const auto to = by_way_of_the_host ? whole.to(device::cpu()) : whole;
  const auto from = by_way_of_the_host ? rows.to(device::cpu()) : rows;
  for (std::size_t each = 0; each < count(); ++each) {
    to.row(static_cast<std::size_t>(places.at<const std::int64_t>(each))).copy_from(from.row(each));
  }
  if (by_way_of_the_host) whole.copy_from(to);
}

void sparse_rows::require() const {
  if (indices.dtype() != dtype::i64 || indices.dimensions() != 1) {
    refuse_rows(
        text("indices are i64 of one dimension, and these are ", indices.dtype(), " of shape ", indices.shape()));
  }
  if (rows.dimensions() == 0 || rows.shape()[0] != indices.size()) {
    refuse_rows(text(indices.size(), " indices were given for rows of shape ", rows.shape()));
  }
  const auto places = indices.contiguous();
  const auto all = places.span<const std::int64_t>();
  if (!all.empty() && all.front() < 0) refuse_rows(text("row ", all.front(), " is none"));
  if (std::adjacent_find(all.begin(), all.end(), std::greater_equal<>()) != all.end()) {
    refuse_rows("indices are ascending, each once: sparse_rows::of() makes them so");
  }
}

}  // namespace muster
