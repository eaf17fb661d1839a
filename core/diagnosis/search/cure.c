/* The cure of a finding: the lines of its fault's row, with the values of the finding and of the belief. */
#include "core/diagnosis/diagnosis.h"

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

/* Everything that a line may name. */
static void put_names(const struct pe_diagnosis *d, const struct pe_node *finding, struct pe_node *node)
{
    const struct pe_evidence *e = &d->evidence;
    const struct pe_value *config = pe_plan_config(d->belief.plan), *found = pe_node_find(finding, "found"),
                          *believed = pe_node_find(finding, "believed");
    double x = found ? pe_value_number(found) : (double)NAN, y = believed ? pe_value_number(believed) : (double)NAN;
    bool is_whole = pe_config_number(config, "rotary_dim", 0) == pe_config_number(config, "head_dim", -1);
    pe_put_string(node, "name", pe_evidence_name(e, 0));
    if (e->kind->input && is_whole)
        pe_put_string(node, "in", e->kind->input);
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

void pe_answer_cure(struct pe_diagnosis *d, const struct pe_fault *fault, struct pe_node *finding)
{
    const struct pe_cure *cure = fault ? fault->cures : NULL;
    struct pe_values *scratch = cure ? pe_values_new() : NULL;
    struct pe_node *names = scratch ? pe_values_root(scratch) : NULL;
    if (names)
        put_names(d, finding, names);
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
