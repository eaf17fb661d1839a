/* A configuration in the words of other tools: the request, which targets and kinds of layers get an entry, and the
 * answer. statement.c makes an entry, losses.c compares. */
#include "core/dialects/statement.h"

/* ---- The request ---- */

struct own_fields {
    int64_t length;
    const struct pe_value *to, *architecture;
};

static const struct pe_param rows[] = {
    PE_P_VALUE(own_fields, to, "targets", "name of a tool, a list of names, or all, the default; see dialects",
               .group = PE_G_ANSWER),
    PE_P_VALUE(own_fields, architecture, "architecture",
               "of the target gguf; default that of the file or the model_type, else one that fits the positions",
               .group = PE_G_ANSWER),
    PE_P_INT(own_fields, length, PE_UNSET, 1, 0x1p31, "length",
             "positions over which consequences are measured; default the model's length", .group = PE_G_SEQUENCE),
    PE_P_END,
};

const struct pe_param *pe_translate_params(void) { return rows; }

/* ---- Which architecture ---- */

/* A query has a list of one. */
static enum pe_status check_architecture(const struct pe_explain *ex, const struct pe_value **architecture)
{
    const struct pe_value *asked = *architecture;
    if (!asked)
        return PE_OK;
    if (asked->kind == PE_LIST && asked->list.n == 1)
        asked = *architecture = &asked->list.items[0];
    if (asked->kind != PE_STRING)
        return pe_fail(ex->err, "/architecture", "%s is not a string; write a name", "architecture");
    const struct pe_gguf_architecture *row = pe_gguf_architecture_find(asked->string);
    if (row && row->kind != PE_GGUF_ROPE)
        return pe_fail(ex->err, "/architecture", "architecture \"%.64s\" has no rotary positions", asked->string);
    return row ? PE_OK : pe_gguf_unknown(asked->string, "/architecture", ex->err);
}

static const char *choose_architecture(const struct pe_explain *ex, const struct pe_value *asked, bool *is_assumed)
{
    const char *named = asked      ? asked->string
                        : ex->gguf ? ex->outline->architecture
                        : ex->hf   ? pe_tool_of_files()->architecture(ex->language.model_type)
                                   : NULL;
    const struct pe_value *config = ex->kinds[0].own.config;
    for (size_t k = 0; k < ex->n_text && !ex->kinds[0].own.turn.n; k++)
        if (ex->kinds[k].own.turn.n) {
            config = ex->kinds[k].own.config;
            break;
        }
    bool has_local = false, slides_unscaled = false;
    for (size_t k = 0; k < ex->n_text; k++) {
        has_local |= pe_is_local(ex, &ex->kinds[k]);
        slides_unscaled |= pe_gguf_slides(ex->kinds[k].layer_type) &&
                           pe_same(pe_config_word(ex->kinds[k].own.config, "scaling.type"), "default");
    }
    *is_assumed = !named;
    return named ? named : pe_gguf_assume(config, has_local, slides_unscaled);
}

/* ---- All of them ---- */

struct job {
    struct pe_explain *ex;
    struct pe_names names;                                     /* of targets; none: all */
    const struct pe_dialect_kind *kinds[PE_DIALECT_KINDS_MAX]; /* those that differ */
    size_t n_kinds;
    const char *architecture;
    bool is_assumed;
    struct pe_node *list;
    uint64_t has; /* bits: targets that have their entries */
    int64_t n_exact, n_entries;
};

static void list_kinds(struct job *job)
{
    const struct pe_explain *ex = job->ex;
    for (size_t k = 0; k < ex->n_text; k++) {
        bool is_new = true;
        for (size_t i = 0; i < job->n_kinds; i++)
            is_new &= !pe_value_same(job->kinds[i]->own.config, ex->kinds[k].own.config);
        if (is_new)
            job->kinds[job->n_kinds++] = &ex->kinds[k];
    }
}

/* One value states all kinds: a file's architecture decides about them, of a config.json each turns the same channels.
 */
static bool are_joined(const struct job *job, const struct pe_tool *target)
{
    static const char *const common[] = {"head_dim", "rotary_offset", "layout"};
    if (!target->has_kinds || !target->lenses)
        return target->has_kinds;
    for (size_t k = 0; k < job->n_kinds; k++) {
        const struct pe_value *config = job->kinds[k]->own.config, *first = job->kinds[0]->own.config;
        if (!job->kinds[k]->own.turn.n)
            return false;
        for (size_t i = 0; i < 3; i++) {
            struct pe_value a = pe_config_at(first, common[i]), b = pe_config_at(config, common[i]);
            if (!pe_value_same(&a, &b))
                return false;
        }
    }
    return true;
}

