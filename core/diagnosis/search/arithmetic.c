/* Who computed a table: the steps that give its numbers bit for bit.
 *
 * Every recipe computes the angle p·w in steps of its own, each rounded to nearest; the number is the cosine or the
 * sine of that angle. Numbers on which all recipes agree say nothing; of the others, each recipe gives some share.
 * Libraries differ in the last bit of pow, exp and cos, so a share below 1 is no proof against a recipe: `near` allows
 * each number one step of the dtype, and each pair's frequency one step of float32, whichever serves the pair best.
 * Chains of steps stay apart nevertheless, because an angle of 1000 has lost ten bits by then.
 * core/waves/recipes.c has the steps. */
#include "core/diagnosis/diagnosis.h"
#include "core/schemes/scalings/scaling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char of_chain[] =
    "The angles have the roundings of the chain {angles}; which library computed them does not "
    "show.";
static const char of_few[] = "Too few numbers depend on how they were computed.";
static const char of_none[] = "No one recipe alone gives these numbers.";

enum { NUMBERS_MAX = 1 << 16, LIKELY_MAX = 5, FEW = 64, FEW_OF_LADDER = 8, WORK_OF_ONE = 12 * 64 };

/* What is compared, and the pair of each column. */
struct table {
    const struct pe_diagnosis *d;
    const struct pe_model *m;
    double base, width; /* r: channels that are rotated, or dim */
    size_t n_columns;
    uint32_t *pair;  /* [n_columns] */
    double *scale;   /* [n_columns]: w_c / w°_c, a power of two; 0: the column does not count */
    uint64_t n_rows; /* compared, spread over all */
    size_t n_tensors;
    double factor; /* on cosines and sines */
};

/* ---- The table ---- */

static bool is_ladder(const struct table *t) { return t->d->evidence.kind->id == PE_OF_LADDER; }

static const struct pe_value *config_of(const struct table *t) { return pe_plan_config(t->m->plan); }

/* Does the scaling read how long the sequence is? */
static bool reads_length(const struct pe_model *m)
{
    const char *type = pe_config_word(pe_plan_config(m->plan), "scaling.type");
    return pe_scaling_depends_on_length(pe_scaling_find(type));
}

/* Do only signs, an exchange and angles of few bits lie between the plan's numbers and the tensor's? */
static bool is_plain(const struct pe_transforms *t)
{
    return !t->channels.order && !t->sinusoid && !t->inverted && !t->transposed && isnan(t->wrapped_from) &&
           t->scaled == 1 && t->n_axes == 0;
}

static bool has_arithmetic(const struct pe_diagnosis *d, const struct pe_candidate *c)
{
    enum pe_evidence_id id = d->evidence.kind->id;
    const char *scheme = c->model ? c->model->plan->scheme->info.name : "";
    bool is_sinusoid = id == PE_OF_ENCODING && pe_same(scheme, "sinusoidal");
    bool is_kind = id == PE_OF_TABLES || id == PE_OF_ANGLES || id == PE_OF_LADDER || is_sinusoid;
    return is_kind && !d->evidence.is_typed && c->model && pe_fits(c->all.verdict) && c->model->columns &&
           c->model->n_columns > 0 && c->model->plan->seq.n_axes == 1 && !c->model->plan->scheme->magnitude &&
           !reads_length(c->model) && is_plain(&c->edit.transforms) && !d->evidence.is_turned &&
           !d->evidence.is_channels_first;
}

static bool is_power_of_two(double x)
{
    const double nearly = 1e-9;
    return x > 0 && fabs(log2(x) - nearbyint(log2(x))) < nearly;
}

/* Columns of one frequency are one pair, and where frequencies rise another ladder begins. */
static void find_pairs(struct table *t)
{
    const double quarter = 1.5707963267948966;
    const struct pe_wave *columns = t->m->columns;
    double before = 0;
    uint32_t pair = 0, most = 0;
    for (size_t j = 0; j < t->n_columns; j++) {
        double w = fabs(columns[j].fh);
        pair = w == before ? pair : w < before ? pair + 1 : 0;
        most = pair > most ? pair : most;
        before = w;
        t->pair[j] = pair;
    }
    t->width = 2 * ((double)most + 1);
    for (size_t j = 0; j < t->n_columns; j++) {
        double scale = fabs(columns[j].fh) * quarter * pow(t->base, 2.0 * t->pair[j] / t->width);
        t->scale[j] = is_power_of_two(scale) ? exp2(nearbyint(log2(scale))) : 0;
    }
}

