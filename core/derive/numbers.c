/* Which numbers a request means: by their index in the tensor, or by position, pair, channel, head, query and key.
 *
 * A request that has no sequence of its own gets the shortest that has its positions: len is the largest + 1 where all
 * are whole numbers from 0 on, so that the index is the position; else they are listed. Which fields that needs follows
 * from the axes of the tensor, so the configuration is planned twice, first with one position. */
#include "core/attention/attention.h"
#include "core/derive/derive.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct pe_param rows[] = {
    PE_P_VALUE(pe_derive_fields, tensor, "tensor",
               "name of the output; default the first; scores and probs are those of attention"),
    PE_P_REALS(pe_derive_fields, index, 0, 0x1p53, "index",
               "index of the number on each axis of the tensor, [rank]; several: [numbers][rank], at most 16",
               .group = PE_G_ANSWER),
    PE_P_REALS(pe_derive_fields, position, -PE_POSITION_MAX, PE_POSITION_MAX, "position",
               "position of the number; of several numbers a list, as the five below; on several axes "
               "[numbers][axes]",
               .group = PE_G_ANSWER),
    PE_P_REALS(pe_derive_fields, channel, 0, PE_DIM_MAX, "channel", "channel of the encoding, or of the head",
               .group = PE_G_ANSWER),
    PE_P_REALS(pe_derive_fields, pair, 0, PE_DIM_MAX, "pair", "pair of channels", .group = PE_G_ANSWER),
    PE_P_REALS(pe_derive_fields, head, 0, PE_HEADS_MAX, "head", "attention head", .group = PE_G_ANSWER),
    PE_P_REALS(pe_derive_fields, query, -PE_POSITION_MAX, PE_POSITION_MAX, "query", "position of the query",
               .group = PE_G_ANSWER),
    PE_P_REALS(pe_derive_fields, key, -PE_POSITION_MAX, PE_POSITION_MAX, "key", "position of the key",
               .group = PE_G_ANSWER),
    {.name = "recipe",
     .type = PE_T_WORD,
     .offset = PE_OFFSET(pe_derive_fields, recipe, int),
     .fallback = PE_UNSET_WORD,
     .words = pe_recipe_words,
     .about = {"recipe of rounding",
               "how each step is rounded in `float32`; default f32_torch, or that of the configuration's arith"},
     .group = PE_G_NUMBERS},
    PE_P_END,
};

const struct pe_param *pe_derive_params(void) { return rows; }

/* ---- Reading ---- */

enum { PLACES = 6 };

/* The fields that say a place, in the order of their rows. */
static const struct pe_reals *place_of(const struct pe_derive *d, size_t i)
{
    return (const struct pe_reals *)(const void *)((const char *)&d->fields + rows[2 + i].offset);
}

static double value_at(const struct pe_reals *list, size_t k) { return pe_real_at(list, list->n > 1 ? k : 0); }

/* How many numbers a list has, or, with a coordinate for each axis, how many places. */
static size_t length_of(const struct pe_reals *list)
{
    return list->n && list->array.rank == 2 ? (size_t)list->array.shape[0] : (size_t)list->n;
}

/* Of a position with a coordinate for each axis: how many axes; 0: it is one number. */
static size_t n_coordinates(const struct pe_reals *position)
{
    return position->n && position->array.rank == 2 ? (size_t)position->array.shape[1] : 0;
}

