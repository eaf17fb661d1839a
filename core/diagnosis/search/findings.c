/* Findings: what the first candidate changes, in words, with the value found and the value believed.
 *
 * A candidate is a list of faults and an edit. A reader wants a sentence for each: which field of the configuration,
 * what the tensor has there, what it should have. The sentence is in the fault's row, with {found} and
 * {believed} in place of the values; pe_fault_change finds the field that the fault has changed, so no fault writes its
 * own finding. A transform of the numbers is no field: its finding points to the tensor and has the transform's value.
 *
 * A sentence is used only if everything that it names is known and can be written in a line; else a shorter one takes
 * its place (pe_answer_sentence), because "{found}" without a value would be wrong in both languages.
 *
 * After the faults of the first candidate come findings that no hypothesis has: axes in another order, angles or
 * coordinates in float32, a table rounded to fewer bits, uninitialised memory, a rival that this tensor cannot
 * exclude. Before them come numbers that are not finite and rows that
 * are zero (where.c). If nothing fits, the part that does is stated, and one finding states that and how near the
 * nearest was. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/changed.h"
#include "core/diagnosis/measure/profile.h"
#include "core/diagnosis/naming/relations.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Members ---- */

enum { LIST_MAX = 64 };

/* Long lists are in the candidate's sequence. */
void pe_answer_value(struct pe_node *node, const char *name, const struct pe_value *value)
{
    uint64_t n = 0;
    bool is_long = value && value->kind == PE_ARRAY &&
                   (!pe_shape_count(value->array.shape, value->array.rank, &n) || n > LIST_MAX);
    if (value && !is_long)
        pe_put_value(node, name, value);
    else
        pe_put_null(node, name);
}

/* What a transform changed, as a value. */
static void put_order(const struct pe_channels *channels, struct pe_node *node)
{
    int64_t order[LIST_MAX];
    size_t n = channels->n < LIST_MAX ? channels->n : LIST_MAX;
    for (size_t i = 0; i < n; i++)
        order[i] = channels->order[i];
    pe_put_integers(node, "found", order, n);
    if (channels->heads)
        pe_put_integer(node, "heads", channels->heads);
}

static void put_length(const struct pe_value *scaling, const char *name, struct pe_node *node)
{
    const struct pe_value *length =
        scaling ? pe_field_find(scaling->object.fields, scaling->object.n, "seq_len") : NULL;
    struct pe_node *object = pe_put_object(node, name);
    if (length)
        pe_put_value(object, "seq_len", length);
}

static void put_switch(const struct pe_candidate *c, struct pe_node *node)
{
    const struct pe_transforms *t = &c->edit.transforms;
    struct pe_node *found = pe_put_object(node, "found");
    pe_put_integer(found, "row", t->switched_at);
    put_length(pe_field_find(c->edit.fields, c->edit.n_fields, "scaling"), "before", found);
    if (t->is_growing)
        pe_put_boolean(found, "growing", true);
    else
        put_length(t->scaling_behind, "after", found);
}

static void put_transformed(const struct pe_candidate *c, const char *code, struct pe_node *node)
{
    const struct pe_transforms *t = &c->edit.transforms;
    if (strcmp(code, "channels_permuted") == 0)
        put_order(&t->channels, node);
    else if (strcmp(code, "scaled") == 0)
        pe_put_real(node, "found", t->scaled);
    else if (strcmp(code, "mask_value") == 0 || (strcmp(code, "mask_missing") == 0 && !isnan(t->mask_value)))
        pe_put_real(node, "found", t->mask_value);
    else if (strcmp(code, "stage_other") == 0)
        pe_put_string(node, "found", pe_stage_words[t->stage]);
    else if (strcmp(code, "scaling_switch") == 0)
        put_switch(c, node);
    else
        pe_put_null(node, "found");
    pe_put_null(node, "believed");
}

static const char *sentence_of(const struct pe_fault_info *info, size_t choice)
{
    return info->details[info->n_details > 1 && choice < info->n_details ? choice : 0];
}