static enum pe_status add_entry(struct job *job, const struct pe_tool *target, size_t first, size_t n)
{
    struct pe_statement *e = pe_values_room(job->ex->values, sizeof *e);
    if (!e)
        return pe_no_memory(job->ex->err);
    e->ex = job->ex;
    e->target = target;
    e->kinds = job->kinds + first;
    e->n_kinds = n;
    e->architecture = job->architecture;
    e->is_assumed = job->is_assumed;
    if (pe_statement_fill(e))
        return job->ex->err->status;
    pe_statement_put(e, job->list, n < job->n_kinds ? e->kinds[0]->layer_type : NULL);
    job->n_exact += e->n_losses == 0;
    job->n_entries++;
    return PE_OK;
}

/* Once, however often it is named. */
static enum pe_status add_target(struct job *job, size_t i)
{
    const struct pe_tool *target = pe_tools[i];
    if (job->has >> i & 1)
        return PE_OK;
    job->has |= UINT64_C(1) << i;
    if (pe_is_cancelled())
        return pe_cancelled(job->ex->err);
    if (are_joined(job, target))
        return add_entry(job, target, 0, job->n_kinds);
    for (size_t k = 0; k < job->n_kinds; k++)
        if (add_entry(job, target, k, 1))
            return job->ex->err->status;
    return PE_OK;
}

/* The names of `to`; none: all. */
static enum pe_status check_to(const struct pe_explain *ex, const struct pe_value *to)
{
    struct pe_names names = pe_names_of(to);
    if (to && !names.n)
        return pe_fail(ex->err, "/to", "to is an empty list; name a target, or all");
    for (size_t i = 0; i < names.n; i++) {
        if (names.items[i].kind != PE_STRING)
            return pe_fail(ex->err, "/to", "to is neither a name nor a list of names");
        if (!pe_same(names.items[i].string, "all") && !pe_target_info_find(names.items[i].string))
            return pe_tool_unknown(names.items[i].string, "/to", ex->err);
    }
    return PE_OK;
}

static enum pe_status add_named(struct job *job, const char *name)
{
    for (size_t i = 0; i < pe_n_targets(); i++)
        if ((pe_same(name, "all") || pe_same(name, pe_tools[i]->name)) && add_target(job, i))
            return job->ex->err->status;
    return PE_OK;
}

static enum pe_status add_targets(struct job *job)
{
    if (!job->names.n)
        return add_named(job, "all");
    for (size_t i = 0; i < job->names.n; i++)
        if (add_named(job, job->names.items[i].string))
            return job->ex->err->status;
    return PE_OK;
}

/* Every target that is named reads every kind that differs, at every length. */
static enum pe_status admit(const struct job *job)
{
    size_t n_targets = job->names.n ? 0 : pe_n_targets(), n_lengths = 0;
    for (size_t i = 0; i < job->names.n; i++)
        n_targets += pe_same(job->names.items[i].string, "all") ? pe_n_targets() : 1;
    for (size_t k = 0; k < job->n_kinds; k++)
        n_lengths += pe_dialect_n_lengths(job->ex, job->kinds[k]);
    return pe_dialect_admit(job->ex,
                            (double)(n_targets < pe_n_targets() ? n_targets : pe_n_targets()) * (double)n_lengths);
}

/* A kind that no plan has cannot be exported. */
static enum pe_status check_kinds(struct pe_explain *ex)
{
    for (size_t k = 0; k < ex->n_text; k++)
        if (!ex->kinds[k].own.config)
            return pe_dialect_read_refused(ex, k);
    return PE_OK;
}

static enum pe_status put_answer(struct job *job)
{
    struct pe_explain *ex = job->ex;
    struct pe_node *root = pe_values_root(ex->values);
    pe_put_string(root, "dialect", pe_dialect_name(ex));
    pe_dialect_put_model(ex, root);
    pe_put_value(root, "config", job->n_kinds == 1 ? job->kinds[0]->own.shown : NULL);
    pe_dialect_put_layers(ex, root);
    job->list = pe_put_list(root, "targets");
    if (add_targets(job))
        return ex->err->status;
    pe_put_integer(root, "exact", job->n_exact);
    pe_put_integer(root, "entries", job->n_entries);
    pe_put_detail(root, ex->request->lang, "{exact} of {entries} translations state exactly these positions.");
    ex->answer = pe_values_done(ex->values);
    return ex->answer ? PE_OK : pe_no_memory(ex->err);
}