/* A number in place of a list is a list of one. */
static enum pe_status read_fields(struct pe_derive *d, struct pe_failure *err)
{
    const struct pe_derive_request *request = d->request;
    struct pe_field fields[PE_FIELDS_MAX];
    bool taken[PE_FIELDS_MAX] = {false};
    if (request->n_fields > PE_FIELDS_MAX)
        return pe_fail(err, "", "the request has %zu fields; allowed: at most %d", request->n_fields, PE_FIELDS_MAX);
    for (size_t i = 0; i < request->n_fields; i++) {
        const struct pe_param *row = pe_param_find(rows, request->fields[i].name);
        fields[i] = request->fields[i];
        d->single[i] = pe_value_number(&fields[i].value);
        if (row && row->type == PE_T_REALS && !isnan(d->single[i]))
            fields[i].value = pe_list_of(&d->single[i], 1);
    }
    if (pe_params_read(rows, &d->fields, fields, request->n_fields, taken, "", err))
        return err->status;
    for (size_t i = 0; i < request->n_fields; i++)
        if (!taken[i])
            d->rest[d->n_rest++] = request->fields[i];
    d->n_own = d->n_rest;
    return PE_OK;
}

/* How many numbers the fields mean; lists of several have one length. */
static enum pe_status count(struct pe_derive *d, struct pe_failure *err)
{
    const struct pe_reals *index = &d->fields.index;
    const char *longest = "index";
    d->n_numbers = index->n && index->array.rank == 2 ? (size_t)index->array.shape[0] : 1;
    for (size_t i = 0; i < PLACES; i++) {
        const struct pe_reals *list = place_of(d, i);
        size_t n = length_of(list);
        char pointer[PE_POINTER_MAX];
        pe_pointer_join(pointer, sizeof pointer, "", rows[2 + i].name);
        if (list->n && index->n)
            return pe_fail(err, pointer, "%s and index exclude each other; give one", rows[2 + i].name);
        if (list->n && list->array.rank > (list == &d->fields.position ? 2 : 1))
            return pe_fail(err, pointer, "%s is a number, or a list with one for each number", rows[2 + i].name);
        if (n_coordinates(list) > PE_AXES_MAX)
            return pe_fail(err, pointer, "%s has %zu coordinates; allowed: at most %d axes", rows[2 + i].name,
                           n_coordinates(list), PE_AXES_MAX);
        if (n > 1 && d->n_numbers > 1 && n != d->n_numbers)
            return pe_fail(err, pointer, "%s has %zu numbers, %s has %zu; give lists of one length", rows[2 + i].name,
                           n, longest, d->n_numbers);
        if (n > 1) {
            d->n_numbers = n;
            longest = rows[2 + i].name;
        }
    }
    if (d->n_numbers <= PE_DERIVED_NUMBERS_MAX && (!index->n || index->array.rank <= 2))
        return PE_OK;
    return pe_fail_at(err, "", longest, "the request asks for %zu numbers; allowed: at most %d", d->n_numbers,
                      PE_DERIVED_NUMBERS_MAX);
}

static enum pe_status read_tensor(const struct pe_derive *d, const char **name, struct pe_failure *err)
{
    const struct pe_value *v = d->fields.tensor;
    if (v && v->kind == PE_LIST && v->list.n == 1)
        v = &v->list.items[0];
    *name = v && v->kind == PE_STRING ? v->string : NULL;
    return !v || *name ? PE_OK : pe_fail(err, "/tensor", "tensor is not the name of one output");
}

/* ---- Planning ---- */

static enum pe_status plan(struct pe_derive *d, size_t n_fields, const char *tensor, struct pe_failure *err)
{
    struct pe_request request = {.operation = d->is_map ? PE_ATTEND : PE_ENCODE,
                                 .fields = d->rest,
                                 .n_fields = n_fields,
                                 .dtype = d->request->dtype,
                                 .outputs = &tensor,
                                 .n_outputs = tensor != NULL,
                                 .caller_fields = d->request->caller_fields,
                                 .admit = d->request->admit,
                                 .caller = d->request->caller};
    pe_plan_free(d->plan);
    d->plan = NULL;
    enum pe_status status = pe_plan_new(&request, &d->plan, err);
    if (!status && d->is_map)
        status = pe_derive_open_map(d, &request, err);
    if (status && strncmp(err->pointer, "/outputs", 8) == 0)
        strcpy(err->pointer, "/tensor");
    return status;
}

