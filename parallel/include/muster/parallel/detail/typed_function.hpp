// SPDX-License-Identifier: BSL-1.0
#pragma once

// The part of a function that knows its types: in the ranks it calls the callable, in the caller it joins what they
// give.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <muster/parallel/detail/callable_signature.hpp>
#include <muster/parallel/detail/output_accumulator.hpp>
#include <muster/parallel/detail/share_run.hpp>
#include <muster/parallel/rank_context.hpp>
#include <muster/serialize/detail/sent_callable.hpp>

namespace muster::detail {

template <class T>
struct result_values {
  using type = std::tuple<T>;
};
template <>
struct result_values<void> {
  using type = std::tuple<>;
};
template <class... T>
struct result_values<std::tuple<T...>> {
  using type = std::tuple<T...>;
};

/// A value of an update as a tensor.
inline tensor as_tensor(const tensor& value) { return value; }
template <tensor_element T>
tensor as_tensor(T value) {
  return tensor::full<T>({}, value, memory::local);
}

/// What the tags say of a callable, as types.
template <class Callable, std::size_t Rows, std::size_t Wholes, std::size_t Variables, std::size_t Updates,
          output_op... Ops>
class layout {
  using known = callable_signature<Callable>;
  static_assert(known::is_known,
                "muster: the callable's arguments must be known: not auto, no overloads. Write their types");
  using arguments = typename known::arguments;
  static constexpr std::size_t argument_count = std::tuple_size_v<arguments>;

  static consteval bool takes_context() {
    if constexpr (argument_count > 0) {
      return std::is_same_v<std::decay_t<std::tuple_element_t<0, arguments>>, rank_context>;
    } else {
      return false;
    }
  }

public:
  static constexpr std::size_t row_count = Rows;
  static constexpr std::size_t whole_count = Wholes;
  static constexpr std::size_t output_count = sizeof...(Ops);
  static constexpr bool has_context = takes_context();
  static constexpr std::size_t first_argument = has_context ? 1 : 0;

  static_assert(
      argument_count == first_argument + Rows + Wholes + Variables,
      "muster: the callable must take a const rank_context& if it wants one, then an argument for each name in "
      "rows() and whole(), and for the variables of replicas() and sliceable(), in the order in which they are given");

  using results = typename result_values<typename known::result>::type;
  static_assert(
      std::tuple_size_v<results> == output_count + Updates,
      "muster: the callable must return a value for each of outputs() and then for each of updates(): nothing, "
      "one value, or a std::tuple");

  /// How many values there are behind the outputs. Where there are too few in all, the error above says so, and no
  /// compiler counts down from 2^64.
  static constexpr std::size_t update_values =
      std::tuple_size_v<results> < output_count ? 0 : std::tuple_size_v<results> - output_count;

private:
  template <std::size_t... Index>
  static std::tuple<std::decay_t<std::tuple_element_t<first_argument + Rows + Index, arguments>>...> wholes_of(
      std::index_sequence<Index...>);
  static constexpr std::array<output_op, sizeof...(Ops)> ops = {Ops...};
  template <std::size_t... Index>
  static std::tuple<output_accumulator<std::decay_t<std::tuple_element_t<Index, results>>, ops[Index]>...> outputs_of(
      std::index_sequence<Index...>);
  template <std::size_t... Index>
  static consteval bool are_tensors(std::index_sequence<Index...> /*rows*/) {
    return (std::is_same_v<std::decay_t<std::tuple_element_t<first_argument + Index, arguments>>, tensor> && ...);
  }
  static_assert(are_tensors(std::make_index_sequence<Rows>()),
                "muster: the callable's arguments for rows() are tensors");

public:
  /// The types of the whole inputs.
  using wholes = decltype(wholes_of(std::make_index_sequence<Wholes>()));
  using outputs = decltype(outputs_of(std::make_index_sequence<sizeof...(Ops)>()));
  static constexpr bool has_archived_outputs = []<class... Each>(std::tuple<Each...>*) {
    return (Each::is_archived || ...);
  }(static_cast<outputs*>(nullptr));

private:
  template <std::size_t... Wanted>
  static auto stored_type(std::index_sequence<Wanted...>)
      -> std::tuple<typename std::tuple_element_t<Wanted, outputs>::result...>;
  template <std::size_t... Wanted>
  static consteval auto indexes() {
    if constexpr (sizeof...(Wanted) == 0) {
      return std::make_index_sequence<output_count>();
    } else {
      return std::index_sequence<Wanted...>();
    }
  }
  template <class Stored>
  struct unpacked {
    using type = Stored;
  };
  template <class Only>
  struct unpacked<std::tuple<Only>> {
    using type = Only;
  };

public:
  /// Of the outputs that are wanted, in the order wanted; of all, where none is named.
  template <std::size_t... Wanted>
  using stored = decltype(stored_type(indexes<Wanted...>()));
  /// What the caller gets: nothing, one value, or a tuple.
  template <std::size_t... Wanted>
  using result =
      std::conditional_t<std::tuple_size_v<stored<Wanted...>> == 0, void, typename unpacked<stored<Wanted...>>::type>;