/* Of each row of the batch. */
static const struct pe_value *first_positions(struct pe_diagnosis *d, const struct pe_candidate *c)
{
    const struct pe_value *v = pe_edit_value(d, &c->edit, "positions");
    uint64_t n_rows = v->array.shape[0], n = v->array.shape[1];
    double *first = pe_values_room(d->values, n_rows * sizeof *first);
    for (uint64_t b = 0; first && b < n_rows; b++)
        first[b] = ((const double *)v->array.data)[b * n];
    struct pe_tensor list = {.dtype = PE_F64, .rank = 1, .shape = {n_rows}, .data = first};
    return first ? pe_values_keep(d->values, (struct pe_value){.kind = PE_ARRAY, .array = list}) : NULL;
}

/* What a factor is: of the numbers, or of a field, found over believed; the sentence that states it, NULL: there is
 * none. */
static const char *put_meaning(struct pe_diagnosis *d, const struct pe_candidate *c, const struct pe_fault *fault,
                               const struct pe_change *change, struct pe_node *node)
{
    const struct pe_fault_info *info = &fault->info;
    double found = change->found ? pe_value_number(change->found) : c->edit.transforms.scaled,
           believed = change->believed ? pe_value_number(change->believed)
                      : change->found  ? (double)NAN
                                       : 1;
    bool is_factor = fault->is_factor && !isnan(found) && !isnan(believed);
    const char *meaning = is_factor ? pe_factor_meaning(d, found / believed) : NULL;
    pe_put_string_or_null(node, "meaning", meaning);
    return meaning && info->n_details > 1 ? info->details[1] : NULL;
}

/* Is the value one that a sentence can name? */
static bool is_plain(const struct pe_value *v) { return v && v->kind != PE_NULL && v->kind != PE_OBJECT; }

static bool names(const char *sentence, const char *placeholder) { return strstr(sentence, placeholder) != NULL; }

/* The sentence of a fault, if all that it names is known; else one that does with less: a field that the configuration
 * leaves out has no value there, and of objects of which several members differ none is the one. */
void pe_answer_sentence(struct pe_diagnosis *d, struct pe_node *node, const struct pe_fault_info *info,
                        const char *sentence, const char *field)
{
    const struct pe_value *found = pe_node_find(node, "found"), *believed = pe_node_find(node, "believed");
    const char *other[PE_N_LANGS];
    char text[PE_N_LANGS][160];
    if (!(names(sentence, "{found}") && !is_plain(found)) && !(names(sentence, "{believed}") && !is_plain(believed))) {
        pe_put_detail(node, d->request->lang, sentence);
        return;
    }
    for (enum pe_lang lang = 0; lang < PE_N_LANGS; lang++) {
        snprintf(text[lang], sizeof text[lang], pe_text_in(lang, "%s is {found}; the configuration leaves it out."),
                 field);
        other[lang] = is_plain(found) && *field ? text[lang] : pe_summary_in(lang, &info->about);
    }
    pe_put_details(node, d->request->lang, other);
}

const struct pe_member pe_finding_members[] = {
    {.name = "code", .types = "string", .list = PE_FAULT_CODES},
    {.name = "pointer", .summary = "the field of the belief"},
    {.name = "", .members = pe_detail_members},
    {.name = "found", .summary = "what the tensor has"},
    {.name = "believed", .summary = "what it should have had"},
    {.name = "meaning", .types = "string|null", .summary = "what a factor that is found is, e.g. 1/sqrt(head_dim)"},
    {.name = "cure",
     .types = "object|null",
     .summary = "lines of Python that mend it, torch and numpy (null: there are none); null: there is no short one"},
    {.name = "derive",
     .types = "array",
     .items = "string",
     .summary = "of the first finding: two addresses of /derive, why the first number that differs is what the belief "
                "gives, and why it is what was found",
     .is_optional = true},
    {.name = NULL},
};

static double member_of(const struct pe_value *object, const char *name)
{
    const struct pe_value *v =
        object && object->kind == PE_OBJECT ? pe_field_find(object->object.fields, object->object.n, name) : NULL;
    return v ? pe_value_number(v) : (double)NAN;
}

static bool is_same_type(const struct pe_value *a, const struct pe_value *b)
{
    bool are_objects = a && b && a->kind == PE_OBJECT && b->kind == PE_OBJECT;
    const struct pe_value *x = are_objects ? pe_field_find(a->object.fields, a->object.n, "type") : NULL,
                          *y = are_objects ? pe_field_find(b->object.fields, b->object.n, "type") : NULL;
    return x && y && pe_value_same(x, y);
}

