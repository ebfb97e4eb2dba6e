// SPDX-License-Identifier: BSL-1.0
// Over arrays, a pack at a time. Part of combine_kernels.ipp, which says what may be used here.
//
// Loads and stores go by bytes, so that elements need no alignment beyond what the contract says, and what is not a
// whole pack is padded with zeros: one code for all elements, so that all get the same bits wherever they lie.

namespace muster::detail {
namespace {

template <class Pack>
Pack load(const std::byte* from, std::size_t bytes) {
  Pack loaded{};
  __builtin_memcpy(&loaded, from, bytes);
  return loaded;
}

template <class Pack>
void save(std::byte* to, const Pack& from, std::size_t bytes) {
  __builtin_memcpy(to, &from, bytes);
}

template <class Op, class Wides>
Wides joined(Wides a, Wides b) {
  return Op::join(a, b);
}

template <class Op, class Pack>
twin<Pack> joined(const twin<Pack>& a, const twin<Pack>& b) {
  return {Op::join(a.low, b.low), Op::join(a.high, b.high)};
}

template <class Op, class Wide, class Wides>
Wides finished(Wides each, std::size_t inputs) {
  return Op::template finish<Wide>(each, inputs);
}

template <class Op, class Wide, class Pack>
twin<Pack> finished(const twin<Pack>& each, std::size_t inputs) {
  return {Op::template finish<Wide>(each.low, inputs), Op::template finish<Wide>(each.high, inputs)};
}

/// Calls `what(first, how many)` for `count` elements, a pack at a time; the last may be less than whole.
template <std::size_t Lanes, class F>
[[gnu::always_inline]] inline void each_pack(std::size_t count, const F& what) {
  std::size_t at = 0;
  for (; at + Lanes <= count; at += Lanes) what(at, Lanes);
  if (at < count) what(at, count - at);
}

// ---- any number of inputs: chunks that stay in the first cache

/// One chunk of accumulators. They are whole packs: lanes beyond the last element are computed with, and never seen.
template <class Format, class Op>
class chunk {
public:
  using element = typename Format::element;
  using wide = typename Format::wide;
  static constexpr std::size_t most = chunk_bytes / sizeof(wide);

  void start(const std::byte* input, std::size_t count) {
    each_pack<Format::lanes>(count, [&](std::size_t at, std::size_t some) __attribute__((always_inline)) {
      put_wide(at, Format::widen(from(input, at, some)));
    });
  }

  void add(const std::byte* input, std::size_t count) {
    each_pack<Format::lanes>(count, [&](std::size_t at, std::size_t some) __attribute__((always_inline)) {
      put_wide(at, joined<Op>(get_wide(at), Format::widen(from(input, at, some))));
    });
  }

  /// The elements, in the place of the accumulators: the narrow ones never overtake the wide ones.
  const std::byte* finish(std::size_t count, std::size_t inputs) {
    if constexpr (!Op::finishes && sizeof(element) == sizeof(wide)) return room_;
    each_pack<Format::lanes>(count, [&](std::size_t at, std::size_t) __attribute__((always_inline)) {
      const elements narrow = Format::narrow(finished<Op, wide>(get_wide(at), inputs));
      save(room_ + at * sizeof(element), narrow, sizeof(narrow));
    });
    return room_;
  }

private:
  using elements = typename Format::elements;
  using wides = typename Format::wides;

  static elements from(const std::byte* input, std::size_t at, std::size_t some) {
    return load<elements>(input + at * sizeof(element), some * sizeof(element));
  }
  wides get_wide(std::size_t at) const { return load<wides>(room_ + at * sizeof(wide), sizeof(wides)); }
  void put_wide(std::size_t at, const wides& value) { save(room_ + at * sizeof(wide), value, sizeof(wides)); }

