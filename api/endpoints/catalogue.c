/* GET /schemes, /schemes/{name} and /cmaps (the colours of pictures, so that a client can draw the same ones): the
 * descriptors of schemes, metrics and faults as JSON, with texts in two languages, and what a form made from them
 * needs.
 *
 * The page, the clients' completion and SCHEMES.md are all written from this answer; none has a list of its own. So a
 * parameter has here what a control needs: type, range, usual range, whether it is logarithmic, its section, and under
 * which other parameters it counts. The answer is constant for a build and language, and is cached by its tag. */
#include "api/endpoints/endpoints.h"
#include "api/formats/format.h"
#include "api/replies/replies.h"
#include "api/requests/requests.h"
#include "api/routes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Schemes ---- */

static void add_input(struct api_text *text, const struct pe_input_row *row, struct api_wording wording)
{
    api_text_open(text, NULL, '{');
    api_text_member(text, "name", row->name);
    api_text_member(text, "shape", row->shape);
    api_text_member(text, "endpoint", api_operations[row->operation].route.pattern);
    api_put_about(text, &row->about, wording);
    api_text_close(text, '}');
}

static void add_outputs(struct api_text *text, const struct pe_scheme_info *info, const struct pe_output_row *rows,
                        struct api_wording wording);

/* The parameters and outputs of an operation beside the scheme's own. */
static void add_operation(struct api_text *text, const struct pe_scheme_info *info,
                          const struct pe_operation_info *operation, struct api_wording wording)
{
    api_text_open(text, operation->name, '{');
    api_text_open(text, "parameters", '[');
    for (const struct pe_param *row = operation->params; row && row->name; row++)
        if (!pe_param_find(info->params, row->name))
            api_put_param(text, row, wording);
    api_text_close(text, ']');
    api_text_open(text, "inputs", '[');
    for (const struct pe_input_row *row = operation->inputs; row && row->name; row++)
        add_input(text, row, wording);
    api_text_close(text, ']');
    add_outputs(text, info, operation->outputs, wording);
    api_text_close(text, '}');
}

static void add_output(struct api_text *text, const struct pe_output_row *row, const char *dtype,
                       struct api_wording wording)
{
    api_text_open(text, NULL, '{');
    api_text_member(text, "name", row->name);
    api_text_member(text, "shape", row->shape);
    api_text_member(text, "dtype", dtype);
    api_text_flag(text, "default", !row->on_request);
    api_put_optional(text, "when", row->when);
    /* null: the values have no bounds that hold for every request. */
    const char *name;
    size_t n;
    api_text_open(text, "axes", '[');
    for (unsigned i = 0; (n = pe_output_axis(row, i, &name)) > 0; i++) {
        api_text_name(text, NULL);
        api_text_string_n(text, name, n);
    }
    api_text_close(text, ']');
    if (row->range.lo < row->range.hi)
        api_put_interval(text, "range", PE_T_REAL, &row->range);
    else
        api_text_put(text, ",\"range\":null");
    api_put_about(text, &row->about, wording);
    api_text_close(text, '}');
}

static void add_outputs(struct api_text *text, const struct pe_scheme_info *info, const struct pe_output_row *rows,
                        struct api_wording wording)
{
    api_text_open(text, "outputs", '[');
    for (const struct pe_output_row *row = rows; row && row->name; row++)
        if (pe_output_suits(row, info))
            add_output(text, row, row->dtype == PE_DTYPE_NONE ? "as asked" : pe_dtype_name(row->dtype), wording);
    api_text_close(text, ']');
}

/* ---- Formulas ---- */

enum { SYMBOL_MAX = 64, SYMBOLS_MAX = 32 };

static const char *const notations[] = {[PE_PLAIN] = "text", [PE_TEX] = "tex", [PE_MATHML] = "mathml"};

/* What the names in the lines of a scheme are. */
struct naming {
    struct api_text *text;
    const struct pe_scheme_info *info;
    const struct pe_formula_line *lines, *more; /* the scheme's, and of a scaling its own; NULL: none */
    enum pe_notation only;                      /* PE_N_NOTATIONS: all */
    bool is_used[SYMBOLS_MAX];                  /* of pe_formula_symbols */
};

