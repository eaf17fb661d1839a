/* The cure of a finding: the lines of its fault's row, with the values of the finding and of the belief. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/naming/relations.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A number with as many digits as it needs, so that the line gives the very tensor. */
static void put_number(struct pe_node *node, const char *name, double x)
{
    char text[32];
    int digits = 6;
    do
        snprintf(text, sizeof text, "%.*g", digits, x);
    while (strtod(text, NULL) != x && ++digits <= 17);
    if (isfinite(x))
        pe_put_string(node, name, text);
}

static void put_value(struct pe_node *node, const char *name, const struct pe_value *v)
{
    double x = v ? pe_value_number(v) : (double)NAN;
    if (!isnan(x))
        put_number(node, name, x);
    else if (v && v->kind == PE_STRING)
        pe_put_string(node, name, v->string);
}

/* The believed frequencies, where they are powers of a base; a linear scaling's factor. */
static void put_ladder(const struct pe_value *config, struct pe_node *node)
{
    struct pe_value list = pe_config_at(config, "inv_freq");
    const char *scaling = pe_config_word(config, "scaling.type");
    double base = pe_config_number(config, "base", (double)NAN);
    double width = pe_config_number(config, "rotary_dim", (double)NAN);
    if (strcmp(scaling, "linear") == 0)
        put_number(node, "linear", pe_config_number(config, "scaling.factor", (double)NAN));
    if ((*scaling && strcmp(scaling, "default") != 0) || list.kind != PE_NULL ||
        pe_config_at(config, "axes_dim").kind != PE_NULL)
        return;
    put_number(node, "base", base);
    put_number(node, "width", width);
}

static void put_run(const struct pe_diagnosis *d, struct pe_node *node)
{
    double first = pe_belief_is_run(d) ? pe_belief_position(d, 0) : (double)NAN;
    put_number(node, "first", first);
    put_number(node, "end", first + (double)d->belief.n);
}

/* Axis i of the believed order is this one of the order found: of four letters each. */
static void put_order(const struct pe_value *found, const struct pe_value *believed, struct pe_node *node)
{
    char text[16] = "";
    size_t n = 0;
    if (!found || !believed || found->kind != PE_STRING || believed->kind != PE_STRING || strlen(found->string) != 4 ||
        strlen(believed->string) != 4)
        return;
    for (size_t i = 0; i < 4; i++) {
        const char *at = strchr(found->string, believed->string[i]);
        if (!at)
            return;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%d", i ? ", " : "", (int)(at - found->string));
    }
    pe_put_string(node, "order", text);
}

static void put_shift(struct pe_node *node, double by)
{
    put_number(node, "by", by);
    if (by == nearbyint(by))
        put_number(node, "whole", by);
}

