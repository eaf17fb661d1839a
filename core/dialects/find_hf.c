/* Contradictions of a config.json: fields that are in two places, in the wrong one, or in none, and what each tool that
 * computes other numbers takes. */
#include "core/dialects/findings.h"
#include "core/schemes/scalings/scaling.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- What the config states ---- */

struct facts {
    const struct pe_value *config; /* of the language model */
    char at[PE_POINTER_MAX];
    const struct pe_value *old, *new; /* rope_scaling and rope_parameters; NULL: none, or empty */
    const struct pe_value *rope;      /* of both the one that counts here, or its object of full attention */
    const struct pe_value *whole;     /* … all of it */
    char whole_at[PE_POINTER_MAX], rope_at[PE_POINTER_MAX];
};

static const struct pe_value *object_of(const struct pe_value *config, const char *name)
{
    const struct pe_value *v = pe_stated(config, name);
    return v && v->kind == PE_OBJECT && v->object.n ? v : NULL;
}

static void find_facts(const struct pe_explain *ex, struct facts *facts)
{
    *facts = (struct facts){.config = ex->language.place.object};
    snprintf(facts->at, sizeof facts->at, "%s", ex->language.place.at);
    facts->old = object_of(facts->config, "rope_scaling");
    facts->new = object_of(facts->config, "rope_parameters");
    facts->whole = facts->rope = facts->old ? facts->old : facts->new;
    pe_pointer_join(facts->whole_at, PE_POINTER_MAX, facts->at, facts->old ? "rope_scaling" : "rope_parameters");
    memcpy(facts->rope_at, facts->whole_at, PE_POINTER_MAX);
    for (size_t i = 0; facts->whole && i < facts->whole->object.n; i++) {
        const struct pe_field *field = &facts->whole->object.fields[i];
        bool is_better = facts->rope == facts->whole || pe_same(field->name, PE_HF_FULL);
        if (field->value.kind != PE_OBJECT || !is_better)
            continue;
        facts->rope = &field->value;
        pe_pointer_join(facts->rope_at, PE_POINTER_MAX, facts->whole_at, field->name);
    }
}

/* ---- A finding about a tool ---- */

/* Is the kind a rotation that the tool reads? */
static bool turns_in_both(const struct pe_explain *ex, const struct pe_dialect_reader *tool, size_t k)
{
    const struct pe_reading *ours = &ex->kinds[k].own;
    return ours->config && ours->turn.n && tool->readings[k].config;
}

/* The kinds for which the tool's number at this path differs from ours; path NULL: whose rotation differs. */
static unsigned kinds_apart(const struct pe_explain *ex, const struct pe_dialect_reader *tool, const char *path)
{
    unsigned kinds = 0;
    for (size_t k = 0; k < ex->n_text; k++) {
        const struct pe_reading *ours = &ex->kinds[k].own, *theirs = &tool->readings[k];
        if (!turns_in_both(ex, tool, k))
            continue;
        double a = path ? pe_config_number(ours->config, path, 0) : 0;
        double b = path ? pe_config_number(theirs->config, path, 0) : 0;
        bool differs = path ? !pe_is_near(a, b) : !pe_tool_agrees(ex, tool, k);
        kinds |= (unsigned)differs << k;
    }
    return kinds;
}

static size_t first_kind(const struct pe_explain *ex, unsigned kinds)
{
    size_t k = 0;
    while (k + 1 < ex->n_text && kinds && !(kinds >> k & 1))
        k++;
    return k;
}

/* At the answer's length, and at others where the tool turns otherwise. */
static void measure_kind(struct pe_findings *f, struct pe_finding *finding, const struct pe_dialect_reader *tool,
                         size_t k)
{
    const struct pe_apart *apart = &tool->apart[k];
    const struct pe_turn *ours = &f->ex->kinds[k].own.turn, *theirs = &tool->readings[k].turn;
    bool is_first = !finding->has_distance;
    if (!apart->lengths.n)
        pe_finding_measure(f, finding, ours, theirs, tool->is_permuted, f->ex->length);
    for (size_t i = 0; i < apart->n; i++)
        pe_finding_measure(f, finding, &apart->ours[i], &apart->theirs[i], tool->is_permuted, apart->length[i]);
    if (is_first || !apart->lengths.n)
        finding->lengths = apart->lengths;
}

