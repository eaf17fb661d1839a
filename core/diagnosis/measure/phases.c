/* Phases that are right but for an error that grows with the angle: angles, positions or frequencies were rounded to
 * few bits, by a recipe that is none of those in core/waves/recipes.c, or by two of them. A number that was rounded
 * itself has an error that does not grow.
 *
 * The share is the largest error over the angle. Where it holds of the angle within its turn, too, the angles were
 * reduced before they were rounded. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/changed.h"
#include "core/diagnosis/measure/profile.h"

#include <stdio.h>

enum { OF_ANGLE, OF_TURN, N_SHARES };

struct shares {
    double most[N_SHARES], farthest; /* of the error; the largest error */
    size_t n, n_wrong;
};

/* By how much of the angle the phase may be wrong; an error at an angle of 0 is no share of it. */
static void add_error(struct shares *s, double error, double angle, double noise)
{
    const double turn = 2 * PI, angles[N_SHARES] = {fabs(angle), angle - turn * floor(angle / turn)};
    s->n_wrong += error > noise;
    if (error > noise)
        for (int i = 0; i < N_SHARES; i++)
            s->most[i] = fmax(s->most[i], (error - noise) / angles[i]);
    s->farthest = fmax(s->farthest, error);
    s->n++;
}

static struct shares measure(const struct pe_reading *r, const struct pe_profile *believed, double noise)
{
    struct shares s = {.n = 0};
    for (size_t c = 0; c < r->n_waves && !pe_is_cancelled(); c++)
        for (size_t i = 0; i < r->n; i++) {
            size_t at = c * r->n + i;
            double angle = believed->x[believed->axis[c] * r->n + i] * believed->w[c];
            double phase = atan2((double)r->im[at], (double)r->re[at]);
            if (r->weight[at] > 0)
                add_error(&s, fabs(pe_wrap(phase - angle)), angle, noise / sqrt((double)r->weight[at]));
        }
    return s;
}

/* The type whose roundings, one to three of them, give such a share; NULL: none. */
static const char *type_of(double share)
{
    return share > 0x1p-7 ? NULL : share > 0x1p-10 ? "bfloat16" : share > 0x1p-13 ? "float16" : NULL;
}

bool pe_changed_phases(struct pe_numbers *s, struct pe_changed *out)
{
    enum { LEAST = 64, CLEAR = 16, SHARE = 16 }; /* single numbers that are wrong are no rounding */
    const struct pe_model *model = s->d->belief.model;
    struct pe_profile believed = {.n_rows = 0};
    const struct pe_reading *r = pe_wave_count(model) ? pe_read_waves(s->d, model) : NULL;
    if (!r || s->d->evidence.kind->id == PE_OF_LADDER || !pe_profile_believe(&believed, model, r->n))
        return false;
    double noise = fmax(4 * r->noise, 0x1p-20);
    struct shares shares = measure(r, &believed, noise);
    pe_profile_drop(&believed);
    s->work += 32 * (double)s->n;
    if (pe_is_cancelled() || shares.n < LEAST || shares.farthest < CLEAR * noise || SHARE * shares.n_wrong < shares.n ||
        !type_of(shares.most[OF_ANGLE]))
        return false;
    bool is_of_turn = type_of(shares.most[OF_TURN]);
    double share = shares.most[is_of_turn ? OF_TURN : OF_ANGLE];
    out->change = is_of_turn ? PE_CHANGED_TURNED_PHASES : PE_CHANGED_PHASES;
    snprintf(out->rule, sizeof out->rule, "2^%.1f", log2(share));
    snprintf(out->first, sizeof out->first, "%s", type_of(share));
    return true;
}
