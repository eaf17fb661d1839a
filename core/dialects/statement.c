/* One translation: a target states the configuration in its members, these are read back as the tool reads them, and
 * what differs is lost. A rule that depends on the sequence's length is compared at several (lengths.c). */
#include "core/dialects/statement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Import of what was exported ---- */

/* What a request writes beside said. */
static void require(struct pe_statement *e, const char *name, struct pe_value value)
{
    if (e->n_required < PE_REQUIRED_MAX)
        e->required[e->n_required++] = (struct pe_field){name, value};
}

static void find_required(struct pe_statement *e, const struct pe_value *config)
{
    const char *carries = e->target->carries;
    double head_dim = pe_config_number(config, "head_dim", 0), rotary = pe_config_number(config, "rotary_dim", 0),
           offset = pe_config_number(config, "rotary_offset", 0);
    bool has_rotary = pe_is_among(carries, "rotary_dim") || (pe_is_among(carries, "share") && offset == 0);
    if (pe_same(pe_config_word(config, "scheme"), "none"))
        return;
    if (!pe_is_among(carries, "head_dim") && !(pe_is_among(carries, "rotary_dim") && rotary == head_dim))
        require(e, "head_dim", pe_config_at(config, "head_dim"));
    if (!has_rotary && rotary != head_dim)
        require(e, "rotary_dim", pe_config_at(config, "rotary_dim"));
    if (!pe_is_among(carries, "rotary_offset") && offset != 0)
        require(e, "rotary_offset", pe_config_at(config, "rotary_offset"));
    if (!pe_is_among(carries, "layout"))
        require(e, "layout", pe_word(e->layout));
    for (size_t i = 0; e->target->is_beside_a_model && i < 2; i++) {
        static const char *const names[] = {"channels", "mrope_section"};
        if (pe_config_at(config, names[i]).kind != PE_NULL)
            require(e, names[i], pe_config_at(config, names[i]));
    }
}

/* A file, before a kind of its layers is chosen. */
struct file {
    struct pe_gguf_outline outline;
    int64_t layers[PE_HF_LAYERS_MAX + 1];
};

/* Are its layers of this kind others than the model's? Compressed layers are of one kind there, and are listed. */
static bool has_other_layers(struct file *file, const char *name, const struct pe_dialect_kind *kind)
{
    if (!kind->layers || file->outline.row->is_compressed || !pe_hf_layers_known(&file->outline.layers, name))
        return false;
    size_t n = pe_hf_layers_of(&file->outline.layers, name, file->layers);
    return n != kind->n_layers || memcmp(file->layers, kind->layers, n * sizeof *kind->layers) != 0;
}

/* Its name among the kinds of what was exported. */
static enum pe_status name_kind(struct pe_statement *e, char name[PE_HF_KIND_BYTES])
{
    struct pe_failure ignored;
    const struct pe_dialect_kind *kind = e->kind;
    snprintf(name, PE_HF_KIND_BYTES, "%s", kind->layer_type);
    if (e->target->lenses)
        return PE_OK;
    struct file *file = malloc(sizeof *file);
    if (!file)
        return pe_no_memory(e->ex->err);
    enum pe_status status = pe_gguf_outline(&e->value, &file->outline, &ignored);
    if (!status) {
        snprintf(name, PE_HF_KIND_BYTES, "%s", pe_gguf_kind_name(&file->outline, kind->layer_type));
        e->has_other_layers |= has_other_layers(file, name, kind);
    }
    free(file);
    return status == PE_NO_MEMORY ? pe_no_memory(e->ex->err) : PE_OK;
}

static enum pe_status import_back(struct pe_statement *e, struct pe_reading *theirs)
{
    const struct pe_field said[] = {{"to", {.kind = PE_STRING, .string = e->target->name}}, {"value", e->value}};
    struct pe_field fields[PE_REQUIRED_MAX + 2] = {{"said", {.kind = PE_OBJECT, .object = {said, 2}}}};
    char name[PE_HF_KIND_BYTES];
    size_t n = 1;
    for (size_t i = 0; i < e->n_required; i++)
        fields[n++] = e->required[i];
    if (name_kind(e, name))
        return e->ex->err->status;
    if (e->target->has_kinds && (e->n_kinds > 1 || !e->target->lenses))
        fields[n++] = (struct pe_field){"layer_type", {.kind = PE_STRING, .string = name}};
    return pe_dialect_read_fields(e->ex, fields, n, theirs);
}

/* Both sides for sequences of another length than the answer's. */
static enum pe_status read_sides(struct pe_statement *e, struct pe_sides *sides)
{
    int64_t whole = e->ex->length;
    e->ex->length = sides->stretch.at;
    bool fails = pe_dialect_read(e->ex, NULL, e->kind->layer_type, &sides->ours) || import_back(e, &sides->theirs);
    e->ex->length = whole;
    return fails ? e->ex->err->status : PE_OK;
}