  /// The whole inputs, which archives encode; both do nothing where there are none.
  template <class Values>
  static void write([[maybe_unused]] const Values& values, [[maybe_unused]] frame_writer& out) {
    if constexpr (Wholes > 0) {
      auto& archive = static_cast<output_archive&>(out);
      std::apply([&archive](const auto&... each) { (archive(each), ...); }, values);
    }
  }
  [[nodiscard]] static wholes read([[maybe_unused]] frame_reader& in) {
    wholes values;
    if constexpr (Wholes > 0) {
      auto& archive = static_cast<input_archive&>(in);
      std::apply([&archive](auto&... each) { (archive(each), ...); }, values);
    }
    return values;
  }

  [[nodiscard]] static outputs accumulators(const function_spec& spec) {
    return accumulators(spec, std::make_index_sequence<output_count>());
  }

  template <std::size_t... Wanted>
  [[nodiscard]] static constexpr std::uint64_t mask() {
    return mask_of(indexes<Wanted...>());
  }

  /// Takes in what one rank wrote of the outputs in the mask.
  static void merge(outputs& all, std::uint64_t mask, frame_reader& in) {
    merge(all, mask, in, std::make_index_sequence<output_count>());
  }

  template <std::size_t... Wanted>
  [[nodiscard]] static stored<Wanted...> finish(outputs& all) {
    auto values = finish_all(all, mask<Wanted...>(), std::make_index_sequence<output_count>());
    return choose<stored<Wanted...>>(values, indexes<Wanted...>(),
                                     std::make_index_sequence<std::tuple_size_v<stored<Wanted...>>>());
  }

  template <std::size_t... Wanted>
  [[nodiscard]] static result<Wanted...> unpack(stored<Wanted...>&& values) {
    if constexpr (std::tuple_size_v<stored<Wanted...>> == 1) {
      return std::get<0>(std::move(values));
    } else if constexpr (std::tuple_size_v<stored<Wanted...>> > 1) {
      return std::move(values);
    }
  }

private:
  template <std::size_t... Index>
  static outputs accumulators(const function_spec& spec, std::index_sequence<Index...> /*outputs*/) {
    return outputs(std::tuple_element_t<Index, outputs>(value_name(spec, value_name::kind::output, Index))...);
  }
  template <std::size_t... Wanted>
  static constexpr std::uint64_t mask_of(std::index_sequence<Wanted...> /*wanted*/) {
    return ((std::uint64_t{1} << Wanted) | ... | 0U);
  }
  template <std::size_t... Index>
  static void merge(outputs& all, std::uint64_t mask, frame_reader& in, std::index_sequence<Index...> /*outputs*/) {
    ((mask >> Index & 1U ? std::get<Index>(all).merge(in) : void()), ...);
  }
  template <std::size_t... Index>
  static auto finish_all(outputs& all, std::uint64_t mask, std::index_sequence<Index...> /*outputs*/) {
    using whole = std::tuple<typename std::tuple_element_t<Index, outputs>::result...>;
    whole values{};
    ((mask >> Index & 1U ? void(std::get<Index>(values) = std::get<Index>(all).finish()) : void()), ...);
    return values;
  }
  template <class Stored, class Values, std::size_t... Wanted, std::size_t... Place>
  static Stored choose(const Values& values, std::index_sequence<Wanted...> /*wanted*/,
                       std::index_sequence<Place...> /*places*/) {
    return Stored(chosen<is_repeated<Wanted...>(Place)>(std::get<Wanted>(values))...);
  }
  /// Whether what is wanted there is wanted before, too.
  template <std::size_t... Wanted>
  static consteval bool is_repeated(std::size_t place) {
    const std::array<std::size_t, sizeof...(Wanted)> wanted{Wanted...};
    for (std::size_t before = 0; before < place; ++before) {
      if (wanted[before] == wanted[place]) return true;
    }
    return false;
  }
  template <bool IsRepeated, class Value>
  static Value chosen(const Value& value) {
    if constexpr (IsRepeated) {
      return own_copy(value);
    } else {
      return value;
    }
  }
};

template <class Callable, class... Wholes>
consteval void require_fitting_inputs(std::tuple<Wholes...>* /*values*/) {
  require_fitting_call<Callable, Wholes...>();
}

/// Of bound values, of the inputs that all ranks get, and of what the callable returns.
template <class Callable, class Layout>
consteval void check_sizes() {
  require_transportable_call<Callable>();
  require_fitting_inputs<Callable>(static_cast<typename Layout::wholes*>(nullptr));
  require_fitting<typename Layout::results>();
}

/// A callable in a rank.
template <class Callable, class Layout>
class typed_function final : public rank_function {
public:
  explicit typed_function(Callable callable) : callable_(std::move(callable)) {}

