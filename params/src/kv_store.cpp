// SPDX-License-Identifier: BSL-1.0
#include <muster/params/kv_store.hpp>

#include <map>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/sparse_rows.hpp>
#include <muster/device/tensor.hpp>
#include <muster/params/detail/kv_core.hpp>

namespace muster {

void detail::set_updater_at(kv_owner& owner, kv_updater by, std::uint64_t mark) {
  owner.set_updater(std::move(by), mark);
}
void detail::set_updater_of(kv_core& of, const kv_updater_setter& set) { of.set_updater(set); }

namespace {

kv_ticket ticket_of(kv_kind kind) {
  if (kind == kv_kind::local || kind == kv_kind::device) return {kind, kv_options()};
  throw error(errc::invalid_argument, text("a key-value store of kind ", kind,
                                           " needs a kv_ticket, which the program makes and gives to its workers"));
}

tensor sum_of(const std::vector<tensor>& all) {
  if (all.empty()) throw error(errc::invalid_argument, "a push of no values");
  if (all.size() == 1) return all.front();
  const auto sum = all.front().clone();
  for (const auto& each : std::span(all).subspan(1)) accumulate(sum, each.to(sum.device()));
  return sum;
}

}  // namespace

kv_store::kv_store(const kv_ticket& ticket, std::size_t rank)
    : core_(std::make_unique<detail::kv_core>(ticket, rank)) {}
kv_store::kv_store(kv_kind kind) : kv_store(ticket_of(kind), 0) {}
kv_store::~kv_store() = default;

std::size_t kv_store::rank() const noexcept { return core_->rank(); }
std::size_t kv_store::size() const noexcept { return core_->size(); }
kv_kind kv_store::kind() const noexcept { return core_->kind(); }
std::vector<std::size_t> kv_store::living() const { return core_->members().living(); }
const store& kv_store::values() const { return core_->written_values(); }

void kv_store::init(const store_key& key, const tensor& value) const { core_->init({key}, {value}); }

void kv_store::init(const std::vector<store_key>& keys, const std::vector<tensor>& values) const {
  core_->init(keys, values);
}

void kv_store::push(const store_key& key, const tensor& value) const {
  core_->push({key}, {core_->gradient_of(key, value)});
}

void kv_store::push(const store_key& key, const std::vector<tensor>& values) const { push(key, sum_of(values)); }

void kv_store::push_rows(const store_key& key, const sparse_rows& value) const {
  const sparse_rows here{.indices = value.indices.to(device::cpu()), .rows = value.rows.to(device::cpu())};
  here.require();
  core_->push({key}, {detail::kv_gradient(here)});
}

void kv_store::push(const std::vector<store_key>& keys, const std::vector<tensor>& values) const {
  detail::require_as_many(keys.size(), values.size());
  std::map<store_key, std::vector<tensor>> by_key;
  for (std::size_t each = 0; each < keys.size(); ++each) by_key[keys[each]].push_back(values[each]);
  std::vector<store_key> once;
  std::vector<detail::kv_gradient> gradients;
  for (const auto& [key, each] : by_key) {
    once.push_back(key);
    gradients.push_back(core_->gradient_of(key, sum_of(each)));
  }
  core_->push(once, std::move(gradients));
}

future<void> kv_store::push_async(const store_key& key, const tensor& value, const kv_async_options& how) const {
  core_->require_there(key);
  const auto kept = how.transfer == transfer::copy ? value.clone() : value;
  return core_->push_async(key, core_->gradient_of(key, kept), how.priority);
}

tensor kv_store::pull(const store_key& key) const { return core_->pull(key); }

std::vector<tensor> kv_store::pull(const std::vector<store_key>& keys) const { return core_->pull_all(keys); }

void kv_store::pull(const store_key& key, const tensor& to) const { to.copy_from(pull(key)); }

void kv_store::pull(const store_key& key, const std::vector<tensor>& to) const {
  const auto found = pull(key);
  for (const auto& each : to) each.copy_from(found);
}

future<tensor> kv_store::pull_async(const store_key& key, const kv_async_options& how) const {
  core_->require_there(key);
  return core_->pull_async(key, how.priority);
}

sparse_rows kv_store::row_sparse_pull(const store_key& key, std::span<const std::int64_t> rows) const {
  return sparse_rows::pick(pull(key), rows);
}

tensor kv_store::push_pull(const store_key& key, const tensor& value) const {
  push(key, value);
  return pull(key);
}

tensor kv_store::broadcast(const store_key& key, const tensor& value) const {
  init(key, value);
  return pull(key);
}

void kv_store::save(const std::string& path) const { core_->save(path); }

void kv_store::load(const std::string& path) const { core_->files().load(path, core_->end_of_call()); }

void kv_store::set_optimizer(const update_rule& rule) const { core_->set_rule(rule); }

void kv_store::set_gradient_compression(const gradient_compression& how) const { core_->set_compression(how); }

void kv_store::barrier(std::chrono::nanoseconds timeout) const { core_->barrier(timeout); }

void kv_store::set_timeout(std::chrono::nanoseconds timeout) const { core_->set_timeout(timeout); }

void kv_store::on_command(std::function<void(int head, std::string body)> f) const { core_->on_command(std::move(f)); }

void kv_store::send_command(int head, const std::string& body) const { core_->send_command(head, body); }

void kv_store::run() const { core_->members().group().run(); }

}  // namespace muster
