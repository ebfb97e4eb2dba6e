// SPDX-License-Identifier: BSL-1.0
#pragma once

// Steps of optimizers. The formulas, and the order in which they are computed, are those of rule_updates.ipp of
// muster::parallel: the same bits.

#include <cmath>

#include "device_elements.hpp"
#include "element_loops.hpp"
#include "element_ops.hpp"

namespace muster::detail {

/// The numbers of an update in the type that it is computed in.
template <class Wide>
struct rule_numbers_in {
  __device__ explicit rule_numbers_in(const rule_arguments& exact)
      : rate(static_cast<Wide>(exact.rate)),
        momentum(static_cast<Wide>(exact.momentum)),
        taken(static_cast<Wide>(exact.taken)),
        decay(static_cast<Wide>(exact.decay)),
        squared(static_cast<Wide>(exact.squared)),
        root(static_cast<Wide>(exact.root)),
        epsilon(static_cast<Wide>(exact.epsilon)),
        weight_decay(static_cast<Wide>(exact.weight_decay)),
        shrink(static_cast<Wide>(exact.shrink)) {}

  Wide rate;
  Wide momentum;
  Wide taken;
  Wide decay;
  Wide squared;
  Wide root;
  Wide epsilon;
  Wide weight_decay;
  Wide shrink;
};

template <class Wide>
struct rule_element {
  Wide gradient;
  Wide value;
  Wide states[2];
};

__device__ inline float root_of(float each) { return ::sqrtf(each); }
__device__ inline double root_of(double each) { return ::sqrt(each); }

/// Not where the weight is 0: a value may be infinite.
template <class Wide>
__device__ void decay_weight(const rule_numbers_in<Wide>& with, rule_element<Wide>& here) {
  if (with.weight_decay != 0) here.gradient += with.weight_decay * here.value;
}

template <class Wide>
__device__ void descend(const rule_numbers_in<Wide>& with, rule_element<Wide>& here) {
  decay_weight(with, here);
  here.value -= with.rate * here.gradient;
}

template <class Wide>
__device__ void descend_with_momentum(const rule_numbers_in<Wide>& with, rule_element<Wide>& here) {
  decay_weight(with, here);
  here.states[0] = with.momentum * here.states[0] + here.gradient;
  here.value -= with.rate * here.states[0];
}

template <class Wide>
__device__ void descend_by_nesterov(const rule_numbers_in<Wide>& with, rule_element<Wide>& here) {
  decay_weight(with, here);
  here.states[0] = with.momentum * here.states[0] + here.gradient;
  here.value -= with.rate * (here.gradient + with.momentum * here.states[0]);
}

template <class Wide>
__device__ void update_adam(const rule_numbers_in<Wide>& with, rule_element<Wide>& here) {
  const Wide gradient = here.gradient;
  const Wide mean = with.momentum * here.states[0] + with.taken * gradient;
  const Wide square = with.decay * here.states[1] + with.squared * gradient * gradient;
  here.states[0] = mean;
  here.states[1] = square;
  here.value = here.value * with.shrink - with.rate * mean / (root_of(square) / with.root + with.epsilon);
}

template <class Wide>
__device__ void update_adagrad(const rule_numbers_in<Wide>& with, rule_element<Wide>& here) {
  here.states[0] = here.states[0] + here.gradient * here.gradient;
  here.value -= with.rate * here.gradient / (root_of(here.states[0]) + with.epsilon);
}

template <class Wide>
__device__ void update_rmsprop(const rule_numbers_in<Wide>& with, rule_element<Wide>& here) {
  here.states[0] = with.decay * here.states[0] + with.squared * here.gradient * here.gradient;
  here.value -= with.rate * here.gradient / (root_of(here.states[0]) + with.epsilon);
}

template <class Wide>
__device__ void update_rmsprop_with_momentum(const rule_numbers_in<Wide>& with, rule_element<Wide>& here) {
  here.states[0] = with.decay * here.states[0] + with.squared * here.gradient * here.gradient;
  here.states[1] = with.momentum * here.states[1] + here.gradient / (root_of(here.states[0]) + with.epsilon);
  here.value -= with.rate * here.states[1];
}

template <class Wide>
__device__ void update_adadelta(const rule_numbers_in<Wide>& with, rule_element<Wide>& here) {
  const Wide gradient = here.gradient;
  const Wide square = with.decay * here.states[0] + with.squared * gradient * gradient;
  const Wide step = root_of(here.states[1] + with.epsilon) / root_of(square + with.epsilon) * gradient;
  here.states[0] = square;
  here.states[1] = with.decay * here.states[1] + with.squared * step * step;
  here.value -= with.rate * step;
}

template <class Wide>
__device__ void update_adamax(const rule_numbers_in<Wide>& with, rule_element<Wide>& here) {
  const Wide gradient = here.gradient;
  const Wide older = with.decay * here.states[1];
  const Wide newer = (gradient < 0 ? -gradient : gradient) + with.epsilon;
  here.states[0] = with.momentum * here.states[0] + with.taken * gradient;
  here.states[1] = older > newer ? older : newer;
  here.value -= with.rate * here.states[0] / here.states[1];
}

template <class Wide>
__device__ void update(kernel_rule rule, const rule_numbers_in<Wide>& with, rule_element<Wide>& here) {
  switch (rule) {
    case kernel_rule::plain: return descend(with, here);
    case kernel_rule::momentum: return descend_with_momentum(with, here);
    case kernel_rule::nesterov: return descend_by_nesterov(with, here);
    case kernel_rule::adam: return update_adam(with, here);
    case kernel_rule::adagrad: return update_adagrad(with, here);
    case kernel_rule::rmsprop: return update_rmsprop(with, here);
    case kernel_rule::rmsprop_momentum: return update_rmsprop_with_momentum(with, here);
    case kernel_rule::adadelta: return update_adadelta(with, here);
    case kernel_rule::adamax: return update_adamax(with, here);
    default: here.value = here.gradient;
  }
}

/// `Size` elements at once, from the one at index · Size on.
template <class T, unsigned Size>
class rule_step {
public:
  using wide = part_of<T>;

