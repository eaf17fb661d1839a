/* How the lengths of pairs change with the position.
 *
 * xPos (core/schemes/xpos.c) multiplies pair c of a query at position p by zeta_c^((p - center)/scale_base). So
 *
 *     ln|z|/ln zeta_c = (p - center)/scale_base
 *
 * is one straight line for all pairs; its slope gives scale_base whatever the centre is. */
#include "core/diagnosis/measure/reading.h"

/* Weighted sums over rows and pairs; positions are counted from `origin`, so that far ones lose no digits. */
struct sums {
    double origin, w, p, y, pp, py;
};

static void add_pair(const struct pe_reading *r, const struct pe_model *m, size_t c, double log_zeta, struct sums *s)
{
    for (size_t i = 0; i < r->n; i++) {
        double re = (double)r->re[c * r->n + i], im = (double)r->im[c * r->n + i], size = hypot(re, im);
        double w = (double)r->weight[c * r->n + i] * log_zeta * log_zeta;
        if (!(size > 0) || !(w > 0))
            continue;
        double p = pe_position_at(&m->plan->seq.k[0], i) - s->origin;
        double y = log(size / m->columns[0].ah) / log_zeta;
        s->w += w;
        s->p += w * p;
        s->y += w * y;
        s->pp += w * p * p;
        s->py += w * p * y;
    }
}

bool pe_measured_decay(struct pe_diagnosis *d, const struct pe_model *m, double gamma, double scale_base,
                       struct pe_decay *out)
{
    const struct pe_reading *r = m->columns ? pe_read_waves(d, m) : NULL;
    if (!r || m->plan->seq.n_axes != 1)
        return false;
    struct sums s = {.origin = pe_position_at(&m->plan->seq.k[0], r->n / 2)};
    for (size_t c = 0; c < r->n_waves && !pe_is_cancelled(); c++)
        add_pair(r, m, c, log(((double)c / (double)r->n_waves + gamma) / (1 + gamma)), &s);
    *r->work += (double)(r->n * r->n_waves) * 64;
    double spread = s.w * s.pp - s.p * s.p, slope = (s.w * s.py - s.p * s.y) / spread;
    double error = r->noise * sqrt(s.w / spread);
    bool is_free = scale_base == 0;
    if (!(s.w > 0) || (is_free && !(spread > 0 && slope > 3 * error)))
        return false;
    double base = is_free ? 1 / slope : scale_base;
    *out = (struct pe_decay){.scale_base = base, .base_error = is_free ? 3 * error / slope : 0};
    out->center = s.origin + s.p / s.w - base * s.y / s.w;
    out->center_error = 3 * base * r->noise / sqrt(s.w);
    return isfinite(base) && isfinite(out->center);
}
