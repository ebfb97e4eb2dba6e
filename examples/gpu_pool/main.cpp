// SPDX-License-Identifier: BSL-1.0
// gpu_pool: workers that are pinned to a GPU serve products of matrices. The matrices stay there: a worker makes them,
// others multiply them, and what goes from one to the other by way of this program, which has no context on the GPU, is
// references. Some elements are computed here too, and compared.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <exception>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <muster/cuda/cublas.hpp>
#include <muster/cuda/cuda_device.hpp>
#include <muster/cuda/driver.hpp>
#include <muster/pool/pool.hpp>
#include <muster/process/init.hpp>

namespace {

using muster::tensor;

struct options {
  std::uint16_t device = 0;
  unsigned workers = 2;
  std::size_t size = 1024;
  std::size_t products = 200;
};

// ---- what this program and the workers can make alike

tensor random_matrix(std::size_t size, unsigned seed) {
  const auto made = tensor::empty<float>({size, size});
  std::minstd_rand random(seed);
  for (auto& each : made.span<float>()) each = static_cast<float>(random() % 2001) / 1000 - 1;
  return made;
}

// ---- tasks

// In its own process, what a worker is pinned to is the first that there is.
const auto own_device = muster::device::cuda(0);

tensor matrix_there(std::size_t size, unsigned seed) { return random_matrix(size, seed).to(own_device); }

tensor product(const tensor& a, const tensor& b) {
  const auto gpu = muster::cuda_device::open(own_device);
  const muster::cuda_device::scope current(*gpu);
  auto made = tensor::empty<float>({a.shape()[0], b.shape()[1]}, own_device);
  muster::multiply(gpu->part<muster::cublas>(), a, b, made);
  return made;
}

tensor on_host(const tensor& there) { return there.to(muster::device::cpu()); }

std::string name_of_device() { return muster::cuda_device::open(own_device)->name(); }

// ---- the program

// The largest difference between some elements of a·b and what they should be; NaN where one is no number.
double difference(const tensor& found, const tensor& a, const tensor& b) {
  const auto size = a.shape()[0];
  double most = 0;
  for (std::size_t index = 0; index < size; index += size / 16 + 1) {
    const auto column = size - 1 - index;
    double sum = 0;
    for (std::size_t step = 0; step < size; ++step) {
      sum += static_cast<double>(a.at<float>(index, step)) * static_cast<double>(b.at<float>(step, column));
    }
    const auto apart = std::abs(sum - static_cast<double>(found.at<float>(index, column)));
    if (apart > most || std::isnan(apart)) most = apart;  // std::max would drop what is no number
  }
  return most;
}

// Two for each worker are under way, so that none waits for this program.
double products_per_second(const muster::pool& pool, const tensor& a, const tensor& b, const options& chosen) {
  std::deque<muster::future<tensor>> under_way;
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t each = 0; each < chosen.products; ++each) {
    if (under_way.size() == std::size_t{2} * chosen.workers) {
      under_way.front().get();
      under_way.pop_front();
    }
    under_way.push_back(pool.apply_async(product, a, b));
  }
  const auto last = under_way.empty() ? tensor() : under_way.back().get();
  if (last.size() != 0) pool.apply(on_host, last);  // what the GPU was asked for has been done then
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return static_cast<double>(chosen.products) / took.count();
}

int run(const options& chosen) {
  if (const auto problem = muster::cuda_driver::problem()) {
    std::cout << "gpu_pool: " << *problem << '\n';
    return EXIT_SUCCESS;
  }
  const muster::pool pool({.workers = chosen.workers, .devices = {muster::device::cuda(chosen.device)}});
  std::cout << chosen.workers << " workers on " << pool.apply(name_of_device) << '\n';
  const auto a = pool.apply(matrix_there, chosen.size, 1U);
  const auto b = pool.apply(matrix_there, chosen.size, 2U);
  const auto found = pool.apply(on_host, pool.apply(product, a, b));
  const auto off_by = difference(found, random_matrix(chosen.size, 1), random_matrix(chosen.size, 2));
  const auto rate = products_per_second(pool, a, b, chosen);
  std::cout << rate << " products of " << chosen.size << " x " << chosen.size << " per second, "
            << rate * 2 * std::pow(static_cast<double>(chosen.size), 3) * 1e-12 << " TFLOP/s\n"
            << "largest difference: " << off_by << '\n';
  const auto allowed = 1e-5 * static_cast<double>(chosen.size);
  if (off_by <= allowed) return EXIT_SUCCESS;
  std::cerr << "gpu_pool: that is not at most " << allowed << '\n';
  return EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  muster::init(argc, argv);
  CLI::App app("Serves products of matrices from workers that are pinned to a GPU.", "gpu_pool");
  options chosen;
  app.add_option("--device", chosen.device, "Which GPU")->capture_default_str();
  app.add_option("--workers", chosen.workers, "Processes on it")->check(CLI::Range(1, 64))->capture_default_str();
  app.add_option("--size", chosen.size, "Rows and columns of the matrices")
      ->check(CLI::Range(1, 32'768))
      ->capture_default_str();
  app.add_option("--products", chosen.products, "How many are asked for")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    return run(chosen);
  } catch (const std::exception& failure) {
    std::cerr << "gpu_pool: " << failure.what() << '\n';
    return EXIT_FAILURE;
  }
}