/* A rule that goes by the sequence's length has another one: which list of longrope that is. False: it is none. */
static bool put_other_length(struct pe_diagnosis *d, struct pe_node *node, const struct pe_change *change)
{
    double found = member_of(change->found, "seq_len"), believed = member_of(change->believed, "seq_len");
    double original = member_of(change->found, "original_max_position_embeddings");
    const char *texts[PE_N_LANGS];
    char text[PE_N_LANGS][240];
    bool has_lists = change->found && change->found->kind == PE_OBJECT &&
                     pe_field_find(change->found->object.fields, change->found->object.n, "long_factor");
    if (!is_same_type(change->found, change->believed) || isnan(found) || found == believed)
        return false;
    for (enum pe_lang lang = 0; lang < PE_N_LANGS; lang++) {
        size_t n =
            (size_t)snprintf(text[lang], sizeof text[lang], pe_text_in(lang, "seq_len of the scaling is %.10g"), found);
        if (!isnan(believed))
            n += (size_t)snprintf(text[lang] + n, sizeof text[lang] - n,
                                  pe_text_in(lang, ", where the configuration has %.10g"), believed);
        snprintf(text[lang] + n, sizeof text[lang] - n, "%s",
                 !has_lists         ? pe_text_in(lang, ".")
                 : found > original ? pe_text_in(lang, ": the tensor has the long list of factors.")
                                    : pe_text_in(lang, ": the tensor has the short list of factors."));
        texts[lang] = text[lang];
    }
    pe_put_details(node, d->request->lang, texts);
    return true;
}

/* A member of the scaling, by its name. */
static bool put_member(struct pe_diagnosis *d, struct pe_node *node, const struct pe_change *change)
{
    static const char scaling[] = "/scaling/";
    const char *texts[PE_N_LANGS];
    char text[PE_N_LANGS][160];
    if (strncmp(change->pointer, scaling, sizeof scaling - 1) != 0 || !is_plain(change->found) ||
        !is_plain(change->believed))
        return false;
    for (enum pe_lang lang = 0; lang < PE_N_LANGS; lang++) {
        snprintf(text[lang], sizeof text[lang],
                 pe_text_in(lang, "%s of the scaling is {found}; the configuration has {believed}."),
                 change->pointer + sizeof scaling - 1);
        texts[lang] = text[lang];
    }
    pe_put_details(node, d->request->lang, texts);
    return true;
}

/* Both values and the sentence of fault i. */
static void put_change(struct pe_diagnosis *d, const struct pe_candidate *c, unsigned i, const struct pe_change *change,
                       struct pe_node *node)
{
    const struct pe_fault_info *info = pe_fault_at(c->explanation.h.fault[i]);
    const struct pe_named *named = pe_named_of(d, &c->explanation.h, i);
    if (named && named->is_ladder && !isnan(named->related.found)) {
        pe_put_real(node, "found", named->related.found);
        pe_put_real(node, "believed", named->related.believed);
    } else if (change->found || change->believed) {
        pe_answer_value(node, "found", change->found);
        pe_answer_value(node, "believed", change->believed);
    } else {
        put_transformed(c, info->code, node);
    }
    if (pe_same(info->code, "inv_freq_other"))
        pe_answer_nearest_ladder(d, c, node);
    const char *last = strrchr(change->pointer, '/');
    const char *sentence = put_meaning(d, c, pe_fault_row(c->explanation.h.fault[i]), change, node);
    sentence = named && named->relation->text ? named->relation->text : sentence;
    if (!put_other_length(d, node, change) && !put_member(d, node, change) &&
        !pe_scalings_put(d, node, change->found, change->believed))
        pe_answer_sentence(d, node, info, sentence ? sentence : sentence_of(info, c->explanation.h.choice[i]),
                           change->found && last ? last + 1 : "");
}

