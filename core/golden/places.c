/* Positions of golden vectors: few, and each shows something. 0 to 3 show the order and the first steps, 17 a position
 * that is no power of two, those around the original length O what a scaling does there, and the last one L - 1 what is
 * lost of large angles. */
#include "core/golden/golden.h"

#include <math.h>
#include <string.h>

/* ---- As the request lists them ---- */

enum pe_status pe_golden_places_read(const struct pe_golden_fields *fields, struct pe_golden_places *places,
                                     struct pe_failure *err)
{
    const struct pe_reals *list = &fields->positions;
    unsigned rank = list->array.rank;
    *places = (struct pe_golden_places){.n_axes = 1};
    if (list->n == 0)
        return PE_OK;
    if (rank > 2 || (rank == 2 && list->array.shape[0] > PE_AXES_MAX))
        return pe_fail(err, "/positions", "positions are [n], or [axes][n] of at most %d axes", PE_AXES_MAX);
    places->n_axes = rank == 2 ? (unsigned)list->array.shape[0] : 1;
    uint64_t n = list->n / places->n_axes;
    if (n > PE_GOLDEN_PLACES_MAX)
        return pe_fail(err, "/positions", "positions has %llu positions; allowed: at most %d", (unsigned long long)n,
                       PE_GOLDEN_PLACES_MAX);
    places->n = (size_t)n;
    for (uint64_t i = 0; i < list->n; i++)
        places->at[i] = pe_real_at(list, i);
    for (size_t i = 0; i < places->n; i++)
        places->worth[i] = PE_GOLDEN_KEPT;
    return PE_OK;
}

/* ---- The usual ones ---- */

/* A position that is there twice counts as the one of more worth. */
static void put_place(struct pe_golden_places *places, const double *at, int worth)
{
    size_t n = places->n;
    for (size_t i = 0; i < n; i++) {
        bool is_there = true;
        for (unsigned a = 0; a < places->n_axes; a++)
            is_there = is_there && places->at[a * PE_GOLDEN_PLACES_MAX + i] == at[a];
        if (!is_there)
            continue;
        places->worth[i] = places->worth[i] > worth ? places->worth[i] : worth;
        return;
    }
    for (unsigned a = 0; a < places->n_axes; a++)
        places->at[a * PE_GOLDEN_PLACES_MAX + n] = at[a];
    places->worth[n] = worth;
    places->n++;
}

static bool is_within(const struct pe_golden_reach *reach, double at)
{
    return at >= 0 && (reach->rows == 0 || at < (double)reach->rows);
}

/* Rising, each once. */
static void sort(struct pe_golden_places *places)
{
    for (size_t i = 1; i < places->n; i++)
        for (size_t j = i; j > 0 && places->at[j] < places->at[j - 1]; j--) {
            double at = places->at[j];
            int worth = places->worth[j];
            places->at[j] = places->at[j - 1];
            places->worth[j] = places->worth[j - 1];
            places->at[j - 1] = at;
            places->worth[j - 1] = worth;
        }
}

/* More axes: the origin, then each axis in its turn ahead of the others. */
static void usual_on_many(unsigned n_axes, struct pe_golden_places *places)
{
    double at[PE_AXES_MAX] = {0};
    put_place(places, at, 1);
    for (unsigned ahead = 0; ahead < n_axes; ahead++) {
        for (unsigned a = 0; a < n_axes; a++)
            at[a] = a == ahead ? 3 : 2;
        put_place(places, at, PE_GOLDEN_KEPT);
    }
}

struct row {
    double at[3];
    int worth;
};

void pe_golden_places_usual(unsigned n_axes, const struct pe_golden_reach *reach, struct pe_golden_places *places)
{
    const double original = reach->original, last = reach->longest - 1;
    const struct row on_one[] = {{{0}, PE_GOLDEN_KEPT},
                                 {{1}, 6},
                                 {{2}, 2},
                                 {{3}, 1},
                                 {{17}, 0},
                                 {{original - 1}, 4},
                                 {{original}, PE_GOLDEN_KEPT},
                                 {{original + 1}, 3},
                                 {{last}, 5}};
    static const struct row on_two[] = {
        {{0, 0}, 1}, {{0, 1}, 2}, {{1, 0}, 3}, {{2, 3}, PE_GOLDEN_KEPT}, {{7, 5}, PE_GOLDEN_KEPT}, {{31, 31}, 0}};
    /* Time, height and width: equal, then each ahead of the others. */
    const struct row on_three[] = {{{0, 0, 0}, 6},
                                   {{1, 1, 1}, 1},
                                   {{2, 2, 2}, 2},
                                   {{2, 2, 3}, 7},
                                   {{2, 3, 2}, PE_GOLDEN_KEPT},
                                   {{3, 2, 2}, PE_GOLDEN_KEPT},
                                   {{5, 5, 5}, 0},
                                   {{original - 1, original - 1, original - 1}, 3},
                                   {{original, original, original}, 5},
                                   {{last, last, last}, 4}};
    const struct row *rows = n_axes == 1 ? on_one : n_axes == 2 ? on_two : on_three;
    size_t n = n_axes == 1   ? sizeof on_one / sizeof *rows
               : n_axes == 2 ? sizeof on_two / sizeof *rows
               : n_axes == 3 ? sizeof on_three / sizeof *rows
                             : 0;
    *places = (struct pe_golden_places){.n_axes = n_axes};
    for (size_t i = 0; i < n; i++)
        if (n_axes == 2 || is_within(reach, rows[i].at[0]))
            put_place(places, rows[i].at, rows[i].worth);
    if (n_axes == 1)
        sort(places);
    if (n_axes > 3)
        usual_on_many(n_axes, places);
    /* From rows of PE_GOLDEN_PLACES_MAX to rows of n. */
    for (unsigned a = 1; a < n_axes; a++)
        memmove(places->at + a * places->n, places->at + a * PE_GOLDEN_PLACES_MAX, places->n * sizeof *places->at);
}

void pe_golden_places_of_bias(bool of_keys, struct pe_golden_places *places)
{
    static const double queries[] = {0, 1, 17, 1023}, keys[] = {0, 1, 2, 16, 17, 500, 1023};
    *places = (struct pe_golden_places){.n_axes = 1};
    places->n = of_keys ? sizeof keys / sizeof *keys : sizeof queries / sizeof *queries;
    memcpy(places->at, of_keys ? keys : queries, places->n * sizeof *keys);
    for (size_t i = 0; i < places->n; i++)
        places->worth[i] = PE_GOLDEN_KEPT;
}

/* ---- Fewer of them ---- */

bool pe_golden_places_drop(struct pe_golden_places *places)
{
    size_t least = 0;
    for (size_t i = 1; i < places->n; i++)
        if (places->worth[i] < places->worth[least])
            least = i;
    if (places->n <= PE_GOLDEN_PLACES_LEAST || places->worth[least] == PE_GOLDEN_KEPT)
        return false;
    size_t n = places->n, to = 0;
    for (size_t from = 0; from < places->n_axes * n; from++)
        if (from % n != least)
            places->at[to++] = places->at[from];
    memmove(places->worth + least, places->worth + least + 1, (n - least - 1) * sizeof *places->worth);
    places->n--;
    return true;
}

struct pe_value pe_golden_places_value(const struct pe_golden_places *places)
{
    struct pe_tensor list = {.dtype = PE_F64, .rank = 1, .shape = {places->n}, .data = places->at};
    if (places->n_axes > 1) {
        list.rank = 2;
        list.shape[0] = places->n_axes;
        list.shape[1] = places->n;
    }
    return (struct pe_value){.kind = PE_ARRAY, .array = list};
}
