/* The floor for benchmarks/linear.py: A-FTRL for the logistic loss under the budget |x|_1 + |x|^2/2 <= rho, on dense rows
 * of doubles, and for nothing else: no checks, no weights, no other losses, no intercept, no trace but the sums of loss
 * and violation, one radius. Gradients are measured on the way. Compiled with
 *
 *     cc -O3 -march=native -ffast-math -shared -fPIC linear_floor.c -lm
 *
 * order is NULL for file order; otherwise whole rows and their labels are fetched ahead. On return z has
 * the vector after the last round, numbers the sums of loss, g, [g]+ and [g]+^2, then lambda and its sum.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define AHEAD 8

typedef struct {
    double loss, slope;
} pair;

static inline double clamp(double z, double t) { return z > t ? t : (z < -t ? -t : z); }

static inline pair logistic(double margin, double y)
{
    double small = exp(-fabs(y * margin)), right = y * margin >= 0;
    return (pair){fmax(-y * margin, 0) + log1p(small), -y * (right ? small : 1) / (1 + small)};
}

static inline void fetch(const double *rows, const double *labels, int64_t k, ptrdiff_t d)
{
    const char *byte = (const char *)(rows + k * d), *end = (const char *)(rows + (k + 1) * d);
    for (; byte < end; byte += 64)
        __builtin_prefetch(byte, 0, 3);
    __builtin_prefetch(end - 1, 0, 3);
    __builtin_prefetch(labels + k, 0, 3);
}

void aftrl(const double *restrict rows, const int64_t *restrict order, const double *restrict labels, ptrdiff_t n,
           ptrdiff_t d, double budget, double radius, double theta_0, double beta, double *restrict z, double *restrict numbers)
{
    double loss = 0, violation = 0, hard = 0, squared = 0, lambda = 0, weight = 0, scale = 0, norm_1 = 0, norm_2 = 0, squares = 0, longest = 0;
    double w[d];
    for (ptrdiff_t j = 0; j < d; j++)
        w[j] = z[j] = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        int64_t k = order ? order[i] : i;
        const double *restrict u = rows + k * d, t = i + 1;
        if (order && i + AHEAD < n)
            fetch(rows, labels, order[i + AHEAD], d);
        double dot = 0, length = 0;
        for (ptrdiff_t j = 0; j < d; j++)
            dot += u[j] * w[j], length += u[j] * u[j];
        pair f = logistic(-scale * dot, labels[k]);
        double g = scale * (norm_1 + 0.5 * scale * norm_2) - budget, positive = fmax(g, 0);
        loss += f.loss, violation += g, hard += positive, squared += positive * positive;
        squares += f.slope * f.slope * length;
        longest = fmax(longest, fabs(f.slope) * sqrt(length));
        double theta = theta_0 / (longest * pow(t, beta));
        lambda = fmax(lambda + (g - theta * lambda) / (theta * (t + 1)), 0);
        weight += lambda;
        norm_1 = norm_2 = 0;
        for (ptrdiff_t j = 0; j < d; j++) {
            z[j] += f.slope * u[j];
            w[j] = z[j] - clamp(z[j], weight);
            norm_1 += fabs(w[j]), norm_2 += w[j] * w[j];
        }
        scale = 1 / (sqrt(squares) / radius + weight);
        if (norm_2 * scale * scale > radius * radius)
            scale = radius / sqrt(norm_2);
    }
    double out[6] = {loss, violation, hard, squared, lambda, weight};
    for (int j = 0; j < 6; j++)
        numbers[j] = out[j];
}