static bool open_table(struct pe_diagnosis *d, const struct pe_candidate *c, struct table *t, struct pe_failure *err)
{
    *t = (struct table){.d = d, .m = c->model, .n_columns = c->model->n_columns};
    t->base = pe_config_number(config_of(t), "base", 10000);
    t->factor = is_ladder(t) || d->evidence.kind->id == PE_OF_ANGLES ? 1 : c->model->columns[0].ah;
    t->n_tensors = d->evidence.n_tensors < 2 ? d->evidence.n_tensors : 2;
    uint64_t per_row = t->n_tensors * t->n_columns, rows = is_ladder(t) ? 1 : d->evidence.n_rows;
    t->n_rows = rows * per_row <= NUMBERS_MAX ? rows : NUMBERS_MAX / per_row;
    if (pe_diagnosis_admit(d, (double)t->n_columns * (sizeof *t->pair + sizeof *t->scale), err))
        return false;
    t->pair = malloc(t->n_columns * sizeof *t->pair);
    t->scale = malloc(t->n_columns * sizeof *t->scale);
    d->no_memory |= !t->pair || !t->scale;
    if (!t->pair || !t->scale)
        return false;
    find_pairs(t);
    return true;
}

static void close_table(struct table *t)
{
    free(t->pair);
    free(t->scale);
}

/* ---- Comparing ---- */

/* Number [row, j] of tensor i: which function of the angle it is, and its sign. */
static int quarter_of(const struct table *t, size_t i, size_t j, double *sign)
{
    const struct pe_transforms *changes = &t->m->transforms;
    enum pe_evidence_id id = t->d->evidence.kind->id;
    bool is_back = pe_config_number(config_of(t), "direction", 1) < 0;
    *sign = changes->negated ? -1 : 1;
    if (id == PE_OF_LADDER || id == PE_OF_ANGLES) {
        *sign = id == PE_OF_ANGLES && is_back ? -*sign : *sign;
        return PE_LINEAR;
    }
    if (id == PE_OF_ENCODING)
        return t->m->columns[j].quarter;
    bool is_sine = (pe_evidence_table(&t->d->evidence, i) == 1) != changes->sin_cos_swapped;
    *sign = is_sine && is_back ? -*sign : *sign;
    return !is_sine;
}

/* Frequencies of one column, each as it is and a step of float32 lower and higher; and how many numbers are near. */
struct column {
    double w[PE_N_KNOWN_RECIPES][3];
    uint32_t near[PE_N_KNOWN_RECIPES][3];
};

enum { AS_IT_IS = 1 }; /* of the three */

struct result {
    uint64_t n_numbers, n_informative;
    uint64_t n_equal[PE_N_KNOWN_RECIPES], n_near[PE_N_KNOWN_RECIPES];
    bool differs; /* exact from f64 */
};

static void open_columns(const struct table *t, struct column *columns)
{
    for (size_t j = 0; j < t->n_columns; j++)
        for (enum pe_recipe r = 0; r < PE_N_KNOWN_RECIPES; r++)
            for (int v = 0; v < 3; v++)
                columns[j].w[r][v] = pe_recipe_frequency(r, t->base, t->width, t->pair[j], v - AS_IT_IS);
}

static double predict(const struct table *t, enum pe_recipe r, double w, size_t j, double p, int quarter, double sign)
{
    uint32_t c = t->pair[j];
    double angle = is_ladder(t) ? pe_recipe_rung(r, w, c, t->scale[j]) : pe_recipe_angle(r, p, w, c, t->scale[j]);
    return pe_recipe_number(r, angle, quarter, sign, t->factor, t->d->evidence.dtype);
}

/* One number: found, at position p; exact: as exact angles give it, NaN: not known. */
static void compare_number(const struct table *t, struct column *column, size_t j, double p, int quarter, double sign,
                           double exact, double found, struct result *all)
{
    enum pe_dtype dtype = t->d->evidence.dtype;
    double x[PE_N_KNOWN_RECIPES];
    bool is_informative = false;
    for (enum pe_recipe r = PE_RECIPE_F64; r < PE_N_KNOWN_RECIPES; r++)
        x[r] = predict(t, r, column->w[r][AS_IT_IS], j, p, quarter, sign);
    x[PE_RECIPE_EXACT] = isnan(exact) ? x[PE_RECIPE_F64] : pe_round_to(dtype, sign * exact);
    for (enum pe_recipe r = 1; r < PE_N_KNOWN_RECIPES; r++)
        is_informative |= x[r] != x[0];
    all->n_numbers++;
    all->differs |= x[PE_RECIPE_EXACT] != x[PE_RECIPE_F64];
    if (!is_informative)
        return;
    all->n_informative++;
    for (enum pe_recipe r = 0; r < PE_N_KNOWN_RECIPES; r++) {
        all->n_equal[r] += x[r] == found;
        for (int v = 0; v < 3; v++) {
            bool is_same = v == AS_IT_IS || column->w[r][v] == column->w[r][AS_IT_IS];
            double y = is_same ? x[r] : predict(t, r, column->w[r][v], j, p, quarter, sign);
            column->near[r][v] += pe_steps_between(dtype, y, found) <= 1;
        }
    }
}