/* theirs: at the answer's length. */
static enum pe_status compare_lengths(struct pe_statement *e, const struct pe_reading *theirs)
{
    struct pe_sides sides[PE_STRETCHES_MAX] = {{.ours.config = NULL}};
    struct pe_stretch stretches[PE_STRETCHES_MAX];
    size_t n = pe_dialect_stretches(e->ex, e->kind->own.config, theirs->config, stretches), at = 0;
    enum pe_status status = PE_OK;
    for (size_t i = 0; i < n; i++) {
        sides[i].stretch = stretches[i];
        at = stretches[i].at == e->ex->length ? i : at;
    }
    sides[at].ours = e->kind->own;
    sides[at].theirs = *theirs;
    for (size_t i = 0; !status && i < n; i++)
        status = i == at ? PE_OK : read_sides(e, &sides[i]);
    if (!status)
        status = pe_statement_compare(e, sides, n, at);
    for (size_t i = 0; i < n; i++) {
        if (i == at)
            continue;
        pe_reading_drop(&sides[i].ours);
        pe_reading_drop(&sides[i].theirs);
    }
    return status;
}

static enum pe_status check_kind(struct pe_statement *e)
{
    struct pe_reading theirs;
    if (import_back(e, &theirs))
        return e->ex->err->status;
    if (!theirs.config) {
        pe_add_loss(e, "scheme", pe_word_or(&e->kind->own, "scheme", ""), pe_null(),
                    "{tool} cannot state these positions: {a}")
            ->a = pe_keep_word(e->ex->values, theirs.refused);
        e->is_refused = true;
        return PE_OK;
    }
    enum pe_status status = compare_lengths(e, &theirs);
    pe_reading_drop(&theirs);
    return status;
}

/* ---- Export ---- */

/* Every so many layers one has no positions: 0 if that is not the rule, or not known. */
static int64_t still_period(const struct pe_explain *ex)
{
    const struct pe_dialect_kind *still = NULL;
    size_t n = 0, n_still = 0;
    for (size_t k = 0; k < ex->n_text; k++) {
        bool is_still = pe_same(pe_config_word(ex->kinds[k].own.config, "scheme"), "none");
        n += ex->kinds[k].n_layers;
        n_still += is_still;
        still = is_still ? &ex->kinds[k] : still;
    }
    if (n_still != 1 || !still->n_layers)
        return 0;
    int64_t period = still->layers[0] + 1;
    for (size_t i = 0; i < still->n_layers; i++)
        if (still->layers[i] != (int64_t)(i + 1) * period - 1)
            return 0;
    return period > 1 && still->n_layers == n / (size_t)period ? period : 0;
}

/* A sliding kind beside another one that turns by another base. */
bool pe_is_local(const struct pe_explain *ex, const struct pe_dialect_kind *kind)
{
    double base = pe_config_number(kind->own.config, "base", 0);
    for (size_t k = 0; pe_gguf_slides(kind->layer_type) && k < ex->n_text; k++)
        if (ex->kinds[k].own.turn.n && !pe_gguf_slides(ex->kinds[k].layer_type) &&
            pe_config_number(ex->kinds[k].own.config, "base", 0) != base)
            return true;
    return false;
}

static bool can_be_stated(const struct pe_statement *e, const struct pe_dialect_kind *kind)
{
    const char *scheme = pe_config_word(kind->own.config, "scheme");
    return pe_same(scheme, "rope") || (e->target->states_none && pe_same(scheme, "none")) ||
           (!e->target->lenses && e->n_kinds > 1);
}

/* Below /hf_config; an object that only the class makes is not in the file. */
static const char *within(const struct pe_explain *ex)
{
    if (ex->preset && ex->preset->inside)
        return ex->preset->inside;
    bool is_inside = ex->hf && ex->language.place.object && ex->language.place.object != ex->hf;
    const char *last = is_inside ? strrchr(ex->language.place.at, '/') : NULL;
    return last ? last + 1 : "";
}

static enum pe_status export_kinds(struct pe_statement *e)
{
    const struct pe_explain *ex = e->ex;
    struct pe_stated_kind *stated = pe_values_room(ex->values, PE_DIALECT_KINDS_MAX * sizeof *stated);
    if (!stated)
        return pe_no_memory(ex->err);
    bool are_all = !e->target->lenses || e->n_kinds > 1; /* also those whose numbers another kind has */
    size_t n = are_all ? ex->n_text : e->n_kinds, first = 0;
    for (size_t k = 0; k < n; k++)
        stated[k] = are_all ? pe_dialect_state(&ex->kinds[k], &ex->kinds[k].own)
                            : pe_dialect_state(e->kinds[k], &e->kinds[k]->own);
    while (first + 1 < n && !stated[first].n)
        first++;
    struct pe_export s = {.tool = e->target,
                          .kind = stated[are_all ? first : 0],
                          .length = ex->is_length_assumed ? 0 : ex->length,
                          .is_local = pe_is_local(ex, e->kinds[0]),
                          .still_period = still_period(ex),
                          .within = within(ex),
                          .kinds = stated,
                          .n_kinds = n,
                          .file = {.architecture = e->architecture},
                          .values = ex->values};
    pe_dialect_sizes(ex, &s.file);
    pe_export_open(&s);
    pe_export_members(&s);
    if (s.failed)
        return pe_no_memory(ex->err);
    e->layout = s.layout;
    if (s.value.n)
        e->value = pe_object(s.value.fields, s.value.n);
    find_required(e, s.config);
    return PE_OK;
}

