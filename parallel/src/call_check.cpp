// SPDX-License-Identifier: BSL-1.0
// Everything that can be wrong with a call, found before any rank is told of it.
#include <algorithm>
#include <optional>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/parallel/detail/function_core.hpp>

namespace muster::detail {

namespace {

using variables_by_number = std::map<std::uint32_t, registered_variable>;

class call_check {
public:
  call_check(const function_spec& spec, const run_request& asked, const variables_by_number& variables, domain& where,
             std::size_t ranks)
      : spec_(spec), asked_(asked), variables_(variables), where_(where), ranks_(ranks) {}

  world_request request() {
    world_request made{.slices = asked_.options.slices,
                       .outputs = asked_.outputs,
                       .write_values = asked_.write_values,
                       .read_outputs = asked_.read_outputs,
                       .finish_outputs = asked_.finish_outputs};
    require_slices();
    made.call.resident = resident();
    made.rows = rows();
    send(batch(), made.rows, made.call.rows);
    for (const auto& each : asked_.inputs) {
      made.row_bytes += each.value.nbytes() / std::max<std::size_t>(each.value.rows(), 1);
      made.call.inputs.push_back(
          {.value = reachable(each.value), .is_by_position = each.is_minibatch && !batch().is_all()});
    }
    require_replicas();
    for (const auto number : live_order(spec_)) made.call.live.push_back(variables_.at(number).named());
    require_shares(made);
    return made;
  }

private:
  template <class... Why>
  [[noreturn]] void refuse(const Why&... why) const {
    throw error(errc::invalid_argument, text("function '", spec_.name, "': ", why...));
  }

  [[nodiscard]] const row_selection& batch() const noexcept { return *asked_.options.batch; }
  [[nodiscard]] std::string name_of_input(std::size_t index) const { return text("input '", spec_.rows[index], "'"); }

  void require_slices() const {
    if (asked_.options.slices == 0) refuse("num_slices = 0 was given: at least 1 is possible");
    if (asked_.options.slices > 1 && !spec_.has_rows()) {
      refuse("num_slices = ", asked_.options.slices,
             " was given, but it has neither rows() nor sliceable(): nothing to slice");
    }
  }

  // Each rank writes its part into all replicas, by the shape of the first.
  void require_replicas() const {
    for (const auto& update : spec_.updates) {
      if (update.kind != update_kind::reduced_into) continue;
      const auto& which = variables_.at(update.variable);
      const auto& first = which.what.copies[0][which.live].shape();
      for (std::size_t rank = 1; rank < which.what.copies.size(); ++rank) {
        const auto& shape = which.what.copies[rank][which.live].shape();
        if (shape == first) continue;
        refuse("variable '", which.what.name, "' has shape ", first, " in rank 0 and ", shape, " in rank ", rank,
               ", but what is reduced makes all replicas the same: broadcast it");
      }
      for (const auto number : update.states) {
        const auto& state = variables_.at(number);
        if (state.what.copies[0][state.live].shape() == first) continue;
        refuse("variable '", which.what.name, "' has shape ", first, ", but had ",
               state.what.copies[0][state.live].shape(), " when the function was made, and its rule ",
               update.rule.name(), " remembers values of that shape: make the function again");
      }
    }
  }

  // How many rows are selected of the inputs.
  [[nodiscard]] std::size_t rows() const {
    if (spec_.rows.empty()) {
      if (!batch().is_all()) refuse("batch was given, but it has no rows() inputs; for resident data there is batch_s");
      return 0;
    }
    for (std::size_t index = 0; index < spec_.rows.size(); ++index) {
      require_form(index);
      if (asked_.inputs[index].value.dimensions() == 0) {
        refuse(name_of_input(index), " has no dimensions, so no rows to deal out: give it as whole()");
      }
    }
    return batch().is_all() ? common_length() : selected_length();
  }

  void require_form(std::size_t index) const {
    const auto& form = spec_.forms[index];
    const auto& given = asked_.inputs[index].value;
    if (form.type && *form.type != given.dtype()) {
      refuse(name_of_input(index), " is of dtype ", given.dtype(), ": it must be ", *form.type,
             "; convert() it, or keep it in a data of that type");
    }
    if (form.dimensions && *form.dimensions != given.dimensions()) {
      refuse(name_of_input(index), " has shape ", given.shape(), ", so ", given.dimensions(),
             " dimensions: it must have ", *form.dimensions, "; reshape() it");
    }
  }

  [[nodiscard]] std::size_t common_length() const {
    const auto first = asked_.inputs[0].value.rows();
    for (std::size_t index = 1; index < asked_.inputs.size(); ++index) {
      const auto length = asked_.inputs[index].value.rows();
      if (length != first) {
        refuse(name_of_input(0), " has ", first, " rows and ", name_of_input(index), " has ", length,
               ": all inputs need the same number, or a batch that is in each");
      }
    }
    return first;
  }

  [[nodiscard]] std::size_t selected_length() const {
    for (std::size_t index = 0; index < asked_.inputs.size(); ++index) {
      const auto length = asked_.inputs[index].value.rows();
      const auto what = text("function '", spec_.name, "': ", name_of_input(index));
      if (!asked_.inputs[index].is_minibatch) {
        batch().require_within(length, what);
        continue;
      }
      batch().require_possible(length, what + ", a minibatch");
      if (length < batch().count(length)) {
        refuse(name_of_input(index), " is a minibatch of ", length, " rows, but the batch has ", batch().count(length));
      }
    }
    return batch().count(0);
  }

