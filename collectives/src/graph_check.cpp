// SPDX-License-Identifier: BSL-1.0
// Whether what users have said of a graph makes sense, and the forms that they have left out.
#include <algorithm>
#include <map>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/collectives/detail/graph_nodes.hpp>

namespace muster::detail {

namespace {

template <class... Parts>
[[noreturn]] void refuse(int rank, const Parts&... parts) {
  throw error(errc::invalid_argument, text("graph, rank ", rank, ": ", parts...));
}

std::string named(std::string_view name) { return text('"', name, '"'); }

class checker {
public:
  explicit checker(graph_nodes& nodes) : nodes_(nodes) {}

  void run() {
    for (const auto& [rank, all] : nodes_) check_names(rank, all);
    for (const auto& [rank, all] : nodes_) check_partners(rank, all);
    find_forms();
    for (const auto& [rank, all] : nodes_) check_forms(rank, all);
    for (const auto& [rank, all] : nodes_) check_written(rank, all);
  }

private:
  static void require_value(int rank, const graph_rank_nodes& all, const std::string& name, const std::string& who) {
    if (all.values.contains(name)) return;
    refuse(rank, "there is no node \"", name, "\", which ", who, " takes: define it on this rank, or receive it");
  }

  static void check_names(int rank, const graph_rank_nodes& all) {
    for (const auto& [name, node] : all.values) {
      for (const auto& each : node.inputs) require_value(rank, all, each, named(name));
      if (!node.in_place.empty()) require_value(rank, all, node.in_place, named(name));
    }
    for (const auto& [where, name] : all.sends) {
      require_value(rank, all, name, text("a send to rank ", where.to, ", tag ", where.tag, ","));
    }
    for (const auto& [state, name] : all.updates) {
      require_value(rank, all, state, "an update");
      require_value(rank, all, name, text("the update of ", named(state)));
    }
  }

  // ---- messages

  // Null: nothing is known of that rank.
  [[nodiscard]] const graph_rank_nodes* known(int rank) const {
    const auto found = nodes_.find(rank);
    return found == nodes_.end() ? nullptr : &found->second;
  }

  void check_partners(int rank, const graph_rank_nodes& all) const {
    for (const auto& [name, node] : all.values) {
      if (node.kind == graph_node_kind::receive) check_sender(rank, name, node);
    }
    for (const auto& [where, name] : all.sends) check_receiver(rank, where, name);
  }

  void check_sender(int rank, const std::string& name, const graph_node& node) const {
    const auto* const sender = known(node.from);
    if (sender == nullptr || sender->sends.contains({.tag = node.tag, .to = rank})) return;
    refuse(rank, '"', name, "\" is received from rank ", node.from, ", tag ", node.tag, ", but rank ", node.from,
           " sends nothing to rank ", rank, " under that tag: add the send, or correct rank or tag");
  }

  void check_receiver(int rank, const graph_destination& where, const std::string& name) const {
    const auto* const receiver = known(where.to);
    if (receiver == nullptr) return;
    const auto fits = [&](const auto& each) {
      const auto& node = each.second;
      return node.kind == graph_node_kind::receive && node.from == rank && node.tag == where.tag;
    };
    if (std::any_of(receiver->values.begin(), receiver->values.end(), fits)) return;
    refuse(rank, '"', name, "\" is sent to rank ", where.to, ", tag ", where.tag, ", but rank ", where.to,
           " receives nothing from rank ", rank, " under that tag: add the receive, or correct rank or tag");
  }

  // Null: its rank is not known.
  [[nodiscard]] const graph_node* source_of(int rank, const graph_node& received) const {
    const auto* const sender = known(received.from);
    if (sender == nullptr) return nullptr;
    return &sender->values.at(sender->sends.at({.tag = received.tag, .to = rank}));
  }

  // ---- forms

  // Values may be sent on, so that a form comes from further away with every pass.
  void find_forms() {
    for (bool some = true; some;) {
      some = false;
      for (auto& [rank, all] : nodes_) {
        for (auto& [name, node] : all.values) some |= !node.form && (node.form = form_of(rank, all, node)).has_value();
      }
    }
  }

  [[nodiscard]] std::optional<graph_form> form_of(int rank, const graph_rank_nodes& all, const graph_node& node) const {
    if (!node.in_place.empty()) return all.values.at(node.in_place).form;
    const auto* const source = source_of(rank, node);
    return source != nullptr ? source->form : std::nullopt;
  }

  void check_forms(int rank, const graph_rank_nodes& all) const {
    for (const auto& [name, node] : all.values) {
      if (!node.form) {
        refuse(rank, "nothing says which dtype and shape \"", name, "\" has: give them where it is received");
      }
      if (node.kind == graph_node_kind::receive) check_same_form(rank, name, node);
    }
    for (const auto& [state, name] : all.updates) check_update(rank, all, state, name);
  }

  void check_same_form(int rank, const std::string& name, const graph_node& node) const {
    const auto* const source = source_of(rank, node);
    if (source == nullptr || source->form == node.form) return;
    refuse(rank, '"', name, "\" is received from rank ", node.from, ", tag ", node.tag, ", as ", *node.form,
           ", but rank ", node.from, " sends ", *source->form, ": both must be the same");
  }

  static void check_update(int rank, const graph_rank_nodes& all, const std::string& state, const std::string& name) {
    const auto& to = all.values.at(state);
    const auto& from = all.values.at(name);
    if (to.kind != graph_node_kind::state)
      refuse(rank, "\"", state, "\" is to be updated but is no state: make it one");
    if (to.form == from.form) return;
    refuse(rank, "state \"", state, "\" is ", *to.form, " but is updated from \"", name, "\", which is ", *from.form,
           ": both must be the same");
  }

  // ---- what is written in place

  static void check_written(int rank, const graph_rank_nodes& all) {
    std::map<std::string, std::string> writers;
    for (const auto& [name, node] : all.values) {
      if (node.in_place.empty()) continue;
      check_target(rank, all, name, node);
      const auto [first, fresh] = writers.emplace(node.in_place, name);
      if (!fresh) {
        refuse(rank, '"', first->second, "\" and \"", name, "\" are both computed in place of \"", node.in_place,
               "\": one of them needs memory of its own");
      }
    }
  }

  static void check_target(int rank, const graph_rank_nodes& all, const std::string& name, const graph_node& node) {
    const auto& target = all.values.at(node.in_place);
    if (target.kind == graph_node_kind::input || target.kind == graph_node_kind::state) {
      refuse(rank, '"', name, "\" is to be computed in place of \"", node.in_place,
             "\", which is an input or a state: compute a new value, and update a state from it");
    }
    for (const auto& [state, from] : all.updates) {
      if (from != node.in_place) continue;
      refuse(rank, '"', name, "\" is to be computed in place of \"", from, "\", from which \"", state,
             "\" is updated after it: update from \"", name, "\", or compute into other memory");
    }
    if (std::find(node.inputs.begin(), node.inputs.end(), node.in_place) == node.inputs.end()) return;
    refuse(rank, '"', name, "\" is computed in place of \"", node.in_place,
           "\" and takes it as well: its function has it already, as its output");
  }

  graph_nodes& nodes_;
};

}  // namespace

graph_nodes checked(graph_nodes given) {
  checker(given).run();
  return given;
}

}  // namespace muster::detail