static enum pe_status translate(struct pe_explain *ex)
{
    struct own_fields own;
    struct job job = {.ex = ex};
    ex->is_translation = true;
    if (pe_dialect_open(ex, rows, &own) || check_to(ex, own.to) || check_architecture(ex, &own.architecture))
        return ex->err->status;
    ex->length = own.length == PE_UNSET_INT ? 0 : own.length;
    if (pe_dialect_kinds(ex) || check_kinds(ex))
        return ex->err->status;
    list_kinds(&job);
    job.names = pe_names_of(own.to);
    job.architecture = choose_architecture(ex, own.architecture, &job.is_assumed);
    return admit(&job) ? ex->err->status : put_answer(&job);
}

enum pe_status pe_translate_new(const struct pe_explain_request *request, struct pe_explain **translation,
                                struct pe_failure *err)
{
    return pe_dialect_new(request, translate, translation, err);
}

/* ---- Members of the answer ---- */

static const struct pe_member loss_members[] = {
    {.name = "what", .types = "string", .summary = "a field of the configuration, or rounding"},
    {.name = "wanted", .summary = "its value; of rounding a frequency or the factor"},
    {.name = "gets", .summary = "what the tool computes with; null: nothing"},
    {.name = "layer_type",
     .types = "string",
     .summary = "the kind of layers, if there are several",
     .is_optional = true},
    PE_LENGTHS_MEMBER,
    {.name = "", .members = pe_detail_members},
    {.name = NULL},
};

static const struct pe_member target_members[] = {
    {.name = "to", .types = "string", .summary = "the target"},
    {.name = "text", .types = "string|null", .summary = "the value as a shell, JSON or Python has it, ready to paste"},
    {.name = "layer_type",
     .types = "string",
     .summary = "the kind of layers, where one value states one kind",
     .is_optional = true},
    {.name = "architecture", .types = "string", .summary = "of gguf", .is_optional = true},
    {.name = "architecture_assumed", .types = "boolean", .summary = "nothing names it", .is_optional = true},
    {.name = "value", .types = "object|null", .summary = "as said takes it; null: the target cannot state it"},
    {.name = "needs", .types = "object", .summary = "fields beside said, which the value does not state"},
    {.name = "rows",
     .types = "string",
     .summary = "permuted: the tool pairs other channels, so rows of q and k change places; as_published"},
    {.name = "exact", .types = "boolean", .summary = "nothing is lost"},
    {.name = "loses", .types = "array", .summary = "what differs", .items = "object", .members = loss_members},
    {.name = "consequence",
     .types = "object|null",
     .summary = "how far cosines and sines are off; null: exact, or not computable",
     .members = pe_distance_members},
    {.name = "certainty", .types = "string", .summary = "how sure the target's row is"},
    {.name = "source", .types = "string", .summary = "where it was read"},
    {.name = NULL},
};

const struct pe_member pe_translate_members[] = {
    {.name = "dialect", .types = "string", .summary = "hf_config, gguf, said, preset or fields"},
    {.name = "model", .types = "object", .summary = "what is translated", .members = pe_dialect_model_members},
    {.name = "config", .types = "object|null", .summary = "with every parameter; null: layers differ"},
    {.name = "layers",
     .types = "array",
     .summary = "kinds of layers, as an explanation has them",
     .items = "object",
     .members = pe_dialect_layer_members},
    {.name = "targets",
     .types = "array",
     .summary = "one for each target, or kind of layers of a target, in the order of to, once each",
     .items = "object",
     .members = target_members},
    {.name = "exact", .types = "integer", .summary = "how many entries lose nothing"},
    {.name = "entries", .types = "integer", .summary = "how many there are"},
    {.name = "", .members = pe_detail_members},
    {.name = "pasted",
     .types = "object",
     .summary = "of a text: as what it was read, whose words they are, the model that it names, lines that were "
                "skipped, keys whose values it cuts",
     .is_optional = true},
    {.name = NULL},
};
