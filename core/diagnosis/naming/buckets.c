/* T5's buckets by measurement: where they begin gives how many there are, for one side or two, and the largest
 * distance.
 *
 * Whether buckets are sent or the bias of a table, the line changes where a bucket begins. With e = side/2 buckets of
 * one distance, bucket e + m begins at the smallest distance n with n ≥ e·(max_distance/e)^(m/(side - e)): every border
 * gives an interval of max_distance, and the plainest number in all of them is taken. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/maps.h"
#include "core/diagnosis/naming/relations.h"

#include <math.h>

#define OF_MAPS (PE_EVIDENCE_BIT(BIAS) | PE_EVIDENCE_BIT(BUCKETS))

const struct pe_fault pe_fault_bidirectional_other = {
    FAULT_TEXT("bidirectional_other", "bias", BIAS, 3, "other bidirectional",
               "Buckets are computed for an encoder instead of a decoder, or the other way round.",
               "bidirectional is {found}; the configuration has {believed}."),

    .schemes = "t5", .evidence = OF_MAPS,
    PE_VALUES(PE_TRUTH_OF("bidirectional", true), PE_TRUTH_OF("bidirectional", false))};
const struct pe_fault pe_fault_max_distance_other = {
    FAULT_TEXT("max_distance_other", "bias", BIAS, 3, "other max_distance", "Buckets end at another distance.",
               "max_distance is {found}; the configuration has {believed}."),
    .schemes = "t5", .evidence = OF_MAPS,
    PE_VALUES(PE_INTEGER_OF("max_distance", 128), PE_INTEGER_OF("max_distance", 64), PE_INTEGER_OF("max_distance", 256),
              PE_INTEGER_OF("max_distance", 512))};

struct shape {
    bool two_sides;
    int64_t count, farthest; /* num_buckets, max_distance */
};

static void set_shape(struct pe_edit *edit, const struct shape *shape)
{
    pe_edit_set_boolean(edit, "bidirectional", shape->two_sides);
    pe_edit_set_integer(edit, "num_buckets", shape->count);
    pe_edit_set_integer(edit, "max_distance", shape->farthest);
}

static int64_t side_of(const struct shape *s) { return s->two_sides ? s->count / 2 : s->count; }

/* ---- The largest distance ---- */

struct interval {
    double above, most;
};

/* In which it is, by the borders to the left of the query. */
static struct interval farthest_of(const struct pe_lines *l, int64_t side)
{
    struct interval in = {0, (double)INFINITY};
    int64_t exact = side / 2, bucket = 0;
    const double *x = l->found + l->zero;
    for (int64_t n = 1; n <= (int64_t)l->zero && !isnan(x[-n]) && !isnan(x[1 - n]); n++) {
        if (x[-n] == x[1 - n])
            continue;
        bucket++;
        if (bucket <= exact || bucket >= side)
            continue;
        double power = (double)(side - exact) / (double)(bucket - exact), e = (double)exact;
        in.above = fmax(in.above, e * pow((double)(n - 1) / e, power));
        in.most = fmin(in.most, e * pow((double)n / e, power) * (1 + 1e-12)); /* a border is often a whole number */
    }
    return in;
}

/* A power of two, or the integer with the fewest digits; 0: there is none. */
static int64_t plainest(struct interval in)
{
    for (int64_t two = 2; (double)two <= in.most && two < INT64_C(1) << 31; two *= 2)
        if ((double)two > in.above)
            return two;
    for (double unit = 1e9; unit >= 1 && isfinite(in.most); unit /= 10)
        if (floor(in.most / unit) * unit > in.above && floor(in.most / unit) > 0)
            return (int64_t)(floor(in.most / unit) * unit);
    return 0;
}

/* ---- Candidates ---- */

static bool are_equal(const struct pe_lines *l)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n_heads * l->n; i++) {
        n += isnan(l->found[i]) ? 0 : 1;
        if (!isnan(l->found[i]) && !pe_lines_are_near(l, l->found[i], l->believed[i]))
            return false;
    }
    return n > 1;
}

/* Does a shape of the buckets give the line? */
static bool gives(struct pe_diagnosis *d, const struct pe_edit *edit, const struct shape *shape)
{
    struct pe_edit changed = *edit;
    struct pe_lines l;
    changed.n_owned = 0;
    set_shape(&changed, shape);
    bool fits = pe_measure_lines(d, &changed, &l) && are_equal(&l);
    pe_lines_drop(&l);
    return fits;
}

/* Buckets of one distance that are seen to the left. */
static int64_t count_exact(const struct pe_lines *l)
{
    const double *x = l->found + l->zero;
    int64_t n = 0;
    while (n < (int64_t)l->zero && !isnan(x[-n - 1]) && x[-n] != x[-n - 1])
        n++;
    return n;
}

static bool find_shape(struct pe_diagnosis *d, const struct pe_edit *edit, const struct pe_lines *l,
                       const struct shape *believed, struct shape *out)
{
    int64_t exact = count_exact(l);
    bool is_sent = d->evidence.kind->id == PE_OF_BUCKETS; /* else the table has as many rows as there are */
    for (int other = 0; other < 2; other++) {
        const bool two_sides = believed->two_sides != other;
        const int64_t counts[] = {believed->count, two_sides ? 4 * exact : 2 * exact};
        for (int i = 0; i < 1 + is_sent; i++) {
            struct shape s = {two_sides, counts[i], believed->farthest};
            bool has_side = side_of(&s) > 1;
            if (has_side && gives(d, edit, &s)) {
                *out = s;
                return true;
            }
            s.farthest = has_side ? plainest(farthest_of(l, side_of(&s))) : 0;
            if (s.farthest > 0 && gives(d, edit, &s)) {
                *out = s;
                return true;
            }
        }
    }
    return false;
}

/* ---- The parts ---- */

static const struct pe_relation of_farthest = {&pe_fault_max_distance_other, 1, NULL, NULL},
                                of_count = {PE_OF_ROLE(ANY_FIELD), 1, NULL, NULL};

static void add_part(struct pe_diagnosis *d, const struct pe_relation *relation, int64_t found, const char *field,
                     struct pe_part *parts, size_t *n)
{
    struct pe_named *named = pe_part_add(d, relation, (double)found, 0, parts, n);
    if (named)
        named->field = field;
}

size_t pe_relate_buckets(struct pe_diagnosis *d, const struct pe_edit *edit, const struct pe_lines *l,
                         struct pe_part *parts)
{
    struct shape believed = {pe_edit_is_true(d, edit, "bidirectional", true),
                             pe_edit_integer(d, edit, "num_buckets", 32),
                             pe_edit_integer(d, edit, "max_distance", 128)},
                 found;
    size_t n = 0;
    if (!pe_same(d->belief.inheritance->scheme->info.name, "t5") || l->zero >= l->n ||
        !find_shape(d, edit, l, &believed, &found))
        return 0;
    if (found.two_sides != believed.two_sides)
        parts[n++] = (struct pe_part){&pe_fault_bidirectional_other, 0};
    if (found.count != believed.count)
        add_part(d, &of_count, found.count, "num_buckets", parts, &n);
    if (found.farthest != believed.farthest)
        add_part(d, &of_farthest, found.farthest, "max_distance", parts, &n);
    return n;
}