static bool defines(const struct pe_formula_line *lines, const char *name)
{
    size_t n = strlen(name);
    bool is_one = false;
    for (; lines && lines->line; lines++)
        is_one |= pe_formula_symbol(lines->line) == n && memcmp(lines->line, name, n) == 0;
    return is_one;
}

static void add_use(struct naming *naming, const char *before, const char *name)
{
    api_text_name(naming->text, NULL);
    api_text_format(naming->text, "\"%s%s\"", before, name);
}

/* A parameter, of the scaling first, a field of every request, or a tensor; else it is marked as used. */
static void add_name(void *to, const char *bytes, size_t n)
{
    struct naming *naming = to;
    const struct pe_scheme_info *info = naming->info;
    const struct pe_param *scaling = naming->more ? pe_param_find(info->params, "scaling") : NULL;
    char name[SYMBOL_MAX];
    snprintf(name, sizeof name, "%.*s", (int)n, bytes);
    const struct pe_input_row *input = info->inputs;
    while (input && input->name && strcmp(input->name, name) != 0)
        input++;
    if (defines(naming->lines, name) || defines(naming->more, name))
        return;
    if (scaling && pe_param_find(scaling->fields, name))
        add_use(naming, "scaling.", name);
    else if (pe_param_find(info->params, name) || pe_param_find(pe_sequence_params(), name) ||
             pe_param_find(pe_operation_at(PE_ATTEND)->params, name) || (input && input->name))
        add_use(naming, "", name);
    else
        for (size_t i = 0; pe_formula_symbols[i].line; i++)
            naming->is_used[i] |= strcmp(pe_formula_symbols[i].line, name) == 0;
}

static void put_piece(void *to, const char *bytes, size_t n) { api_text_add(to, bytes, n); }

static void add_lines(struct naming *naming, const struct pe_formula_line *lines, struct api_wording wording)
{
    struct api_text *text = naming->text, piece;
    api_text_open(text, "formula", '[');
    for (const struct pe_formula_line *line = lines; line->line; line++) {
        api_text_open(text, NULL, '{');
        api_text_name(text, "symbol");
        api_text_string_n(text, line->line, pe_formula_symbol(line->line));
        api_text_member(text, "expression", line->line);
        for (enum pe_notation notation = 0; notation < PE_N_NOTATIONS; notation++) {
            if (naming->only != PE_N_NOTATIONS && naming->only != notation)
                continue;
            api_text_init(&piece, API_TEXT_MAX);
            pe_formula_print(line->line, notation, put_piece, &piece);
            api_text_name(text, notations[notation]);
            api_text_string_n(text, piece.bytes, piece.n);
            text->state = piece.state ? piece.state : text->state;
            api_text_drop(&piece);
        }
        api_text_pair(text, "says", line->says, pe_text_in(PE_ZH, line->says), wording.lang);
        api_text_open(text, "uses", '[');
        pe_formula_names(line->line, add_name, naming);
        api_text_put(text, "]}");
    }
    api_text_close(text, ']');
}

/* The scheme's formula, those of the scalings it takes, and what the symbols are that no line defines. */
static void add_formula(struct api_text *text, const struct pe_scheme_info *info, enum pe_notation only,
                        struct api_wording wording)
{
    struct naming naming = {.text = text, .info = info, .lines = info->formula, .only = only};
    bool has_scalings = pe_param_find(info->params, "scaling");
    add_lines(&naming, info->formula, wording);
    if (has_scalings)
        api_text_open(text, "scalings", '[');
    for (size_t i = 0; has_scalings && i < pe_n_scalings(); i++) {
        struct pe_formula scaling = pe_scaling_formula(i);
        naming.more = scaling.lines;
        api_text_open(text, NULL, '{');
        api_text_member(text, "name", scaling.name);
        add_lines(&naming, scaling.lines, wording);
        api_text_close(text, '}');
    }
    if (has_scalings)
        api_text_close(text, ']');
    api_text_open(text, "symbols", '[');
    for (size_t i = 0; pe_formula_symbols[i].line; i++)
        if (naming.is_used[i]) {
            api_text_open(text, NULL, '{');
            api_text_member(text, "symbol", pe_formula_symbols[i].line);
            api_text_pair(text, "says", pe_formula_symbols[i].says, pe_text_in(PE_ZH, pe_formula_symbols[i].says),
                          wording.lang);
            api_text_close(text, '}');
        }
    api_text_close(text, ']');
}

