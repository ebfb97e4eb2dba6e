// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/kv_gradient.hpp>

#include <algorithm>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

std::string difference(const tensor& given, const tensor& value) {
  return text("it has dtype ", given.dtype(), " and shape ", given.shape(), ", and the value has dtype ", value.dtype(),
              " and shape ", value.shape());
}

}  // namespace

tensor kv_gradient::whole(const tensor& like) const {
  if (is_sparse()) return rows().to_dense(like.shape()[0]);
  if (how_.kind != gradient_compression::bits::all) return how_.expand(values_, like.shape());
  return values_.contiguous();
}

void kv_gradient::require_like(const tensor& value, const store_key& key, std::size_t rank) const {
  const auto why = reason_against(value);
  if (why.empty()) return;
  throw error(errc::invalid_argument, text("a push of ", key, " by worker ", rank, " was refused: ", why));
}

void kv_gradient::require_still_like(const tensor& value, const store_key& key) const {
  const auto why = reason_against(value);
  if (why.empty()) return;
  throw error(errc::invalid_argument, text("a push of ", key, " cannot be applied to the value that has replaced ",
                                           "its value meanwhile: ", why));
}

std::string kv_gradient::misfit(const tensor& value) const {
  if (how_.kind != gradient_compression::bits::all) {
    if (value.dtype() == dtype::f32 && values_.size() == how_.bytes_of(value.size())) return {};
    return text("it is compressed, and the value has dtype ", value.dtype(), " and shape ", value.shape());
  }
  if (values_.dtype() == value.dtype() && values_.shape() == value.shape()) return {};
  return difference(values_, value);
}

std::string kv_gradient::misfit_of_rows(const tensor& value) const {
  rows().require();
  const auto& given = values_.shape();
  const auto& whole = value.shape();
  const bool are_alike = values_.dtype() == value.dtype() && given.size() == whole.size() &&
                         std::equal(whole.begin() + 1, whole.end(), given.begin() + 1);
  if (!are_alike) return text("its rows do not fit: ", difference(values_, value));
  if (indices_->size() == 0) return {};
  const auto last = indices_->at<const std::int64_t>(indices_->size() - 1);
  if (static_cast<std::size_t>(last) < whole[0]) return {};
  return text("it has row ", last, ", and the value has ", whole[0], " rows");
}

}  // namespace muster::detail
