// SPDX-License-Identifier: BSL-1.0
// What a two-layer network needs besides products of matrices. Matrices are row-major; a thread has an element, a row or
// a column of its own, so that sums have the same bits in every run.

namespace {

__device__ long long thread_number() { return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; }

}  // namespace

/// x ← max(0, x + b), b added to each row.
extern "C" __global__ void add_and_rectify(float* x, const float* b, long long rows, long long columns) {
  const auto at = thread_number();
  if (at >= rows * columns) return;
  const float sum = x[at] + b[at % columns];
  x[at] = sum > 0 ? sum : 0;
}

/// Of each row, whose scores are x + b: the loss, -log p[label]; what it is taken for; and scores become the mean loss'
/// gradient, (p - [1 at the label]) / rows.
extern "C" __global__ void judge(float* x, const float* b, const int* labels, double* losses, int* guesses,
                                 long long rows, long long columns) {
  const auto row = thread_number();
  if (row >= rows) return;
  float* const scores = x + row * columns;
  long long most = 0;
  for (long long kind = 0; kind < columns; ++kind) {
    scores[kind] += b[kind];
    if (scores[kind] > scores[most]) most = kind;
  }
  const float largest = scores[most];
  double sum = 0;
  for (long long kind = 0; kind < columns; ++kind) sum += exp(static_cast<double>(scores[kind] - largest));
  losses[row] = log(sum) - static_cast<double>(scores[labels[row]] - largest);
  guesses[row] = static_cast<int>(most);
  for (long long kind = 0; kind < columns; ++kind) {
    const double share = exp(static_cast<double>(scores[kind] - largest)) / sum;
    scores[kind] = static_cast<float>((share - (kind == labels[row] ? 1.0 : 0.0)) / static_cast<double>(rows));
  }
}

/// gradient ← gradient where `rectified` is above 0, else 0.
extern "C" __global__ void rectify_back(float* gradient, const float* rectified, long long count) {
  const auto at = thread_number();
  if (at < count && !(rectified[at] > 0)) gradient[at] = 0;
}

/// Of each column, the sum over all rows.
extern "C" __global__ void sum_columns(const float* x, float* sums, long long rows, long long columns) {
  const auto column = thread_number();
  if (column >= columns) return;
  float sum = 0;
  for (long long row = 0; row < rows; ++row) sum += x[row * columns + column];
  sums[column] = sum;
}
