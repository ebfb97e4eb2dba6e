// SPDX-License-Identifier: BSL-1.0
#pragma once

// A model that several processes work on: Machin's PushPullModelServer.
//
//     muster::model_server server(box, "server");
//     server.pull(model);                          // the newest one, if there is one
//     if (!server.push(model)) …                   // another one was pushed meanwhile: model is that one now

#include <memory>
#include <string>

#include <muster/params/ordered_server.hpp>
#include <muster/params/state_dict.hpp>
#include <muster/params/store_ticket.hpp>
#include <muster/params/versioned_store.hpp>

namespace muster {

/// How a model is pushed.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct model_push_options {
  bool pull_on_fail = true;  ///< whether the newest model is pulled where the push is refused
};

/// The newest version of a model, for any number of processes: each pushes what it has made of the version that it has
/// pulled, and is refused where that is not the newest one any more.
///
/// Errors: errc::invalid_argument for a model of other tensors than the one that is there; as the store.
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: as the store.
class model_server {
public:
  /// Keeps models in an ordered_server of that name.
  model_server(const store_ticket& box, const std::string& name, std::string model = "model");
  /// Keeps them in a store of the program's. Several models may be in one.
  explicit model_server(std::shared_ptr<versioned_store> values, std::string model = "model");

  /// Pushes a copy of the model, as the version after its own, which it has by that. Returns whether it did; if it did
  /// not, the model is the newest one by now, or, without pull_on_fail, as it was.
  bool push(state_dict& model, const model_push_options& how = {}) const;
  /// Copies the newest version into the model, if that is newer than its own. Returns false where there is none.
  bool pull(state_dict& model) const;

private:
  std::shared_ptr<versioned_store> values_;
  std::string model_;
};

}  // namespace muster