  [[nodiscard]] bool has_archived_values() const noexcept override { return Layout::whole_count > 0; }
  [[nodiscard]] bool has_archived_outputs() const noexcept override { return Layout::has_archived_outputs; }

  [[nodiscard]] std::unique_ptr<rank_outputs> run(share_run& share, frame_reader& values) override {
    auto wholes = Layout::read(values);
    share.place(wholes);
    if constexpr (Layout::output_count == 0) {
      typename Layout::outputs none;
      run_slices(share, wholes, none);
      return nullptr;
    } else {
      auto kept = std::make_unique<kept_outputs>(share);
      run_slices(share, wholes, kept->all);
      return kept;
    }
  }

  /// What is sent of it, and how it is made again.
  static void encode(output_archive& out, const Callable& callable, token_encoder& functions) {
    sent_callable<Callable>::send(callable, functions, [&](const auto&... each) { (out(each), ...); });
  }
  static std::unique_ptr<rank_function> make(input_archive& sent, token_decoder& functions) {
    return std::make_unique<typed_function>(decode<Callable>(sent, functions));
  }

private:
  struct kept_outputs final : rank_outputs {
    explicit kept_outputs(const share_run& share) : all(Layout::accumulators(share.spec())) {
      for (std::size_t index = 0; index < Layout::output_count; ++index) {
        if (share.wants(index)) wanted |= std::uint64_t{1} << index;
      }
    }
    void write_to(frame_writer& out) override {
      save(all, wanted, out, std::make_index_sequence<Layout::output_count>());
    }

    typename Layout::outputs all;
    std::uint64_t wanted = 0;
  };

  void run_slices(share_run& share, typename Layout::wholes& wholes, typename Layout::outputs& outputs) {
    share.each_slice([&](const rank_context& context, const std::vector<tensor>& given, double weight, bool is_last) {
      auto results = call_noting_failure(share, context, given, wholes);
      share.note_computed();
      take_outputs(share, outputs, results, weight, std::make_index_sequence<Layout::output_count>());
      take_updates(share, results, weight, std::make_index_sequence<Layout::update_values>());
      if (!is_last) make_own(share, outputs, std::make_index_sequence<Layout::output_count>());
      if constexpr (std::tuple_size_v<typename Layout::results> != 0) share.note_accumulated();
    });
    share.finish_updates();
  }

