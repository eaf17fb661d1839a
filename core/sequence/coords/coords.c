/* Coordinates: how positions become them, exactly, without a table of all rows (coords.h has the formula).
 *
 * A wave table computes p·F with a double p that is exact and a frequency F of two doubles. So a factor, a divisor and
 * a rule's own fraction go into F, and only a shift must go into p: as so many units (65536 beside a unit of 1), or,
 * where that is no double, as p·numerator + shift·denominator beside the unit 1/denominator (1/2 beside thirds: 2p + 3
 * sixths). A run stays a run as long as it can, because runs are the fast case; an axis of a grid is listed once,
 * whatever number of rows repeat it. */
#include "core/sequence/coords/coords.h"
#include "core/limits.h"
#include "core/request/request.h"

#include <stdlib.h>

static const struct pe_coord_rule *const rules[] = {
#define COORDS(name) &pe_coords_##name,
#include "core/sequence/coords/list.h"
#undef COORDS
};

const char *const pe_coord_words[] = {
#define COORDS(name) #name,
#include "core/sequence/coords/list.h"
#undef COORDS
    NULL};
const char *const pe_crop_ends[] = {[PE_CROP_OPEN] = "open", [PE_CROP_SHRUNK] = "shrunk", NULL};

/* ---- What the fields state for one axis ---- */

static const struct pe_coord_rule *rule_of(const struct pe_coord_fields *f)
{
    return rules[f->coords == PE_UNSET_WORD ? PE_COORDS_index : f->coords];
}

/* Entry `axis` of a list that may be missing, or shorter than the axes of a sequence that has more than are used. */
static double entry(const struct pe_reals *list, unsigned axis, double otherwise)
{
    return axis < list->n ? pe_real_at(list, axis) : otherwise;
}

static enum pe_status line_of(const struct pe_coord_fields *f, const struct pe_sequence *seq, unsigned axis,
                              struct pe_coord_line *line, struct pe_failure *err)
{
    struct pe_coord_grid grid = {.n_axes = seq->n_grid,
                                 .size = seq->grid,
                                 .ref = &f->ref_grid,
                                 .crop_end = f->crop_end == PE_CROP_SHRUNK ? PE_CROP_SHRUNK : PE_CROP_OPEN};
    *line = (struct pe_coord_line){.step = 1, .numerator = 1, .denominator = 1};
    return axis < seq->n_grid && rule_of(f)->axis ? rule_of(f)->axis(&grid, axis, line, err) : PE_OK;
}

/* ---- From positions to coordinates ---- */

/* coordinate = (p·times + plus)·unit, where p is a position, or first + step·i on an axis of a grid. */
struct change {
    const struct pe_positions *from;
    struct pe_coord_line line;
    bool is_grid, is_listed, is_float32;
    double times, plus;
    struct pe_dd unit;
};

static double place(const struct change *c, uint64_t i)
{
    double p = c->is_grid ? c->line.first + c->line.step * (double)i
                          : (c->from->list ? c->from->list[i] : c->from->start + (double)i);
    return c->line.is_floor ? (p - fmod(p, c->line.denominator)) / c->line.denominator : p;
}

static bool is_exact(const struct change *c, uint64_t i)
{
    struct pe_dd product = dd_two_prod(place(c, i), c->times);
    return product.lo == 0 && dd_two_sum(product.hi, c->plus).lo == 0;
}

/* Of a run the ends say it for all: a sum that is exact where it is largest is exact everywhere. */
static bool is_exact_everywhere(const struct change *c)
{
    uint64_t n = pe_positions_indices(c->from);
    if (!c->from->list && c->times == 1)
        return is_exact(c, 0) && is_exact(c, n - 1);
    for (uint64_t i = 0; i < n; i++)
        if (!is_exact(c, i) || pe_is_cancelled_at(i))
            return false;
    return true;
}

/* Is it no run of integers one apart? */
static bool needs_list(const struct change *c)
{
    return c->from->list || c->line.is_floor || c->line.step != 1 || c->times != 1;
}

/* shift = plus·numerator/denominator: so many units; or numerator and denominator into p. */
static void put_shift(struct change *c, struct pe_dd numerator, struct pe_dd denominator, double shift)
{
    struct pe_dd moved = dd_mul_d(denominator, shift);
    c->plus = dd_div(moved, numerator).hi;
    if (dd_sub(dd_mul_d(numerator, c->plus), moved).hi == 0 && is_exact_everywhere(c))
        return;
    struct change whole = *c;
    whole.times = numerator.hi;
    whole.plus = moved.hi;
    whole.unit = dd_div(dd(1), denominator);
    bool fits = numerator.lo == 0 && moved.lo == 0 && pe_positions_indices(c->from) <= PE_LISTED_POSITIONS_MAX;
    if (fits && is_exact_everywhere(&whole))
        *c = whole;
}