  __device__ explicit rule_step(const rule_arguments& given) : given_(given), numbers_(given) {}

  __device__ void operator()(std::uint64_t index) const {
    pack<rule_element<wide>, Size> here;
    sum_gradients(index, here);
    load(index, here);
    MUSTER_UNROLL
    for (unsigned each = 0; each < Size; ++each) update(given_.rule, numbers_, here.each[each]);
    save(index, here);
  }

private:
  template <class Element>
  __device__ static pack<Element, Size> pack_at(const std::byte* array, std::uint64_t index) {
    return reinterpret_cast<const pack<Element, Size>*>(array)[index];
  }

  /// The first gradient is not added to 0: that would take the sign off -0.
  __device__ void sum_gradients(std::uint64_t index, pack<rule_element<wide>, Size>& here) const {
    for (unsigned rank = 0; rank < given_.gradient_count; ++rank) {
      const auto weight = static_cast<wide>(given_.weights[rank]);
      const auto loaded = pack_at<T>(given_.gradients[rank], index);
      MUSTER_UNROLL
      for (unsigned each = 0; each < Size; ++each) {
        const auto weighted = weight * static_cast<wide>(loaded.each[each]);
        auto& sum = here.each[each].gradient;
        sum = rank == 0 ? weighted : sum + weighted;
      }
    }
  }

  __device__ void load(std::uint64_t index, pack<rule_element<wide>, Size>& here) const {
    if (given_.rule == kernel_rule::assign) return;
    const auto values = pack_at<T>(given_.value, index);
    MUSTER_UNROLL
    for (unsigned each = 0; each < Size; ++each) here.each[each].value = static_cast<wide>(values.each[each]);
    MUSTER_UNROLL
    for (unsigned state = 0; state < 2; ++state) {
      if (state >= given_.state_count) break;
      const auto states = pack_at<wide>(given_.old_states[state], index);
      MUSTER_UNROLL
      for (unsigned each = 0; each < Size; ++each) here.each[each].states[state] = states.each[each];
    }
  }

  __device__ void save(std::uint64_t index, const pack<rule_element<wide>, Size>& here) const {
    pack<T, Size> values;
    MUSTER_UNROLL
    for (unsigned each = 0; each < Size; ++each) values.each[each] = static_cast<T>(here.each[each].value);
    reinterpret_cast<pack<T, Size>*>(given_.new_value)[index] = values;
    MUSTER_UNROLL
    for (unsigned state = 0; state < 2; ++state) {
      if (state >= given_.state_count) break;
      pack<wide, Size> states;
      MUSTER_UNROLL
      for (unsigned each = 0; each < Size; ++each) states.each[each] = here.each[each].states[state];
      reinterpret_cast<pack<wide, Size>*>(given_.new_states[state])[index] = states;
    }
  }

  const rule_arguments& given_;
  const rule_numbers_in<wide> numbers_;
};

template <class T>
__device__ void apply_rule(const rule_arguments& given) {
  constexpr auto size = pack_size<part_of<T>>;
  const auto thread = std::uint64_t{blockIdx.x} * kernel_threads + threadIdx.x;
  const auto threads = std::uint64_t{gridDim.x} * kernel_threads;
  const rule_step<T, size> step_of_pack(given);
  const rule_step<T, 1> step_of_one(given);
  const auto packs = given.is_packed ? given.count / size : 0;
  for (auto index = thread; index < packs; index += threads) step_of_pack(index);
  for (auto index = packs * size + thread; index < given.count; index += threads) step_of_one(index);
}

}  // namespace muster::detail
