// Rounds of A-FTRL and of A-OGD for thousands of learners, a few threads each, state in registers.
//
// The rules are those of ../kernels/aftrl.py and ../kernels/aogd.py, the fields those of ../kernels/layout.py.
// Before this text stand: REAL (float or double: z, w and all arithmetic but sums), LANES (threads of a learner, a power
// of 2 up to 32), COORDINATES (of a thread), FTRL (1 or 0), ONLINE (constants found online), LOSS, ORDER (0: rows as they
// stand, 1: one order for all, 2: an order for each learner, 3: drawn), SAME_BETA; and P_… and S_…, the places of fields.
// Coordinate c of thread k is c · LANES + k: threads of a learner read neighbouring numbers. Columns are filled up with 0.
//
// With HOST defined the same text compiles as C++ for one thread a learner: how arithmetic is tested without a GPU.

#ifdef HOST
#include <cmath>
#include <cstdint>
#define __device__
#define __forceinline__ inline
#define __restrict__
#define SHARED_SUM(x) (x)
using std::exp; using std::fabs; using std::log1p; using std::pow; using std::sqrt;
#else
typedef unsigned long long uint64_t;
typedef long long int64_t;
typedef int int32_t;
__device__ __forceinline__ REAL shared_sum(REAL x) {
#pragma unroll
  for (int other = LANES / 2; other > 0; other /= 2) x += __shfl_xor_sync(0xffffffffu, x, other, LANES);
  return x;
}
#define SHARED_SUM(x) shared_sum(x)
#endif

template <class T> __device__ __forceinline__ T least(T a, T b) { return a < b ? a : b; }
template <class T> __device__ __forceinline__ T most(T a, T b) { return a > b ? a : b; }
template <class T> __device__ __forceinline__ T clip(T x, T bound) { return least(most(x, -bound), bound); }

