/* q_out and k_out: both channels of a pair that a vector's rotation mixes,
 *
 *     y1 = x1·cos θ − x2·sin θ,   y2 = x2·cos θ + x1·sin θ
 *
 * of one vector, the channels of one head, that the request types in. The cosine and the sine are derived as numbers of
 * the tables, and the number itself is that of /rotate, whose float code may round its last bit in another way. */
#include "core/derive/derive.h"

#include <string.h>

/* ---- The request ---- */

enum pe_status pe_derive_take_vector(struct pe_derive *d, const char **tensor, struct pe_failure *err)
{
    bool is_query = *tensor && pe_same(*tensor, "q_out"), is_key = *tensor && pe_same(*tensor, "k_out");
    if (!is_query && !is_key)
        return PE_OK;
    size_t n = 0;
    d->side = is_query ? "q" : "k";
    for (size_t i = 0; i < d->n_rest; i++) { /* without the vector and without the form of a table */
        if (pe_same(d->rest[i].name, d->side))
            d->vector = d->rest[i].value;
        else if (!pe_same(d->rest[i].name, "form"))
            d->rest[n++] = d->rest[i];
    }
    d->n_rest = d->n_own = n;
    uint64_t count = 0;
    if (d->vector.kind == PE_ARRAY && pe_shape_count(d->vector.array.shape, d->vector.array.rank, &count) &&
        count >= 2 && count <= PE_HEAD_DIM_MAX) {
        *tensor = "cos";
        d->n_vector = (size_t)count;
        return PE_OK;
    }
    return pe_fail_at(err, "", d->side, "%s is %s rotated; give %s, the channels of one head at one position", *tensor,
                      d->side, d->side);
}

enum pe_status pe_derive_check_vector(const struct pe_derive *d, struct pe_failure *err)
{
    struct pe_rotation r;
    if (!d->plan->scheme->rotate)
        return pe_fail(err, "/tensor", "%s rotates nothing", d->plan->scheme->info.name);
    d->plan->scheme->rotate(d->plan, &r, NULL);
    if (r.is_tiled)
        return pe_fail(err, "/layout", "layout vjepa2 is no rotation of pairs and is not derived");
    if (r.head_dim == d->n_vector)
        return PE_OK;
    return pe_fail_at(err, "", d->side, "%s has %zu channels; needed: head_dim, %zu", d->side, d->n_vector, r.head_dim);
}

/* ---- The pair ---- */

struct both {
    size_t from[2], to[2]; /* channels of the head, read and written */
};

static struct both channels_of(const struct pe_plan *plan, uint64_t pair)
{
    struct pe_rotation r;
    struct both both = {{0, 0}, {0, 0}};
    plan->scheme->rotate(plan, &r, NULL);
    for (size_t b = 0; b < r.n_blocks; b++) {
        const struct pe_rotation_block *block = &r.blocks[b];
        if (pair < block->pair0 || pair >= block->pair0 + block->n_pairs)
            continue;
        both.from[0] = r.offset + block->first + (size_t)(pair - block->pair0) * block->step;
        both.from[1] = both.from[0] + block->partner;
    }
    both.to[0] = r.to_half ? r.offset + (size_t)pair : both.from[0];
    both.to[1] = r.to_half ? both.to[0] + r.n_pairs : both.from[1];
    return both;
}

void pe_derive_choose_channel(const struct pe_derive *d, size_t k, struct pe_number_place *place)
{
    struct both both = channels_of(d->plan, place->at.index[1]);
    const struct pe_reals *channel = &d->fields.channel;
    double asked = channel->n ? pe_real_at(channel, channel->n > 1 ? k : 0) : (double)both.from[0];
    place->is_second = asked == (double)both.from[1];
    place->element = both.to[place->is_second];
}

/* ---- The number ---- */