static bool has_sequence(const struct pe_derive *d)
{
    for (size_t i = 0; i < d->n_own; i++) {
        const char *name = d->rest[i].name;
        if (pe_param_find(pe_sequence_params(), name) && !pe_param_find(pe_sequence_rules(), name))
            return true;
    }
    return false;
}

/* ---- Axes ---- */

/* The name of an axis of the planned output; "" where it is numbered and no more. */
static const char *axis_name(const struct pe_plan *plan, unsigned i)
{
    static const char *const names[] = {"position", "query", "key",  "head",     "batch",
                                        "pair",     "dim",   "axis", "distance", "component"};
    const struct pe_source *from = &plan->sources[0];
    const char *name;
    if (plan->attention) {
        unsigned behind = plan->outputs[0].rank - i;
        return behind == 1                                 ? "key"
               : behind == 2                               ? "query"
               : behind == 3 && plan->attention->has_heads ? "head"
                                                           : "batch";
    }
    if (from->is_by_batch && i == 0)
        return "batch";
    i -= from->is_by_batch;
    if (from->transposed) /* channels first, then the axes of the grid */
        return i ? "position" : "dim";
    size_t n = pe_output_axis(&plan->scheme->info.outputs[from->id], i, &name);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strlen(names[k]) == n && memcmp(names[k], name, n) == 0)
            return names[k];
    return "";
}

static bool has_axis(const struct pe_plan *plan, const char *name)
{
    for (unsigned i = 0; i < plan->outputs[0].rank; i++)
        if (pe_same(axis_name(plan, i), name))
            return true;
    return false;
}

/* ---- The sequence ---- */

/* What is asked for on an axis of positions: those given, or the index. False: neither. */
static bool asked_on(const struct pe_derive *d, const struct pe_reals *given, const char *axis, double *out)
{
    const struct pe_reals *index = &d->fields.index;
    for (size_t k = 0; k < d->n_numbers && given->n; k++)
        out[k] = value_at(given, k);
    if (given->n)
        return true;
    for (unsigned i = 0; i < d->plan->outputs[0].rank; i++)
        if (index->n && pe_same(axis_name(d->plan, i), axis)) {
            uint64_t rank = index->array.rank == 2 ? index->array.shape[1] : index->n;
            for (size_t k = 0; k < d->n_numbers; k++)
                out[k] = i < rank ? pe_real_at(index, k * rank + i) : 0;
            return true;
        }
    return false;
}

static void add_sequence(struct pe_derive *d, const char *len, const char *positions, const double *asked)
{
    double most = 0;
    bool is_run = true;
    for (size_t k = 0; k < d->n_numbers; k++) {
        most = fmax(most, asked[k]);
        is_run &= asked[k] >= 0 && asked[k] == floor(asked[k]);
    }
    d->rest[d->n_rest++] = is_run ? (struct pe_field){len, pe_integer((int64_t)most + 1)}
                                  : (struct pe_field){positions, pe_list_of(asked, d->n_numbers)};
}

/* Positions with a coordinate for each axis, as a list of them is written: [axes, numbers]. */
static void add_coordinates(struct pe_derive *d)
{
    const struct pe_reals *given = &d->fields.position;
    size_t n_axes = n_coordinates(given), n = length_of(given);
    for (size_t a = 0; a < n_axes; a++)
        for (size_t k = 0; k < n; k++)
            d->positions[a * n + k] = pe_real_at(given, k * n_axes + a);
    struct pe_value list = pe_list_of(d->positions, n_axes * n);
    list.array.rank = 2;
    list.array.shape[0] = n_axes;
    list.array.shape[1] = n;
    d->rest[d->n_rest++] = (struct pe_field){"positions", list};
}

