// SPDX-License-Identifier: BSL-1.0
// What rules do to a piece. Part of rule_kernels.ipp, which says what may be used here.

namespace muster::detail {
namespace {

/// The numbers of an update in the type that it is computed in.
template <class Wide>
struct numbers_in {
  explicit numbers_in(const rule_numbers& exact)
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

float root_of(float each) { return __builtin_sqrtf(each); }
double root_of(double each) { return __builtin_sqrt(each); }

template <class Wide>
void assign(const numbers_in<Wide>&, piece<Wide>& here) {
  for (std::size_t at = 0; at < here.count; ++at) here.value[at] = here.gradient[at];
}

/// Not where the weight is 0: a value may be infinite.
template <class Wide>
void decay_weights(const numbers_in<Wide>& with, piece<Wide>& here) {
  if (with.weight_decay == 0) return;
  for (std::size_t at = 0; at < here.count; ++at) here.gradient[at] += with.weight_decay * here.value[at];
}

template <class Wide>
void descend(const numbers_in<Wide>& with, piece<Wide>& here) {
  decay_weights(with, here);
  for (std::size_t at = 0; at < here.count; ++at) here.value[at] -= with.rate * here.gradient[at];
}

template <class Wide>
void descend_with_momentum(const numbers_in<Wide>& with, piece<Wide>& here) {
  decay_weights(with, here);
  for (std::size_t at = 0; at < here.count; ++at) {
    const Wide velocity = with.momentum * here.states[0][at] + here.gradient[at];
    here.states[0][at] = velocity;
    here.value[at] -= with.rate * velocity;
  }
}

template <class Wide>
void descend_by_nesterov(const numbers_in<Wide>& with, piece<Wide>& here) {
  decay_weights(with, here);
  for (std::size_t at = 0; at < here.count; ++at) {
    const Wide velocity = with.momentum * here.states[0][at] + here.gradient[at];
    here.states[0][at] = velocity;
    here.value[at] -= with.rate * (here.gradient[at] + with.momentum * velocity);
  }
}

template <class Wide>
void update_adam(const numbers_in<Wide>& with, piece<Wide>& here) {
  for (std::size_t at = 0; at < here.count; ++at) {
    const Wide gradient = here.gradient[at];
    const Wide mean = with.momentum * here.states[0][at] + with.taken * gradient;
    const Wide square = with.decay * here.states[1][at] + with.squared * gradient * gradient;
    here.states[0][at] = mean;
    here.states[1][at] = square;
    here.value[at] = here.value[at] * with.shrink - with.rate * mean / (root_of(square) / with.root + with.epsilon);
  }
}

template <class Wide>
void update_adagrad(const numbers_in<Wide>& with, piece<Wide>& here) {
  for (std::size_t at = 0; at < here.count; ++at) {
    const Wide sum = here.states[0][at] + here.gradient[at] * here.gradient[at];
    here.states[0][at] = sum;
    here.value[at] -= with.rate * here.gradient[at] / (root_of(sum) + with.epsilon);
  }
}

template <class Wide>
void update_rmsprop(const numbers_in<Wide>& with, piece<Wide>& here) {
  for (std::size_t at = 0; at < here.count; ++at) {
    const Wide square = with.decay * here.states[0][at] + with.squared * here.gradient[at] * here.gradient[at];
    here.states[0][at] = square;
    here.value[at] -= with.rate * here.gradient[at] / (root_of(square) + with.epsilon);
  }
}

template <class Wide>
void update_rmsprop_with_momentum(const numbers_in<Wide>& with, piece<Wide>& here) {
  for (std::size_t at = 0; at < here.count; ++at) {
    const Wide square = with.decay * here.states[0][at] + with.squared * here.gradient[at] * here.gradient[at];
    const Wide velocity = with.momentum * here.states[1][at] + here.gradient[at] / (root_of(square) + with.epsilon);
    here.states[0][at] = square;
    here.states[1][at] = velocity;
    here.value[at] -= with.rate * velocity;
  }
}

template <class Wide>
void update_adadelta(const numbers_in<Wide>& with, piece<Wide>& here) {
  for (std::size_t at = 0; at < here.count; ++at) {
    const Wide gradient = here.gradient[at];
    const Wide square = with.decay * here.states[0][at] + with.squared * gradient * gradient;
    const Wide step = root_of(here.states[1][at] + with.epsilon) / root_of(square + with.epsilon) * gradient;
    here.states[0][at] = square;
    here.states[1][at] = with.decay * here.states[1][at] + with.squared * step * step;
    here.value[at] -= with.rate * step;
  }
}

template <class Wide>
void update_adamax(const numbers_in<Wide>& with, piece<Wide>& here) {
  for (std::size_t at = 0; at < here.count; ++at) {
    const Wide gradient = here.gradient[at];
    const Wide mean = with.momentum * here.states[0][at] + with.taken * gradient;
    const Wide older = with.decay * here.states[1][at];
    const Wide newer = (gradient < 0 ? -gradient : gradient) + with.epsilon;
    const Wide largest = older > newer ? older : newer;
    here.states[0][at] = mean;
    here.states[1][at] = largest;
    here.value[at] -= with.rate * mean / largest;
  }
}

template <class Wide>
using rule_update = void (*)(const numbers_in<Wide>& with, piece<Wide>& here);

template <class Wide>
rule_update<Wide> find_update(rule_kind kind) {
  switch (kind) {
    case rule_kind::plain: return descend<Wide>;
    case rule_kind::momentum: return descend_with_momentum<Wide>;
    case rule_kind::nesterov: return descend_by_nesterov<Wide>;
    case rule_kind::adam: return update_adam<Wide>;
    case rule_kind::adagrad: return update_adagrad<Wide>;
    case rule_kind::rmsprop: return update_rmsprop<Wide>;
    case rule_kind::rmsprop_momentum: return update_rmsprop_with_momentum<Wide>;
    case rule_kind::adadelta: return update_adadelta<Wide>;
    case rule_kind::adamax: return update_adamax<Wide>;
    default: return assign<Wide>;
  }
}

}  // namespace
}  // namespace muster::detail