/* ---- A scheme ---- */

/* The description of a scheme, which the caller closes. Its example is already JSON text. */
static void add_scheme(struct api_text *text, const struct pe_scheme_info *info, struct api_wording wording)
{
    api_text_open(text, NULL, '{');
    api_text_member(text, "name", info->name);
    api_text_member(text, "family", info->family);
    api_text_about(text, &info->about, wording.lang);
    api_put_optional(text, "paper", info->paper);
    api_text_open(text, "endpoints", '[');
    for (enum pe_operation_id id = 0; id < PE_N_OPERATIONS; id++)
        if (pe_scheme_can(info, id))
            api_text_member(text, NULL, api_operations[id].route.pattern);
    api_text_close(text, ']');
    api_put_params(text, info->params, info->is_additive ? pe_absolute_params() : NULL, wording);
    static const struct pe_input_row x = {.name = "x",
                                          .shape = "...,n,dim",
                                          .operation = PE_ENCODE,
                                          .is_operand = true,
                                          .about = {"embeddings", "embeddings; the output is then `combined`"}};
    api_text_open(text, "inputs", '[');
    if (info->is_additive)
        add_input(text, &x, wording);
    for (const struct pe_input_row *row = info->inputs; row && row->name; row++)
        add_input(text, row, wording);
    api_text_close(text, ']');
    add_outputs(text, info, info->outputs, wording);
    for (enum pe_operation_id id = 0; id < PE_N_OPERATIONS; id++) {
        const struct pe_operation_info *operation = pe_operation_at(id);
        bool has_rows = operation->params || operation->inputs || operation->outputs;
        if (has_rows && pe_scheme_can(info, id))
            add_operation(text, info, operation, wording);
    }
    api_text_name(text, "example");
    api_text_put(text, info->example);
    /* A GET whose answer shows the scheme. */
    api_text_name(text, "picture");
    if (info->picture)
        api_text_format(text, "\"%s?scheme=%s&%s&format=png\"", api_operations[PE_ENCODE].route.pattern, info->name,
                        info->picture);
    else
        api_text_put(text, "null");
}

/* ---- Metrics and faults ---- */

/* "k|dtypes" has dtypes. */
static bool uses(const struct pe_metric_info *metric, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = metric->params; p && *p; p += strcspn(p, "|"), p += *p == '|')
        if (strcspn(p, "|") == n && strncmp(p, name, n) == 0)
            return true;
    return false;
}

/* Curves of an analysis are f64. The index of the configuration follows their names, "step.0". */
static void add_metric(struct api_text *text, const struct pe_metric_info *metric, struct api_wording wording)
{
    api_text_open(text, NULL, '{');
    api_text_member(text, "name", metric->name);
    api_put_about(text, &metric->about, wording);
    api_text_pair(text, "applies_to", metric->applies_to, pe_text_in(PE_ZH, metric->applies_to), wording.lang);
    api_text_open(text, "parameters", '[');
    for (const struct pe_param *row = pe_analysis_params(); row->name; row++)
        if (uses(metric, row->name))
            api_put_param(text, row, wording);
    api_text_close(text, ']');
    api_text_member(text, "work", metric->work);
    api_text_open(text, "tensors", '[');
    for (const struct pe_output_row *row = metric->tensors; row && row->name; row++)
        add_output(text, row, pe_dtype_name(PE_F64), wording);
    api_text_put(text, "]}");
}

static void add_faults(struct api_text *text, struct api_wording wording)
{
    api_text_open(text, "faults", '[');
    for (size_t i = 0; i < pe_n_faults(); i++) {
        const struct pe_fault_info *fault = pe_fault_at(i);
        api_text_open(text, NULL, '{');
        api_text_member(text, "code", fault->code);
        api_text_member(text, "kind", fault->kind);
        api_text_count(text, "surprise", pe_fault_surprise(i));
        api_text_about(text, &fault->about, wording.lang);
        api_text_close(text, '}');
    }
    api_text_close(text, ']');
}