static enum pe_status choose_sequence(struct pe_derive *d, struct pe_failure *err)
{
    double *of_query = d->positions, *of_key = d->positions + PE_DERIVED_NUMBERS_MAX;
    d->n_rest = d->n_own;
    if (!d->plan->scheme->is_pairwise) {
        if (n_coordinates(&d->fields.position))
            add_coordinates(d);
        else if (asked_on(d, &d->fields.position, "position", of_query))
            add_sequence(d, "len", "positions", of_query);
        else if (has_axis(d->plan, "position"))
            return pe_fail(err, "/position", "which number? give position, or index");
        else
            d->rest[d->n_rest++] = (struct pe_field){"len", pe_integer(1)};
        return PE_OK;
    }
    bool has_query = asked_on(d, &d->fields.query, "query", of_query),
         has_key = asked_on(d, &d->fields.key, "key", of_key);
    if (has_axis(d->plan, "distance") && !(has_query && has_key))
        return pe_fail(err, has_query ? "/key" : "/query", "which number? give query and key, or a sequence and index");
    if (has_axis(d->plan, "query") && !(has_query && has_key))
        return pe_fail(err, has_query ? "/key" : "/query", "which number? give query and key, or index");
    if (!has_query) {
        d->rest[d->n_rest++] = (struct pe_field){"len", pe_integer(1)};
        return PE_OK;
    }
    bool is_run = true;
    double most = 0;
    for (size_t k = 0; k < d->n_numbers; k++) {
        is_run &=
            of_query[k] >= 0 && of_query[k] == floor(of_query[k]) && of_key[k] >= 0 && of_key[k] == floor(of_key[k]);
        most = fmax(most, fmax(of_query[k], of_key[k]));
    }
    if (is_run)
        d->rest[d->n_rest++] = (struct pe_field){"len", pe_integer((int64_t)most + 1)};
    else {
        d->rest[d->n_rest++] = (struct pe_field){"q_positions", pe_list_of(of_query, d->n_numbers)};
        d->rest[d->n_rest++] = (struct pe_field){"k_positions", pe_list_of(of_key, d->n_numbers)};
    }
    return PE_OK;
}

/* ---- One number ---- */

static enum pe_status fail_place(const char *field, size_t k, const struct pe_reals *list, double found,
                                 const struct pe_plan *plan, uint64_t n, struct pe_failure *err)
{
    char pointer[PE_POINTER_MAX];
    int used = snprintf(pointer, sizeof pointer, "/%s", field);
    if (list->n > 1)
        snprintf(pointer + used, sizeof pointer - (size_t)used, "/%zu", k);
    return pe_fail(err, pointer, "%s %s; the tensor %s has %llu: 0 to %llu", field, pe_shown(found).text,
                   plan->outputs[0].name, (unsigned long long)n, (unsigned long long)n - 1);
}

/* Where the position of number i is in a sequence. */
static enum pe_status find_position(const struct pe_positions *axes, unsigned n_axes, const struct pe_reals *list,
                                    size_t i, const char *field, uint64_t *row, struct pe_failure *err)
{
    const uint64_t most = UINT64_C(1) << 20; /* a list is searched */
    size_t n_given = n_coordinates(list), each = n_given ? n_given : 1, first = length_of(list) > 1 ? i * each : 0;
    uint64_t n = axes[0].n, k = 0;
    double p = pe_real_at(list, first);
    if (n_given && n_given != n_axes)
        return pe_fail_at(err, "", field, "%s has %zu coordinates; the sequence has %u axes", field, n_given, n_axes);
    bool is_run = n_axes == 1 && !axes[0].list && !axes[0].size;
    if (is_run) {
        double place = p - axes[0].start;
        *row = (uint64_t)fmax(place, 0);
        if (place == floor(place) && place >= 0 && place < (double)n)
            return PE_OK;
    }
    for (; !is_run && k < n && k < most; k++) {
        unsigned a = 0;
        while (a < n_axes && pe_position_at(&axes[a], k) == pe_real_at(list, first + (n_given ? a : 0)))
            a++;
        *row = k;
        if (a == n_axes)
            return PE_OK;
    }
    return pe_fail_at(err, "", field,
                      n_axes > 1 ? "%s %s is none of the %llu that the request has; on several axes give index, or a "
                                   "coordinate for each axis: [[1,2]]"
                                 : "%s %s is none of the %llu that the request has",
                      field, pe_shown(p).text, (unsigned long long)n);
}

