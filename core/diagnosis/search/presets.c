/* What is known that a candidate is like: presets of public models that give the same tensor; of frequencies that
 * follow no rule, the ladder that is nearest.
 *
 * Presets. A reader who has found the configuration asks whose it is. A preset is not compared field by field, because
 * two ways of writing a configuration may mean the same numbers. Its resolved fields replace the candidate's, the
 * result is planned for the candidate's own sequence, and the signatures of the two models are compared: equal
 * signatures are equal numbers at every position (hypothesis.c). Presets of another scheme are left out before they are
 * planned; one that needs weights cannot be planned and is not named.
 *
 * The nearest ladder. A list of frequencies that no rule gives is often a known one with a mistake in a few pairs. So
 * the belief and every ladder that the search tries alone are planned, and the one with the least mean |ln(w/w')| over
 * all pairs is named. The mean of logarithms counts a factor 2 alike at fast and slow pairs, and each pair's share has
 * a limit, so that a few pairs that are far off, or do not turn, do not hide what the others are. */
#include "core/diagnosis/diagnosis.h"
#include "core/schemes/rotary/rotary.h"
#include "core/schemes/scalings/scaling.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Two ladders ---- */

/* Frequencies beside those found: by how much a pair's differs, as a factor from 1 on. A pair that does not turn
 * differs by more than any other. */
static double apart(const struct pe_rotary *found, const struct pe_rotary *known, size_t c)
{
    enum { MOST = 1000000 };
    double x = fabs(found->inv_freq[c].hi), y = fabs(known->inv_freq[c].hi);
    return x == y ? 1 : x > 0 && y > 0 ? fmin(fmax(x / y, y / x), MOST) : MOST;
}

/* ---- Presets ---- */

/* Makes a plan of one layer type of a preset. PE_INVALID: it cannot be planned without weights. */
static enum pe_status plan_layer(const struct pe_preset *preset, const struct pe_preset_layer *layer,
                                 struct pe_plan **plan, struct pe_failure *err)
{
    const struct pe_field fields[] = {{"preset", {.kind = PE_STRING, .string = preset->name}},
                                      {"len", {.kind = PE_INTEGER, .integer = 1}},
                                      {"layer_type", {.kind = PE_STRING, .string = layer->layer_type}}};
    const struct pe_request request = {
        .operation = PE_ENCODE, .fields = fields, .n_fields = layer->layer_type ? 3 : 2, .dtype = PE_F64};
    enum pe_status status = pe_plan_new(&request, plan, err);
    return status == PE_INVALID || status == PE_TOO_LARGE ? PE_OK : status;
}

/* Does it state only how the numbers are written: the form of rotary tables, and the arithmetic? (ALiBi's form is a
 * formula.)
 */
static bool is_of_answer(const struct pe_candidate *c, const char *name)
{
    return pe_is_among("scheme|arith|channels_first", name) ||
           (strcmp(name, "form") == 0 && strcmp(c->model->plan->scheme->info.name, "alibi") != 0);
}

/* The candidate with every parameter of the preset; its own form of the answer stays. */
static void set_config(struct pe_edit *edit, const struct pe_candidate *c, const struct pe_value *config)
{
    edit->transforms = c->edit.transforms;
    for (size_t i = 0; i < c->edit.n_fields; i++)
        if (pe_param_find(pe_sequence_params(), c->edit.fields[i].name) ||
            pe_is_among("tensor_layout|positions_layout|attention_mask|padding|pad_position", c->edit.fields[i].name))
            pe_edit_set(edit, c->edit.fields[i].name, c->edit.fields[i].value);
    for (size_t i = 0; i < config->object.n; i++)
        if (!is_of_answer(c, config->object.fields[i].name))
            pe_edit_set(edit, config->object.fields[i].name, config->object.fields[i].value);
}

/* Rotary tables that the sequence changes only by its positions. */
static bool has_own_ladder(const struct pe_plan *plan)
{
    const char *type = pe_config_word(pe_plan_config(plan), "scaling.type");
    return plan->scheme->rotate && plan->seq.n_axes == 1 && !pe_scaling_depends_on_length(pe_scaling_find(type));
}

/* May the preset's frequencies be the candidate's? Most end here, before they are planned for its sequence. Frequencies
 * of another arithmetic are nearer than this. */
static bool has_like_ladder(const struct pe_candidate *c, const struct pe_plan *plan)
{
    const double near = 1.001;
    const struct pe_rotary *found = c->model->plan->tables, *known = plan->tables;
    if (!has_own_ladder(c->model->plan) || !has_own_ladder(plan))
        return true;
    bool is_like = found->n_pairs == known->n_pairs;
    for (size_t i = 0; is_like && i < found->n_pairs; i++)
        is_like = apart(found, known, i) <= near;
    return is_like;
}