/* The default of a target's member, if it has one. */
static void add_member_default(struct api_text *text, const struct pe_param *row)
{
    if (row->type == PE_T_WORD && row->fallback >= 0) {
        api_text_member(text, "default", row->words[(int)row->fallback]);
        return;
    }
    if (row->type == PE_T_REALS || row->type == PE_T_VALUE || row->type == PE_T_OBJECT ||
        row->fallback != row->fallback)
        return;
    if (row->type == PE_T_BOOL) {
        api_text_flag(text, "default", row->fallback != 0);
    } else if (row->type == PE_T_INT) {
        api_text_count(text, "default", (int64_t)row->fallback);
    } else {
        api_text_name(text, "default");
        api_text_real(text, row->fallback);
    }
}

/* Whose words said takes, and what it takes for members that are not there. */
static void add_target(struct api_text *text, const struct pe_target_info *target, struct api_wording wording)
{
    api_text_open(text, NULL, '{');
    api_text_member(text, "name", target->name);
    api_text_member(text, "source", target->source);
    api_text_member(text, "certainty", target->certainty);
    api_text_flag(text, "reads_text", target->command.programs != NULL);
    api_text_about(text, &target->about, wording.lang);
    api_text_open(text, "members", '[');
    for (const struct pe_param *row = target->members; row && row->name; row++) {
        api_text_open(text, NULL, '{');
        api_text_member(text, "name", row->name);
        add_member_default(text, row);
        api_text_close(text, '}');
    }
    api_text_put(text, "]}");
}

/* What an explanation finds, and the tools whose reading it knows. */
static void add_dialects(struct api_text *text, struct api_wording wording)
{
    api_text_open(text, "contradictions", '[');
    for (size_t i = 0; i < pe_n_contradictions(); i++) {
        const struct pe_contradiction *row = pe_contradiction_at(i);
        api_text_open(text, NULL, '{');
        api_text_member(text, "code", row->code);
        api_text_member(text, "level", row->level);
        api_text_about(text, &row->about, wording.lang);
        api_text_close(text, '}');
    }
    api_text_close(text, ']');
    api_text_open(text, "dialects", '[');
    for (size_t i = 0; i < pe_n_dialects(); i++) {
        struct pe_dialect_info row = pe_dialect_at(i);
        api_text_open(text, NULL, '{');
        api_text_member(text, "name", row.name);
        api_text_member(text, "source", row.source);
        api_text_about(text, &row.about, wording.lang);
        api_text_close(text, '}');
    }
    api_text_close(text, ']');
    api_text_open(text, "targets", '[');
    for (size_t i = 0; i < pe_n_targets(); i++)
        add_target(text, pe_target_at(i), wording);
    api_text_close(text, ']');
}

/* ---- What schemes share ---- */

static void add_heading(struct api_text *text, const struct pe_heading *heading, struct api_wording wording)
{
    api_text_open(text, NULL, '{');
    api_text_member(text, "name", heading->name);
    api_text_about(text, &heading->about, wording.lang);
    api_text_close(text, '}');
}

/* ---- Replies ---- */

static void print_schemes(struct api_text *text, const void *about)
{
    struct api_wording wording = *(const struct api_wording *)about;
    api_text_put(text, "{\"schemes\":[");
    for (size_t i = 0; i < pe_n_schemes(); i++) {
        add_scheme(text, pe_scheme_at(i), wording);
        api_text_close(text, '}');
    }
    api_text_close(text, ']');
    /* The fields of the sequence and of the answer's form. */
    const struct pe_param *const tables[] = {pe_sequence_params(), api_form_lists(), api_form_params()};
    api_text_open(text, "common", '[');
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct pe_param *row = tables[i]; row->name; row++)
            api_put_param(text, row, wording);
    api_text_close(text, ']');
    api_text_open(text, "families", '[');
    for (size_t i = 0; i < pe_n_families(); i++)
        add_heading(text, pe_family_at(i), wording);
    api_text_close(text, ']');
    api_text_open(text, "groups", '[');
    for (enum pe_group group = 0; group < PE_N_GROUPS; group++)
        add_heading(text, pe_group_at(group), wording);
    api_text_close(text, ']');
    api_text_open(text, "metrics", '[');
    for (size_t i = 0; i < pe_n_metrics(); i++)
        add_metric(text, pe_metric_at(i), wording);
    api_text_close(text, ']');
    if (!wording.is_brief) {
        add_faults(text, wording);
        add_dialects(text, wording);
    }
    api_text_close(text, '}');
}