/* The pair of a channel of the head. */
static enum pe_status pair_of_channel(const struct pe_plan *plan, double channel, uint64_t *pair,
                                      struct pe_failure *err)
{
    struct pe_rotation r;
    if (!plan->scheme->rotate)
        return pe_fail(err, "/channel", "%s has pairs; give pair", plan->outputs[0].name);
    plan->scheme->rotate(plan, &r, NULL);
    for (size_t b = 0; b < r.n_blocks; b++)
        for (size_t i = 0; i < r.blocks[b].n_pairs; i++) {
            double first = (double)(r.offset + r.blocks[b].first + i * r.blocks[b].step);
            *pair = r.blocks[b].pair0 + i;
            if (channel == first || channel == first + (double)r.blocks[b].partner)
                return PE_OK;
        }
    if (channel < (double)r.head_dim)
        return pe_fail(err, "/channel", "channel %s is not rotated; rotated are %zu channels from %zu on",
                       pe_shown(channel).text, 2 * r.n_pairs, r.offset);
    return pe_fail(err, "/channel", "channel %s; a head has %zu: 0 to %zu", pe_shown(channel).text, r.head_dim,
                   r.head_dim - 1);
}

/* The first column that has the wave of a pair: its sine, in a sinusoidal encoding. */
static enum pe_status column_of_pair(const struct pe_plan *plan, double pair, uint64_t *column, struct pe_failure *err)
{
    uint64_t n = plan->outputs[0].shape[plan->outputs[0].rank - 1], k = 0;
    struct pe_wave *waves = malloc((size_t)n * sizeof *waves);
    if (!waves)
        return pe_no_memory(err);
    struct pe_rotation r;
    bool is_rotary = plan->scheme->rotate != NULL,
         has_waves = plan->scheme->columns && plan->scheme->columns(plan, plan->sources[0].id, waves);
    double seen = -1;
    if (is_rotary) {
        plan->scheme->rotate(plan, &r, NULL);
        for (size_t b = 0; b < r.n_blocks; b++)
            if (pair >= (double)r.blocks[b].pair0 && pair < (double)(r.blocks[b].pair0 + r.blocks[b].n_pairs)) {
                *column = r.blocks[b].first + ((size_t)pair - r.blocks[b].pair0) * r.blocks[b].step;
                seen = pair;
            }
    }
    for (; !is_rotary && has_waves && k < n && seen < pair; k++)
        if (waves[k].quarter == 0) {
            seen++;
            *column = k;
        }
    free(waves);
    if (seen == pair)
        return PE_OK;
    return has_waves ? pe_fail(err, "/pair", "pair %s; %s has %llu channels", pe_shown(pair).text,
                               plan->outputs[0].name, (unsigned long long)n)
                     : pe_fail(err, "/pair", "pair is not used: %s has channels", plan->outputs[0].name);
}