/* Adds it with the consequence for the worst of these kinds; what the tool takes is at path. */
static struct pe_finding *blame(struct pe_findings *f, enum pe_contradiction_id id, const char *at, const char *name,
                                const struct pe_dialect_reader *tool, unsigned kinds, const char *path)
{
    struct pe_explain *ex = f->ex;
    struct pe_finding *finding = pe_finding_add(f, id, at, name);
    finding->reader = tool->reader;
    finding->kinds = kinds;
    if (path)
        pe_finding_state(finding, pe_config_at(ex->kinds[first_kind(ex, kinds)].own.config, path),
                         pe_config_at(tool->readings[first_kind(ex, kinds)].config, path));
    for (size_t k = 0; k < ex->n_text; k++)
        if (kinds >> k & 1)
            measure_kind(f, finding, tool, k);
    return finding;
}

/* ---- The base ---- */

static bool some_turn(const struct pe_explain *ex)
{
    for (size_t k = 0; k < ex->n_text; k++)
        if (ex->kinds[k].own.turn.n)
            return true;
    return false;
}

/* The object of the kind whose number is named: rope_parameters may have one for each. */
static void point_at_object(const struct pe_explain *ex, const struct facts *facts, unsigned kinds,
                            char at[PE_POINTER_MAX])
{
    const char *layer_type = ex->kinds[first_kind(ex, kinds)].layer_type;
    if (facts->rope == facts->whole || !object_of(facts->whole, layer_type))
        memcpy(at, facts->rope_at, PE_POINTER_MAX);
    else
        pe_pointer_join(at, PE_POINTER_MAX, facts->whole_at, layer_type);
}

/* The tool takes the class's default; a note where that is the same number. */
static void blame_dropped_base(struct pe_findings *f, const struct facts *facts, const struct pe_dialect_reader *tool,
                               unsigned kinds)
{
    char at[PE_POINTER_MAX];
    size_t k = 0;
    while (!kinds && k < f->ex->n_text && !turns_in_both(f->ex, tool, k))
        k++;
    if (k == f->ex->n_text) /* it reads no rotation */
        return;
    point_at_object(f->ex, facts, kinds, at);
    struct pe_finding *finding = blame(f, PE_THETA_DROPPED, at, "rope_theta", tool, kinds, "base");
    if (kinds)
        return;
    finding->is_note = true;
    pe_finding_state(finding, pe_config_at(f->ex->kinds[k].own.config, "base"),
                     pe_config_at(tool->readings[k].config, "base"));
    finding->pattern = "{label} does not read rope_parameters, but base {taken} is also the default of the "
                       "model's class.";
}

static void find_base(struct pe_findings *f, const struct facts *facts)
{
    struct pe_explain *ex = f->ex;
    double outside = pe_value_number(pe_stated(facts->config, "rope_theta")),
           inside = pe_value_number(pe_stated(facts->rope, "rope_theta"));
    const struct pe_hf_place whole = {.object = facts->config}; /* every name counts */
    if (!some_turn(ex))
        return;
    for (const struct pe_dialect_reader *tool = ex->readers; tool < ex->readers + ex->n_readers; tool++) {
        unsigned kinds = kinds_apart(ex, tool, "base");
        if (!*tool->refused && pe_is_among(tool->reader->writes_no_rope, ex->language.model_type) && kinds)
            blame(f, PE_THETA_NOT_WRITTEN, isnan(inside) ? facts->at : facts->rope_at, "rope_theta", tool, kinds,
                  "base");
        else if (*tool->refused || isnan(inside))
            continue;
        else if (!isnan(outside) && outside != inside && kinds)
            blame(f, PE_THETA_DIFFERS, facts->at, "rope_theta", tool, kinds, "base");
        else if (isnan(outside) && !facts->old && tool->reader->base == PE_OUTSIDE)
            blame_dropped_base(f, facts, tool, kinds);
    }
    bool is_elsewhere = ex->language.row && (pe_is_among(ex->language.row->ignores, "rope_theta") ||
                                             (ex->language.row->base && pe_hf_says(&whole, ex->language.row->base)));
    if (isnan(inside) && !is_elsewhere && !pe_hf_says(&whole, PE_HF_BASES "|rope_ratio")) {
        struct pe_finding *finding = pe_finding_add(f, PE_THETA_DEFAULT, facts->at, "rope_theta");
        for (size_t k = ex->n_text; k-- > 0;)
            if (ex->kinds[k].own.turn.n &&
                (pe_same(ex->kinds[k].layer_type, PE_HF_FULL) || finding->taken.kind == PE_NULL))
                finding->taken = pe_config_at(ex->kinds[k].own.config, "base");
    }
}