  template <class T>
  static T decode(input_archive& in, token_decoder& functions) {
    using sent = sent_callable<T>;
    auto values = read_tuple<typename sent::values>(in);
    if constexpr (is_bind_front<T>) {
      auto callable = sent::restore(values, functions);
      return T{std::move(callable), sent::take_bound(values)};
    } else {
      return sent::restore(values, functions);
    }
  }
  // Callables that are copied as bytes have no default constructor.
  template <class Tuple>
  static Tuple read_tuple(input_archive& in) {
    return [&]<std::size_t... Index>(std::index_sequence<Index...> /*elements*/) {
      return Tuple{read<std::tuple_element_t<Index, Tuple>>(in)...};
    }(std::make_index_sequence<std::tuple_size_v<Tuple>>());
  }
  template <class T>
  static T read(input_archive& in) {
    if constexpr (std::is_default_constructible_v<T>) {
      T value{};
      in(value);
      return value;
    } else {
      std::array<std::byte, sizeof(T)> bytes;
      in.read(bytes.data(), bytes.size());
      return std::bit_cast<T>(bytes);
    }
  }

  // Noted at once: while the rest of the share is destroyed, a rank that has seen it fail may fail because of that.
  typename Layout::results call_noting_failure(share_run& share, const rank_context& context,
                                               const std::vector<tensor>& given, typename Layout::wholes& wholes) {
    try {
      return call(context, given, wholes);
    } catch (...) {
      share.note_failure();
      throw;
    }
  }
  typename Layout::results call(const rank_context& context, const std::vector<tensor>& given,
                                typename Layout::wholes& wholes) {
    constexpr auto variables = std::tuple_size_v<typename callable_signature<Callable>::arguments> -
                               Layout::first_argument - Layout::row_count - Layout::whole_count;
    return call(context, given, wholes, std::make_index_sequence<Layout::row_count>(),
                std::make_index_sequence<Layout::whole_count>(), std::make_index_sequence<variables>());
  }
  template <std::size_t... Row, std::size_t... Whole, std::size_t... Variable>
  typename Layout::results call(const rank_context& context, const std::vector<tensor>& given,
                                typename Layout::wholes& wholes, std::index_sequence<Row...> /*rows*/,
                                std::index_sequence<Whole...> /*wholes*/,
                                std::index_sequence<Variable...> /*variables*/) {
    const auto invoke = [&](auto&&... first) -> decltype(auto) {
      return invoke_whole(std::forward<decltype(first)>(first)..., given[Row]..., std::get<Whole>(wholes)...,
                          given[Layout::row_count + Variable]...);
    };
    using result = typename callable_signature<Callable>::result;
    if constexpr (std::is_void_v<result>) {
      if constexpr (Layout::has_context) {
        invoke(context);
      } else {
        invoke();
      }
      return {};
    } else {
      if constexpr (Layout::has_context) {
        return typename Layout::results(invoke(context));
      } else {
        return typename Layout::results(invoke());
      }
    }
  }
  template <class... Arguments>
  decltype(auto) invoke_whole(Arguments&&... arguments) {
    if constexpr (is_bind_front<Callable>) {
      return std::apply(
          [&](const auto&... bound) -> decltype(auto) {
            return std::invoke(callable_.callable, bound..., std::forward<Arguments>(arguments)...);
          },
          callable_.bound);
    } else {
      return std::invoke(callable_, std::forward<Arguments>(arguments)...);
    }
  }

  template <std::size_t... Index>
  static void take_outputs(share_run& share, typename Layout::outputs& all, typename Layout::results& results,
                           [[maybe_unused]] double weight, std::index_sequence<Index...> /*outputs*/) {
    ((share.wants(Index) ? std::get<Index>(all).add(std::move(std::get<Index>(results)), weight) : void()), ...);
  }
  template <std::size_t... Index>
  static void take_updates(share_run& share, typename Layout::results& results, [[maybe_unused]] double weight,
                           std::index_sequence<Index...> /*updates*/) {
    (share.add_update(Index, as_tensor(std::get<Layout::output_count + Index>(results)), weight), ...);
  }
  // The callable may write the next slice's values where it has these.
  template <std::size_t... Index>
  static void make_own(share_run& share, typename Layout::outputs& all, std::index_sequence<Index...> /*outputs*/) {
    ((share.wants(Index) ? std::get<Index>(all).make_own() : void()), ...);
    share.make_updates_own();
  }
  template <std::size_t... Index>
  static void save(typename Layout::outputs& all, std::uint64_t mask, frame_writer& out,
                   std::index_sequence<Index...> /*outputs*/) {
    ((mask >> Index & 1U ? std::get<Index>(all).save(out) : void()), ...);
  }

  Callable callable_;
};

}  // namespace muster::detail