enum pe_status pe_statement_fill(struct pe_statement *e)
{
    const struct pe_dialect_kind *first = e->kinds[0];
    e->kind = first;
    e->value = pe_null();
    e->layout = pe_config_word(first->own.config, "layout");
    if (e->ex->layer_type && !e->target->lenses) { /* its architecture lays out all of them */
        pe_add_loss(e, "layers", pe_null(), pe_null(),
                    "{tool} states all kinds of layers at once: leave layer_type out.");
        return PE_OK;
    }
    if (can_be_stated(e, first) && export_kinds(e))
        return e->ex->err->status;
    if (e->value.kind == PE_NULL) {
        pe_add_loss(e, "scheme", pe_word_or(&first->own, "scheme", ""), pe_null(),
                    "{tool} states rotary positions only; these are {wanted}.");
        return PE_OK;
    }
    for (size_t k = 0; k < e->n_kinds; k++) {
        e->kind = e->kinds[k];
        if (check_kind(e))
            return e->ex->err->status;
    }
    e->kind = first;
    if (e->has_other_layers && e->n_kinds > 1)
        pe_add_loss(e, "layers", pe_null(), pe_null(), "{tool}: this architecture has other layers of each kind.");
    if (e->is_refused) {
        e->value = pe_null();
        e->has_distance = false;
    }
    return PE_OK;
}

/* ---- The answer ---- */

static void print_value(const struct pe_value *v, char *out, size_t room)
{
    if (v->kind == PE_STRING)
        snprintf(out, room, "%s", v->string);
    else
        pe_value_show(v, out, room);
}

/* A pattern with what it names filled in. */
static void fill(char *out, size_t room, const char *pattern, const char *tool, const struct pe_loss *loss)
{
    char wanted[64], gets[64];
    print_value(&loss->wanted, wanted, sizeof wanted);
    print_value(&loss->gets, gets, sizeof gets);
    const char *const parts[][2] = {{"{tool}", tool}, {"{what}", loss->what},          {"{wanted}", wanted},
                                    {"{gets}", gets}, {"{a}", loss->a ? loss->a : ""}, {"{b}", loss->b ? loss->b : ""}};
    snprintf(out, room, "%s", pattern);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        pe_replace(out, room, parts[i][0], parts[i][1]);
}

static void put_loss(const struct pe_statement *e, struct pe_node *list, const struct pe_loss *loss)
{
    struct pe_node *node = pe_put_object(list, NULL);
    char patterns[PE_N_LANGS][PE_DETAIL_MAX + 160];
    pe_put_string(node, "what", loss->what);
    pe_put_value(node, "wanted", &loss->wanted);
    pe_put_value(node, "gets", &loss->gets);
    if (loss->layer_type)
        pe_put_string(node, "layer_type", loss->layer_type);
    if (loss->lengths)
        pe_put_lengths(node, loss->lengths);
    for (enum pe_lang lang = 0; lang < PE_N_LANGS; lang++) {
        fill(patterns[lang], sizeof patterns[lang], pe_text_in(lang, loss->pattern), e->target->label, loss);
        size_t n = strlen(patterns[lang]);
        if (loss->lengths)
            pe_lengths_print(loss->lengths, lang, patterns[lang] + n, sizeof patterns[lang] - n);
    }
    pe_put_details(node, e->ex->request->lang, (const char *const[]){patterns[PE_EN], patterns[PE_ZH]});
}

/* Entries live as long as the answer, which borrows of them. */
void pe_statement_put(struct pe_statement *e, struct pe_node *list, const char *layer_type)
{
    const struct pe_tool *target = e->target;
    struct pe_node *node = pe_put_object(list, NULL);
    pe_put_string(node, "to", target->name);
    if (layer_type)
        pe_put_string(node, "layer_type", layer_type);
    if (!target->lenses) {
        pe_put_string(node, "architecture", e->architecture);
        pe_put_boolean(node, "architecture_assumed", e->is_assumed);
    }
    pe_put_value(node, "value", &e->value);
    struct pe_node *needs = pe_put_object(node, "needs");
    for (size_t i = 0; e->value.kind != PE_NULL && i < e->n_required; i++)
        pe_put_value(needs, e->required[i].name, &e->required[i].value);
    bool is_permuted = pe_is_permuted(pe_config_word(e->kinds[0]->own.config, "layout"), e->layout);
    pe_put_string(node, "rows", pe_rows_name(is_permuted));
    pe_put_boolean(node, "exact", e->n_losses == 0);
    struct pe_node *losses = pe_put_list(node, "loses");
    for (size_t i = 0; i < e->n_losses; i++)
        put_loss(e, losses, &e->losses[i]);
    pe_put_distance(node, "consequence", e->has_distance ? &e->distance : NULL);
    pe_put_string(node, "certainty", target->info.certainty);
    pe_put_string(node, "source", target->source);
}