// splitmix64; ../sequences.py has the same. A row number from the seed of a learner and the round.
__device__ __forceinline__ uint64_t mixed(uint64_t z) {
  z += 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

__device__ __forceinline__ int64_t row_of(int64_t i, int64_t learner, int64_t learners, const int32_t *order,
                                          uint64_t seed, int64_t t, int64_t rows) {
#if ORDER == 0
  return i;
#elif ORDER == 1
  return order[i];
#elif ORDER == 2
  return order[i * learners + learner];
#else
  return (int64_t)(((mixed(seed * 0x9E3779B97F4A7C15ULL + (uint64_t)t) >> 32) * (uint64_t)rows) >> 32);
#endif
}

__device__ __forceinline__ void value_and_slope(REAL parameter, REAL margin, REAL y, REAL &value, REAL &slope) {
#if LOSS == 0
  REAL z = y * margin, small = exp(-fabs(z));
  REAL pull = (z >= 0 ? small : (REAL)1) / (1 + small);
  value = most(-z, (REAL)0) + log1p(small);
  slope = -y * pull;
#elif LOSS == 1 || LOSS == 2
  REAL gap = most(1 - y * margin, (REAL)0);
  value = LOSS == 1 ? gap : gap * gap;
  slope = LOSS == 1 ? (gap > 0 ? -y : (REAL)0) : -2 * y * gap;
#else
  REAL residual = margin - y, size = fabs(residual);
#if LOSS == 3
  value = (REAL)0.5 * residual * residual;
  slope = residual;
#elif LOSS == 4
  bool near = size <= parameter;
  value = near ? (REAL)0.5 * residual * residual : parameter * (size - (REAL)0.5 * parameter);
  slope = near ? residual : (residual > 0 ? parameter : -parameter);
#else
  slope = residual > 0 ? 1 - parameter : residual < 0 ? -parameter : (REAL)0;
  value = slope * residual;
#endif
#endif
}

// One learner's rows first … first + count − 1, by the thread that has number `lane` of its LANES.
__device__ __forceinline__ void play(
    int64_t learner, int lane, int64_t learners, int64_t dimension, int64_t width, int64_t count, int64_t rows, int64_t first,
    const float *__restrict__ features, const REAL *__restrict__ lengths, const REAL *__restrict__ labels,
    const REAL *__restrict__ weights, const int32_t *__restrict__ order, const uint64_t *__restrict__ seeds,
    const REAL *__restrict__ powers, const double *__restrict__ parameters, double *__restrict__ state,
    REAL *__restrict__ vectors, const int64_t *__restrict__ record, int64_t records, double *__restrict__ losses,
    const int64_t *__restrict__ drawn, int64_t draws, double *__restrict__ totals) {
#define P(field) parameters[(field) * learners + learner]
#define S(field) state[(field) * learners + learner]
  const REAL budget = P(P_BUDGET), l1 = P(P_L1), l2 = P(P_L2), radius = P(P_RADIUS), bound = P(P_INTERCEPT_BOUND);
  const REAL parameter = P(P_LOSS_PARAMETER), step = P(P_STEP), theta_0 = P(P_THETA_0);
#if !SAME_BETA
  const double beta = P(P_BETA);
#endif
  double loss_sum = S(S_LOSS_SUM), signed_sum = S(S_SIGNED), hard_sum = S(S_HARD), squared_sum = S(S_SQUARED);
  double multiplier_sum = S(S_MULTIPLIER_SUM), squares = S(S_SQUARES), bound_sum = S(S_BOUND_SUM);
  double own_slope = S(S_INTERCEPT_SLOPE), own_squares = S(S_INTERCEPT_SQUARES);
  REAL multiplier = S(S_MULTIPLIER), longest = S(S_LONGEST), scale = S(S_SCALE), norm_1 = S(S_NORM_1), norm_2 = S(S_NORM_2);
  REAL intercept = S(S_INTERCEPT);
  const uint64_t seed = ORDER == 3 ? seeds[learner] : 0;
  REAL v[COORDINATES];
  float ahead[COORDINATES];
  int64_t k = row_of(0, learner, learners, order, seed, first, rows);
  int64_t following = count > 1 ? row_of(1, learner, learners, order, seed, first + 1, rows) : k;
#pragma unroll
  for (int c = 0; c < COORDINATES; ++c) {
    v[c] = vectors[learner * width + c * LANES + lane];
    ahead[c] = features[k * width + c * LANES + lane];
  }
  int64_t recorded = 0, added = 0;
  REAL threshold = (REAL)(multiplier_sum * (double)l1);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t t = first + i;
    float u[COORDINATES];
    const REAL y = labels[k], length = lengths[k], weight = weights ? weights[k] : (REAL)1;
#if SAME_BETA
    const REAL power = powers[i];
#else
    const REAL power = (REAL)pow((double)t, beta);
#endif
    // Rows are fetched one round ahead, row numbers two.
    const int64_t next = following;
    following = i + 2 < count ? row_of(i + 2, learner, learners, order, seed, t + 2, rows) : next;
#pragma unroll
    for (int c = 0; c < COORDINATES; ++c) {
      u[c] = ahead[c];
      ahead[c] = features[next * width + c * LANES + lane];
    }
    if (added < draws && drawn[added] == t) {
#pragma unroll
      for (int c = 0; c < COORDINATES; ++c) {
        const REAL x = FTRL ? clip(v[c], threshold) - v[c] : v[c];
        if (c * LANES + lane < dimension) totals[learner * (dimension + 1) + c * LANES + lane] += (double)(scale * x);
      }
      if (lane == 0) totals[learner * (dimension + 1) + dimension] += (double)intercept;
      ++added;
    }
    REAL dot = 0, other_dot = 0;
#pragma unroll
    for (int c = 0; c < COORDINATES; ++c) {
      const REAL x = FTRL ? clip(v[c], threshold) - v[c] : v[c];
      if (c % 2) other_dot += (REAL)u[c] * x; else dot += (REAL)u[c] * x;
    }
    const REAL margin = scale * SHARED_SUM(dot + other_dot) + intercept;
    REAL value, slope;
    value_and_slope(parameter, margin, y, value, slope);
    value *= weight;
    slope *= weight;
    const REAL g = scale * (l1 * norm_1 + (REAL)0.5 * l2 * scale * norm_2) - budget;
    const REAL positive = most(g, (REAL)0);
    loss_sum += value;
    signed_sum += g;
    hard_sum += positive;
    squared_sum += (double)positive * positive;
    const REAL before = multiplier;
    REAL theta = theta_0 / power;
    REAL eta = 0;
#if FTRL
    if (ONLINE) {
      const REAL square = slope * slope * length;
      squares += square;
      longest = most(longest, sqrt(square));
      if (bound > 0) own_squares += (double)slope * slope;
    }
#else
    if (ONLINE) {
      REAL whole = 0;
#pragma unroll
      for (int c = 0; c < COORDINATES; ++c) {
        const REAL sign = v[c] > 0 ? before * l1 : v[c] < 0 ? -before * l1 : (REAL)0;
        const REAL direction = slope * (REAL)u[c] + sign + before * l2 * scale * v[c];
        whole += direction * direction;
      }
      squares += SHARED_SUM(whole);
      longest = most(longest, sqrt(slope * slope * length));
      eta = squares > 0 ? 2 * radius / sqrt(2 * (REAL)squares) : (REAL)0;
    } else {
      eta = step / power;
    }
#endif
    if (ONLINE) theta = longest > 0 ? theta / longest : (REAL)0;
    if (theta > 0) multiplier = most(multiplier + (g - theta * multiplier) / (theta * ((REAL)t + 1)), (REAL)0);
    if (ONLINE) bound_sum += bound_sum > 0 ? theta : theta * ((REAL)t + 1);
    REAL new_1 = 0, new_2 = 0, other_1 = 0, other_2 = 0;
#if FTRL
    multiplier_sum += multiplier;
    threshold = (REAL)(multiplier_sum * (double)l1);
#pragma unroll
    for (int c = 0; c < COORDINATES; ++c) {
      v[c] += slope * (REAL)u[c];
      const REAL w = most(fabs(v[c]) - threshold, (REAL)0);
      if (c % 2) { other_1 += w; other_2 += w * w; } else { new_1 += w; new_2 += w * w; }
    }
#else
    const REAL keep = scale * (1 - eta * before * l2), pull = eta * before * l1, move = eta * slope;
#pragma unroll
    for (int c = 0; c < COORDINATES; ++c) {
      const REAL sign = v[c] > 0 ? pull : v[c] < 0 ? -pull : (REAL)0;
      v[c] = keep * v[c] - sign - move * (REAL)u[c];
      if (c % 2) { other_1 += fabs(v[c]); other_2 += v[c] * v[c]; } else { new_1 += fabs(v[c]); new_2 += v[c] * v[c]; }
    }
#endif
    norm_1 = SHARED_SUM(new_1 + other_1);
    norm_2 = SHARED_SUM(new_2 + other_2);
#if FTRL
    REAL curvature = ONLINE ? (squares > 0 ? sqrt((REAL)squares) / radius : (REAL)1) : sqrt((REAL)t + 1) / step;
    scale = 1 / (curvature + (REAL)multiplier_sum * l2);
    if (norm_2 * scale * scale > radius * radius) scale = radius / sqrt(norm_2);
    if (bound > 0) {
      own_slope += slope;
      if (ONLINE) curvature = sqrt((REAL)own_squares) / bound;
      if (!ONLINE || own_squares > 0) intercept = clip(-(REAL)own_slope / curvature, bound);
    }
#else
    scale = norm_2 > radius * radius ? radius / sqrt(norm_2) : (REAL)1;
    if (bound > 0) {
      if (ONLINE) {
        own_squares += (double)slope * slope;
        eta = own_squares > 0 ? 2 * bound / sqrt(2 * (REAL)own_squares) : (REAL)0;
      }
      intercept = clip(intercept - eta * slope, bound);
    }
#endif
    if (recorded < records && record[recorded] == t) {
      if (lane == 0) losses[recorded * learners + learner] = loss_sum;
      ++recorded;
    }
    k = next;
  }
#pragma unroll
  for (int c = 0; c < COORDINATES; ++c) vectors[learner * width + c * LANES + lane] = v[c];
  if (lane == 0) {
    S(S_LOSS_SUM) = loss_sum; S(S_SIGNED) = signed_sum; S(S_HARD) = hard_sum; S(S_SQUARED) = squared_sum;
    S(S_MULTIPLIER) = multiplier; S(S_MULTIPLIER_SUM) = multiplier_sum; S(S_SQUARES) = squares; S(S_LONGEST) = longest;
    S(S_SCALE) = scale; S(S_NORM_1) = norm_1; S(S_NORM_2) = norm_2; S(S_INTERCEPT) = intercept;
    S(S_INTERCEPT_SLOPE) = own_slope; S(S_BOUND_SUM) = bound_sum; S(S_INTERCEPT_SQUARES) = own_squares;
  }
}

#define ARGUMENTS                                                                                                        \
  int64_t learners, int64_t dimension, int64_t width, int64_t count, int64_t rows, int64_t first, const float *features, \
      const REAL *lengths, const REAL *labels, const REAL *weights, const int32_t *order, const uint64_t *seeds,         \
      const REAL *powers, const double *parameters, double *state, REAL *vectors, const int64_t *record,                 \
      int64_t records, double *losses, const int64_t *drawn, int64_t draws, double *totals
#define ARGUMENTS_GIVEN                                                                                                  \
  learners, dimension, width, count, rows, first, features, lengths, labels, weights, order, seeds, powers, parameters,  \
      state, vectors, record, records, losses, drawn, draws, totals

#ifdef HOST
extern "C" void play_block(ARGUMENTS) {
  for (int64_t learner = 0; learner < learners; ++learner) play(learner, 0, ARGUMENTS_GIVEN);
}
#else
extern "C" __global__ void __launch_bounds__(THREADS) play_block(ARGUMENTS) {
  const int64_t thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t learner = thread / LANES;
  if (learner < learners) play(learner, (int)(thread % LANES), ARGUMENTS_GIVEN);
}
#endif