enum pe_status pe_derive_rotated_number(const struct pe_derive *d, const struct pe_number_place *place, double *x,
                                        enum pe_dtype *dtype, void *bits, struct pe_failure *err)
{
    struct pe_field fields[PE_FIELDS_MAX + 4];
    double p = pe_position_at(d->plan->seq.k, place->at.row);
    struct pe_value vector = d->vector;
    struct pe_plan *plan;
    vector.array.rank = 4; /* [batch, heads, n, head_dim] */
    vector.array.shape[0] = vector.array.shape[1] = vector.array.shape[2] = 1;
    vector.array.shape[3] = d->n_vector;
    memcpy(fields, d->rest, d->n_own * sizeof *fields);
    fields[d->n_own] = (struct pe_field){d->side, vector};
    fields[d->n_own + 1] = (struct pe_field){"positions", pe_list_of(&p, 1)};
    struct pe_request request = {.operation = PE_ROTATE,
                                 .fields = fields,
                                 .n_fields = d->n_own + 2,
                                 .dtype = d->request->dtype,
                                 .caller_fields = d->request->caller_fields,
                                 .admit = d->request->admit,
                                 .caller = d->request->caller};
    if (pe_plan_new(&request, &plan, err))
        return err->status;
    pe_fill(plan, 0, place->element, 1, bits);
    *dtype = plan->outputs[0].dtype;
    *x = pe_element(*dtype, bits, 0);
    pe_plan_free(plan);
    return PE_OK;
}

/* ---- Its steps ---- */

static struct pe_dd product(const struct pe_derivation *d, struct pe_dd a, struct pe_dd b)
{
    return pe_derived_round(d, PE_F32, dd_mul(a, b));
}

static void state(struct pe_derivation *d, bool is_second, struct pe_dd x1, struct pe_dd x2, struct pe_dd cosine,
                  struct pe_dd sine)
{
    if (is_second)
        pe_derived(d, "y2", pe_derived_round(d, PE_F32, dd_add(product(d, x2, cosine), product(d, x1, sine))),
                   "x2·cos θ + x1·sin θ");
    else
        pe_derived(d, "y1", pe_derived_round(d, PE_F32, dd_sub(product(d, x1, cosine), product(d, x2, sine))),
                   "x1·cos θ − x2·sin θ");
}

enum pe_status pe_derive_rotated(const struct pe_derive *d, const struct pe_number_place *place,
                                 struct pe_derivation *steps, struct pe_failure *err)
{
    const struct pe_plan *plan = d->plan;
    const struct pe_scheme *scheme = plan->scheme;
    struct pe_derivation of_sine = {.recipe = steps->recipe, .given = steps->given, .n_given = steps->n_given};
    size_t id = plan->sources[0].id, id_of_sine = 0;
    struct both both = channels_of(plan, place->at.index[1]);
    while (!pe_same(scheme->info.outputs[id_of_sine].name, "sin"))
        id_of_sine++;
    if (scheme->derive(plan, id, &place->at, steps, err) || scheme->derive(plan, id_of_sine, &place->at, &of_sine, err))
        return err->status;
    struct pe_dd cosine = steps->at[steps->n - 1].value, sine = of_sine.at[of_sine.n - 1].value;
    sine = pe_derived(steps, of_sine.at[of_sine.n - 1].symbol, sine, "%s", of_sine.at[of_sine.n - 1].text);
    if (scheme->magnitude) {
        double factors[PE_HEAD_DIM_MAX / 2];
        size_t input = 0;
        while (scheme->info.inputs[input].name[0] != d->side[0])
            input++;
        scheme->magnitude(plan, input, plan->seq.k, place->at.row, 1, factors);
        struct pe_dd s = pe_derived(steps, "s", pe_derived_round(steps, PE_F32, dd(factors[place->at.index[1]])),
                                    d->side[0] == 'q' ? "ζ^x" : "ζ^(−x)");
        pe_derived_says(steps, "the scale multiplies cosine and sine");
        cosine = product(steps, s, cosine);
        sine = product(steps, s, sine);
    }
    struct pe_dd x[2];
    static const char *const symbols[] = {"x1", "x2"};
    for (size_t i = 0; i < 2; i++)
        x[i] = pe_derived(steps, symbols[i], dd(pe_element(d->vector.array.dtype, d->vector.array.data, both.from[i])),
                          "%s[%zu]", d->side, both.from[i]);
    state(steps, !place->is_second, x[0], x[1], cosine, sine);
    state(steps, place->is_second, x[0], x[1], cosine, sine);
    return PE_OK;
}