/* The positions that a relation with one number at most was measured of, as an index: of some axes, or of all. */
static void put_axes(const struct pe_named *named, struct pe_node *node)
{
    char text[64] = "";
    size_t n = 0;
    if (named->related.numbers > 1 || !named->n_axes)
        return;
    for (unsigned a = 0; a < named->n_axes && n + 8 < sizeof text; a++)
        if (named->axes & 1U << a)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%u", n ? ", " : "[[", a);
    snprintf(text + n, sizeof text - n, "]]");
    pe_put_string(node, "at", named->axes == (1U << named->n_axes) - 1 ? "[...]" : text);
    put_shift(node, named->related.found - named->related.believed);
}

/* Lists of positions of one axis, which were tried and not measured; what is between them, where that is one number. */
static void put_lists(const struct pe_value *found, const struct pe_value *believed, struct pe_node *node)
{
    if (!found || !believed || found->kind != PE_ARRAY || believed->kind != PE_ARRAY || found->array.rank != 1 ||
        believed->array.rank != 1 || found->array.shape[0] != believed->array.shape[0])
        return;
    uint64_t n = found->array.shape[0];
    const struct pe_reals a = {found->array, n}, b = {believed->array, n};
    double by = pe_real_at(&a, 0) - pe_real_at(&b, 0);
    for (uint64_t i = 1; i < n; i++)
        by = pe_real_at(&a, i) - pe_real_at(&b, i) == by ? by : (double)NAN;
    pe_put_string(node, "at", "[...]");
    put_shift(node, by);
}

/* The tensor whose channels are all turned: what went into it, or an encoding of one axis itself. */
static const char *turned(const struct pe_diagnosis *d)
{
    const struct pe_evidence *e = &d->evidence;
    const struct pe_value *config = pe_plan_config(d->belief.plan);
    if (e->kind->id == PE_OF_ENCODING)
        return d->belief.plan->seq.n_axes == 1 && (int64_t)pe_config_number(config, "dim", 1) % 2 == 0
                   ? pe_evidence_name(e, 0)
                   : NULL;
    return pe_config_number(config, "rotary_dim", 0) == pe_config_number(config, "head_dim", -1) ? e->kind->input
                                                                                                 : NULL;
}

/* Everything that a line may name. */
static void put_names(const struct pe_diagnosis *d, const struct pe_named *named, const struct pe_node *finding,
                      struct pe_node *node)
{
    const struct pe_evidence *e = &d->evidence;
    const struct pe_value *config = pe_plan_config(d->belief.plan), *found = pe_node_find(finding, "found"),
                          *believed = pe_node_find(finding, "believed");
    double x = found ? pe_value_number(found) : (double)NAN, y = believed ? pe_value_number(believed) : (double)NAN;
    pe_put_string(node, "name", pe_evidence_name(e, 0));
    if (turned(d))
        pe_put_string(node, "in", turned(d));
    if (named)
        put_axes(named, node);
    else
        put_lists(found, believed, node);
    put_value(node, "found", found);
    put_value(node, "believed", believed);
    put_number(node, "times", y / x);
    put_order(found, believed, node);
    put_ladder(config, node);
    put_run(d, node);
}

/* Is every name of the line known? */
static bool is_complete(const struct pe_node *names, const char *line)
{
    char name[16];
    while (line && (line = strchr(line, '{'))) {
        size_t n = strcspn(++line, "}");
        snprintf(name, sizeof name, "%.*s", (int)n, line);
        if (!pe_node_find(names, name))
            return false;
    }
    return true;
}

static bool applies(const struct pe_diagnosis *d, const struct pe_cure *cure)
{
    const char *layout = pe_config_word(pe_plan_config(d->belief.plan), "layout");
    bool names_tables = strstr(cure->torch, "cos"), has_tables = !d->evidence.view.sent.rank;
    return (!cure->evidence || cure->evidence >> d->evidence.kind->id & 1) &&
           (!cure->layout || strcmp(cure->layout, layout) == 0) && (!names_tables || has_tables);
}

static void put_line(struct pe_node *names, const char *name, const char *line, struct pe_node *cure)
{
    if (!line) {
        pe_put_null(cure, name);
        return;
    }
    pe_put_filled(names, name, line);
    const struct pe_value *filled = pe_node_find(names, name);
    pe_put_string(cure, name, filled ? filled->string : "");
}

void pe_answer_cure(struct pe_diagnosis *d, const struct pe_fault *fault, const struct pe_named *named,
                    struct pe_node *finding)
{
    const struct pe_cure *cure = fault ? fault->cures : NULL;
    struct pe_values *scratch = cure ? pe_values_new() : NULL;
    struct pe_node *names = scratch ? pe_values_root(scratch) : NULL;
    if (names)
        put_names(d, named, finding, names);
    while (names && cure->torch && !(applies(d, cure) && is_complete(names, cure->torch)))
        cure++;
    if (names && cure->torch) {
        struct pe_node *node = pe_put_object(finding, "cure");
        put_line(names, "torch", cure->torch, node);
        put_line(names, "numpy", cure->numpy, node);
    } else {
        pe_put_null(finding, "cure");
    }
    d->no_memory |= cure && !(scratch && pe_values_done(scratch));
    pe_values_free(scratch);
}
