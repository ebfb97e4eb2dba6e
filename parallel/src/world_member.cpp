// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/detail/world_member.hpp>

#include <exception>
#include <stdexcept>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/detail/device_block.hpp>
#include <muster/memory/detail/wait/rank_identity.hpp>
#include <muster/serialize/error_info.hpp>

#include "ended_ranks.hpp"
#include "failure_note.hpp"
#include "share_device.hpp"
#include "world_news.hpp"

namespace muster::detail {

world_member::world_member(std::shared_ptr<domain> where, const world_memory& memory, std::size_t rank, seat who,
                           device on)
    : domain_(std::move(where)),
      memory_(memory),
      rank_(rank),
      device_(on),
      line_(memory.line(rank)),
      is_caller_(who == seat::caller),
      sleeper_(*domain_, {.spin = memory.shape().spin, .is_crowded = memory.shape().is_crowded},
               is_caller_ ? memory.place() : line_.place),
      decoder_(memory.modules()),
      reply_(domain_->blocks()),
      exchange_(domain_->blocks()),
      lent_(domain_->blocks()),
      pins_(on) {}

command_word world_member::command() const noexcept {
  return command_word::unpack(memory_.command().command.load(std::memory_order_seq_cst));
}

answer_word world_member::answer_of(std::size_t rank) const noexcept {
  return answer_word::unpack(memory_.line(rank).answer.load(std::memory_order_seq_cst));
}

void world_member::answer(std::uint64_t epoch, rank_phase phase) noexcept {
  line_.answer.store(answer_word{.epoch = epoch, .what = phase}.pack(), std::memory_order_seq_cst);
  ring(memory_.bell());
}

void world_member::join() {
  line_.member.store(rank_identity::of(*domain_, domain_->self()).pack(), std::memory_order_release);
  epoch_ = command().epoch;
  answer(epoch_, rank_phase::ready);
}

void world_member::serve() noexcept {
  for (;;) {
    command_word found;
    const auto look = [&] {
      found = command();
      return found.epoch != epoch_ || found.what == world_order::close;
    };
    sleeper_.wait(own_bell(), look, look, [this] { return prospect_of(memory_.place()); });
    if (found.what == world_order::close) return;
    const bool is_call =
        found.what == world_order::run || found.what == world_order::learn || found.what == world_order::tend;
    if (is_call) {
      take_part(found.epoch, found.what);
    } else {
      epoch_ = found.epoch;  // it was aborted before it was seen
      answer(found.epoch, rank_phase::dropped);
    }
  }
}

void world_member::take_part(std::uint64_t epoch, world_order what) {
  epoch_ = epoch;
  failure_ = nullptr;
  failed_as_ = 0;
  offered_.clear();
  outputs_.reset();
  made_.clear();
  try {
    run(epoch, what);
    lent_.end();
    if (what != world_order::learn) reply_.show(line_.reply);
    answer(epoch, rank_phase::done);
  } catch (const call_dropped&) {
    end_work();
    answer(epoch, rank_phase::dropped);
  } catch (...) {
    failure_ = std::current_exception();
    fail(epoch);
  }
}

// Who has answered touches nothing of the call any more, and neither does his device. One that is lost does nothing
// more.
void world_member::wait_for_device() {
  if (!device_.is_cpu()) kind_of(device_).synchronize();
}

void world_member::end_work() noexcept {
  try {
    wait_for_device();
  } catch (const std::exception&) {
    if (!failure_) failure_ = std::current_exception();
  }
  pins_.clear();
  end_loans();
}

// What the function has kept a handle of is not good any more if there is no memory to hold it; the call has not
// happened then.
void world_member::end_loans() {
  try {
    lent_.end();
  } catch (const std::exception&) {
    if (!failure_) failure_ = std::current_exception();
  }
}

namespace {

// Of a lost device the caller is told by the code, so that this process is replaced; whatever else was thrown goes as
// what it is.
error_info failure_now() {
  try {
    throw;
  } catch (const error& failure) {
    if (failure.code() == errc::device_lost) return {errc::device_lost, failure.what()};
  } catch (...) {  // NOLINT(bugprone-empty-catch): no error of a device
  }
  return capture_current_exception();
}

}  // namespace

// Where it is not the function that has failed, this is the first to know.
void world_member::note_failure() noexcept {
  if (failed_as_ != 0) return;
  failed_as_ = memory_.count_failure();
  ended_ = ended_ranks(*domain_, memory_);
}

void world_member::fail(std::uint64_t epoch) noexcept {
  note_failure();
  const auto why = failure_now();
  const auto causes = ranks_named_by_current_exception(memory_);
  end_work();
  try {
    const auto note = failure_note::of(why, causes, ended_);
    reply_.put(line_.reply, [&](output_archive& out) { out(note); });
  } catch (const std::exception&) {
    line_.reply.bytes = 0;  // no room to say more
    line_.reply.block = 0;
  }
  line_.failed_as.store(failed_as_, std::memory_order_relaxed);  // published by the answer
  answer(epoch, rank_phase::failed);
}

// By now it may have been aborted; what the arguments are goes by what was ordered.
void world_member::run(std::uint64_t epoch, world_order what) {
  read_news();
  if (what == world_order::learn) return require_code();
  if (what == world_order::tend) return tend();
  auto& memory = domain_->blocks();
  const frame_view frame(memory, memory_.command().arguments);
  world_call_header header;
  frame_reader(frame.bytes()).read(&header, sizeof header);
  const auto found = functions_.find(header.function);
  if (found == functions_.end()) {
    throw error(errc::corrupted, text("rank ", rank_, " was asked for a function with number ", header.function,
                                      ", of which it was not told: somebody has overwritten the world's memory"));
  }
  make_code(found->second);
  if (found->second.code->has_archived_values()) {
    input_archive values(frame.bytes(), &lent_);
    run(epoch, header, found->second, values);
  } else {
    frame_reader values(frame.bytes(), &lent_);
    run(epoch, header, found->second, values);
  }
}

void world_member::run(std::uint64_t epoch, const world_call_header& header, const function& what,
                       frame_reader& values) {
  static_cast<void>(values.take(sizeof header));
  const auto call = sent_call::read_from(values, what.spec);
  pins_.begin(call.inputs);
  share_run share({.spec = what.spec,
                   .header = header,
                   .call = call,
                   .rank = rank_,
                   .ranks = memory_.shape().ranks,
                   .master = memory_.shape().master,
                   .variables = variables_,
                   .others = *this,
                   .buffers = buffers_[header.function],
                   .device = device_});
  outputs_ = what.code->run(share, values);
  if (!device_.is_cpu()) {
    wait_for_device();
    pins_.end();
    share.note_settled();
    mappings_ = share.take_mappings();
  }
  if (command() == command_word{.epoch = epoch, .what = world_order::abort}) throw call_dropped{};
  const auto write = [&](frame_writer& out) {
    out.write(&share.times(), sizeof(rank_times));
    if (outputs_) outputs_->write_to(out);
  };
  if (what.code->has_archived_outputs()) {
    reply_.prepare<output_archive>(line_.reply, write);
  } else {
    reply_.prepare<frame_writer>(line_.reply, write);
  }
}

void world_member::read_news() {
  auto& memory = domain_->blocks();
  const frame_view frame(memory, line_.news);
  if (frame.bytes().empty()) return;
  keeping_source kept(memory);
  input_archive in(frame.bytes(), &kept);
  std::vector<function_news> told;
  in(told);
  for (auto& each : told) {
    forget(each.number);
    if (each.is_gone) continue;
    auto& made = functions_[each.number];
    made = {.spec = std::move(each.spec), .factory = each.factory, .sent = std::move(each.sent)};
    try {
      make_code(made);
    } catch (...) {  // NOLINT(bugprone-empty-catch): its own calls fail, and no others
    }
  }
  std::vector<variable_news> changed;
  in(changed);
  for (auto& each : changed) {
    if (each.is_gone) {
      variables_.erase(each.number);
    } else {
      variables_[each.number] = std::move(each.what);
    }
  }
}

// What could not be made before is tried again: it may have been for want of memory.
void world_member::make_code(function& what) {
  if (what.code) return;
  input_archive sent(what.sent);
  what.code = decoder_.decode<rank_function_factory>(what.factory)(sent, decoder_);
  what.sent = {};
}

void world_member::require_code() {
  for (auto& [number, each] : functions_) {
    try {
      make_code(each);
    } catch (...) {
      std::throw_with_nested(std::runtime_error(text("function '", each.spec.name, "' cannot be made in this rank")));
    }
  }
}

// ---- on the rank's device, between calls

void world_member::tend() {
  auto& memory = domain_->blocks();
  const frame_view frame(memory, memory_.command().arguments);
  input_archive in(frame.bytes());
  std::vector<residence_job> jobs;
  in(jobs);
  for (const auto& job : jobs) {
    if (job.rank != residence_job::all_ranks && job.rank != rank_) continue;
    const auto& variable = variables_.at(job.variable);
    const auto here = value_here(variable, job.live, rank_, memory_.shape().ranks);
    if (job.copies == 0) {
      here.copy_from(variable.on_device.at(rank_)[job.live.there()]);
      continue;
    }
    auto& copies = made_.emplace_back();
    for (std::uint32_t index = 0; index < job.copies; ++index) {
      copies[index] = tensor::empty(here.dtype(), here.shape(), device_);
    }
  }
  wait_for_device();
  reply_.prepare(line_.reply, [&](output_archive& out) { out(made_); });
}

// ---- what ranks read of one another

// By other ranks, without a copy.
bool world_member::is_reachable(const tensor& value) const noexcept {
  if (!value.is_shared()) return false;
  return value.storage()->on_device() != nullptr || value.storage()->block().owner() == &domain_->blocks();
}

// Of those that have not computed yet, and of the caller.
prospect world_member::ask_computing() const noexcept {
  auto most = is_caller_ ? prospect::usual : prospect_of(memory_.place());
  for (std::size_t rank = 0; rank < memory_.shape().ranks; ++rank) {
    if (rank == rank_) continue;
    const auto of_rank = prospect_of(memory_.line(rank).place);
    if (of_rank <= most) continue;
    const auto found = answer_of(rank);
    if (found.epoch != epoch_ || found.what != rank_phase::computed) most = of_rank;
  }
  return most;
}

std::vector<std::vector<contribution>> world_member::exchange(std::vector<contribution> own) {
  offered_ = std::move(own);
  if (memory_.shape().ranks == 1) return {offered_};
  for (auto& each : offered_) {
    if (each.some && !is_reachable(each.value)) each.value = each.value.clone(memory::shared);
  }
  exchange_.put<frame_writer>(line_.exchange, [&](frame_writer& out) {
    for (const auto& each : offered_) each.write_to(out);
  });
  answer(epoch_, rank_phase::computed);
  const auto ranks = memory_.shape().ranks;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (rank != rank_) ring(memory_.line(rank).bell);
  }
  bool is_dropped = false;
  const auto look = [&] {
    is_dropped = command() != command_word{.epoch = epoch_, .what = world_order::run};
    return is_dropped || have_all_computed();
  };
  const auto done = [&] {
    if (look()) return true;
    is_dropped = hopeless_ && hopeless_();
    return is_dropped;
  };
  if (!sleeper_.wait(own_bell(), look, done, [this] { return ask_computing(); }, until_) || is_dropped)
    throw call_dropped{};
  std::vector<std::vector<contribution>> all;
  all.reserve(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    all.push_back(rank == rank_ ? offered_ : read_contributions(rank));
  }
  return all;
}

bool world_member::have_all_computed() const noexcept {
  for (std::size_t rank = 0; rank < memory_.shape().ranks; ++rank) {
    const auto found = answer_of(rank);
    if (found.epoch != epoch_ || (found.what != rank_phase::computed && found.what != rank_phase::done)) return false;
  }
  return true;
}

std::vector<contribution> world_member::read_contributions(std::size_t rank) {
  const frame_view frame(domain_->blocks(), memory_.line(rank).exchange);
  frame_reader in(frame.bytes(), &lent_);
  std::vector<contribution> found;
  found.reserve(offered_.size());
  for (std::size_t index = 0; index < offered_.size(); ++index) found.push_back(contribution::read_from(in));
  return found;
}

}  // namespace muster::detail
