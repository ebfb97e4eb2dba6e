// SPDX-License-Identifier: BSL-1.0
#pragma once

// Every operation of a group, over every type, against what plain loops give: for tensors of the host and of devices.

#include <algorithm>
#include <array>
#include <complex>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <muster/collectives/group.hpp>

#include "element_kinds.hpp"
#include "group_support.hpp"

namespace muster::test {

// What is contributed repeats itself, as `flag` and `element` say, so that little of a long tensor must be computed.
inline constexpr std::size_t period = 35;

template <class Values, class Make>
void fill_by_period(Values&& values, std::size_t count, const Make& make) {
  for (std::size_t index = 0; index < std::min(count, period); ++index) values[index] = make(index);
  for (std::size_t index = period; index < count; ++index) values[index] = values[index - period];
}

// Few ranks have what decides what comes out.
inline bool flag(std::size_t rank, std::size_t index, reduction_op op) {
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

// Where tensors are made: `kept` says where on the host, if it is that.
template <class T>
tensor contribution(std::size_t rank, std::size_t count, reduction_op op, device there, memory kept = memory::shared) {
  auto made = tensor::empty<T>({count}, kept);
  fill_by_period(made.template data<T>(), count, [&](std::size_t index) { return element<T>(rank, index, op); });
  return made.to(there);
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
  const auto here = found.to(device::cpu());
  const auto* const values = here.template data<T>();
  for (std::size_t index = 0; index < wanted.size(); ++index) {
    if (values[index] == wanted[index]) continue;
    return ::testing::AssertionFailure() << "element " << index << " is " << text_of<T>(values[index]) << " instead of "
                                         << text_of<T>(wanted[index]);
  }
  return ::testing::AssertionSuccess();
}

inline constexpr std::array all_ops = {reduction_op::sum, reduction_op::avg,  reduction_op::prod, reduction_op::min,
                                       reduction_op::max, reduction_op::band, reduction_op::bor,  reduction_op::bxor};

template <class T>
void check_reductions(group& group, std::size_t count, device there) {
  const auto ranks = group.size();
  const auto self = group.rank();
  for (const auto op : all_ops) {
    if (!has_meaning<T>(op) || !is_exact<T>(op, ranks)) continue;
    SCOPED_TRACE(testing::Message() << reduction_op_name(op) << " of " << count << ' ' << dtype_of<T>);
    const auto wanted = expected<T>(ranks, count, op);
    const auto own = contribution<T>(self, count, op, there);
    group.all_reduce(own, op);
    EXPECT_TRUE(holds(own, wanted)) << "all_reduce in place";

    const auto in = contribution<T>(self, count, op, there, memory::local);
    const auto out = tensor::zeros<T>({count}, there);
    group.all_reduce(in, out, op);
    EXPECT_TRUE(holds(out, wanted)) << "all_reduce into another tensor";

    const auto root = count % ranks;
    const auto kept = contribution<T>(self, count, op, there);
    const auto result = tensor::zeros<T>({count}, there);
    group.reduce(kept, result, root, op);
    if (self == root) {
      EXPECT_TRUE(holds(result, wanted)) << "reduce";
    }
    group.reduce(kept, root, op);
    EXPECT_TRUE(holds(kept, self == root ? wanted : contributed<T>(self, count, op))) << "reduce in place";

    const auto first = count * self / ranks;
    const auto last = count * (self + 1) / ranks;
    const auto part = tensor::zeros<T>({last - first}, there);
    group.reduce_scatter(contribution<T>(self, count, op, there), part, op);
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
void check_rows(group& group, std::size_t count, device there) {
  const auto ranks = group.size();
  const auto self = group.rank();
  const auto root = (count + 1) % ranks;
  SCOPED_TRACE(testing::Message() << count << " rows of " << dtype_of<T>);
  const auto all = all_rows<T>(ranks, count);
  const auto own = own_rows<T>(self, count).to(there);

  EXPECT_TRUE(holds(group.all_gather(own), all)) << "all_gather";
  const auto gathered = group.gather(own, root);
  if (self == root) {
    EXPECT_TRUE(holds(gathered, all)) << "gather";
  }

  const auto sent = self == root ? own.clone() : tensor::zeros<T>({count + root, 2}, there);
  const auto everywhere = self == root ? sent : tensor::zeros<T>({count + root, 2}, there);
  group.broadcast(everywhere, root);
  EXPECT_TRUE(holds(everywhere, rows_of<T>(root, count))) << "broadcast";

  const auto whole = self == root ? tensor_of(all, {all.size() / 2, 2}).to(there) : tensor();
  const auto share = tensor::zeros<T>({count + self, 2}, there);
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
  const auto outgoing = tensor::full<T>({total, 2}, element<T>(self, 0, reduction_op::sum), there);
  std::vector<T> incoming;
  for (std::size_t from = 0; from < ranks; ++from) {
    incoming.insert(incoming.end(), 2 * (count + self), element<T>(from, 0, reduction_op::sum));
  }
  EXPECT_TRUE(holds(group.all_to_all(outgoing, counts), incoming)) << "all_to_all";

  // In place: to rank k count rows of this rank's number and k.
  const auto square = tensor::empty<T>({ranks * count, 2}, there);
  std::vector<T> turned;
  for (std::size_t other = 0; other < ranks; ++other) {
    square.slice(other * count, (other + 1) * count)
        .copy_from(tensor::full<T>({count, 2}, element<T>(self, other, reduction_op::sum), there));
    turned.insert(turned.end(), 2 * count, element<T>(other, self, reduction_op::sum));
  }
  group.all_to_all(square, square);
  EXPECT_TRUE(holds(square, turned)) << "all_to_all in place";
}

// Everybody's rows to the next one; those that come are known, and not known.
template <class T>
void check_messages(group& group, std::size_t count, device there) {
  const auto ranks = group.size();
  const auto next = (group.rank() + 1) % ranks;
  const auto before = (group.rank() + ranks - 1) % ranks;
  SCOPED_TRACE(testing::Message() << "messages of " << count << " rows of " << dtype_of<T>);
  const auto own = own_rows<T>(group.rank(), count).to(there);
  group.send(own, next, 1);
  const auto into = tensor::zeros<T>({count + before, 2}, there);
  group.recv(into, before, 1);
  EXPECT_TRUE(holds(into, rows_of<T>(before, count))) << "recv";
  const auto sent = group.isend(own, next, 2);
  EXPECT_TRUE(holds(group.irecv(before, 2).result(), rows_of<T>(before, count))) << "irecv";
  sent.wait();
}

template <class T>
void check_all(group& group, std::size_t count, device there) {
  check_reductions<T>(group, count, there);
  check_rows<T>(group, count, there);
  check_messages<T>(group, count, there);
}

template <class T>
void check_refusals(group& group, device there) {
  const auto own = tensor::ones<T>({group.size()}, there);
  const auto part = tensor::ones<T>({1}, there);
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
void check_refusals_of(group& group, device there = device::cpu()) {
  (check_refusals<Types>(group, there), ...);
}

inline void check_all_types(group& group, std::size_t count, device there = device::cpu()) {
  check_all<std::int8_t>(group, count, there);
  check_all<std::int16_t>(group, count, there);
  check_all<std::int32_t>(group, count, there);
  check_all<std::int64_t>(group, count, there);
  check_all<std::uint8_t>(group, count, there);
  check_all<std::uint16_t>(group, count, there);
  check_all<std::uint32_t>(group, count, there);
  check_all<std::uint64_t>(group, count, there);
  check_all<f16>(group, count, there);
  check_all<bf16>(group, count, there);
  check_all<float>(group, count, there);
  check_all<double>(group, count, there);
  check_all<bool>(group, count, there);
  check_all<std::complex<float>>(group, count, there);
  check_all<std::complex<double>>(group, count, there);
}

}  // namespace muster::test
