/* The transforms of a candidate: what is done to the numbers of its configuration, as values of the answer. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdlib.h>

static struct pe_node *put_transform(struct pe_node *list, const char *name)
{
    struct pe_node *node = pe_put_object(list, NULL);
    pe_put_string(node, "name", name);
    return node;
}

/* n = 0: the order is that of the configuration. */
static void put_order(struct pe_node *list, const char *name, const unsigned char *axes, unsigned n)
{
    int64_t order[PE_RANK_MAX];
    for (unsigned i = 0; i < n; i++)
        order[i] = axes[i];
    if (n)
        pe_put_integers(put_transform(list, name), "order", order, n);
}

/* An order with a name, or the order itself; `of` is the tensor whose channels it gives. */
static void put_channels(struct pe_node *list, const struct pe_channels *channels)
{
    int64_t order[PE_HEAD_DIM_MAX];
    if (!channels->order)
        return;
    struct pe_node *node = put_transform(list, "channels");
    pe_put_string(node, "of", channels->is_after ? "q_out" : "q");
    if (channels->times) {
        pe_put_string(node, "conversion", channels->times > 0 ? "interleaved_to_half" : "half_to_interleaved");
        pe_put_integer(node, "times", abs(channels->times));
        pe_put_integer(node, "heads", channels->heads);
        return;
    }
    for (size_t i = 0; i < channels->n; i++)
        order[i] = channels->order[i];
    pe_put_integers(node, "order", order, channels->n);
}

/* What no request of /attention gives. */
static void put_map_changes(struct pe_node *list, const struct pe_transforms *t)
{
    static const char *const biases[] = {NULL, "missing", "before_scale", "twice", "unsigned"};
    for (size_t i = 0; i < PE_N_OPERANDS; i++)
        if (t->sides[i])
            pe_put_string(put_transform(list, t->sides[i] == PE_SIDE_STILL ? "not_rotated" : "reversed"), "of",
                          pe_operand_names[i]);
    if (t->moved != 0)
        pe_put_real(put_transform(list, "moved"), "by", t->moved);
    if (t->is_tiled)
        put_transform(list, "kv_heads_tiled");
    if (t->bias)
        pe_put_string(put_transform(list, "bias"), "change", biases[t->bias]);
    if (t->stage)
        pe_put_string(put_transform(list, "stage"), "stage", pe_stage_words[t->stage]);
}

static void put_kernel(struct pe_node *list, const struct pe_kernel *k)
{
    static const char *const kinds[] = {NULL, "nearest", "linear", "cubic"}, *const rules[] = {
                                                                                 "half_pixel", "corners", "asymmetric",
                                                                                 "first_rows", "middle_rows"};
    if (!k->kind)
        return;
    struct pe_node *node = put_transform(list, "resized");
    pe_put_string(node, "kernel", kinds[k->kind]);
    pe_put_string(node, "coordinates", rules[k->rule]);
    if (k->kind == PE_KERNEL_CUBIC)
        pe_put_real(node, "a", k->a);
    pe_put_real(node, "offset", k->offset);
    pe_put_boolean(node, "antialias", k->is_wide);
    pe_put_boolean(node, "by_column", k->by_column);
    pe_put_boolean(node, "table_by_column", k->table_by_column);
}

static void put_strides(struct pe_node *list, const struct pe_strides *s)
{
    const char *const names[] = {"rows", "columns", "first"};
    const double values[] = {s->by[0], s->by[1], s->first};
    struct pe_node *node = NULL;
    for (size_t i = 0; i < 3; i++)
        if (!isnan(values[i])) {
            node = node ? node : put_transform(list, "strides");
            pe_put_real(node, names[i], values[i]);
        }
}

/* In the order in which they are applied. */
struct pe_node *pe_answer_transforms(const struct pe_diagnosis *d, const struct pe_transforms *t, struct pe_node *node)
{
    static const char *const turns[] = {NULL, "imaginary_lost", "sign_lost", "table_layout_other"};
    static const char *const changes[] = {NULL, "exponent_per_column", "exponent_doubled", "sine_only"};
    struct pe_node *list = pe_put_list(node, "transforms");
    put_channels(list, &t->channels);
    if (t->inverted)
        put_transform(list, "inverted");
    if (t->recipe)
        pe_put_string(put_transform(list, "angles"), "recipe", pe_recipes[t->recipe].name);
    if (changes[t->sinusoid])
        put_transform(list, changes[t->sinusoid]);
    if (t->sin_cos_swapped)
        put_transform(list, "sin_cos_swapped");
    if (t->turn)
        put_transform(list, turns[t->turn]);
    if (!isnan(t->wrapped_from))
        pe_put_real(put_transform(list, "wrapped"), "low", t->wrapped_from);
    if (t->negated)
        put_transform(list, "negated");
    if (t->transposed)
        put_transform(list, "transposed");
    if (t->scaled != 1)
        pe_put_real(put_transform(list, "scaled"), "factor", t->scaled);
    if (!isnan(t->mask_value))
        pe_put_real(put_transform(list, "mask_value"), "value", t->mask_value);
    put_kernel(list, &t->kernel);
    if (t->mirrored)
        pe_put_integer(put_transform(list, "mirrored"), "side", t->mirrored);
    put_strides(list, &t->strides);
    put_order(list, "axes", t->order, t->n_axes);
    put_map_changes(list, t);
    /* numpy.transpose of the tensor sent, by this order, has the axes of the configuration. */
    put_order(list, "axes_moved", d->evidence.moved.order, d->evidence.moved.n);
    return list;
}