static bool is_one(struct pe_dd x) { return x.hi == 1 && x.lo == 0; }

static enum pe_status change_of(const struct pe_coord_fields *f, const struct pe_sequence *seq,
                                const struct pe_positions *from, unsigned axis, bool float32, struct change *c,
                                struct pe_failure *err)
{
    double scale = entry(&f->axis_scale, axis, 1), shift = entry(&f->axis_shift, axis, 0);
    *c = (struct change){.from = from, .is_grid = axis < seq->n_grid, .times = 1};
    if (line_of(f, seq, axis, &c->line, err))
        return err->status;
    struct pe_dd numerator = dd_two_prod(c->line.is_floor ? 1 : c->line.numerator, scale),
                 denominator =
                     dd_two_prod(c->line.is_floor ? 1 : c->line.denominator, entry(&f->axis_divisor, axis, 1));
    c->unit = dd_div(numerator, denominator);
    if (shift != 0 && scale == 0)
        c->unit = dd(shift), c->times = 0, c->plus = 1;
    else if (shift != 0)
        put_shift(c, numerator, denominator, shift);
    c->is_float32 = float32 && !is_one(c->unit);
    bool changes = c->is_grid || c->plus != 0 || c->times != 1 || c->is_float32;
    c->is_listed = changes && (needs_list(c) || c->is_float32);
    return PE_OK;
}

static void apply(const struct change *c, struct pe_positions *to, struct pe_dd *unit, double *list)
{
    *unit = c->is_float32 ? dd(1) : c->unit;
    if (!c->is_listed) {
        to->start = to->list ? to->start : place(c, 0) + c->plus;
        return;
    }
    for (uint64_t i = 0, n = pe_positions_indices(to); i < n; i++) {
        double p = place(c, i) * c->times + c->plus;
        list[i] = c->is_float32 ? (double)(float)dd_mul_d(c->unit, p).hi : p;
    }
    to->list = list;
}

/* ---- All axes ---- */

/* The changes of keys, and of queries where theirs are other positions; how many numbers they list. */
static enum pe_status change_all(const struct pe_coord_fields *f, const struct pe_sequence *seq, bool float32,
                                 struct change changes[2][PE_AXES_MAX], uint64_t *listed, struct pe_failure *err)
{
    *listed = 0;
    for (unsigned a = 0; a < seq->n_axes; a++) {
        const struct pe_positions *sides[2] = {&seq->k[a], &seq->q[a]};
        for (int side = 0; side < 2 - pe_positions_same(sides[0], sides[1]); side++) {
            if (change_of(f, seq, sides[side], a, float32, &changes[side][a], err))
                return err->status;
            *listed += changes[side][a].is_listed ? pe_positions_indices(sides[side]) : 0;
        }
    }
    return PE_OK;
}

/* Lists that no client sent are bounded. */
static enum pe_status check_room(const struct pe_coord_fields *f, const struct pe_sequence *seq, bool float32,
                                 const struct change *changes, struct pe_failure *err)
{
    uint64_t listed = 0;
    for (unsigned a = 0; a < seq->n_axes; a++)
        listed += changes[a].is_listed && !seq->k[a].list ? pe_positions_indices(&seq->k[a]) : 0;
    if (listed <= PE_LISTED_POSITIONS_MAX)
        return PE_OK;
    return pe_fail(err, seq->n_grid ? "/grid" : "/len",
                   "%s has axes of %llu positions together; with %s these coordinates are stored, at most %d",
                   seq->n_grid ? "grid" : "the sequence", (unsigned long long)listed,
                   float32 ? "arith float32" : rule_of(f)->name, PE_LISTED_POSITIONS_MAX);
}

static bool is_plain(const struct pe_coord_fields *f)
{
    return !rule_of(f)->axis && !f->axis_scale.n && !f->axis_divisor.n && !f->axis_shift.n;
}