static enum pe_status is_alike(struct pe_diagnosis *d, const struct pe_candidate *c, const struct pe_plan *plan,
                               bool *alike, struct pe_failure *err)
{
    struct pe_edit edit;
    struct pe_model *model = NULL;
    pe_edit_init(&edit);
    set_config(&edit, c, pe_plan_config(plan));
    enum pe_status status = edit.failed ? pe_no_memory(err) : pe_model_new(d, &edit, &model, err);
    *alike = !status && model->has_shape && pe_model_signature(model) == pe_model_signature(c->model);
    pe_model_free(model);
    pe_edit_drop(&edit);
    return status == PE_NO_MEMORY || status == PE_CANCELLED ? status : PE_OK;
}

/* Does the layer have the candidate's scheme? Most presets end here. */
static bool may_be(const struct pe_preset_layer *layer, const struct pe_candidate *c)
{
    const char *scheme = c->model->plan->scheme->info.name;
    for (size_t i = 0; i < layer->n_fields; i++)
        if (strcmp(layer->fields[i].name, "scheme") == 0)
            return strcmp(layer->fields[i].value.string, scheme) == 0;
    return false;
}

enum pe_status pe_answer_presets(struct pe_diagnosis *d, struct pe_candidate *c, struct pe_failure *err)
{
    enum pe_status status = PE_OK;
    c->presets = pe_values_room(d->values, pe_n_presets() * sizeof *c->presets);
    if (!c->presets)
        return pe_no_memory(err);
    for (size_t i = 0; i < pe_n_presets() && pe_fits(c->all.verdict); i++) {
        const struct pe_preset *preset = pe_preset_at(i);
        bool alike = false;
        for (size_t l = 0; !status && !alike && l < preset->n_layers; l++) {
            struct pe_plan *plan = NULL;
            if (may_be(&preset->layers[l], c))
                status = plan_layer(preset, &preset->layers[l], &plan, err);
            if (plan && has_like_ladder(c, plan))
                status = is_alike(d, c, plan, &alike, err);
            pe_plan_free(plan);
        }
        if (alike)
            c->presets[c->n_presets++] = preset->name;
        if (status)
            return status;
    }
    return PE_OK;
}

/* ---- In a line ---- */

struct line {
    char text[400];
    size_t n;
};

static void add_text(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_text(struct line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line->text + line->n, sizeof line->text - line->n, format, args);
    va_end(args);
    line->n += n > 0 ? (size_t)n : 0;
    line->n = line->n < sizeof line->text ? line->n : sizeof line->text - 1;
}

/* What tells configurations apart, in words of the fields. */
static void add_config(struct line *line, const struct pe_value *config)
{
    static const char *const words[] = {"layout", "style", "kind"};
    static const char *const numbers[] = {"dim", "num_heads", "num_buckets", "max_distance", "base"};
    const char *scaling = pe_config_word(config, "scaling.type");
    double factor = pe_config_number(config, "scaling.factor", 1), share = pe_config_number(config, "share", 1);
    add_text(line, "%s", pe_config_word(config, "scheme"));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (*pe_config_word(config, words[i]))
            add_text(line, ", %s", pe_config_word(config, words[i]));
    if (share != 1)
        add_text(line, ", rotary_dim %.0f", pe_config_number(config, "rotary_dim", 0));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!isnan(pe_config_number(config, numbers[i], (double)NAN)))
            add_text(line, ", %s %.10g", numbers[i], pe_config_number(config, numbers[i], 0));
    bool is_scaled = *scaling && strcmp(scaling, "default") != 0;
    if (is_scaled)
        add_text(line, ", %s", scaling);
    if (is_scaled && factor != 1)
        add_text(line, " \xc3\x97 %.10g", factor);
    if (pe_config_number(config, "direction", 1) < 0)
        add_text(line, ", direction -1");
}

void pe_answer_summary(struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_node *node)
{
    enum { SHOWN = 3 };
    struct line line = {.n = 0};
    const struct pe_value *offset = pe_edit_value(d, &c->edit, "offset");
    add_config(&line, pe_plan_config(c->model->plan));
    if (offset && offset->kind == PE_INTEGER && offset->integer != 0)
        add_text(&line, ", offset %lld", (long long)offset->integer);
    for (size_t i = 0; i < c->n_presets && i < SHOWN; i++)
        add_text(&line, "%s%s", i ? ", " : ": ", c->presets[i]);
    if (c->n_presets > SHOWN)
        add_text(&line, ", \xe2\x80\xa6");
    pe_put_string(node, "summary", line.text);
}

/* ---- The nearest ladder ---- */

