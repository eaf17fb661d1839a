/* Cosines without their sines, or the reverse: what the other one was.
 *
 * In rows at equal steps, with w the wave's angle for one step,
 *
 *     e[i-1] + e[i+1] = 2 cos(w) e[i]           so w is known, but for its sign
 *     e[i+L] - e[i-L] = -2 sin(i's angle) sin(L w)   of cosines; of sines 2 cos(i's angle) sin(L w)
 *
 * The difference gives the sign of the other one, and its size follows from the length of both, which is that of the
 * fastest wave. The sign of w shows in none of them: the wave is taken to turn forwards. Where rows jump, a sign may be
 * wrong. */
#include "core/diagnosis/measure/profile.h"
#include "core/numeric/numeric.h"

#include <stdlib.h>

enum { ROWS_MIN = 3 };

static double step_at(const float *e, size_t n, size_t lag)
{
    double up = 0, down = 0;
    for (size_t i = lag; i + lag < n; i++) {
        up += (double)e[i] * ((double)e[i - lag] + (double)e[i + lag]);
        down += 2 * (double)e[i] * (double)e[i];
    }
    return down > 0 ? acos(fmax(-1, fmin(1, up / down))) / (double)lag : 0;
}

/* The angle of one step, in [0, pi]; 0 where too few rows show it. Roundings hide a small one, but not many of them. */
static double step_of(const float *e, size_t n)
{
    double w = n >= ROWS_MIN ? step_at(e, n, 1) : 0;
    for (size_t lag = 2; 4 * lag < n && (double)lag * w < 1; lag *= 2)
        w = step_at(e, n, lag);
    return w;
}

double pe_quadrature_length(const float *e, size_t n, double *room)
{
    double most = 0, w = step_of(e, n);
    size_t m = 0;
    for (size_t i = 0; i < n; i++) { /* no fmax: gcc 12 fails to vectorise it for arm64 */
        double size = fabs((double)e[i]);
        most = size > most ? size : most;
    }
    for (size_t i = 1; sin(w) > 0.1 && i + 1 < n; i++)
        room[m++] = hypot((double)e[i], ((double)e[i + 1] - (double)e[i - 1]) / (2 * sin(w)));
    if (m == 0)
        return most;
    qsort(room, m, sizeof *room, pe_rising);
    return fabs(room[m / 2] - 1) < 1e-4 ? fmax(most, 1) : fmax(most, room[m / 2]); /* a length is not often so near 1 */
}

/* Twice the difference that has the sign of the other one, of row i and those so far from it. */
static double difference(const float *e, size_t n, size_t i, size_t lag, double w)
{
    double here = cos((double)lag * w) * (double)e[i];
    if (i >= lag && i + lag < n)
        return (double)e[i + lag] - (double)e[i - lag];
    return i + lag < n ? 2 * ((double)e[i + lag] - here) : i >= lag ? 2 * (here - (double)e[i - lag]) : 0;
}

void pe_quadrature(const float *e, size_t n, double length, bool are_sines, float *other)
{
    double w = step_of(e, n), most = n < ROWS_MIN ? 0 : (double)((n - 1) / 2);
    size_t lag = (size_t)fmax(1, fmin(most, floor(PI / 2 / fmax(w, 1e-9))));
    bool is_slow = (double)n * w < 0.05; /* roundings hide the steps; the sign is that of all rows */
    double whole = n > 1 ? (double)e[n - 1] - (double)e[0] : 0;
    for (size_t i = 0; i < n; i++) {
        double rises = is_slow ? whole : difference(e, n, i, lag, w);
        double size = sqrt(fmax(0, length * length - (double)e[i] * (double)e[i]));
        other[i] = (float)((are_sines ? rises < 0 : rises > 0) ? -size : size);
    }
}