static struct pe_node *put_fault(struct pe_diagnosis *d, const struct pe_candidate *c, unsigned i, struct pe_node *list)
{
    const struct pe_fault_info *info = pe_fault_at(c->explanation.h.fault[i]);
    struct pe_change change;
    struct pe_node *node = pe_put_object(list, NULL);
    pe_fault_change(d, &c->edit, pe_fault_row(c->explanation.h.fault[i]), i, &change);
    if (pe_same(info->code, "offsets_by_row"))
        change.found = first_positions(d, c);
    pe_put_string(node, "code", info->code);
    const struct pe_named *named = pe_named_of(d, &c->explanation.h, i);
    bool is_second = named && named->n_axes && !change.found && !change.believed; /* the first one set the list */
    pe_put_string(node, "pointer", is_second ? "/positions" : change.pointer);
    if (named && !named->is_ladder && named->relation->text && !isnan(named->related.found))
        pe_named_put(d, named, node);
    else
        put_change(d, c, i, &change, node);
    pe_answer_cure(d, pe_fault_row(c->explanation.h.fault[i]), named, node);
    return node;
}

/* The sentences of its faults, one after another. */
void pe_answer_detail(struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_node *node)
{
    enum { ROOM = 2048 };
    static const char *const names[] = {"detail", "detail_zh"};
    char text[2][ROOM] = {"", ""};
    struct pe_values *scratch = pe_values_new();
    struct pe_node *list = scratch ? pe_put_list(pe_values_root(scratch), "findings") : NULL;
    d->no_memory |= !scratch;
    for (unsigned i = 0; list && i < c->explanation.h.n; i++) {
        const struct pe_node *one = put_fault(d, c, i, list);
        for (int k = 0; k < 2; k++) {
            const struct pe_value *sentence = pe_node_find(one, names[k]);
            size_t n = strlen(text[k]);
            if (sentence)
                snprintf(text[k] + n, ROOM - n, "%s%s", n && text[k][n - 1] == '.' ? " " : "", sentence->string);
        }
    }
    for (int k = 0; k < 2; k++)
        pe_put_string(node, names[k], text[k]);
    pe_values_free(scratch);
}

static struct pe_node *put_finding(struct pe_node *list, enum pe_role role, const char *pointer)
{
    struct pe_node *node = pe_put_object(list, NULL);
    pe_put_string(node, "code", pe_fault_of(role)->info.code);
    pe_put_string(node, "pointer", pointer);
    return node;
}

/* sentence: which of the fault's. */
static void finish_finding(struct pe_diagnosis *d, struct pe_node *node, enum pe_role role, size_t sentence,
                           const char *believed)
{
    if (!pe_node_find(node, "found") && !pe_node_child(node, "found"))
        pe_put_null(node, "found");
    if (!pe_node_find(node, "believed") && !pe_node_child(node, "believed"))
        pe_put_string_or_null(node, "believed", believed);
    pe_put_null(node, "meaning");
    pe_put_detail(node, d->request->lang, pe_fault_of(role)->info.details[sentence]);
    pe_answer_cure(d, NULL, NULL, node);
}

/* ---- Findings without a fault ---- */

/* Does the tensor differ from the candidate as angles in float32 do, or is it what such angles give? */
static bool has_angles_f32(const struct pe_candidate *c)
{
    bool is_rounded = c->all.verdict == PE_ROUNDING && c->all.is_beyond && c->model->columns;
    return is_rounded || c->edit.transforms.recipe == PE_RECIPE_F32;
}

/* The first position where it shows, and the largest difference. Rows of transposed evidence are channels. */
static void put_where(const struct pe_candidate *c, struct pe_node *node)
{
    const struct pe_positions *positions = &c->model->plan->seq.k[0];
    bool is_turned = c->edit.transforms.transposed;
    pe_put_real(
        node, "position",
        pe_position_at(positions, is_turned ? c->all.beyond_col : pe_model_position(c->model, c->all.beyond_row)));
    pe_put_real(node, "largest", c->all.max_error);
    pe_put_integer(node, "row",
                   (int64_t)(is_turned ? c->all.worst.col : pe_model_position(c->model, c->all.worst.row)));
}

static void put_angles(struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_node *list)
{
    enum { EXPLAINED, BESIDE_EXACT, BESIDE_FLOAT32 } sentence = EXPLAINED;
    char pointer[32];
    bool is_float32 = c->model->plan->arith != PE_ARITH_EXACT || !pe_edit_value(d, NULL, "arith"),
         is_recipe = c->edit.transforms.recipe != PE_RECIPE_EXACT;
    snprintf(pointer, sizeof pointer, "/%s", is_float32 ? d->evidence.kind->tensors[0] : "arith");
    struct pe_node *node = put_finding(list, PE_ROLE_NARROW_ANGLES, pointer);
    if (c->all.is_beyond && c->all.verdict == PE_ROUNDING) {
        put_where(c, node);
        sentence = is_float32 || is_recipe ? BESIDE_FLOAT32 : BESIDE_EXACT;
    }
    if (!is_float32)
        pe_put_string(node, "found", "float32");
    finish_finding(d, node, PE_ROLE_NARROW_ANGLES, sentence, is_float32 || !d->belief.is_given ? NULL : "exact");
}