/* In logarithms, over all pairs: a few that are far off do not hide what the others are. */
static double distance(const struct pe_rotary *found, const struct pe_rotary *known)
{
    double sum = 0;
    if (found->n_pairs != known->n_pairs)
        return (double)INFINITY;
    for (size_t c = 0; c < found->n_pairs; c++)
        sum += log(apart(found, known, c));
    return sum / (double)found->n_pairs;
}

/* Opens a hypothesis; false: it is none. */
static bool open_known(struct pe_diagnosis *d, const struct pe_hypothesis *h, struct pe_edit *edit,
                       struct pe_model **model)
{
    *model = NULL;
    return pe_hypothesis_apply(d, h, edit) && pe_edit_model(d, edit, model);
}

static void close_known(struct pe_diagnosis *d, struct pe_edit *edit, struct pe_model *model)
{
    d->no_memory |= edit->failed;
    pe_model_free(model);
    pe_edit_drop(edit);
}

struct nearest {
    const struct pe_rotary *found;
    struct pe_hypothesis h;
    double distance;
};

static void try_known(struct pe_diagnosis *d, const struct pe_hypothesis *h, struct nearest *n)
{
    struct pe_edit edit;
    struct pe_model *model;
    double x = open_known(d, h, &edit, &model) ? distance(n->found, model->plan->tables) : (double)INFINITY;
    if (x < n->distance) {
        n->h = *h;
        n->distance = x;
    }
    close_known(d, &edit, model);
}

/* The belief, and every other ladder that is tried alone. */
static void find_nearest(struct pe_diagnosis *d, struct nearest *n)
{
    try_known(d, &(struct pe_hypothesis){.n = 0}, n);
    for (size_t i = 0; i < pe_n_faults(); i++) {
        const struct pe_fault *f = pe_fault_row(i);
        bool is_ladder = pe_fault_kind_of(i) == PE_KIND_LADDER && pe_fault_applies(d, i);
        size_t count = is_ladder ? pe_search_count(d, i) : 0, n_tried = count > f->n_fits ? count - f->n_fits : 0;
        for (size_t j = 0; j < n_tried && !d->no_memory && !pe_is_cancelled(); j++)
            try_known(d, &(struct pe_hypothesis){.n = 1, .fault = {(uint16_t)i}, .choice = {(uint16_t)j}}, n);
    }
}

/* In words that both languages have: those of the configuration. */
static void print_known(const struct pe_diagnosis *d, const struct nearest *n, const struct pe_edit *edit, char *text,
                        size_t size)
{
    const struct pe_value *type = pe_edit_value(d, edit, "scaling.type");
    bool is_scaled = type && !pe_same(type->string, "default");
    double base = pe_edit_real(d, edit, "base", 0), factor = pe_edit_real(d, edit, "scaling.factor", 0),
           length = pe_edit_real(d, edit, "scaling.original_max_position_embeddings", 0);
    int at = edit->presets[0] ? snprintf(text, size, "preset %s: ", edit->presets[0]) : 0;
    if (pe_edit_has(d, edit, "inv_freq")) {
        snprintf(text + at, size - (size_t)at, "%s", n->h.n ? pe_fault_at(n->h.fault[0])->code : "inv_freq");
        return;
    }
    at += snprintf(text + at, size - (size_t)at, "base %.10g", base);
    if (is_scaled)
        at += snprintf(text + at, size - (size_t)at, ", scaling %s", type->string);
    if (is_scaled && factor > 0)
        at += snprintf(text + at, size - (size_t)at, ", factor %.6g", factor);
    if (is_scaled && length > 0)
        snprintf(text + at, size - (size_t)at, ", original_max_position_embeddings %.10g", length);
}

/* How many pairs have another frequency, and the largest factor. */
static void put_distance(const struct pe_rotary *found, const struct pe_rotary *known, struct pe_node *node)
{
    int64_t n = 0;
    double most = 1;
    for (size_t c = 0; c < found->n_pairs; c++) {
        double x = apart(found, known, c);
        n += x > 1.001;
        most = fmax(most, x);
    }
    pe_put_integer(node, "pairs", n);
    pe_put_integer(node, "of", (int64_t)found->n_pairs);
    pe_put_real(node, "largest", most);
}

void pe_answer_nearest_ladder(struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_node *node)
{
    struct nearest n = {.found = c->model->plan->tables, .distance = (double)INFINITY};
    struct pe_edit edit;
    struct pe_model *model;
    char text[256];
    find_nearest(d, &n);
    bool is_open = open_known(d, &n.h, &edit, &model);
    if (is_open && isfinite(n.distance)) {
        struct pe_node *nearest = pe_put_object(node, "nearest");
        print_known(d, &n, &edit, text, sizeof text);
        pe_put_string(nearest, "name", text);
        put_distance(n.found, model->plan->tables, nearest);
    }
    close_known(d, &edit, model);
}