static enum pe_status index_by_axis(const struct pe_derive *d, size_t k, unsigned i, uint64_t *index,
                                    struct pe_failure *err)
{
    const struct pe_plan *plan = d->plan;
    const struct pe_derive_fields *f = &d->fields;
    const struct pe_sequence *seq = &plan->seq;
    const char *axis = axis_name(plan, i);
    uint64_t n = plan->outputs[0].shape[i];
    const struct pe_reals *list = NULL;
    *index = 0;
    if (pe_same(axis, "position") && f->position.n) {
        enum pe_status status = find_position(seq->k, seq->n_axes, &f->position, k, "position", index, err);
        *index += plan->sources[0].n_zeros;
        return status;
    }
    bool is_query = pe_same(axis, "query") && f->query.n, is_key = pe_same(axis, "key") && f->key.n;
    if (is_query || is_key) {
        const struct pe_positions *axes = is_query ? seq->q : seq->k;
        enum pe_status status = find_position(axes, seq->n_axes, is_query ? &f->query : &f->key, k, axis, index, err);
        *index += n > axes->n ? n - axes->n : 0; /* class tokens are before the positions of a map */
        return status;
    }
    if (pe_same(axis, "distance") && f->query.n && f->key.n) {
        double q = value_at(&f->query, k), key = value_at(&f->key, k);
        int64_t row = plan->scheme->table_row(plan, (int64_t)(key - q));
        *index = (uint64_t)row;
        return key - q == floor(key - q) && row >= 0 && (uint64_t)row < n
                   ? PE_OK
                   : pe_fail(err, "/query", "query %s and key %s: the tensor %s has no row of their distance",
                             pe_shown(q).text, pe_shown(key).text, plan->outputs[0].name);
    }
    if (pe_same(axis, "pair") && f->channel.n && !f->pair.n)
        return pair_of_channel(plan, value_at(&f->channel, k), index, err);
    if (pe_same(axis, "dim") && f->pair.n && !f->channel.n)
        return column_of_pair(plan, value_at(&f->pair, k), index, err);
    const char *field = pe_same(axis, "dim") ? "channel" : axis;
    for (size_t r = 0; r < PLACES; r++)
        list = pe_same(rows[2 + r].name, field) ? place_of(d, r) : list;
    if (list && list->n) {
        double found = value_at(list, k);
        *index = (uint64_t)found;
        return found == floor(found) && found < (double)n ? PE_OK : fail_place(field, k, list, found, plan, n, err);
    }
    if (n == 1 || pe_same(axis, "component"))
        return PE_OK;
    return pe_fail_at(err, "", list ? field : "index", "which number? the tensor %s has %llu on the axis %s; give %s",
                      plan->outputs[0].name, (unsigned long long)n, axis, list ? field : "index");
}

static enum pe_status index_as_given(const struct pe_derive *d, size_t k, uint64_t *index, struct pe_failure *err)
{
    const struct pe_reals *list = &d->fields.index;
    const struct pe_output *output = &d->plan->outputs[0];
    uint64_t rank = list->array.rank == 2 ? list->array.shape[1] : list->n;
    if (rank != output->rank)
        return pe_fail(err, "/index", "index has %llu numbers; the tensor %s has %u axes", (unsigned long long)rank,
                       output->name, output->rank);
    for (unsigned i = 0; i < output->rank; i++) {
        char pointer[PE_POINTER_MAX];
        double found = pe_real_at(list, k * rank + i);
        index[i] = (uint64_t)found;
        if (found == floor(found) && found < (double)output->shape[i])
            continue;
        if (list->array.rank == 2)
            snprintf(pointer, sizeof pointer, "/index/%zu/%u", k, i);
        else
            snprintf(pointer, sizeof pointer, "/index/%u", i);
        return pe_fail(err, pointer, "index %s; the tensor %s has %llu on axis %u: 0 to %llu", pe_shown(found).text,
                       output->name, (unsigned long long)output->shape[i], i, (unsigned long long)output->shape[i] - 1);
    }
    return PE_OK;
}

/* A field that this tensor has no axis for. */
static enum pe_status check_unused(const struct pe_derive *d, struct pe_failure *err)
{
    for (size_t i = 0; i < PLACES; i++) {
        const char *name = rows[2 + i].name;
        bool is_of_pair = pe_same(name, "pair") || pe_same(name, "channel");
        bool is_end = (pe_same(name, "query") || pe_same(name, "key")) && d->plan->scheme->table_row;
        bool is_used = (is_of_pair && (has_axis(d->plan, "pair") || has_axis(d->plan, "dim"))) ||
                       (is_end && has_axis(d->plan, "distance")) || has_axis(d->plan, name);
        if (place_of(d, i)->n && !is_used)
            return pe_fail_at(err, "", name, "%s is not used: the tensor %s has no such axis", name,
                              d->plan->outputs[0].name);
    }
    return PE_OK;
}