/* ---- The rule ---- */

static bool has_rule(const struct pe_value *object)
{
    bool found = object && !pe_same(pe_rope_rule_of(object), "default");
    for (size_t i = 0; object && !found && i < object->object.n; i++)
        found = object->object.fields[i].value.kind == PE_OBJECT &&
                !pe_same(pe_rope_rule_of(&object->object.fields[i].value), "default");
    return found;
}

static unsigned kinds_with_rule(const struct pe_explain *ex)
{
    unsigned kinds = 0;
    for (size_t k = 0; k < ex->n_text; k++) {
        const char *rule = pe_config_word(ex->kinds[k].own.config, "scaling.type");
        kinds |= (unsigned)(*rule && !pe_same(rule, "default")) << k;
    }
    return kinds;
}

static void find_dropped(struct pe_findings *f, const struct facts *facts)
{
    struct pe_explain *ex = f->ex;
    for (const struct pe_dialect_reader *tool = ex->readers; tool < ex->readers + ex->n_readers; tool++) {
        const struct pe_field *object = pe_config_rope(tool->reader, facts->config);
        unsigned kinds = kinds_apart(ex, tool, NULL), scaled = kinds & kinds_with_rule(ex);
        if (*tool->refused)
            continue;
        if (!object && !facts->old && has_rule(facts->new) && scaled)
            blame(f, PE_SCALING_DROPPED, facts->at, "rope_parameters", tool, scaled, "scaling.type");
        bool reads_another = object && &object->value != facts->whole;
        if (facts->old && facts->new && !pe_value_same(facts->old, facts->new) && (reads_another || !object)) {
            struct pe_finding *finding = blame(f, PE_SCALING_TWICE, facts->at, "rope_parameters", tool, kinds, NULL);
            pe_finding_state(finding, pe_word("rope_scaling"), pe_word(object ? object->name : "none"));
        }
    }
    /* Where every tool reads the same one, the other is still there. */
    if (facts->old && facts->new && !pe_value_same(facts->old, facts->new)) {
        bool is_there = false;
        for (size_t i = 0; i < f->n; i++)
            is_there |= f->list[i].id == PE_SCALING_TWICE;
        if (!is_there)
            pe_finding_state(pe_finding_add(f, PE_SCALING_TWICE, facts->at, "rope_parameters"),
                             pe_word("rope_parameters"), pe_word("rope_scaling"));
    }
}

static void find_sliding(struct pe_findings *f, const struct facts *facts)
{
    struct pe_explain *ex = f->ex;
    for (const struct pe_dialect_reader *tool = ex->readers; tool < ex->readers + ex->n_readers; tool++) {
        unsigned kinds = kinds_apart(ex, tool, NULL) & ~kinds_with_rule(ex);
        if (kinds && pe_is_among(tool->reader->scaled_sliding, ex->language.model_type))
            blame(f, PE_SLIDING_SCALED, facts->rope_at, "rope_type", tool, kinds, "scaling.type");
    }
}

static void find_types(struct pe_findings *f, const struct facts *facts)
{
    const struct pe_value *now = pe_stated(facts->rope, "rope_type"), *before = pe_stated(facts->rope, "type");
    if (!now || !before || now->kind != PE_STRING || before->kind != PE_STRING ||
        pe_same(pe_rope_rule_word(now), pe_rope_rule_word(before)))
        return;
    struct pe_finding *finding = pe_finding_add(f, PE_TYPE_DIFFERS, facts->rope_at, "type");
    pe_finding_state(finding, *now, *before);
    for (size_t t = 0; t < f->ex->n_readers; t++)
        if (f->ex->readers[t].reader->refuses_two_types)
            finding->reader = f->ex->readers[t].reader;
}