/* ?view=page: what the web page needs before its first picture, a third of the bytes. */
static bool take_view(struct api_request *request, bool *is_brief)
{
    char *view;
    if (!api_query_find(request->call->query, "view", &view, &request->problem))
        return false;
    *is_brief = view && strcmp(view, "page") == 0;
    bool fine =
        !view || *is_brief || api_fail(&request->problem, 422, "/view", "view is \"%.32s\"; allowed: \"page\"", view);
    free(view);
    return fine;
}

struct api_reply *api_schemes(struct api_request *request)
{
    static struct api_document documents[PE_N_LANGS][2] = {
        [PE_EN] = {{.print = print_schemes}, {.print = print_schemes}},
        [PE_ZH] = {{.print = print_schemes}, {.print = print_schemes}}};
    struct api_wording wording = {PE_EN, false};
    if (!api_lang_of_query(request->call, &request->lang, &request->problem) || !take_view(request, &wording.is_brief))
        return NULL;
    wording.lang = request->lang;
    return api_reply_set_language(
        api_reply_document(&documents[wording.lang][wording.is_brief], &wording, request->call, "no-cache"),
        wording.lang);
}

/* ?notation=text: a formula in one notation, since three are half of the answer. */
static bool take_notation(struct api_request *request, enum pe_notation *notation)
{
    char *word;
    if (!api_query_find(request->call->query, "notation", &word, &request->problem))
        return false;
    for (*notation = 0; word && *notation < PE_N_NOTATIONS && strcmp(word, notations[*notation]) != 0;)
        ++*notation;
    bool fine = !word || *notation < PE_N_NOTATIONS ||
                api_fail(&request->problem, 422, "/notation",
                         "notation is \"%.32s\"; allowed: \"text\", \"tex\", \"mathml\"", word);
    *notation = word ? *notation : PE_N_NOTATIONS;
    free(word);
    return fine;
}

static struct api_reply *scheme_reply(const struct pe_scheme_info *info, enum pe_notation notation, enum pe_lang lang)
{
    struct api_text text;
    struct api_wording wording = {lang, false};
    api_text_init(&text, API_TEXT_MAX);
    add_scheme(&text, info, wording);
    add_formula(&text, info, notation, wording);
    api_text_close(&text, '}');
    return api_reply_set_language(api_reply_text(200, api_json_type, &text), lang);
}

bool api_scheme_absent(int status, const char *pointer, const char *name, struct api_problem *problem)
{
    const char *names[128];
    size_t n = 0;
    for (; n < pe_n_schemes() && n + 1 < sizeof names / sizeof names[0]; n++)
        names[n] = pe_scheme_at(n)->name;
    names[n] = NULL;
    const char *nearest = pe_nearest(name, names);
    if (nearest)
        return api_fail(problem, status, pointer, "unknown scheme \"%.64s\"; nearest: \"%s\"", name, nearest);
    return api_fail(problem, status, pointer, "unknown scheme \"%.64s\"; GET /schemes lists them", name);
}

struct api_reply *api_scheme(struct api_request *request)
{
    const struct pe_scheme_info *info = pe_scheme_find(request->path.name);
    enum pe_notation notation;
    bool fine = info ? api_lang_of_query(request->call, &request->lang, &request->problem)
                     : api_scheme_absent(404, "", request->path.name, &request->problem);
    return fine && take_notation(request, &notation) ? scheme_reply(info, notation, request->lang) : NULL;
}

/* ---- Colours ---- */

static void print_cmaps(struct api_text *text, const void *about)
{
    (void)about;
    api_text_put(text, "{\"cmaps\":[");
    for (int cmap = 0; api_cmap_names[cmap]; cmap++) {
        api_text_open(text, NULL, '{');
        api_text_member(text, "name", api_cmap_names[cmap]);
        api_text_open(text, "colors", '[');
        for (unsigned i = 0; i < API_COLOURS; i++) {
            struct api_colour colour = api_colour(cmap, i);
            api_text_format(text, "%s\"#%02x%02x%02x\"", i ? "," : "", colour.red, colour.green, colour.blue);
        }
        api_text_put(text, "]}");
    }
    api_text_put(text, "]}");
}

struct api_reply *api_cmaps(struct api_request *request)
{
    static struct api_document document = {.print = print_cmaps};
    return api_reply_document(&document, NULL, request->call, "no-cache");
}