/* Each axis of a grid has the number of the row, which becomes its index there. */
static void spread_row(const struct pe_output *output, uint64_t *index)
{
    uint64_t row = index[output->rank - 1];
    for (unsigned i = output->rank - 1; i > 0; i--) {
        index[i] = row % output->shape[i];
        row /= output->shape[i];
    }
}

static enum pe_status find_number(struct pe_derive *d, size_t k, struct pe_failure *err)
{
    struct pe_number_place *place = &d->numbers[k];
    const struct pe_output *output = &d->plan->outputs[0];
    enum pe_status status = PE_OK;
    bool is_behind = !has_axis(d->plan, "position") && !has_axis(d->plan, "query");
    if (d->fields.index.n)
        status = index_as_given(d, k, place->at.index, err);
    for (unsigned i = 0; i < output->rank && !d->fields.index.n && !status; i++)
        status = index_by_axis(d, k, i, &place->at.index[i], err);
    if (d->plan->sources[0].transposed && !d->fields.index.n)
        spread_row(output, place->at.index);
    for (unsigned i = 0; i < output->rank && !status; i++) {
        const char *axis = axis_name(d->plan, i);
        uint64_t index = place->at.index[i], n = output->shape[i];
        place->element = place->element * n + index;
        if (pe_same(axis, "position") || pe_same(axis, "query")) {
            place->at.row = place->at.row * n + index; /* several axes of positions: those of a grid */
            is_behind = !d->plan->sources[0].transposed;
        } else if (is_behind || pe_same(axis, "dim"))
            place->at.col = place->at.col * n + index;
    }
    return status;
}

/* The vector is the head, as in /rotate: where its width is no other's, it is the vector's. */
static enum pe_status fix_head(struct pe_derive *d, const char *tensor, struct pe_failure *err)
{
    bool is_stated = false;
    for (size_t i = 0; i < d->n_own; i++)
        is_stated |= pe_is_among("head_dim|rotary_dim|preset|hf_config|gguf|said", d->rest[i].name);
    if (!is_stated) {
        d->rest[d->n_own++] = (struct pe_field){"head_dim", pe_integer((int64_t)d->n_vector)};
        d->rest[d->n_own] = (struct pe_field){"len", pe_integer(1)};
        d->n_rest = d->n_own + 1;
        if (plan(d, d->n_rest, tensor, err))
            return err->status;
    }
    return pe_derive_check_vector(d, err);
}

enum pe_status pe_derive_find(struct pe_derive *d, struct pe_failure *err)
{
    const char *tensor;
    if (read_fields(d, err) || count(d, err) || read_tensor(d, &tensor, err))
        return err->status;
    d->is_map = tensor && (pe_same(tensor, "scores") || pe_same(tensor, "probs"));
    bool is_complete = d->is_map || has_sequence(d); /* q and k, x or tokens are the sequence of a map */
    if (pe_derive_take_vector(d, &tensor, err))
        return err->status;
    if (d->side && is_complete)
        return pe_fail(err, "/position", "a vector is rotated at one position; give position, and no other sequence");
    if (!is_complete)
        d->rest[d->n_rest++] = (struct pe_field){"len", pe_integer(1)};
    if (plan(d, d->n_rest, tensor, err))
        return err->status;
    tensor = d->plan->outputs[0].name;
    if (!d->is_map && !d->plan->scheme->derive)
        return pe_fail(err, "/scheme", "/derive does not have the steps of %s yet", d->plan->scheme->info.name);
    if (d->side && fix_head(d, tensor, err))
        return err->status;
    if (check_unused(d, err) || (!is_complete && (choose_sequence(d, err) || plan(d, d->n_rest, tensor, err))))
        return err->status;
    for (size_t k = 0; k < d->n_numbers; k++)
        if (find_number(d, k, err))
            return err->status;
    for (size_t k = 0; d->side && k < d->n_numbers; k++)
        pe_derive_choose_channel(d, k, &d->numbers[k]);
    return PE_OK;
}
