// SPDX-License-Identifier: BSL-1.0
#include <muster/params/model_server.hpp>

#include <optional>
#include <utility>

#include <muster/base/error.hpp>

namespace muster {

namespace {

std::shared_ptr<versioned_store> require_store(std::shared_ptr<versioned_store> values) {
  if (values != nullptr) return values;
  throw error(errc::invalid_argument, "a model server was given no store");
}

}  // namespace

model_server::model_server(const store_ticket& box, const std::string& name, std::string model)
    : model_server(std::make_shared<ordered_server>(box, name), std::move(model)) {}

model_server::model_server(std::shared_ptr<versioned_store> values, std::string model)
    : values_(require_store(std::move(values))), model_(std::move(model)) {}

bool model_server::push(state_dict& model, const model_push_options& how) const {
  const auto own = model.version();
  const auto previous = own == 0 ? std::nullopt : std::optional(own);
  model.set_version(own + 1);
  try {
    if (values_->push(model_, model, own + 1, previous)) return true;
  } catch (...) {
    model.set_version(own);
    throw;
  }
  model.set_version(own);
  if (how.pull_on_fail) static_cast<void>(pull(model));
  return false;
}

bool model_server::pull(state_dict& model) const {
  const auto found = values_->pull(model_);
  if (!found) return false;
  if (found->version <= model.version()) return true;
  model.load(found->value);
  model.set_version(found->version);
  return true;
}

}  // namespace muster