static void find_unknown_rules(struct pe_findings *f, const struct facts *facts)
{
    struct pe_explain *ex = f->ex;
    for (const struct pe_dialect_reader *tool = ex->readers; tool < ex->readers + ex->n_readers; tool++) {
        const struct pe_field *object = pe_config_rope(tool->reader, facts->config);
        unsigned kinds = 0;
        const char *rule = "default";
        if (!object || &object->value != facts->whole) /* another one, or none: that is another finding */
            continue;
        for (size_t k = 0; k < ex->n_text; k++) {
            const char *ours = pe_config_word(ex->kinds[k].own.config, "scaling.type");
            const char *theirs = pe_config_word(tool->readings[k].config, "scaling.type");
            bool is_lost = tool->reader->architecture && tool->readings[k].config && pe_same(theirs, "default") &&
                           pe_config_at(tool->readings[k].config, "scaling.divisors").kind == PE_NULL;
            bool is_unknown = !pe_rope_rule_find(tool->reader, ours) && (!*theirs || pe_same(theirs, "default"));
            if (!*ours || pe_same(ours, "default") || !(is_lost || is_unknown) || pe_tool_agrees(ex, tool, k))
                continue;
            kinds |= 1U << k;
            rule = ours;
        }
        if (kinds && !(tool->reader->architecture && !tool->architecture))
            pe_finding_state(blame(f, PE_RULE_UNKNOWN, facts->rope_at, "rope_type", tool, kinds, NULL), pe_word(rule),
                             pe_word("default"));
    }
}

/* ---- Lengths and the factor ---- */

/* As a version of the tool read it that did not know the field. */
static void find_factor(struct pe_findings *f, const struct facts *facts)
{
    struct pe_explain *ex = f->ex;
    const char *rule = pe_rope_rule_of(facts->rope);
    const struct pe_value *original = pe_stated(facts->rope, "original_max_position_embeddings");
    double o = pe_value_number(original ? original : pe_stated(facts->config, "original_max_position_embeddings"));
    double m = pe_value_number(pe_stated(facts->config, "max_position_embeddings")),
           s = pe_value_number(pe_stated(facts->rope, "factor"));
    if (isnan(o) || isnan(m) || isnan(s) || !(o > 0) || !(m > 0) || fabs(s * o / m - 1) <= 1e-6)
        return;
    for (const struct pe_dialect_reader *tool = ex->readers; tool < ex->readers + ex->n_readers; tool++) {
        if (!tool->reader->before || !pe_is_among(tool->reader->rules_before, rule) || *tool->refused ||
            !pe_config_rope(tool->reader, facts->config))
            continue;
        struct pe_finding *finding = pe_finding_add(f, PE_FACTOR_MISMATCH, facts->rope_at, "factor");
        finding->reader = tool->reader;
        finding->before = tool->reader->before;
        pe_finding_state(finding, pe_real(s), pe_real(m / o));
        struct pe_config_view view;
        struct pe_failure err;
        enum pe_status status = pe_config_view(tool->reader, true, ex->hf, &ex->language, ex->values, &view, &err);
        f->no_memory |= status == PE_NO_MEMORY;
        if (status)
            continue;
        struct pe_field model = {"hf_config", view.config};
        for (size_t k = 0; k < ex->n_text; k++) {
            struct pe_reading then;
            if (pe_dialect_read(ex, &model, ex->kinds[k].layer_type, &then)) {
                f->no_memory = true;
                return;
            }
            if (then.config && ex->kinds[k].own.config && !pe_turn_same(&then.turn, &ex->kinds[k].own.turn, false)) {
                finding->kinds |= 1U << k;
                pe_finding_measure(f, finding, &ex->kinds[k].own.turn, &then.turn, false, ex->length);
            }
            pe_reading_drop(&then);
        }
    }
}

/* … and as a tool reads it for which the ratio wins. */
static void find_ratio(struct pe_findings *f, const struct facts *facts)
{
    const struct pe_explain *ex = f->ex;
    for (const struct pe_dialect_reader *tool = ex->readers; tool < ex->readers + ex->n_readers; tool++) {
        const struct pe_rope_rule *own = pe_rope_rule_find(tool->reader, pe_rope_rule_of(facts->rope));
        unsigned kinds = own && own->ratio_wins ? kinds_apart(ex, tool, "scaling.factor") : 0;
        if (kinds)
            blame(f, PE_FACTOR_MISMATCH, facts->rope_at, "factor", tool, kinds, "scaling.factor")->pattern =
                "The factor is {found}, but max_position_embeddings/original_max_position_embeddings is {taken}: "
                "{label} "
                "scales by that.";
    }
}

