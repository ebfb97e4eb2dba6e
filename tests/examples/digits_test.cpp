// SPDX-License-Identifier: BSL-1.0
// The digits example, on digits of its own making: its models, what becomes of them in any number of ranks, also when
// ranks are killed, what it reads and what it draws.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "digits/chaos.hpp"
#include "digits/check.hpp"
#include "digits/data.hpp"
#include "digits/model.hpp"
#include "digits/picture.hpp"
#include "digits/train.hpp"
#include "processes.hpp"
#include "temporary_directory.hpp"

namespace digits {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// Each kind has an image of its own, which noise is added to.
samples made_up(std::size_t count) {
  std::mt19937_64 random(7);
  std::uniform_int_distribution<int> ink(0, 16);
  std::uniform_int_distribution<int> noise(-4, 4);
  std::array<std::array<int, pixels>, kinds> ideal{};
  for (auto& each : ideal) std::ranges::generate(each, [&] { return ink(random); });
  samples made{.images = tensor::empty<float>({count, pixels}), .labels = tensor::empty<std::int32_t>({count})};
  for (std::size_t row = 0; row < count; ++row) {
    const auto kind = row * 7 % kinds;
    made.labels.at<std::int32_t>(row) = static_cast<std::int32_t>(kind);
    for (std::size_t at = 0; at < pixels; ++at) {
      made.images.at<float>(row, at) = static_cast<float>(std::clamp(ideal[kind][at] + noise(random), 0, 16)) / 16;
    }
  }
  return made;
}

std::string as_lines(const samples& all) {
  std::string lines;
  for (std::size_t row = 0; row < all.count(); ++row) {
    for (const auto ink : all.images.row(row).span<float>()) lines += std::to_string(std::lround(ink * 16)) + ',';
    lines += std::to_string(all.labels.at<std::int32_t>(row)) + '\n';
  }
  return lines;
}

// ---- the models

tensor random_like(const tensor& what, std::mt19937_64& random) {
  std::normal_distribution<float> value(0.0F, 0.3F);
  auto made = tensor::empty<float>(what.shape());
  for (auto& each : made.span<float>()) each = value(random);
  return made;
}

// How the loss changes along a direction, and what the gradient says of it.
template <class Loss>
void expect_slope(const Loss& loss, const tensor& weights, const tensor& gradient, std::mt19937_64& random) {
  // More, and rectifiers switch on the way; less, and it is the rounding of floats that is measured.
  constexpr float step = 1.0F / 2048;
  const auto direction = random_like(weights, random);
  const auto before = weights.clone();
  const auto loss_at = [&](float distance) {
    for (std::size_t at = 0; at < weights.size(); ++at) {
      weights.span<float>()[at] = before.span<float>()[at] + distance * direction.span<float>()[at];
    }
    return loss();
  };
  const double slope = (loss_at(step) - loss_at(-step)) / (2.0 * step);
  weights.copy_from(before);
  double expected = 0;
  for (std::size_t at = 0; at < gradient.size(); ++at) {
    expected += static_cast<double>(gradient.span<float>()[at]) * static_cast<double>(direction.span<float>()[at]);
  }
  EXPECT_NEAR(slope, expected, 1e-3 * std::max(1.0, std::abs(expected)));
}

TEST(DigitsModel, TheGradientsOfSoftmaxAreTheSlopesOfItsLoss) {
  std::mt19937_64 random(3);
  const auto all = made_up(17);
  const auto start = softmax_weights();
  const auto w = random_like(start[0], random);
  const auto b = random_like(start[1], random);
  const auto [loss, right, of_w, of_b] = softmax_gradients(all.images, all.labels, w, b);
  const auto loss_now = [&] { return std::get<0>(softmax_guesses(all.images, all.labels, w, b)); };
  EXPECT_EQ(loss, loss_now());
  for (int each = 0; each < 5; ++each) {
    expect_slope(loss_now, w, of_w, random);
    expect_slope(loss_now, b, of_b, random);
  }
}

TEST(DigitsModel, TheGradientsOfTheNetworkAreTheSlopesOfItsLoss) {
  std::mt19937_64 random(4);
  const auto all = made_up(17);
  const auto at = network_weights(9, 1);
  for (const auto& biases : {at[1], at[3]}) biases.copy_from(random_like(biases, random));
  const auto [loss, right, of_w1, of_b1, of_w2, of_b2] =
      network_gradients(all.images, all.labels, at[0], at[1], at[2], at[3]);
  const auto loss_now = [&] {
    return std::get<0>(network_guesses(all.images, all.labels, at[0], at[1], at[2], at[3]));
  };
  EXPECT_EQ(loss, loss_now());
  for (int each = 0; each < 5; ++each) {
    expect_slope(loss_now, at[0], of_w1, random);
    expect_slope(loss_now, at[1], of_b1, random);
    expect_slope(loss_now, at[2], of_w2, random);
    expect_slope(loss_now, at[3], of_b2, random);
  }
}

TEST(DigitsModel, WithoutWeightsNothingIsMoreLikelyThanAnotherDigit) {
  const auto all = made_up(20);
  const auto weights = softmax_weights();
  const auto [loss, guesses] = softmax_guesses(all.images, all.labels, weights[0], weights[1]);
  EXPECT_NEAR(loss, std::log(10.0), 1e-6);
  EXPECT_EQ(guesses.to_vector<std::int32_t>(), std::vector<std::int32_t>(20, 0));
}

// ---- training

TEST(DigitsBatches, HaveEveryRowOnceInARoundAndAreTheSameForTheSameSeed) {
  batch_order order(10, 4, 1);
  batch_order same(10, 4, 1);
  EXPECT_EQ(order.per_round(), 3U);
  for (int round = 0; round < 3; ++round) {
    std::set<std::int64_t> seen;
    for (const std::size_t size : {4U, 4U, 2U}) {
      const auto batch = order.next();
      const auto rows = batch.list();
      EXPECT_EQ(rows.size(), size);
      EXPECT_TRUE(std::ranges::equal(rows, same.next().list()));
      seen.insert(rows.begin(), rows.end());
    }
    EXPECT_EQ(seen.size(), 10U);
    EXPECT_EQ(*seen.rbegin(), 9);
  }
}

TEST(DigitsBatches, OfAllRowsOrMoreAreOneARound) {
  constexpr auto most = std::numeric_limits<std::size_t>::max();
  for (const std::size_t batch : {std::size_t{10}, std::size_t{11}, most - 8, most}) {
    batch_order order(10, batch, 1);
    EXPECT_EQ(order.per_round(), 1U) << batch;
    EXPECT_EQ(order.next().list().size(), 10U) << batch;
  }
}

class DigitsTraining : public testing::TestWithParam<model_kind> {
protected:
  // 45 rows do not go up into 2, nor into 4 ranks.
  [[nodiscard]] static settings how() { return {.model = GetParam(), .hidden = 20, .batch = 45, .rate = 0.05}; }
};

TEST_P(DigitsTraining, AnyNumberOfRanksGivesTheSameLossesAndReplicas) {
  const auto all = made_up(200);
  const auto runs = check_ranks(how(), all, 100);
  ASSERT_EQ(runs.size(), 3U);
  for (const auto& each : runs) {
    EXPECT_EQ(each.losses.size(), 100U);
    EXPECT_LE(each.largest_difference, 1e-4) << each.ranks;
    EXPECT_LT(each.losses.back(), 0.2 * each.losses.front()) << each.ranks;
  }
}

TEST_P(DigitsTraining, SlicesDoNotMatter) {
  const auto all = made_up(200);
  auto sliced = how();
  sliced.ranks = 2;
  sliced.slices = 3;
  trainer one(how(), all);
  trainer other(sliced, all);
  for (int step = 0; step < 30; ++step) {
    const auto expected = one.step();
    const auto found = other.step();
    EXPECT_NEAR(found.loss, expected.loss, 1e-4 * expected.loss);
    EXPECT_EQ(found.rows, expected.rows);
  }
}

TEST_P(DigitsTraining, KillingRanksChangesNoBit) {
  constexpr std::size_t steps = 150;
  constexpr std::size_t most_kills = 10;
  const auto all = made_up(200);
  auto of_three = how();
  of_three.ranks = 3;
  trainer calm(of_three, all);
  for (std::size_t step = 0; step < steps; ++step) calm.step();
  trainer disturbed(of_three, all);
  chaos killer(1);
  for (std::size_t step = 0; step < steps; ++step) {
    if (killer.kills() < most_kills) killer.aim(disturbed.world().pids());
    disturbed.step();
  }
  EXPECT_GT(killer.kills(), 0U);
  EXPECT_TRUE(disturbed.replicas_are_the_same());
  for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_TRUE(same_bits(calm.weights(), disturbed.weights(rank))) << rank;
}

TEST(DigitsCheck, ATrainingWhoseLossesAreNoNumbersIsRefused) {
  const settings too_fast{.model = model_kind::network, .hidden = 20, .batch = 45, .rate = 1e30};
  EXPECT_THAT([&] { static_cast<void>(check_ranks(too_fast, made_up(200), 10)); },
              testing::ThrowsMessage<std::runtime_error>(HasSubstr("the loss is no finite number")));
}

TEST(DigitsCheck, ALossThatIsNoNumberIsNotCloseToAny) {
  EXPECT_EQ(loss_difference(3, 2), 0.5);
  EXPECT_EQ(loss_difference(0, 0), 0);
  for (const auto& [found, expected] : {std::pair{NAN, 1.0F}, {1.0F, NAN}, {NAN, NAN}, {INFINITY, INFINITY}}) {
    EXPECT_TRUE(std::isnan(loss_difference(found, expected))) << found << ", " << expected;
  }
}

// It span for ever when its time was over between an aim and the kill.
TEST(Chaos, ThatIsStillAimedEnds) {
  const auto victims = muster::test::spawn(2, [](std::size_t) {
    for (;;) ::pause();
    return 0;
  });
  chaos killer(1);
  killer.aim({victims->pid(0)});
  for (int times = 0; times < 20; ++times) {
    chaos ended(static_cast<std::uint64_t>(times));
    ended.aim({victims->pid(0)});  // a zombie can be killed again
    ended.aim({victims->pid(0)});
  }
  EXPECT_EQ(killer.kills(), 1U);
  victims->kill(1);
  EXPECT_EQ(victims->wait(0), muster::exit_status::killed(SIGKILL));
  EXPECT_EQ(victims->wait(1), muster::exit_status::killed(SIGKILL));
}

TEST_P(DigitsTraining, LearnsToTellDigitsApart) {
  const auto data = divide(made_up(400), 1);
  trainer learner(how(), data.train);
  for (int step = 0; step < 100; ++step) learner.step();
  const auto found = learner.test(data.test);
  EXPECT_GT(found.all.accuracy(), 0.95);
  EXPECT_EQ(found.guesses.size(), data.test.count());
}

INSTANTIATE_TEST_SUITE_P(Models, DigitsTraining, testing::Values(model_kind::softmax, model_kind::network),
                         [](const auto& each) { return each.param == model_kind::softmax ? "Softmax" : "Network"; });

// ---- what it reads and writes

class Digits : public testing::Test {
protected:
  struct output {
    int status = 0;
    std::string text;
  };
  static output run(const std::string& command) {
    output found;
    std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
    std::array<char, 4096> buffer{};
    while (const auto size = std::fread(buffer.data(), 1, buffer.size(), pipe)) found.text.append(buffer.data(), size);
    found.status = WEXITSTATUS(::pclose(pipe));
    return found;
  }
  std::string write(const std::string& name, const std::string& text) {
    files_.write(name, text);
    return name_of(name);
  }
  [[nodiscard]] std::string name_of(const std::string& name) const { return (files_.path() / name).string(); }
  [[nodiscard]] std::string content(const std::string& name) const {
    std::ifstream in(name_of(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  // What is said of a file, without its name.
  std::string complaint(const std::string& text) {
    const auto name = write("bad", text);
    try {
      (void)read_samples(name);
    } catch (const std::runtime_error& failure) {
      const std::string what = failure.what();
      EXPECT_THAT(what, StartsWith(name + ":"));
      return what.substr(name.size() + 1);
    }
    return "nothing";
  }

  muster::test::temporary_directory files_;
};

TEST_F(Digits, ReadsLinesOfPixelsAndLabelAlsoPacked) {
  const auto all = made_up(30);
  const auto plain = write("it's digits.csv", as_lines(all));
  ASSERT_EQ(run("gzip -k \"" + plain + '"').status, 0);
  for (const auto& name : {plain, plain + ".gz"}) {
    const auto found = read_samples(name);
    EXPECT_EQ(found.images.to_vector<float>(), all.images.to_vector<float>()) << name;
    EXPECT_EQ(found.labels.to_vector<std::int32_t>(), all.labels.to_vector<std::int32_t>()) << name;
  }
}

TEST_F(Digits, RefusesBadFilesAndNamesTheLine) {
  const auto good = as_lines(made_up(3));
  std::string blank;
  for (std::size_t pixel = 0; pixel < pixels; ++pixel) blank += "0,";
  EXPECT_THAT(complaint(good + "1,2,3\n"), StartsWith("4: expected 64 pixels and a label, which are 65 numbers"));
  EXPECT_THAT(complaint(good + "1,2,3\n"), HasSubstr("found 3 fields"));
  EXPECT_THAT(complaint(good + "\n" + good), HasSubstr("4: expected 64 pixels and a label"));
  EXPECT_THAT(complaint(good + "17" + blank.substr(1) + "0\n"), StartsWith("4: pixel 1 is '17'; expected"));
  EXPECT_THAT(complaint(good + "x" + blank.substr(1) + "0\n"), StartsWith("4: pixel 1 is 'x'"));
  EXPECT_THAT(complaint(good + "0.5" + blank.substr(1) + "0\n"), StartsWith("4: pixel 1 is '0.5'"));
  EXPECT_THAT(complaint(good + blank + "10\n"),
              StartsWith("4: the label is '10'; expected a whole number from 0 to 9"));
  EXPECT_THAT(complaint(good + blank + "\n"), StartsWith("4: the label is ''"));
  EXPECT_THAT(complaint(""), HasSubstr("expected a line for each image"));
  EXPECT_THAT(complaint("\x1f\x8b nothing that gzip knows"), HasSubstr("gzip could not unpack it"));
  EXPECT_EQ(complaint(good), "nothing");
}

TEST_F(Digits, SaysWhyAFileCannotBeRead) {
  EXPECT_THAT(run(DIGITS_PROGRAM " --data " + name_of("absent")).text,
              HasSubstr("absent: cannot be read: No such file"));
  EXPECT_THAT(run(DIGITS_PROGRAM " --data " + files_.path().string()).text,
              HasSubstr("cannot be read: Is a directory"));
  EXPECT_EQ(run(DIGITS_PROGRAM " --data " + name_of("absent")).status, EXIT_FAILURE);
}

TEST_F(Digits, TheProgramRefusesARateThatIsNoNumber) {
  const auto data = write("digits.csv", as_lines(made_up(300)));
  const auto refused = run(DIGITS_PROGRAM " --ranks 1 --rate nan --data " + data);
  EXPECT_NE(refused.status, EXIT_SUCCESS);
  EXPECT_THAT(refused.text, HasSubstr("rate nan"));
}

TEST_F(Digits, DividesIntoTrainingAndTestTheSameForTheSameSeed) {
  const auto all = made_up(1797);
  const auto found = divide(all, 5);
  EXPECT_EQ(found.train.count(), 1500U);
  EXPECT_EQ(found.test.count(), 297U);
  EXPECT_EQ(found.test.labels.to_vector<std::int32_t>(), divide(all, 5).test.labels.to_vector<std::int32_t>());
  EXPECT_NE(found.test.labels.to_vector<std::int32_t>(), divide(all, 6).test.labels.to_vector<std::int32_t>());
}

TEST_F(Digits, DrawsCurvesAndEveryMistake) {
  const auto all = made_up(20);
  const auto guesses = all.labels.clone();
  guesses.at<std::int32_t>(3) = (guesses.at<std::int32_t>(3) + 1) % 10;
  guesses.at<std::int32_t>(19) = (guesses.at<std::int32_t>(19) + 1) % 10;
  const auto drawn = picture_of("title", {{.name = "a curve", .points = {{1, 2.0}, {2, 0.0}, {3, NAN}}}}, all, guesses);
  EXPECT_THAT(drawn, StartsWith("<svg"));
  EXPECT_THAT(drawn, HasSubstr(">a curve<"));
  EXPECT_THAT(drawn, HasSubstr(">2 of 20 test images were taken for another digit<"));
  EXPECT_THAT(drawn, HasSubstr(">1 taken for 2<"));
  EXPECT_THAT(drawn, HasSubstr(">3 taken for 4<"));
  EXPECT_THAT(drawn, testing::Not(HasSubstr("nan")));
}

TEST_F(Digits, TheProgramTrainsAmongDeathsAndDraws) {
  const auto data = write("digits.csv", as_lines(made_up(300)));
  const auto found = run(DIGITS_PROGRAM " --chaos --ranks 2 --epochs 20 --batch 64 --data " + data + " --svg " +
                         name_of("digits.svg"));
  EXPECT_EQ(found.status, EXIT_SUCCESS) << found.text;
  EXPECT_THAT(found.text, HasSubstr("the weights are, bit for bit, what they become undisturbed"));
  EXPECT_THAT(found.text, HasSubstr("test accuracy: "));
  EXPECT_THAT(found.text, testing::ContainsRegex("\n +20 +[0-9.]+ +[0-9.]+ % +[0-9.]+ +[0-9.]+ %\n"))
      << "loss and accuracy of each epoch, of both kinds of images";
  EXPECT_THAT(content("digits.svg"), testing::EndsWith("</svg>\n"));
}

TEST_F(Digits, TheProgramFailsWhereFewerAreReadThanAskedFor) {
  const auto data = write("digits.csv", as_lines(made_up(300)));
  const auto enough = run(DIGITS_PROGRAM " --ranks 2 --epochs 20 --batch 64 --at-least 95 --data " + data);
  EXPECT_EQ(enough.status, EXIT_SUCCESS) << enough.text;
  const auto too_few = run(DIGITS_PROGRAM " --ranks 1 --epochs 1 --rate 1e-9 --at-least 100 --data " + data);
  EXPECT_EQ(too_few.status, EXIT_FAILURE) << too_few.text;
  EXPECT_THAT(too_few.text, HasSubstr("less than the 100 % asked for by --at-least"));
}

TEST_F(Digits, TheProgramShowsHowFarItIsWhereItHasATerminal) {
  const auto data = write("digits.csv", as_lines(made_up(300)));
  const std::string command = DIGITS_PROGRAM " --ranks 1 --epochs 2 --batch 64 --data " + data;
  constexpr auto bar = "\rtraining [";
  EXPECT_THAT(run(command).text, testing::Not(HasSubstr(bar)));
  const auto shown = run("script --quiet --return --command '" + command + "' /dev/null </dev/null");
  EXPECT_EQ(shown.status, EXIT_SUCCESS) << shown.text;
  EXPECT_THAT(shown.text,
              testing::AllOf(HasSubstr(bar), HasSubstr("s left"), HasSubstr("\r\033[K"), HasSubstr("test accuracy: ")));
}

// key_value fails where it reads more than half a point less right than the program above, undisturbed.
TEST_F(Digits, WorkersOfAKeyValueStoreLearnAsMuchAmongDeaths) {
  const auto data = write("digits.csv", as_lines(made_up(600)));
  const auto found = run(KEY_VALUE_PROGRAM " --epochs 30 --data " + data);
  EXPECT_EQ(found.status, EXIT_SUCCESS) << found.text;
  EXPECT_THAT(found.text, testing::ContainsRegex("in rounds, .*\nafter epoch 10 worker 3 is killed\n"));
  EXPECT_THAT(found.text, HasSubstr("the push of 'w' by worker 0 had no effect: worker 3 has died before its push"));
  EXPECT_THAT(found.text, testing::ContainsRegex("after epoch 20 an owner of keys is killed\n.* % are read right\n"));
}

TEST_F(Digits, TheProgramChecksThatRanksDoNotMatter) {
  const auto found = run(DIGITS_PROGRAM " --check --data " + write("digits.csv", as_lines(made_up(300))));
  EXPECT_EQ(found.status, EXIT_SUCCESS) << found.text;
  EXPECT_THAT(found.text, HasSubstr("\n4 ranks: loss "));
}

}  // namespace
}  // namespace digits