  static void send(const row_selection& which, std::size_t length, sent_rows& as) {
    as.is_list = which.is_list();
    if (as.is_list) {
      as.list = tensor::from(which.list());
    } else {
      as.range = which.range(length);
    }
  }

  // Ranks cannot reach memory that is not the domain's.
  [[nodiscard]] tensor reachable(const tensor& value) const {
    if (!value.device().is_cpu() && value.is_shared()) return value;
    const bool is_ours =
        value.size() == 0 || (value.is_shared() && value.storage()->block().owner() == &where_.blocks());
    return is_ours ? value : value.clone(memory::shared);
  }

  // ---- resident rows

  [[nodiscard]] const tensor& resident_value(std::size_t use, std::size_t rank) const {
    const auto& found = variables_.at(spec_.variables[use].variable);
    return found.what.copies.at(found.what.copies.size() == 1 ? 0 : rank)[found.live];
  }
  [[nodiscard]] const row_selection* resident_selection(std::size_t rank) const {
    const auto& given = *asked_.options.resident;
    if (given.empty()) return nullptr;
    return &given[given.size() == 1 ? 0 : rank];
  }

  [[nodiscard]] std::vector<sent_rows> resident() const {
    const auto& given = *asked_.options.resident;
    if (given.empty()) return {};
    if (!spec_.has_sliceable()) refuse("batch_s was given, but it has no sliceable() variables");
    if (given.size() != 1 && given.size() != ranks_) {
      refuse("batch_s has ", given.size(), " selections: one for all ranks, or one for each of the ", ranks_,
             ", is possible");
    }
    if (std::ranges::any_of(given, &row_selection::is_all)) {
      refuse("batch_s has a selection of all rows: leave it out for that");
    }
    for (std::size_t rank = 0; rank < ranks_; ++rank) require_resident(rank);
    std::vector<sent_rows> made;
    made.reserve(given.size());
    for (const auto& each : given) send(each, 0, made.emplace_back());
    return made;
  }

  void require_resident(std::size_t rank) const {
    for (std::size_t use = 0; use < spec_.variables.size(); ++use) {
      if (!spec_.variables[use].is_sliceable) continue;
      const auto& value = resident_value(use, rank);
      resident_selection(rank)->require_within(
          value.rows(), text("function '", spec_.name, "': batch_s: variable '",
                             variables_.at(spec_.variables[use].variable).what.name, "' in rank ", rank));
    }
  }

  // How many resident rows a rank's share has; nothing where there are no sliceable variables.
  [[nodiscard]] std::optional<std::size_t> resident_rows(std::size_t rank) const {
    std::optional<std::size_t> common;
    for (std::size_t use = 0; use < spec_.variables.size(); ++use) {
      if (!spec_.variables[use].is_sliceable) continue;
      const auto& value = resident_value(use, rank);
      if (value.dimensions() == 0) {
        refuse("variable '", variables_.at(spec_.variables[use].variable).what.name,
               "' is sliceable, but has no dimensions");
      }
      const auto* const selected = resident_selection(rank);
      const auto length = selected != nullptr ? selected->count(0) : value.rows();
      if (common && *common != length) {
        refuse("its sliceable variables have ", *common, " and ", length, " rows in rank ", rank,
               ": they need the same number, or a batch_s that is in each");
      }
      common = length;
    }
    return common;
  }

  void require_shares(world_request& made) const {
    std::size_t all = spec_.rows.empty() ? 0 : made.rows;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const auto resident = resident_rows(rank);
      if (!resident) continue;
      if (spec_.rows.empty()) {
        all += *resident;
        continue;
      }
      const auto share = part_of({.first = 0, .last = made.rows}, rank, ranks_).size();
      if (share != *resident) {
        refuse("rank ", rank, " gets ", share, " rows of its inputs, but has ", *resident,
               " of its sliceable variables: they go together row by row; select with batch and batch_s");
      }
    }
    made.is_for_nothing = spec_.has_rows() && all == 0;
    if (made.is_for_nothing) require_values_for_nothing(made);
  }

  void require_values_for_nothing(const world_request& made) const {
    for (std::size_t index = 0; index < spec_.outputs.size(); ++index) {
      const bool is_wanted = (made.outputs >> index & 1U) != 0;
      if (!is_wanted || has_identity(spec_.outputs[index].op)) continue;
      refuse("it was called for no rows, and ", output_op_name(spec_.outputs[index].op), " of nothing has no value (",
             value_name(spec_, value_name::kind::output, index), ")");
    }
  }

  const function_spec& spec_;
  const run_request& asked_;
  const variables_by_number& variables_;
  domain& where_;
  std::size_t ranks_;
};

}  // namespace

world_request checked_request(const function_spec& spec, const run_request& asked, const variables_by_number& variables,
                              domain& where, std::size_t ranks) {
  return call_check(spec, asked, variables, where, ranks).request();
}

}  // namespace muster::detail