/* The numbers of exact angles of a row; without their sign where the tensor is negated. */
static bool fill_exact(const struct table *t, size_t i, uint64_t row, double *out)
{
    const struct pe_plan *plan = t->m->plan;
    enum pe_evidence_id id = t->d->evidence.kind->id;
    if (plan->arith != PE_ARITH_EXACT || is_ladder(t) || id == PE_OF_ANGLES)
        return false;
    i = id == PE_OF_TABLES ? pe_evidence_table(&t->d->evidence, i) : i;
    size_t output = id == PE_OF_TABLES && t->m->transforms.sin_cos_swapped ? 1 - i : i;
    pe_fill(plan, output, row * t->n_columns, t->n_columns, out);
    return true;
}

static void compare_row(const struct table *t, struct column *columns, size_t i, uint64_t row, double *room,
                        struct result *all)
{
    const struct pe_evidence *e = &t->d->evidence;
    double *found = room, *exact = room + t->n_columns, sign, unsigned_exact = t->m->transforms.negated ? -1 : 1;
    uint64_t place = pe_model_position(t->m, row);
    double p = is_ladder(t) ? 1 : pe_position_at(t->m->plan->seq.k, place);
    bool has_exact = fill_exact(t, i, place, exact);
    pe_evidence_read(e, i, row, 0, t->n_columns, found);
    for (size_t j = 0; j < t->n_columns; j++) {
        if (t->scale[j] == 0)
            continue;
        int quarter = quarter_of(t, i, j, &sign);
        double x = has_exact ? unsigned_exact * exact[j] / sign : (double)NAN;
        compare_number(t, &columns[j], j, p, quarter, sign, x, found[j], all);
    }
}

/* Each column takes the frequency that serves it best. */
static void add_near(const struct table *t, struct column *columns, struct result *all)
{
    for (size_t j = 0; j < t->n_columns; j++)
        for (enum pe_recipe r = 0; r < PE_N_KNOWN_RECIPES; r++) {
            const uint32_t *near = columns[j].near[r];
            uint32_t best = near[0] > near[1] ? near[0] : near[1];
            all->n_near[r] += best > near[2] ? best : near[2];
            memset(columns[j].near[r], 0, sizeof columns[j].near[r]);
        }
}

static bool compare(struct pe_diagnosis *d, const struct table *t, struct result *all, struct pe_failure *err)
{
    const struct pe_evidence *e = &d->evidence;
    size_t bytes = t->n_columns * (sizeof(struct column) + 2 * sizeof(double));
    if (pe_diagnosis_admit(d, (double)bytes, err))
        return false;
    struct column *columns = calloc(1, bytes);
    d->no_memory |= !columns;
    if (!columns)
        return false;
    double *room = (double *)(void *)(columns + t->n_columns);
    open_columns(t, columns);
    for (size_t i = 0; i < t->n_tensors; i++) {
        for (uint64_t k = 0; k < t->n_rows && !pe_is_cancelled(); k++) {
            uint64_t row = t->n_rows == e->n_rows ? k : k * e->n_rows / t->n_rows;
            if (!pe_evidence_is_padding(e, row))
                compare_row(t, columns, i, row, room, all);
        }
        add_near(t, columns, all);
    }
    d->work += (double)all->n_numbers * WORK_OF_ONE;
    free(columns);
    return !pe_was_cancelled() || !pe_cancelled(err);
}

/* ---- What they say ---- */

static double share(uint64_t n, const struct result *all)
{
    return all->n_informative ? (double)n / (double)all->n_informative : 0;
}

/* A recipe that is no other one here. */
static bool counts(const struct result *all, enum pe_recipe r) { return r != PE_RECIPE_EXACT || all->differs; }

/* The recipe that alone gives the numbers; PE_N_KNOWN_RECIPES: there is none. */
static enum pe_recipe named(const struct result *all)
{
    const double enough = 0.999;
    enum pe_recipe found = PE_N_KNOWN_RECIPES;
    for (enum pe_recipe r = 0; r < PE_N_KNOWN_RECIPES; r++)
        if (counts(all, r) && share(all->n_equal[r], all) >= enough) {
            if (found != PE_N_KNOWN_RECIPES)
                return PE_N_KNOWN_RECIPES;
            found = r;
        }
    return found;
}

/* The chain that the roundings of the angles are those of; NULL: they do not tell. */
static const char *chain_of(const struct result *all)
{
    const double enough = 0.999, too_near = 0.99;
    const char *found = NULL;
    for (enum pe_recipe r = 0; r < PE_N_KNOWN_RECIPES; r++)
        if (counts(all, r) && share(all->n_near[r], all) >= enough)
            found = found ? found : pe_recipes[r].chain;
    for (enum pe_recipe r = 0; found && r < PE_N_KNOWN_RECIPES; r++)
        if (counts(all, r) && !pe_same(pe_recipes[r].chain, found) && share(all->n_near[r], all) > too_near)
            return NULL;
    return found;
}

