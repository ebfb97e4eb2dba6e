// SPDX-License-Identifier: BSL-1.0
// Every operation, type, number of ranks and size, against what plain loops give; in threads and in processes.
#include <algorithm>
#include <array>
#include <complex>
#include <numeric>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "element_kinds.hpp"
#include "group_support.hpp"

namespace muster::conformance_test {
namespace {

using test::rank_kind;
using test::run_group;
using test::text_thrown_by;

// What is contributed repeats itself, as `flag` and `element` say, so that little of a long tensor must be computed.
constexpr std::size_t period = 35;

template <class Values, class Make>
void fill_by_period(Values&& values, std::size_t count, const Make& make) {
  for (std::size_t index = 0; index < std::min(count, period); ++index) values[index] = make(index);
  for (std::size_t index = period; index < count; ++index) values[index] = values[index - period];
}

using test::is_complex;

// Few ranks have what decides what comes out.
bool flag(std::size_t rank, std::size_t index, reduction_op op) {
  using enum reduction_op;
  if (op == prod || op == min || op == band) return (rank + 3 * index) % 7 != 0;
  return (rank + 3 * index) % 5 == 0;
}

// Small numbers, so that every type can hold the sum of eight of them, and products are of ones and twos: that of eight
// twos is too much for an i8.
template <class T>
T element(std::size_t rank, std::size_t index, reduction_op op) {
  const auto number = (rank * 7 + index * 3) % 5 + 1;
  const bool is_factor = op == reduction_op::prod;
  const auto real = static_cast<float>(is_factor ? number % 2 + 1 : number);
  if constexpr (std::is_same_v<T, bool>) {
    return flag(rank, index, op);
  } else if constexpr (is_complex<T>) {
    const auto imaginary = static_cast<float>(number % 3) - 1;
    return T(real, is_factor && real == 2 ? 0 : imaginary);
  } else {
    return static_cast<T>(real);
  }
}

template <class T>
T joined_numbers(T a, T b, reduction_op op) {
  if constexpr (std::is_integral_v<T>) {
    switch (op) {
      case reduction_op::band: return static_cast<T>(a & b);
      case reduction_op::bor: return static_cast<T>(a | b);
      case reduction_op::bxor: return static_cast<T>(a ^ b);
      case reduction_op::prod: return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
      default: break;
    }
  }
  const auto left = static_cast<double>(static_cast<float>(a));
  const auto right = static_cast<double>(static_cast<float>(b));
  switch (op) {
    case reduction_op::prod: return static_cast<T>(static_cast<float>(left * right));
    case reduction_op::min: return std::min(left, right) == left ? a : b;
    case reduction_op::max: return std::max(left, right) == left ? a : b;
    default: return static_cast<T>(static_cast<float>(left + right));
  }
}

template <class T>
T joined(T a, T b, reduction_op op) {
  if constexpr (is_complex<T>) {
    if (op != reduction_op::prod) return a + b;
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  } else {
    return joined_numbers(a, b, op);
  }
}

// As reduction_op says.
template <class T>
bool has_meaning(reduction_op op) {
  using enum reduction_op;
  switch (op) {
    case sum:
    case prod: return true;
    case avg: return !std::is_same_v<T, bool>;
    case min:
    case max: return !is_complex<T>;
    default: return std::is_integral_v<T>;
  }
}

// Products of integers are what is left of them modulo 2^bits; those of more than eight twos are not asked for of
// others.
template <class T>
bool is_exact(reduction_op op, std::size_t ranks) {
  return op != reduction_op::prod || std::is_integral_v<T> || ranks <= 8;
}

template <class T>
T divided(T sum, std::size_t ranks) {
  if constexpr (is_complex<T>) {
    return sum / static_cast<typename T::value_type>(ranks);
  } else {
    using wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    return static_cast<T>(static_cast<wide>(sum) / static_cast<wide>(ranks));
  }
}

template <class T>
std::vector<T> expected(std::size_t ranks, std::size_t count, reduction_op op) {
  std::vector<T> values(count);
  fill_by_period(values, count, [&](std::size_t index) {
    auto value = element<T>(0, index, op);
    for (std::size_t rank = 1; rank < ranks; ++rank) value = joined(value, element<T>(rank, index, op), op);
    return op == reduction_op::avg ? divided(value, ranks) : value;
  });
  return values;
}

template <class T>
tensor contribution(std::size_t rank, std::size_t count, reduction_op op, memory where = memory::shared) {
  auto made = tensor::empty<T>({count}, where);
  fill_by_period(made.template data<T>(), count, [&](std::size_t index) { return element<T>(rank, index, op); });
  return made;
}

template <class T>
std::vector<T> contributed(std::size_t rank, std::size_t count, reduction_op op) {
  std::vector<T> values(count);
  fill_by_period(values, count, [&](std::size_t index) { return element<T>(rank, index, op); });
  return values;
}

// There is no span of a vector of bools, so that a tensor is not made of one.
template <class T>
tensor tensor_of(const std::vector<T>& values, const tensor_shape& shape) {
  auto made = tensor::empty<T>(shape);
  std::copy(values.begin(), values.end(), made.template data<T>());
  return made;
}

template <class T>
std::string text_of(T value) {
  std::ostringstream out;
  if constexpr (is_complex<T>) {
    out << value;
  } else {
    out << static_cast<float>(value);
  }
  return std::move(out).str();
}

template <class T>
::testing::AssertionResult holds(const tensor& found, const std::vector<T>& wanted) {
  if (found.size() != wanted.size()) return ::testing::AssertionFailure() << found.size() << " elements";
  const auto* const values = found.template data<T>();
  for (std::size_t index = 0; index < wanted.size(); ++index) {
    if (values[index] == wanted[index]) continue;
    return ::testing::AssertionFailure() << "element " << index << " is " << text_of<T>(values[index]) << " instead of "
                                         << text_of<T>(wanted[index]);
  }
  return ::testing::AssertionSuccess();
}

constexpr std::array all_ops = {reduction_op::sum, reduction_op::avg,  reduction_op::prod, reduction_op::min,
                                reduction_op::max, reduction_op::band, reduction_op::bor,  reduction_op::bxor};

template <class T>
void check_reductions(group& group, std::size_t count) {
  const auto ranks = group.size();
  const auto self = group.rank();
  for (const auto op : all_ops) {
    if (!has_meaning<T>(op) || !is_exact<T>(op, ranks)) continue;
    SCOPED_TRACE(testing::Message() << reduction_op_name(op) << " of " << count << ' ' << dtype_of<T>);
    const auto wanted = expected<T>(ranks, count, op);
    const auto own = contribution<T>(self, count, op);
    group.all_reduce(own, op);
    EXPECT_TRUE(holds(own, wanted)) << "all_reduce in place";

    const auto in = contribution<T>(self, count, op, memory::local);
    const auto out = tensor::zeros<T>({count});
    group.all_reduce(in, out, op);
    EXPECT_TRUE(holds(out, wanted)) << "all_reduce into another tensor";

    const auto root = count % ranks;
    const auto kept = contribution<T>(self, count, op);
    const auto result = tensor::zeros<T>({count});
    group.reduce(kept, result, root, op);
    if (self == root) {
      EXPECT_TRUE(holds(result, wanted)) << "reduce";
    }
    group.reduce(kept, root, op);
    EXPECT_TRUE(holds(kept, self == root ? wanted : contributed<T>(self, count, op))) << "reduce in place";

    const auto first = count * self / ranks;
    const auto last = count * (self + 1) / ranks;
    const auto part = tensor::zeros<T>({last - first});
    group.reduce_scatter(contribution<T>(self, count, op), part, op);
    EXPECT_TRUE(holds(part, std::vector<T>(wanted.begin() + static_cast<std::ptrdiff_t>(first),
                                           wanted.begin() + static_cast<std::ptrdiff_t>(last))))
        << "reduce_scatter";
  }
}

// Rank r has count + r rows of two elements.
template <class T>
std::vector<T> rows_of(std::size_t rank, std::size_t count) {
  std::vector<T> values(2 * (count + rank));
  const auto make = [&](std::size_t index) { return element<T>(rank, index, reduction_op::sum); };
  fill_by_period(values, values.size(), make);
  return values;
}

template <class T>
tensor own_rows(std::size_t rank, std::size_t count) {
  return tensor_of(rows_of<T>(rank, count), {count + rank, 2});
}

template <class T>
std::vector<T> all_rows(std::size_t ranks, std::size_t count) {
  std::vector<T> all;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto part = rows_of<T>(rank, count);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

template <class T>
void check_rows(group& group, std::size_t count) {
  const auto ranks = group.size();
  const auto self = group.rank();
  const auto root = (count + 1) % ranks;
  SCOPED_TRACE(testing::Message() << count << " rows of " << dtype_of<T>);
  const auto all = all_rows<T>(ranks, count);
  const auto own = own_rows<T>(self, count);

  EXPECT_TRUE(holds(group.all_gather(own), all)) << "all_gather";
  const auto gathered = group.gather(own, root);
  if (self == root) {
    EXPECT_TRUE(holds(gathered, all)) << "gather";
  }

  const auto sent = self == root ? own.clone() : tensor::zeros<T>({count + root, 2});
  const auto everywhere = self == root ? sent : tensor::zeros<T>({count + root, 2});
  group.broadcast(everywhere, root);
  EXPECT_TRUE(holds(everywhere, rows_of<T>(root, count))) << "broadcast";

  const auto whole = self == root ? tensor_of(all, {all.size() / 2, 2}) : tensor();
  const auto share = tensor::zeros<T>({count + self, 2});
  group.scatter(whole, share, root);
  EXPECT_TRUE(holds(share, rows_of<T>(self, count))) << "scatter";
  const auto made = group.scatter(whole, root);
  const auto rows = all.size() / 2;
  const auto first = 2 * (rows * self / ranks);
  const auto last = 2 * (rows * (self + 1) / ranks);
  EXPECT_TRUE(holds(made, std::vector<T>(all.begin() + static_cast<std::ptrdiff_t>(first),
                                         all.begin() + static_cast<std::ptrdiff_t>(last))))
      << "scatter by shares";

  // To rank k: k more rows than count, all of this rank's number.
  std::vector<std::size_t> counts;
  for (std::size_t to = 0; to < ranks; ++to) counts.push_back(count + to);
  const auto total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  const auto outgoing = tensor::full<T>({total, 2}, element<T>(self, 0, reduction_op::sum));
  std::vector<T> incoming;
  for (std::size_t from = 0; from < ranks; ++from) {
    incoming.insert(incoming.end(), 2 * (count + self), element<T>(from, 0, reduction_op::sum));
  }
  EXPECT_TRUE(holds(group.all_to_all(outgoing, counts), incoming)) << "all_to_all";
}

// Everybody's rows to the next one; those that come are known, and not known.
template <class T>
void check_messages(group& group, std::size_t count) {
  const auto ranks = group.size();
  const auto next = (group.rank() + 1) % ranks;
  const auto before = (group.rank() + ranks - 1) % ranks;
  SCOPED_TRACE(testing::Message() << "messages of " << count << " rows of " << dtype_of<T>);
  const auto own = own_rows<T>(group.rank(), count);
  group.send(own, next, 1);
  const auto into = tensor::zeros<T>({count + before, 2});
  group.recv(into, before, 1);
  EXPECT_TRUE(holds(into, rows_of<T>(before, count))) << "recv";
  const auto sent = group.isend(own, next, 2);
  EXPECT_TRUE(holds(group.irecv(before, 2).result(), rows_of<T>(before, count))) << "irecv";
  sent.wait();
}

template <class T>
void check_all(group& group, std::size_t count) {
  check_reductions<T>(group, count);
  check_rows<T>(group, count);
  check_messages<T>(group, count);
}

template <class T>
void check_refusals(group& group) {
  const auto own = tensor::ones<T>({group.size()});
  const auto part = tensor::ones<T>({1});
  const auto as_documented = [](const std::string& text, reduction_op op) {
    std::ostringstream wanted;
    wanted << "elements of dtype " << dtype_of<T> << " cannot be reduced by " << op << ": give sum, ";
    return text.find(std::move(wanted).str()) != std::string::npos;
  };
  for (const auto op : all_ops) {
    if (has_meaning<T>(op)) continue;
    const std::array texts = {text_thrown_by<error>([&] { group.all_reduce(own, op); }),
                              text_thrown_by<error>([&] { group.all_reduce_async(own, op).wait(); }),
                              text_thrown_by<error>([&] { group.all_reduce(std::array{own, own}, op); }),
                              text_thrown_by<error>([&] { group.reduce(own, group.size() - 1, op); }),
                              text_thrown_by<error>([&] { group.reduce_scatter(own, part, op); })};
    for (const auto& each : texts) EXPECT_TRUE(as_documented(each, op)) << each;
  }
  EXPECT_TRUE(holds(own, std::vector<T>(group.size(), static_cast<T>(1)))) << "nothing has been done";
  group.all_reduce(part, reduction_op::prod);
  EXPECT_TRUE(holds(part, std::vector<T>(1, static_cast<T>(1)))) << "the group goes on";
}

template <class... Types>
void check_refusals_of(group& group) {
  (check_refusals<Types>(group), ...);
}

void check_all_types(group& group, std::size_t count) {
  check_all<std::int8_t>(group, count);
  check_all<std::int16_t>(group, count);
  check_all<std::int32_t>(group, count);
  check_all<std::int64_t>(group, count);
  check_all<std::uint8_t>(group, count);
  check_all<std::uint16_t>(group, count);
  check_all<std::uint32_t>(group, count);
  check_all<std::uint64_t>(group, count);
  check_all<f16>(group, count);
  check_all<bf16>(group, count);
  check_all<float>(group, count);
  check_all<double>(group, count);
  check_all<bool>(group, count);
  check_all<std::complex<float>>(group, count);
  check_all<std::complex<double>>(group, count);
}

class Conformance : public testing::TestWithParam<std::tuple<rank_kind, std::size_t>> {
protected:
  static void run(const test::rank_body& body, const group_options& options = {}) {
    run_group(std::get<0>(GetParam()), std::get<1>(GetParam()), body, options);
  }
};

TEST_P(Conformance, AllTypesOfShortTensors) {
  run([](group& group) {
    for (const auto count : std::vector<std::size_t>{0, 1, 7}) {
      check_all_types(group, count);
    }
  });
}

TEST_P(Conformance, AllTypesInPlace) {
  const auto body = [](group& group) { check_all_types(group, 4096); };
  run(body, {.inline_bytes = 64});
}

// The whole product of operations, types, ranks and sizes takes minutes: a stage of scripts/verify. Of very many ranks
// less: all that they send one another, and what it should be, is in one machine's memory.
TEST_P(Conformance, AllTypesOfLongTensors) {
  run([](group& group) {
    for (const auto count : std::vector<std::size_t>{4096, group.size() > 8 ? 100'003U : 1'000'003U}) {
      check_all_types(group, count);
    }
  });
}

TEST_P(Conformance, LongTensors) {
  run([](group& group) {
    constexpr std::size_t count = 1'000'003;
    const auto own = contribution<float>(group.rank(), count, reduction_op::sum);
    group.all_reduce(own);
    EXPECT_TRUE(holds(own, expected<float>(group.size(), count, reduction_op::sum)));
    check_rows<std::int32_t>(group, 100'003);
  });
}

TEST_P(Conformance, StridedTensorsAndSingleNumbers) {
  run([](group& group) {
    for (const auto rows : std::vector<std::size_t>{3, 3000}) {
      const auto wide = tensor::zeros<float>({rows, 4});
      const auto column = wide.slice(1, 2, 1);
      column.fill(static_cast<float>(group.rank() + 1));
      group.all_reduce(column);
      const auto sum = static_cast<float>(group.size() * (group.size() + 1) / 2);
      EXPECT_EQ(wide.at<float>(rows - 1, 1), sum);
      EXPECT_EQ(wide.at<float>(rows - 1, 0), 0);
      EXPECT_EQ(wide.at<float>(rows - 1, 2), 0);
    }
    const auto number = tensor::full<double>({}, static_cast<double>(group.rank()));
    const auto all = group.all_gather(number);
    EXPECT_EQ(all.shape(), tensor_shape({group.size()}));
    EXPECT_EQ(all.at<double>(group.size() - 1), static_cast<double>(group.size() - 1));
    group.all_reduce(number, reduction_op::max);
    EXPECT_EQ(number.item<double>(), static_cast<double>(group.size() - 1));
  });
}

// Averages of bools, the least of complex numbers, bits of floats.
TEST_P(Conformance, ReductionsWithoutMeaningAreRefusedByAllRanks) {
  run([](group& group) {
    check_refusals_of<std::int8_t, std::int16_t, std::int32_t, std::int64_t>(group);
    check_refusals_of<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>(group);
    check_refusals_of<bool, f16, bf16, float, double, std::complex<float>, std::complex<double>>(group);
  });
}

TEST_P(Conformance, SumsOfFloatsAreTheSameBitsEverywhereAndAlways) {
  run([](group& group) {
    for (const auto count : std::vector<std::size_t>{100, 100'000}) {
      const auto make = [&] {
        auto own = tensor::empty<float>({count});
        for (std::size_t index = 0; index < count; ++index) {
          own.data<float>()[index] = 1.0F / static_cast<float>(index + 3 * group.rank() + 1);
        }
        return own;
      };
      const auto first = make();
      group.all_reduce(first);
      for (int round = 0; round < 3; ++round) {
        const auto again = make();
        group.all_reduce(again);
        EXPECT_EQ(again.to_vector<float>(), first.to_vector<float>());
      }
      const auto all = group.all_gather(first.reshape({1, count}));
      for (std::size_t rank = 0; rank < group.size(); ++rank) {
        EXPECT_EQ(all.row(rank).to_vector<float>(), first.to_vector<float>()) << "rank " << rank;
      }
    }
  });
}

TEST_P(Conformance, ManyShortOnesInOneCall) {
  run([](group& group) {
    std::vector<tensor> all;
    for (std::size_t index = 0; index < 100; ++index) {
      all.push_back(tensor::full<float>({index % 7, 2}, static_cast<float>(index)));
    }
    group.all_reduce(all);
    for (std::size_t index = 0; index < 100; ++index) {
      for (const auto value : all[index].to_vector<float>()) {
        EXPECT_EQ(value, static_cast<float>(index * group.size()));
      }
    }
  });
}

TEST_P(Conformance, AFunctionOfTheProgramsOwnInTheOrderOfRanks) {
  run([](group& group) {
    const auto digits =
        reduction::custom<std::int64_t>("digits", [](std::int64_t a, std::int64_t b) { return 10 * a + b; });
    for (const auto count : std::vector<std::size_t>{2, 5000}) {
      const auto own = tensor::full<std::int64_t>({count}, static_cast<std::int64_t>(group.rank() + 1));
      group.all_reduce(own, digits);
      std::int64_t wanted = 1;
      for (std::size_t rank = 1; rank < group.size(); ++rank)
        wanted = 10 * wanted + static_cast<std::int64_t>(rank + 1);
      EXPECT_EQ(own.at<std::int64_t>(count - 1), wanted);
    }
  });
}

TEST_P(Conformance, ObjectsGoAsTheyAre) {
  run([](group& group) {
    const auto own = std::string(10 * group.rank() + 1, 'x') + std::to_string(group.rank());
    std::string word = group.rank() == 0 ? std::string(100'000, 'y') : "";
    group.broadcast_object(word, 0);
    EXPECT_EQ(word, std::string(100'000, 'y'));
    const auto all = group.all_gather_object(own);
    ASSERT_EQ(all.size(), group.size());
    EXPECT_EQ(all[group.rank()], own);
    EXPECT_EQ(all.back(), std::string(10 * group.size() - 9, 'x') + std::to_string(group.size() - 1));
    const auto gathered = group.gather_object(own, group.size() - 1);
    EXPECT_EQ(gathered, group.rank() + 1 == group.size() ? all : std::vector<std::string>());
    EXPECT_EQ(group.scatter_object(group.rank() == 0 ? all : std::vector<std::string>(), 0), own);
  });
}

TEST_P(Conformance, AsynchronousCallsAreDoneInTheirOrder) {
  run([](group& group) {
    const auto size = static_cast<float>(group.size());
    std::vector<tensor> tensors;
    std::vector<work> works;
    for (std::size_t each = 0; each < 20; ++each) {
      tensors.push_back(tensor::full<float>({each % 2 == 0 ? std::size_t{3} : std::size_t{5000}}, 1));
      works.push_back(group.all_reduce_async(tensors.back()));
    }
    const auto all = group.all_gather_async(tensor::full<float>({2}, static_cast<float>(group.rank())));
    group.barrier();
    for (std::size_t each = 0; each < works.size(); ++each) {
      EXPECT_TRUE(works[each].test());
      EXPECT_EQ(works[each].sequence(), each + 1);
      EXPECT_EQ(tensors[each].at<float>(2), size);
    }
    EXPECT_EQ(all.result().at<float>(2 * group.size() - 1), size - 1);
    EXPECT_EQ(all.exception(), nullptr);
  });
}

#ifndef __SANITIZE_THREAD__  // it would take minutes, and shows nothing that fewer threads do not
// Of so many each reads from the others only.
INSTANTIATE_TEST_SUITE_P(ManyRanks, Conformance,
                         testing::Combine(testing::Values(rank_kind::threads), testing::Values(17)),
                         [](const auto&) { return "Threads17"; });
#endif

INSTANTIATE_TEST_SUITE_P(Ranks, Conformance,
                         testing::Combine(testing::ValuesIn(test::rank_kinds()), testing::Values(1, 2, 3, 4, 5, 8)),
                         [](const auto& given) {
                           return test::name_of(std::get<0>(given.param)) + std::to_string(std::get<1>(given.param));
                         });

}  // namespace
}  // namespace muster::conformance_test
