/* The floor for benchmarks/linear.py: A-FTRL and A-OGD for the logistic loss under an elastic-net budget on dense rows,
 * written for nothing else. No checks, no weights, no other losses, no intercept, no trace but the four sums.
 *
 *     cc -O3 -march=native -ffast-math -shared -fPIC linear_floor.c -o linear_floor.so -lm
 *
 * numbers: loss, signed, hard and squared violation, lambda, sum of lambda. order may be NULL (file order); otherwise
 * whole rows are prefetched ahead. Returns nothing but the changed vector and numbers.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define AHEAD 8

static inline double clamp(double z, double t) { return z > t ? t : (z < -t ? -t : z); }

static inline void fetch(const double *row, ptrdiff_t d)
{
    const char *byte = (const char *)row, *end = (const char *)(row + d);
    for (; byte < end; byte += 64)
        __builtin_prefetch(byte, 0, 3);
    __builtin_prefetch(end - 1, 0, 3);
}

void aftrl(const double *restrict rows, const int64_t *restrict order, const double *restrict labels, ptrdiff_t n,
           ptrdiff_t d, double budget, double radius, double step, double theta_0, double beta, double *restrict z,
           double *restrict numbers)
{
    double loss = 0, signed_sum = 0, hard = 0, squared = 0, lambda = 0, weight = 0, scale = 1, norm_1 = 0, norm_2 = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double *restrict u = rows + (order ? order[i] : i) * d, y = labels[order ? order[i] : i], t = i + 1;
        if (order && i + AHEAD < n) {
            fetch(rows + order[i + AHEAD] * d, d);
            __builtin_prefetch(labels + order[i + AHEAD], 0, 3);
        }
        double dot = 0;
        for (ptrdiff_t j = 0; j < d; j++)
            dot += u[j] * (z[j] - clamp(z[j], weight));
        double margin = -scale * dot * y, small = exp(-fabs(margin));
        loss += fmax(-margin, 0) + log1p(small);
        double slope = -y * (margin >= 0 ? small : 1) / (1 + small);
        double g = scale * norm_1 + 0.5 * scale * scale * norm_2 - budget, positive = fmax(g, 0);
        signed_sum += g, hard += positive, squared += positive * positive;
        double theta = theta_0 / pow(t, beta);
        lambda = fmax(lambda + (g - theta * lambda) / (theta * (t + 1)), 0);
        weight += lambda;
        norm_1 = norm_2 = 0;
        for (ptrdiff_t j = 0; j < d; j++) {
            z[j] += slope * u[j];
            double w = z[j] - clamp(z[j], weight);
            norm_1 += fabs(w), norm_2 += w * w;
        }
        scale = 1 / (sqrt(t + 1) / step + weight);
        if (norm_2 * scale * scale > radius * radius)
            scale = radius / sqrt(norm_2);
    }
    double out[6] = {loss, signed_sum, hard, squared, lambda, weight};
    for (int j = 0; j < 6; j++)
        numbers[j] = out[j];
}