/* The recipes by near, then bits, then the table. */
static size_t sort_likely(const struct result *all, enum pe_recipe *order)
{
    size_t n = 0;
    for (enum pe_recipe r = 0; r < PE_N_KNOWN_RECIPES; r++) {
        size_t i = n++;
        if (!counts(all, r)) {
            n--;
            continue;
        }
        for (; i > 0; i--) {
            enum pe_recipe before = order[i - 1];
            bool is_better = all->n_near[r] > all->n_near[before] ||
                             (all->n_near[r] == all->n_near[before] && all->n_equal[r] > all->n_equal[before]);
            if (!is_better)
                break;
            order[i] = before;
        }
        order[i] = r;
    }
    return n;
}

static void put_arithmetic(const struct pe_diagnosis *d, const struct result *all, bool is_ladder_,
                           struct pe_node *root)
{
    enum pe_recipe order[PE_N_KNOWN_RECIPES], one = named(all);
    const char *chain = chain_of(all);
    bool are_few = all->n_informative < (is_ladder_ ? FEW_OF_LADDER : FEW);
    size_t n = sort_likely(all, order);
    if (are_few) {
        one = PE_N_KNOWN_RECIPES;
        chain = NULL;
    }
    struct pe_node *node = pe_put_object(root, "arithmetic");
    pe_put_string_or_null(node, "recipe", one < PE_N_KNOWN_RECIPES ? pe_recipes[one].name : NULL);
    pe_put_string_or_null(node, "angles", chain);
    pe_put_integer(node, "numbers", (int64_t)all->n_numbers);
    pe_put_integer(node, "informative", (int64_t)all->n_informative);
    struct pe_node *list = pe_put_list(node, "likely");
    for (size_t i = 0; i < n && i < LIKELY_MAX && all->n_informative; i++) {
        struct pe_node *item = pe_put_object(list, NULL);
        pe_put_string(item, "recipe", pe_recipes[order[i]].name);
        pe_put_real(item, "bits", share(all->n_equal[order[i]], all));
        pe_put_real(item, "near", share(all->n_near[order[i]], all));
    }
    const char *sentence = are_few                    ? of_few
                           : one < PE_N_KNOWN_RECIPES ? pe_recipes[one].who
                           : chain                    ? of_chain
                                                      : of_none;
    pe_put_detail(node, d->request->lang, sentence);
}

static const struct pe_member likely[] = {
    {.name = "recipe", .types = "string"},
    {.name = "bits", .types = "number", .summary = "share of the informative numbers that it gives bit for bit"},
    {.name = "near", .types = "number", .summary = "share that is within one step of the dtype"},
    {.name = NULL},
};

const struct pe_member pe_arithmetic_members[] = {
    {.name = "recipe",
     .types = "string|null",
     .summary = "the steps that alone give the numbers; null: several do, or none"},
    {.name = "angles", .types = "string|null", .summary = "the chain of steps whose roundings the angles have"},
    {.name = "numbers", .types = "integer", .summary = "numbers compared"},
    {.name = "informative", .types = "integer", .summary = "those on which not all recipes agree"},
    {.name = "likely", .types = "array", .items = "object", .members = likely, .n_max = LIKELY_MAX},
    {.name = "", .members = pe_detail_members},
    {.name = NULL},
};

double pe_arithmetic_work(const struct pe_diagnosis *d)
{
    enum pe_evidence_id id = d->evidence.kind->id;
    bool is_kind = id == PE_OF_TABLES || id == PE_OF_ANGLES || id == PE_OF_LADDER || id == PE_OF_ENCODING;
    double n = (double)d->evidence.n_tensors * (double)d->evidence.n_rows * (double)d->evidence.row_len;
    return is_kind && !d->evidence.is_typed ? fmin(n, NUMBERS_MAX) * WORK_OF_ONE : 0;
}

enum pe_status pe_answer_arithmetic(struct pe_diagnosis *d, const struct pe_answer *a, struct pe_node *root,
                                    struct pe_failure *err)
{
    struct table t;
    struct result all = {0};
    if (a->n == 0 || pe_is_printed(&d->evidence) || !has_arithmetic(d, &a->candidates[0])) {
        pe_put_null(root, "arithmetic");
        return PE_OK;
    }
    err->status = PE_OK;
    bool is_done = open_table(d, &a->candidates[0], &t, err) && compare(d, &t, &all, err);
    if (is_done)
        put_arithmetic(d, &all, is_ladder(&t), root);
    close_table(&t);
    return is_done ? PE_OK : d->no_memory ? pe_no_memory(err) : err->status;
}