static void put_narrow(struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_node *list)
{
    char pointer[32];
    if (!c->is_narrow)
        return;
    snprintf(pointer, sizeof pointer, "/%s", d->evidence.kind->tensors[0]);
    struct pe_node *node = put_finding(list, PE_ROLE_NARROW, pointer);
    pe_put_string(node, "found", pe_dtype_name(d->evidence.narrow));
    finish_finding(d, node, PE_ROLE_NARROW, 0, NULL);
}

/* Does the tensor differ from the candidate as a table does that is read between its rows in float32? */
static bool has_coordinates_f32(const struct pe_candidate *c)
{
    const struct pe_scheme *scheme = c->model->plan->scheme;
    return c->all.verdict == PE_ROUNDING && c->all.is_beyond && (scheme->coordinate_loss || scheme->is_counted);
}

static void put_coordinates(struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_node *list)
{
    const struct pe_tensor *t = &d->evidence.tensors[0]; /* rows of a map are those of its last two axes */
    uint64_t row = c->edit.transforms.transposed ? c->all.worst.col : c->all.worst.row % t->shape[t->rank - 2];
    char pointer[32];
    snprintf(pointer, sizeof pointer, "/%s", d->evidence.kind->tensors[0]);
    struct pe_node *node = put_finding(list, PE_ROLE_NARROW_PLACES, pointer);
    pe_put_real(node, "largest", c->all.max_error);
    pe_put_integer(node, "row", (int64_t)row);
    finish_finding(d, node, PE_ROLE_NARROW_PLACES, c->model->plan->scheme->is_counted, NULL);
}

/* The nearest hypothesis, in place of an explanation. */
static void put_nearest(const struct pe_answer *a, struct pe_node *node)
{
    if (a->n == 0)
        return;
    struct pe_node *nearest = pe_put_object(node, "nearest");
    struct pe_node *codes = pe_put_list(nearest, "codes");
    for (unsigned i = 0; i < a->candidates[0].explanation.h.n; i++)
        pe_put_string(codes, NULL, pe_fault_at(a->candidates[0].explanation.h.fault[i])->code);
    pe_put_real(nearest, "max_error", a->candidates[0].all.max_error);
}

/* How many frequencies differ from the belief's. */
static int64_t count_off(const struct pe_diagnosis *d)
{
    double found[PE_HEAD_DIM_MAX], expected[PE_HEAD_DIM_MAX], loss[PE_HEAD_DIM_MAX];
    size_t n = (size_t)d->evidence.row_len;
    struct pe_judge j = pe_judge_of(&d->evidence, false);
    int64_t n_off = 0;
    pe_evidence_read(&d->evidence, 0, 0, 0, n, found);
    pe_model_fill(d->belief.model, 0, 0, 0, n, expected);
    pe_model_phases(d->belief.model, 0, 0, 0, n, loss);
    for (size_t c = 0; c < n; c++)
        n_off += !(pe_is_exact(&j, found[c], expected[c], 0) ||
                   fabs(found[c] - expected[c]) <= pe_rounding_tolerance(&j, found[c], loss[c]));
    return n_off;
}

static void put_uninitialised(struct pe_diagnosis *d, struct pe_node *list)
{
    struct pe_oddity odd = pe_ladder_oddity(&d->evidence);
    if (!odd.why)
        return;
    struct pe_node *node = put_finding(list, PE_ROLE_UNINITIALISED, "/inv_freq");
    struct pe_node *found = pe_put_object(node, "found");
    pe_put_integer(found, "pair", (int64_t)odd.pair);
    pe_answer_put_number(found, "value", pe_answer_shortest(d->evidence.dtype, odd.value));
    pe_put_string(found, "why", odd.why);
    pe_put_integer(found, "pairs", count_off(d));
    finish_finding(d, node, PE_ROLE_UNINITIALISED, 0, NULL);
}