enum pe_status pe_coords_set(const struct pe_coord_fields *f, struct pe_sequence *seq, bool float32,
                             struct pe_coords *out, struct pe_failure *err)
{
    struct change changes[2][PE_AXES_MAX];
    uint64_t listed = 0;
    *out = (struct pe_coords){.lists = NULL};
    for (unsigned a = 0; a < PE_AXES_MAX; a++)
        out->unit[a] = dd(1);
    if (is_plain(f))
        return PE_OK;
    if (change_all(f, seq, float32, changes, &listed, err) || check_room(f, seq, float32, changes[0], err))
        return err->status;
    double *next = out->lists = listed ? malloc(listed * sizeof *out->lists) : NULL;
    if (listed && !next)
        return pe_no_memory(err);
    for (unsigned a = 0; a < seq->n_axes; a++) {
        struct pe_positions k = seq->k[a], q = seq->q[a];
        bool is_same = pe_positions_same(&k, &q);
        changes[0][a].from = &k;
        changes[1][a].from = &q;
        apply(&changes[0][a], &seq->k[a], &out->unit[a], next);
        next += changes[0][a].is_listed ? pe_positions_indices(&k) : 0;
        if (is_same)
            seq->q[a] = seq->k[a];
        else
            apply(&changes[1][a], &seq->q[a], &out->unit[a], next);
        next += !is_same && changes[1][a].is_listed ? pe_positions_indices(&q) : 0;
    }
    return PE_OK;
}

bool pe_coords_are_integers(const struct pe_coords *coords, const struct pe_sequence *seq)
{
    for (unsigned a = 0; a < seq->n_axes; a++)
        if (!pe_positions_are_integers(&seq->k[a]) || coords->unit[a].hi != floor(coords->unit[a].hi) ||
            coords->unit[a].lo != 0)
            return false;
    return true;
}

double pe_coords_at(const struct pe_coords *coords, const struct pe_positions *positions, unsigned axis, uint64_t i)
{
    return dd_mul_d(coords->unit[axis], pe_position_at(positions, i)).hi;
}

/* ---- Refusals ---- */

static enum pe_status check_ref(const struct pe_coord_fields *f, const struct pe_sequence *seq, struct pe_failure *err)
{
    const struct pe_coord_rule *rule = rule_of(f);
    const struct pe_reals *ref = &f->ref_grid;
    unsigned needed = rule->ref == PE_REF_SPACE ? 2 : seq->n_grid;
    if (rule->ref == PE_REF_NONE || (ref->array.rank == 1 && ref->n == needed))
        return PE_OK;
    if (!ref->n)
        return pe_fail(err, "/ref_grid", "ref_grid is missing; coords %s needs %u lengths", rule->name, needed);
    if (rule->ref == PE_REF_SPACE)
        return pe_fail(err, "/ref_grid", "ref_grid has %llu lengths; coords %s needs two, of rows and columns",
                       (unsigned long long)ref->n, rule->name);
    return pe_fail(err, "/ref_grid", "ref_grid has %llu lengths; coords %s needs one for each axis of the grid, %u",
                   (unsigned long long)ref->n, rule->name, needed);
}

static enum pe_status check_list(const struct pe_reals *list, const char *pointer, unsigned n_axes,
                                 struct pe_failure *err)
{
    if (!list->n || (list->array.rank == 1 && list->n == n_axes))
        return PE_OK;
    return pe_fail(err, pointer, "%s has %llu numbers; needed: one for each axis, %u", pointer + 1,
                   (unsigned long long)list->n, n_axes);
}

enum pe_status pe_coords_check(const struct pe_coord_fields *f, const struct pe_sequence *seq, unsigned n_axes,
                               struct pe_failure *err)
{
    if (rule_of(f)->axis && !seq->n_grid)
        return pe_fail(err, "/coords", "coords %s needs a grid: it is a rule for rows and columns that are counted",
                       rule_of(f)->name);
    if (check_ref(f, seq, err) || check_list(&f->axis_scale, "/axis_scale", n_axes, err) ||
        check_list(&f->axis_divisor, "/axis_divisor", n_axes, err) ||
        check_list(&f->axis_shift, "/axis_shift", n_axes, err))
        return err->status;
    for (uint64_t a = 0; a < f->axis_divisor.n; a++)
        if (pe_real_at(&f->axis_divisor, a) == 0)
            return pe_fail(err, "/axis_divisor", "axis_divisor is 0 on axis %llu; allowed: any other number",
                           (unsigned long long)a);
    return PE_OK;
}

void pe_coords_cost(const struct pe_coord_fields *f, const struct pe_sequence *seq, struct pe_cost *cost)
{
    double listed = 0;
    for (unsigned a = 0; !is_plain(f) && a < seq->n_axes; a++) {
        double n = (double)pe_positions_indices(&seq->k[a]);
        listed += seq->k[a].list ? n : fmin(n, PE_LISTED_POSITIONS_MAX);
    }
    pe_cost_each(cost, 2 * listed, sizeof(double), 2 * PE_NS_PLACE);
}
