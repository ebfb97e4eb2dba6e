// SPDX-License-Identifier: BSL-1.0
#include <muster/params/gradient_server.hpp>

#include <utility>

#include <muster/params/detail/gradient_core.hpp>

namespace muster {

gradient_server::gradient_server(const rpc_group& group, std::shared_ptr<versioned_store> values, std::string name,
                                 const gradient_options& how)
    : core_(std::make_unique<detail::gradient_core>(group, std::move(values), std::move(name), how)) {}
gradient_server::~gradient_server() = default;

void gradient_server::manage(const state_dict& model, const update_rule& rule,
                             std::function<double(std::uint64_t step)> rate) {
  core_->manage(model, rule, std::move(rate));
}

void gradient_server::start() { core_->start(); }
void gradient_server::stop() { core_->stop(); }
void gradient_server::watch() { core_->watch(); }

gradient_result gradient_server::push(const state_dict& gradients, state_dict& model) const {
  return core_->push(gradients, model);
}

bool gradient_server::pull(state_dict& model) const { return core_->pull(model); }
void gradient_server::flush() const { core_->flush(); }

}  // namespace muster