static void find_original(struct pe_findings *f, const struct facts *facts)
{
    static const char name[] = "original_max_position_embeddings", path[] = "scaling.original_max_position_embeddings";
    struct pe_explain *ex = f->ex;
    bool is_inside = pe_stated(facts->rope, name) != NULL;
    const struct pe_scaling_rule *rule = facts->rope ? pe_scaling_find(pe_rope_rule_of(facts->rope)) : NULL;
    bool is_stated = is_inside || pe_hf_find(&ex->language.place, name);
    for (const struct pe_dialect_reader *tool = ex->readers; tool < ex->readers + ex->n_readers; tool++) {
        unsigned kinds = 0;
        for (size_t k = 0; k < ex->n_text; k++) {
            const struct pe_value *ours = ex->kinds[k].own.config, *theirs = tool->readings[k].config;
            double a = pe_config_number(ours, path, 0), b = pe_config_number(theirs, path, 0);
            kinds |= (unsigned)(a > 0 && b > 0 && a != b) << k;
        }
        if (kinds && is_stated)
            blame(f, PE_ORIGINAL_MAX_PLACEMENT, is_inside ? facts->rope_at : facts->at, name, tool, kinds, path);
    }
    if (!is_stated && rule && rule->factor_is_ratio && pe_scaling_needs(rule, name)) {
        struct pe_finding *finding = pe_finding_add(f, PE_ORIGINAL_MAX_MISSING, facts->rope_at, name);
        const struct pe_field *length = pe_hf_find(&ex->language.place, PE_HF_LENGTH);
        if (length)
            finding->taken = length->value;
        for (size_t t = 0; t < ex->n_readers; t++) {
            const struct pe_rope_rule *own = pe_rope_rule_find(ex->readers[t].reader, rule->name);
            if (own && own->original_is_needed)
                finding->reader = ex->readers[t].reader;
        }
    }
}

/* The lengths by the rule llama3 where the converter looks beside the object: the divisors have no length, so the
 * comparison is of what it computes. */
static void find_original_of_file(struct pe_findings *f, const struct facts *facts)
{
    static const char name[] = "original_max_position_embeddings";
    struct pe_explain *ex = f->ex;
    const char *rule = facts->rope ? pe_rope_rule_of(facts->rope) : "default";
    double inside = pe_value_number(pe_stated(facts->rope, name));
    for (const struct pe_dialect_reader *tool = ex->readers; tool < ex->readers + ex->n_readers; tool++) {
        const struct pe_rope_rule *own = pe_rope_rule_find(tool->reader, rule);
        unsigned kinds = kinds_apart(ex, tool, NULL);
        double outside = pe_value_number(pe_stated(facts->config, name));
        if (!own || own->original != PE_OUTSIDE || !(own->original_else > 0) || !kinds || isnan(inside) ||
            inside == (isnan(outside) ? own->original_else : outside))
            continue;
        pe_finding_state(blame(f, PE_ORIGINAL_MAX_PLACEMENT, facts->rope_at, name, tool, kinds, NULL), pe_real(inside),
                         pe_real(isnan(outside) ? own->original_else : outside));
    }
}

/* ---- Which layers ---- */

/* The kind that the finding names: one without positions, else that of the fewest layers; n_text: none. */
static size_t kind_of_other_layers(const struct pe_explain *ex, const struct pe_dialect_reader *tool)
{
    size_t found = ex->n_text;
    for (size_t k = 0; k < ex->n_text; k++) {
        bool is_still = !ex->kinds[k].own.turn.n;
        bool is_better = found == ex->n_text || is_still || ex->kinds[k].n_layers < ex->kinds[found].n_layers;
        if (tool->layers[k].n && is_better)
            found = k;
        if (tool->layers[k].n && is_still)
            break;
    }
    return found;
}

/* The field that states which layers are of a kind; NULL: the class. */
static const char *layers_field(const struct pe_explain *ex)
{
    static const char names[] = "no_rope_layers|no_rope_layer_interval|" PE_HF_LAYER_LISTS;
    const char *period = ex->language.row->period;
    bool is_stated = pe_hf_says(&ex->language.place, names);
    if (!is_stated && !(period && pe_hf_says(&ex->language.place, period)))
        return NULL;
    return pe_hf_find(&ex->language.place, is_stated ? names : period)->name;
}