static void put_place(const struct pe_diagnosis *d, const struct pe_number_place *at, struct pe_node *node)
{
    pe_put_string(node, "output", pe_evidence_name(&d->evidence, at->t));
    pe_answer_put_index(d, node, at->t, at->row, at->col);
}

/* What was done to the believed numbers. */
static void put_changed(const struct pe_diagnosis *d, const struct pe_changed *changed, struct pe_node *node)
{
    struct pe_node *found = pe_put_object(node, "found");
    if (changed->n)
        pe_put_integer(found, "numbers", (int64_t)changed->n);
    if (changed->change == PE_CHANGED_CUT_OFF) {
        pe_answer_put_number(found, "least", pe_answer_shortest(d->evidence.dtype, changed->low));
        pe_answer_put_number(found, "most", pe_answer_shortest(d->evidence.dtype, changed->high));
    }
    if (changed->n_order)
        pe_put_integers(found, "order", changed->order, changed->n_order);
    if (*changed->rule)
        pe_put_string(found, "rule", changed->rule);
    if (*changed->first)
        pe_put_string(found, "first", changed->first);
    if (changed->x != 0)
        pe_answer_put_number(found, "value", pe_answer_shortest(d->evidence.dtype, changed->x));
    if (changed->change == PE_CHANGED_MASK || changed->change == PE_CHANGED_KEYS ||
        changed->change == PE_CHANGED_HIDDEN_WEIGHT)
        pe_put_integer(found, "query", (int64_t)changed->found.row);
    if (*changed->before)
        pe_put_string(node, "believed", changed->before);
    if (changed->change == PE_CHANGED_REORDERED) {
        put_place(d, &changed->found, found);
        put_place(d, &changed->believed, pe_put_object(node, "believed"));
    }
}

static void put_unexplained(struct pe_diagnosis *d, const struct pe_answer *a, struct pe_node *list)
{
    enum { FAR, NEARLY_BELIEVED, NEARLY_OTHER, TOO_LITTLE, ALONE, CHANGED };
    size_t sentence = FAR;
    struct pe_changed changed;
    const struct pe_candidate *first = &a->candidates[0];
    struct pe_node *node = put_finding(list, PE_ROLE_UNEXPLAINED, "");
    put_nearest(a, node);
    if (d->belief.is_given && a->belief.all.is_alone) { /* whatever else is as near */
        pe_answer_misfit(d, &a->belief.all.worst, node, "worst");
        sentence = ALONE;
    } else if (pe_parts_are_single(d)) {
        const struct pe_parts *p = d->parts;
        const struct pe_misfit worst = {
            true, p->farthest.t, p->farthest.row, p->farthest.col, p->farthest.found, p->farthest.expected};
        pe_answer_misfit(d, &worst, node, "worst");
        sentence = ALONE;
    } else if (a->n > 0 && first->all.verdict == PE_NEAR && first->all.worst.is_any) {
        pe_answer_misfit(d, &first->all.worst, node, "worst");
        sentence = first->explanation.h.n > 0 ? NEARLY_OTHER : d->belief.is_given ? NEARLY_BELIEVED : FAR;
    }
    if (pe_is_too_little(d)) {
        struct pe_node *found = pe_put_object(node, "found");
        pe_put_integer(found, "numbers", (int64_t)pe_evidence_informative(&d->evidence));
        pe_put_integer(found, "needed", PE_INFORMATIVE_MIN);
        sentence = TOO_LITTLE;
    } else if (sentence != ALONE && pe_changed_measure(d, &changed)) {
        put_changed(d, &changed, node);
        sentence = CHANGED + (size_t)changed.change;
    }
    finish_finding(d, node, PE_ROLE_UNEXPLAINED, sentence, NULL);
}

static void put_moved(struct pe_diagnosis *d, struct pe_node *list)
{
    const struct pe_moved *moved = &d->evidence.moved;
    int64_t order[PE_RANK_MAX];
    char pointer[32];
    if (!moved->is_other_order)
        return;
    for (unsigned i = 0; i < moved->n; i++)
        order[i] = moved->order[i];
    snprintf(pointer, sizeof pointer, "/%s", d->evidence.kind->tensors[0]);
    struct pe_node *node = put_finding(list, PE_ROLE_AXES_MOVED, pointer);
    pe_put_integers(node, "found", order, moved->n);
    finish_finding(d, node, PE_ROLE_AXES_MOVED, 0, NULL);
}

