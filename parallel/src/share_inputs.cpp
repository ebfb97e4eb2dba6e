// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/detail/share_inputs.hpp>

#include <algorithm>
#include <cstring>

#include <muster/collectives/detail/combine.hpp>
#include <muster/device/detail/stores.hpp>

namespace muster::detail {

namespace {

template <class T>
void put(frame_writer& out, const T& value) {
  out.write(&value, sizeof value);
}

template <class T>
T take(frame_reader& in) {
  T value{};
  in.read(&value, sizeof value);
  return value;
}

// A count of things that take a byte at least.
std::size_t take_count(frame_reader& in) {
  const auto count = take<std::uint64_t>(in);
  in.expect(count, 1);
  return count;
}

const sent_rows* resident_rows(const sent_call& call, std::size_t rank) {
  if (call.resident.empty()) return nullptr;
  return &call.resident[call.resident.size() == 1 ? 0 : rank];
}

// Whoever else has it, or its memory, may still be reading it.
bool is_reusable(const tensor& buffer, dtype type, const tensor_shape& shape, device where) {
  return buffer.dtype() == type && buffer.shape() == shape && buffer.storage() != nullptr &&
         buffer.storage().use_count() == 1 && buffer.device() == where;
}

// TODO(perf): a kernel that takes the list; this gives the device a copy for each run of rows that follow one another.
void take_rows_there(const tensor& from, std::span<const std::int64_t> rows, const tensor& buffer) {
  for (std::size_t first = 0, last = 1; first < rows.size(); first = last++) {
    while (last < rows.size() && rows[last] == rows[last - 1] + 1) ++last;
    const auto at = static_cast<std::size_t>(rows[first]);
    buffer.slice(first, last).copy_from(from.slice(at, at + (last - first)));
  }
}

tensor_shape with_rows(const tensor_shape& shape, std::size_t rows) {
  auto made = shape;
  made[0] = rows;
  return made;
}

tensor first_variable(const function_spec& spec, const sent_call& call, std::size_t rank,
                      const variable_table& variables) {
  for (std::size_t index = 0; index < spec.variables.size(); ++index) {
    if (!spec.variables[index].is_sliceable) continue;
    return variables.at(spec.variables[index].variable).copies.at(rank)[call.live[index].here()];
  }
  return {};
}

}  // namespace

void sent_rows::write_to(frame_writer& out) const {
  put(out, range);
  put(out, std::uint64_t{is_list});
  if (is_list) list.write_to(out);
}

sent_rows sent_rows::read_from(frame_reader& in) {
  sent_rows read{.range = take<row_range>(in), .is_list = take<std::uint64_t>(in) != 0};
  if (read.is_list) read.list = tensor::read_from(in);
  return read;
}

void sent_call::write_to(frame_writer& out, const function_spec& spec) const {
  if (!inputs.empty()) rows.write_to(out);
  for (const auto& each : inputs) {
    put(out, std::uint64_t{each.is_by_position});
    each.value.write_to(out);
  }
  if (spec.has_sliceable()) {
    put(out, std::uint64_t{resident.size()});
    for (const auto& each : resident) each.write_to(out);
  }
  out.write(live.data(), live.size());
}

sent_call sent_call::read_from(frame_reader& in, const function_spec& spec) {
  sent_call read;
  if (!spec.rows.empty()) read.rows = sent_rows::read_from(in);
  read.inputs.resize(spec.rows.size());
  for (auto& each : read.inputs) {
    each.is_by_position = take<std::uint64_t>(in) != 0;
    each.value = tensor::read_from(in);
  }
  if (spec.has_sliceable()) {
    read.resident.resize(take_count(in));
    for (auto& each : read.resident) each = sent_rows::read_from(in);
  }
  read.live.resize(live_count(spec));
  in.read(read.live.data(), read.live.size());
  return read;
}

std::size_t live_count(const function_spec& spec) noexcept {
  auto count = spec.variables.size();
  for (const auto& each : spec.updates) count += 1 + each.states.size();
  return count;
}

std::vector<std::uint32_t> live_order(const function_spec& spec) {
  std::vector<std::uint32_t> order;
  order.reserve(live_count(spec));
  for (const auto& each : spec.variables) order.push_back(each.variable);
  for (const auto& each : spec.updates) {
    order.push_back(each.variable);
    order.insert(order.end(), each.states.begin(), each.states.end());
  }
  return order;
}

share_inputs::share_inputs(const function_spec& spec, const sent_call& call, const world_call_header& header,
                           std::size_t rank, std::size_t ranks, const variable_table& variables)
    : spec_(spec), call_(call), rank_(rank), variables_(variables) {
  if (!spec.has_rows()) return;
  if (!spec.rows.empty()) {
    share_ = part_of({.first = 0, .last = header.rows}, rank, ranks);
    size_ = share_.size();
  } else {
    const auto* const chosen = resident_rows(call, rank);
    size_ = chosen != nullptr ? chosen->size() : first_variable(spec, call, rank, variables).rows();
  }
  // By the rule that deals out rows, more pieces than rows are the rows one by one, and others of none.
  slices_ = std::clamp<std::size_t>(header.slices, 1, std::max<std::size_t>(size_, 1));
}

row_range share_inputs::rows_of(std::size_t index) const noexcept {
  if (slices_ == 1) return {.first = 0, .last = size_};
  return part_of({.first = 0, .last = size_}, index, slices_);
}

std::vector<tensor> share_inputs::take(row_range rows, std::vector<tensor>& buffers) const {
  std::vector<tensor> taken;
  taken.reserve(spec_.rows.size() + spec_.variables.size());
  buffers.resize(spec_.rows.size() + spec_.variables.size());
  for (std::size_t index = 0; index < spec_.rows.size(); ++index) {
    taken.push_back(take_input(index, rows, buffers[index]));
  }
  for (std::size_t index = 0; index < spec_.variables.size(); ++index) {
    taken.push_back(take_variable(index, rows, buffers[spec_.rows.size() + index]));
  }
  return taken;
}

tensor share_inputs::take_input(std::size_t index, row_range rows, tensor& buffer) const {
  if (!is_gathered(index)) return view_of(index, rows);
  const auto chosen = call_.rows.list.span<const std::int64_t>().subspan(share_.first + rows.first, rows.size());
  take_rows(call_.inputs[index].value, chosen, buffer);
  return buffer;
}

tensor share_inputs::view_of(std::size_t input, row_range rows) const {
  const auto& given = call_.inputs[input];
  const auto at = (given.is_by_position ? 0 : call_.rows.range.first) + share_.first + rows.first;
  return given.value.slice(at, at + rows.size());
}

const tensor& share_inputs::value_of(std::size_t use) const {
  const auto& variable = variables_.at(spec_.variables[use].variable);
  const auto live = call_.live[use];
  return live.is_there() ? variable.on_device.at(rank_)[live.there()] : variable.copies.at(rank_)[live.here()];
}

tensor share_inputs::take_variable(std::size_t index, row_range rows, tensor& buffer) const {
  const auto& use = spec_.variables[index];
  const auto& value = value_of(index);
  if (!use.is_sliceable) return value;
  const auto* const chosen = resident_rows(call_, rank_);
  if (chosen != nullptr && chosen->is_list) {
    take_rows(value, chosen->list.span<const std::int64_t>().subspan(rows.first, rows.size()), buffer);
    return buffer;
  }
  const auto first = (chosen != nullptr ? chosen->range.first : 0) + rows.first;
  return value.slice(first, first + rows.size());
}

row_range elements_of(std::size_t size, std::size_t rank, std::size_t ranks) noexcept {
  constexpr std::size_t together = 128;  // no line of memory is written by two ranks
  const auto chunks = part_of({.first = 0, .last = (size + together - 1) / together}, rank, ranks);
  return {.first = std::min(chunks.first * together, size), .last = std::min(chunks.last * together, size)};
}

void take_rows(const tensor& from, std::span<const std::int64_t> rows, tensor& buffer) {
  const auto shape = with_rows(from.shape(), rows.size());
  const auto where = from.device();
  if (!is_reusable(buffer, from.dtype(), shape, where)) {
    buffer =
        where.is_cpu() ? tensor::empty(from.dtype(), shape, memory::local) : tensor::empty(from.dtype(), shape, where);
  }
  if (buffer.size() == 0) return;
  if (!where.is_cpu()) return take_rows_there(from, rows, buffer);
  const auto row_bytes = buffer.nbytes() / rows.size();
  if (!from.is_contiguous()) {
    for (std::size_t index = 0; index < rows.size(); ++index) {
      buffer.row(index).copy_from(from.row(static_cast<std::size_t>(rows[index])));
    }
    return;
  }
  const auto how = stores_for(buffer.nbytes());
  for (std::size_t index = 0; index < rows.size(); ++index) {
    copy(buffer.data() + index * row_bytes, from.const_data() + static_cast<std::size_t>(rows[index]) * row_bytes,
         row_bytes, how);
  }
}

}  // namespace muster::detail