static void find_layers(struct pe_findings *f, const struct facts *facts)
{
    struct pe_explain *ex = f->ex;
    for (const struct pe_dialect_reader *tool = ex->readers; tool < ex->readers + ex->n_readers; tool++) {
        size_t k = kind_of_other_layers(ex, tool);
        if (*tool->refused || k == ex->n_text)
            continue;
        struct pe_finding *finding = pe_finding_add(f, PE_LAYERS, facts->at, layers_field(ex));
        finding->reader = tool->reader;
        finding->kinds = 1U << k;
        pe_finding_state(finding, pe_word(tool->layers[k].found), pe_word(tool->layers[k].taken));
        finding->layer_type = ex->kinds[k].layer_type;
        finding->n = tool->layers[k].n;
        finding->of = tool->layers[k].of;
        if (!ex->kinds[k].own.turn.n)
            finding->pattern = "{label} leaves out {taken}, the config leaves out {found}: {n} of {of} layers differ.";
    }
}

/* ---- Slopes ---- */

static void find_slopes(struct pe_findings *f, const struct facts *facts)
{
    struct pe_explain *ex = f->ex;
    double ours = pe_config_number(ex->kinds[0].own.config, "bias_max", 0);
    char at[PE_POINTER_MAX];
    pe_pointer_join(at, sizeof at, facts->at, "attn_config");
    for (const struct pe_dialect_reader *tool = ex->readers; tool < ex->readers + ex->n_readers; tool++) {
        double theirs = pe_config_number(tool->readings[0].config, "bias_max", 0);
        if (ours > 0 && theirs > 0 && ours != theirs)
            blame(f, PE_SLOPES_DROPPED, at, "alibi_bias_max", tool, 1, "bias_max");
    }
}

/* ---- Widths ---- */

static void find_widths(struct pe_findings *f, const struct facts *facts)
{
    struct pe_explain *ex = f->ex;
    const struct pe_value *inside = pe_stated(facts->rope, "partial_rotary_factor"),
                          *outside = pe_stated(facts->config, "partial_rotary_factor"),
                          *latent = pe_stated(facts->config, "qk_rope_head_dim");
    double share = pe_value_number(outside ? outside : inside),
           head_dim = pe_value_number(pe_stated(facts->config, "head_dim"));
    if (latent && !isnan(share) && share != 1)
        pe_finding_state(
            pe_finding_add(f, PE_SHARE_ON_MLA, outside ? facts->at : facts->rope_at, "partial_rotary_factor"),
            pe_real(share), *latent);
    for (size_t t = 0; t < ex->n_readers && inside && !outside && pe_value_number(inside) < 1; t++) {
        const struct pe_dialect_reader *tool = &ex->readers[t];
        unsigned kinds = kinds_apart(ex, tool, "share");
        if (kinds && !*tool->refused)
            blame(f, PE_SHARE_DROPPED, facts->rope_at, "partial_rotary_factor", tool, kinds, "share");
    }
    double width = pe_value_number(pe_stated(facts->config, "hidden_size")),
           heads = pe_value_number(pe_stated(facts->config, "num_attention_heads"));
    if (!latent && !isnan(head_dim) && width > 0 && heads > 0 && head_dim != floor(width / heads))
        pe_finding_state(pe_finding_add(f, PE_HEAD_DIM_MISMATCH, facts->at, "head_dim"), pe_real(head_dim),
                         pe_real(width / heads));
}

/* The labels of the tools that turn the same share of the first kind as we do, "transformers 4, vLLM". */
static const char *tools_of_share(const struct pe_explain *ex, size_t k)
{
    char list[256] = "";
    double share = pe_config_number(ex->kinds[k].own.config, "share", 1);
    for (size_t t = 0; t < ex->n_readers; t++) {
        const struct pe_dialect_reader *tool = &ex->readers[t];
        double theirs = pe_config_number(tool->readings[k].config, "share", 1);
        if (!*tool->refused && tool->readings[k].config && fabs(theirs - share) <= 0x1p-22)
            strcat(strcat(list, *list ? ", " : ""), tool->reader->label);
    }
    char *kept = pe_values_room(ex->values, strlen(list) + 1);
    return kept && *list ? strcpy(kept, list) : NULL;
}

static void find_default_share(struct pe_findings *f, const struct facts *facts)
{
    struct pe_explain *ex = f->ex;
    for (size_t i = 0; ex->marks && i < ex->marks->n_defaults; i++) {
        const char *name = ex->marks->defaults[i].name;
        double share = pe_value_number(&ex->marks->defaults[i].value);
        size_t k = 0;
        while (k < ex->n_text && !ex->kinds[k].own.turn.n)
            k++;
        if (!pe_is_among("partial_rotary_factor|rotary_pct", name) || !(share < 1) || k == ex->n_text)
            continue;
        struct pe_finding *finding = pe_finding_add(f, PE_SHARE_DEFAULT, facts->at, name);
        finding->taken = ex->marks->defaults[i].value;
        finding->label = tools_of_share(ex, k);
        if (!finding->label)
            finding->pattern =
                "{pointer}, the rotated share of a head, is not stated: it is {taken}, the default of the "
                "model's class.";
        return;
    }
}