static void put_signed(struct pe_diagnosis *d, struct pe_node *list)
{
    if (!d->evidence.folded)
        return;
    struct pe_node *node = put_finding(list, PE_ROLE_SIGNED_SINES, "/sin");
    pe_put_integer(node, "found", (int64_t)d->evidence.folded);
    finish_finding(d, node, PE_ROLE_SIGNED_SINES, 0, NULL);
}

/* Whole matrices show which channels are pairs. */
static void put_layout(struct pe_diagnosis *d, struct pe_node *list)
{
    const struct pe_whole *whole = &d->evidence.whole;
    if (!whole->believed)
        return;
    struct pe_node *node = put_finding(list, PE_ROLE_PAIRING, "/layout");
    pe_put_string(node, "found", whole->layout);
    finish_finding(d, node, PE_ROLE_PAIRING, whole->is_half, whole->believed);
}

static void put_undecided(struct pe_diagnosis *d, const struct pe_answer *a, struct pe_node *list)
{
    if (!a->undecided.rival)
        return;
    struct pe_node *node = put_finding(list, PE_ROLE_UNDECIDED, "");
    pe_put_integer(node, "candidate", (int64_t)a->undecided.rival);
    pe_put_integer(node, "position", (int64_t)a->undecided.position);
    finish_finding(d, node, PE_ROLE_UNDECIDED, 0, NULL);
}

static void put_identified(struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_node *list)
{
    struct pe_node *node = put_finding(list, PE_ROLE_IDENTIFIED, "");
    struct pe_node *found = pe_put_object(node, "found"), *presets;
    pe_answer_summary(d, c, found);
    pe_answer_config(d, c, c->model->plan, found);
    presets = pe_put_list(found, "presets");
    for (size_t i = 0; i < c->n_presets; i++)
        pe_put_string(presets, NULL, c->presets[i]);
    finish_finding(d, node, PE_ROLE_IDENTIFIED, 0, NULL);
}

/* The words of the first candidate, which fits: its faults in the order of the table, then what is no mistake. */
static void put_explained(struct pe_diagnosis *d, const struct pe_candidate *c, bool has_zeros, struct pe_node *list)
{
    bool is_given = d->belief.is_given, has_angles = has_angles_f32(c), has_coordinates = has_coordinates_f32(c);
    if (!is_given)
        put_identified(d, c, list);
    for (unsigned i = 0; is_given && i < c->explanation.h.n; i++)
        if (pe_fault_row(c->explanation.h.fault[i])->role != PE_ROLE_NARROW_ANGLES) {
            struct pe_node *node = put_fault(d, c, i, list);
            if (i == 0)
                pe_answer_derive(d, c, node);
        }
    if (has_angles)
        put_angles(d, c, list);
    if (has_coordinates)
        put_coordinates(d, c, list);
    put_narrow(d, c, list);
    if (is_given && c->explanation.h.n == 0 && !has_angles && !has_coordinates && !d->evidence.moved.is_other_order &&
        !d->evidence.folded && !d->evidence.n_sizes && !d->evidence.whole.believed && !d->evidence.not_finite.n &&
        !has_zeros)
        finish_finding(d, put_finding(list, PE_ROLE_AS_BELIEVED, ""), PE_ROLE_AS_BELIEVED, 0, NULL);
}

void pe_answer_findings(struct pe_diagnosis *d, const struct pe_answer *a, struct pe_node *root)
{
    struct pe_node *list = pe_put_list(root, "findings");
    pe_answer_not_finite(d, list);
    pe_answer_sizes(d, list);
    bool has_zeros = pe_answer_zeros(d, a, list);
    put_moved(d, list);
    put_signed(d, list);
    put_layout(d, list);
    if (a->n > 0 && pe_fits(a->candidates[0].all.verdict)) {
        put_explained(d, &a->candidates[0], has_zeros, list);
    } else if (pe_answer_is_in_parts(d)) {
        pe_answer_part(d, list);
    } else {
        pe_answer_part(d, list);
        put_uninitialised(d, list);
        put_unexplained(d, a, list);
    }
    put_undecided(d, a, list);
}
