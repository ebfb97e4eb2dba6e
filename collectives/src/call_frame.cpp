// SPDX-License-Identifier: BSL-1.0
#include "call_frame.hpp"

#include <algorithm>
#include <cstring>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

#include "broken_word.hpp"
#include "tensor_list.hpp"

namespace muster::detail {

call_frame::call_frame(rank_end& end, collective kind, std::size_t extras, const call_options& how)
    : end_(end), extras_(extras), how_(how) {
  own.kind = kind;
}

void call_frame::set_extra(std::size_t index, std::uint64_t value) noexcept {
  std::memcpy(end_.own_payload().data() + index * sizeof value, &value, sizeof value);
}

std::uint64_t call_frame::extra(std::size_t rank, std::size_t index) const noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, end_.payload(rank).data() + index * sizeof value, sizeof value);
  return value;
}

void call_frame::set_places(const tensor* in, const tensor* out) {
  own.flags |= call_header::in_place;
  const auto put = [&](const tensor* which, std::size_t index) {
    tensor_place where;
    if (which != nullptr && which->size() > 0) {
      const auto& block = which->storage()->block();
      where = {.name = end_.where()->blocks().name_of(block),
               .offset = static_cast<std::uint64_t>(which->const_data() - block.data())};
    }
    std::memcpy(own_data() + index * sizeof where, &where, sizeof where);
  };
  put(in, 0);
  put(out, 1);
}

tensor_place call_frame::place(std::size_t rank, std::size_t which) const noexcept {
  tensor_place found;
  std::memcpy(&found, data(rank) + which * sizeof found, sizeof found);
  return found;
}

// ---- the call

void call_frame::begin() {
  const auto sequence = end_.begin_call();
  end_.require_whole({.operation = name_of(own.kind), .sequence = sequence});
}

void call_frame::exchange() {
  headers_ = end_.enter(own, how_);
  check_fit();
}

// The others are told why, so that they need not wait for this rank.
void call_frame::refuse_own(const std::string& why) {
  auto room = end_.own_payload();
  own.kind = collective::refused;
  own.count = std::min(why.size(), room.size());
  std::memcpy(room.data(), why.data(), own.count);
  try {
    headers_ = end_.enter(own, how_);
  } catch (const group_error&) {  // NOLINT(bugprone-empty-catch): what this rank did wrong is thrown
  }
}

void call_frame::check_fit() {
  for (std::size_t rank = 0; rank < size(); ++rank) {
    if (headers_[rank].kind != collective::refused) continue;
    const auto bytes = end_.payload(rank);
    const std::string why(reinterpret_cast<const char*>(bytes.data()),
                          std::min<std::size_t>(headers_[rank].count, bytes.size()));
    throw member_failed(errc::invalid_argument,
                        text(name_of(own.kind), " (call ", end_.sequence(), " of the group): ", who(rank),
                             " could not make its call, and nothing was done: ", why),
                        {end_.member(rank)});
  }
  const auto fits = [&](const call_header& each) { return each.fits(headers_.front(), counts_differ); };
  if (!std::all_of(headers_.begin(), headers_.end(), fits)) {
    refuse("all must call the same, with tensors of the same shape and type" + difference());
  }
}

// Headers name one shape at most; of several, all ranks look for the first that differs.
std::string call_frame::difference() {
  const auto is_of_several = [](const call_header& each) { return each.kind == collective::all_reduce_of_several; };
  if (!std::all_of(headers_.begin(), headers_.end(), is_of_several)) return "";
  try {
    const auto found = difference_of_lists(end_, name_of(own.kind), how_, several);
    return found.empty() ? "" : "; " + found;
  } catch (const group_error&) {
    throw;
  } catch (const std::exception& failure) {  // no memory: the others must not wait for what it cannot tell
    end_.break_off(text("a rank could not compare its tensors with the others': ", failure.what()));
    throw;
  }
}

void call_frame::refuse(const std::string& why) const {
  text_writer out;
  out << "the ranks' calls do not fit together (call " << end_.sequence()
      << " of the group), and nothing was done: " << why << ". ";
  for (std::size_t rank = 0; rank < size(); ++rank) {
    out << (rank == 0 ? "" : "; ") << who(rank) << ": " << headers_[rank].describe();
  }
  is_refused_ = true;
  throw error(errc::invalid_argument, std::move(out).str());
}

bool call_frame::somebody_is_in_place() const noexcept {
  return std::any_of(headers_.begin(), headers_.end(), [](const call_header& each) { return each.is_in_place(); });
}

bool call_frame::somebody_is_on_device() const noexcept {
  return std::any_of(headers_.begin(), headers_.end(), [](const call_header& each) { return each.is_on_device(); });
}

bool call_frame::goes_directly(device_member& devices) {
  const auto is_on_device = [](const call_header& each) { return each.is_on_device(); };
  return std::all_of(headers_.begin(), headers_.end(), is_on_device) && devices.join(name_of(own.kind), how_);
}

namespace {

std::string text_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& found) {
    return text_or_none(found.what());
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

bool says_that_something_is_gone(const std::exception_ptr& failure) {
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const error& found) {
    return found.code() == errc::corrupted;
  } catch (...) {
    return false;
  }
  return false;
}

}  // namespace

void call_frame::confirm(const std::exception_ptr& failure) {
  // A tensor of a rank that has died since it was done: all the others may have been served already.
  if (says_that_something_is_gone(failure)) {
    end_.await_loss({.operation = name_of(own.kind), .sequence = end_.sequence(), .timeout = how_.timeout});
  }
  const auto why = failure ? text_of(failure) : std::string();
  end_.confirm(name_of(own.kind), how_, failure ? &why : nullptr);
  if (failure) std::rethrow_exception(failure);
  throw_failed();
}

// After a failure nobody knows what the others' devices still wait for.
void call_frame::confirm_direct(device_member& devices, const std::exception_ptr& failure) {
  try {
    confirm(failure);
  } catch (...) {
    devices.drop();
    throw;
  }
}

void call_frame::throw_failed() const {
  const auto failed = end_.failed_ranks();
  if (failed.empty()) return;
  text_writer out;
  std::vector<group_member> members;
  out << name_of(own.kind) << " (call " << end_.sequence() << " of the group) failed, and its results are undefined: ";
  for (std::size_t index = 0; index < failed.size(); ++index) {
    out << (index == 0 ? "" : "; ") << who(failed[index]) << ": " << end_.report_of(failed[index]);
    members.push_back(end_.member(failed[index]));
  }
  throw member_failed(errc::remote_exception, std::move(out).str(), std::move(members));
}

std::string call_frame::who(std::size_t rank) const { return describe({end_.member(rank)}); }

}  // namespace muster::detail