static void find_sections(struct pe_findings *f, const struct facts *facts)
{
    struct pe_explain *ex = f->ex;
    const struct pe_value *sections = pe_stated(facts->rope, "mrope_section");
    double sum = 0, width = pe_value_number(pe_stated(facts->config, "head_dim"));
    if (!sections || sections->kind != PE_ARRAY || sections->array.rank != 1)
        return;
    for (uint64_t i = 0; i < sections->array.shape[0]; i++)
        sum += pe_real_at(&(struct pe_reals){sections->array, sections->array.shape[0]}, i);
    if (isnan(width))
        width = pe_value_number(pe_stated(facts->config, "hidden_size")) /
                pe_value_number(pe_stated(facts->config, "num_attention_heads"));
    const struct pe_field *turned = pe_hf_find(&ex->language.place, "partial_rotary_factor");
    double share = pe_value_number(turned ? &turned->value : pe_stated(facts->rope, "partial_rotary_factor"));
    share = isnan(share) ? 1 : share;
    if (width > 0 && floor(width * share / 2) != sum)
        pe_finding_state(pe_finding_add(f, PE_MROPE_SUM, facts->rope_at, "mrope_section"), pe_real(sum),
                         pe_real(floor(width * share / 2)));
    for (const struct pe_dialect_reader *tool = ex->readers; tool < ex->readers + ex->n_readers; tool++) {
        const struct pe_turn *ours = &ex->kinds[0].own.turn, *theirs = &tool->readings[0].turn;
        double still = 0;
        for (size_t c = 0; ours->n == theirs->n && c < ours->n; c++)
            still += theirs->w[c] == 0 && ours->w[c] != 0;
        if (still > 0)
            blame(f, PE_MROPE_STILL_PAIRS, facts->rope_at, "mrope_section", tool, 1, NULL)->found = pe_real(still);
    }
}

/* ---- YaRN's own ---- */

static void find_factors_of_cos(struct pe_findings *f, const struct facts *facts)
{
    static const char *const names[] = {"attention_factor", "mscale", "mscale_all_dim", "attn_factor"};
    struct pe_explain *ex = f->ex;
    const char *name = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !name; i++)
        name = pe_stated(facts->rope, names[i]) ? names[i] : NULL;
    const struct pe_value *truncate = pe_stated(facts->rope, "truncate");
    bool is_exact = truncate && truncate->kind == PE_BOOLEAN && !truncate->boolean;
    for (const struct pe_dialect_reader *tool = ex->readers; tool < ex->readers + ex->n_readers; tool++) {
        unsigned factor = 0, ramp = 0;
        for (size_t k = 0; k < ex->n_text; k++) {
            const struct pe_value *ours = ex->kinds[k].own.config, *theirs = tool->readings[k].config;
            if (!pe_same(pe_config_word(ours, "scaling.type"), pe_config_word(theirs, "scaling.type")))
                continue;
            double a = pe_config_number(ours, "attention_factor", 1),
                   b = pe_config_number(theirs, "attention_factor", 1);
            factor |= (unsigned)!pe_is_near(a, b) << k;
            struct pe_value ends = pe_config_at(theirs, "scaling.truncate"),
                            own = pe_config_at(ours, "scaling.truncate");
            bool rounds = ends.kind != PE_BOOLEAN || ends.boolean, keeps = own.kind == PE_BOOLEAN && !own.boolean;
            ramp |= (unsigned)(rounds && keeps && !pe_tool_agrees(ex, tool, k)) << k;
        }
        if (name && factor)
            blame(f, PE_ATTENTION_FACTOR_IGNORED, facts->rope_at, name, tool, factor, "attention_factor");
        if (is_exact && ramp)
            blame(f, PE_TRUNCATE_DROPPED, facts->rope_at, "truncate", tool, ramp, "scaling.truncate");
    }
}