  alignas(64) std::byte room_[chunk_bytes];
};

template <class Format, class Op>
void run_chunks(const combine_job& job) {
  using accumulators = chunk<Format, Op>;
  constexpr auto size = sizeof(typename Format::element);
  accumulators sums;
  for (std::size_t first = 0; first < job.count; first += accumulators::most) {
    const auto left = job.count - first;
    const auto count = left < accumulators::most ? left : accumulators::most;
    sums.start(job.inputs[0] + first * size, count);
    for (std::size_t rank = 1; rank < job.input_count; ++rank) sums.add(job.inputs[rank] + first * size, count);
    const auto* const elements = sums.finish(count, job.input_count);
    for (std::size_t each = 0; each < job.output_count; ++each) {
      put(job.outputs[each] + first * size, elements, count * size, job.how);
    }
  }
}

// ---- two inputs: through registers

/// Goes by lines, because stores that alternate between two outputs more often than that take twice as long.
template <class Format, class Op>
class pair {
public:
  /// Requires: suits(job).
  explicit pair(const combine_job& job)
      : left_(job.inputs[0]),
        right_(job.inputs[1]),
        output_(job.outputs[0]),
        other_(job.output_count == 2 ? job.outputs[1] : nullptr) {}

  static bool suits(const combine_job& job) {
    if (job.input_count != 2 || job.output_count > 2) return false;
    return job.how == stores::normal || job.output_count == 1 || offset(job.outputs[0]) == offset(job.outputs[1]);
  }

  void run(std::size_t count) const {
    std::size_t at = 0;
    for (; at + per_line <= count; at += per_line) {
      expect(at);
      put_line<false>(at);
    }
    put_rest(at, count);
  }

  void run_streaming(std::size_t count) const {
    const auto before = (line_bytes - offset(output_)) % line_bytes / size;
    std::size_t at = before < count ? before : count;
    put_rest(0, at);
    for (; at + per_line <= count; at += per_line) put_line<true>(at);
    put_rest(at, count);
  }

private:
  using elements = typename Format::elements;
  static constexpr std::size_t size = sizeof(typename Format::element);
  static constexpr std::size_t packs = line_bytes / sizeof(elements);
  static constexpr std::size_t per_line = packs * Format::lanes;

  static std::size_t offset(const std::byte* place) { return reinterpret_cast<std::uintptr_t>(place) % line_bytes; }

  // The processor would ask for a line to write only when the store is next in turn.
  [[gnu::always_inline]] void expect(std::size_t at) const {
    constexpr std::size_t ahead = 4 * line_bytes;
    expect_write(output_ + at * size + ahead);
    if (other_ != nullptr) expect_write(other_ + at * size + ahead);
  }

  [[gnu::always_inline]] elements result(std::size_t at, std::size_t some) const {
    const auto a = Format::widen(load<elements>(left_ + at * size, some * size));
    const auto b = Format::widen(load<elements>(right_ + at * size, some * size));
    return Format::narrow(finished<Op, typename Format::wide>(joined<Op>(a, b), 2));
  }

  template <bool Streaming>
  [[gnu::always_inline]] void put_line(std::size_t at) const {
    elements line[packs];
#pragma GCC unroll 4
    for (std::size_t each = 0; each < packs; ++each) line[each] = result(at + each * Format::lanes, Format::lanes);
    store_line<Streaming>(output_ + at * size, line);
    if (other_ != nullptr) store_line<Streaming>(other_ + at * size, line);
  }

  template <bool Streaming>
  [[gnu::always_inline]] static void store_line(std::byte* to, const elements (&line)[packs]) {
#pragma GCC unroll 4
    for (std::size_t each = 0; each < packs; ++each) {
      if constexpr (Streaming) {
        stream(to + each * sizeof(elements), line[each]);
      } else {
        save(to + each * sizeof(elements), line[each], sizeof(elements));
      }
    }
  }

  void put_rest(std::size_t first, std::size_t last) const {
    each_pack<Format::lanes>(last - first, [&](std::size_t at, std::size_t some) __attribute__((always_inline)) {
      const auto found = result(first + at, some);
      save(output_ + (first + at) * size, found, some * size);
      if (other_ != nullptr) save(other_ + (first + at) * size, found, some * size);
    });
  }

  const std::byte* left_;
  const std::byte* right_;
  std::byte* output_;
  std::byte* other_;
};

template <class Format, class Op>
void run(const combine_job& job) {
  if constexpr (Format::lanes > 1) {
    using both = pair<Format, Op>;
    if (both::suits(job)) {
      const both registers(job);
      return job.how == stores::normal ? registers.run(job.count) : registers.run_streaming(job.count);
    }
  }
  run_chunks<Format, Op>(job);
}

}  // namespace
}  // namespace muster::detail