static void find_betas(struct pe_findings *f, const struct facts *facts)
{
    static const char *const names[] = {"beta_fast", "beta_slow"}, *const paths[] = {"scaling.beta_fast",
                                                                                     "scaling.beta_slow"};
    struct pe_explain *ex = f->ex;
    for (const struct pe_dialect_reader *tool = ex->readers; tool < ex->readers + ex->n_readers; tool++)
        for (size_t i = 0; i < 2; i++) {
            unsigned kinds = 0;
            for (size_t k = 0; k < ex->n_text; k++) {
                double a = pe_config_number(ex->kinds[k].own.config, paths[i], 0),
                       b = pe_config_number(tool->readings[k].config, paths[i], 0);
                kinds |= (unsigned)(a > 0 && b > 0 && a != b && !pe_tool_agrees(ex, tool, k)) << k;
            }
            if (kinds && pe_stated(facts->rope, names[i]))
                blame(f, PE_BETAS_DROPPED, facts->rope_at, names[i], tool, kinds, paths[i]);
        }
}

/* A rope object with a factor and no type, which these tools take for none. */
static void find_no_type(struct pe_findings *f, const struct facts *facts)
{
    struct pe_explain *ex = f->ex;
    if (!facts->rope || pe_stated(facts->rope, "rope_type") || pe_stated(facts->rope, "type") ||
        !pe_stated(facts->rope, "factor"))
        return;
    for (const struct pe_dialect_reader *tool = ex->readers; tool < ex->readers + ex->n_readers; tool++) {
        if (*pe_tool_refusal(ex, tool) || !pe_config_rope(tool->reader, facts->config))
            continue;
        struct pe_finding *finding = pe_finding_add(f, PE_TYPE_MISSING, facts->rope_at, "rope_type");
        finding->reader = tool->reader;
        finding->is_note = false;
        finding->found = *pe_stated(facts->rope, "factor");
        finding->taken = pe_word("default");
        finding->pattern = "The rope object states the factor {found} and no rope_type: {label} does not scale.";
    }
}

/* ---- Lengths ---- */

/* The kinds that an error of this tool is about. */
static unsigned kinds_blamed(const struct pe_findings *f, const struct pe_dialect_reader *tool)
{
    unsigned kinds = 0;
    for (size_t i = 0; i < f->n; i++)
        if (f->list[i].reader == tool->reader && !f->list[i].is_note)
            kinds |= f->list[i].kinds;
    return kinds;
}

/* A tool that computes a rule otherwise which depends on the sequence's length, if no other finding is about it. */
static void find_lengths(struct pe_findings *f, const struct facts *facts)
{
    struct pe_explain *ex = f->ex;
    for (const struct pe_dialect_reader *tool = ex->readers; tool < ex->readers + ex->n_readers; tool++) {
        unsigned kinds = 0, blamed = kinds_blamed(f, tool);
        const char *rule = "";
        for (size_t k = 0; k < ex->n_text; k++)
            if (tool->apart[k].n && pe_dialect_border(ex->kinds[k].own.config) && !(blamed >> k & 1)) {
                kinds |= 1U << k;
                rule = pe_config_word(ex->kinds[k].own.config, "scaling.type");
            }
        if (!kinds)
            continue;
        struct pe_finding *finding = blame(f, PE_LENGTH_READ_OTHERWISE, facts->rope_at, "rope_type", tool, kinds, NULL);
        struct pe_value length = pe_config_at(tool->readings[first_kind(ex, kinds)].shown, "scaling.seq_len");
        pe_finding_state(finding, pe_word(rule), length);
        if (length.kind != PE_NULL)
            finding->pattern =
                "{label} uses the list of {found} for {taken} positions, whatever the sequence's length.";
    }
}

void pe_find_in_config(struct pe_findings *f)
{
    struct facts facts;
    find_facts(f->ex, &facts);
    find_base(f, &facts);
    find_dropped(f, &facts);
    find_sliding(f, &facts);
    find_types(f, &facts);
    find_unknown_rules(f, &facts);
    find_ratio(f, &facts);
    find_factor(f, &facts);
    find_original(f, &facts);
    find_original_of_file(f, &facts);
    find_layers(f, &facts);
    find_slopes(f, &facts);
    find_widths(f, &facts);
    find_default_share(f, &facts);
    find_sections(f, &facts);
    find_factors_of_cos(f, &facts);
    find_betas(f, &facts);
    find_no_type(f, &facts);
    find_lengths(f, &facts);
    pe_find_kinds(f, facts.at);
}
