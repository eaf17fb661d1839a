/* A text in one of the fields that name a model: which form it has, what becomes of the request's fields, and what the
 * answer has of it. */
#include "api/inputs/pasted/pasted.h"
#include "api/operations.h"
#include "api/text.h"

#include <stdio.h>
#include <stdlib.h>

static const struct pasted_form forms[] = {
#define PASTED(name, label_) {label_, pasted_##name##_looks_so, pasted_##name##_read},
#include "api/inputs/pasted/list.h"
#undef PASTED
};
enum { N_FORMS = sizeof forms / sizeof *forms };

/* ---- The member pasted of the answer ---- */

static void put_names(struct api_text *text, const char *name, const struct pasted_names *names)
{
    api_text_open(text, name, '[');
    for (size_t i = 0; i < names->n; i++)
        api_text_member(text, NULL, names->at[i]);
    api_text_close(text, ']');
}

static bool put_pasted(struct pasting *p, const char *label, const struct pe_preset *preset)
{
    struct api_request *request = p->request;
    struct api_text text;
    api_text_init(&text, 1 << 16);
    api_text_named(&text, "{\"as\":", pe_text(label));
    if (p->kind == PASTED_WORDS)
        api_text_member(&text, "tool", p->tool);
    if (*p->model) {
        api_text_named(&text, ",\"model\":{\"asked\":", p->model);
        api_text_put(&text, ",\"preset\":");
        if (preset)
            api_text_string(&text, preset->name);
        else
            api_text_put(&text, "null");
        api_text_put(&text, "}");
    }
    if (p->length > 0)
        api_text_count(&text, "length", p->length);
    put_names(&text, "skipped", &p->skipped);
    api_text_count(&text, "n_skipped", (int64_t)p->skipped.n_all);
    put_names(&text, "unread", &p->unread);
    if (request->pasted) {
        api_text_put(&text, ",\"beside\":");
        api_text_put(&text, request->pasted);
    }
    api_text_put(&text, "}");
    if (text.state == API_TEXT_FINE)
        request->pasted = api_arena_string(&request->arena, text.bytes, text.n);
    bool fine = text.state == API_TEXT_FINE && request->pasted;
    api_text_drop(&text);
    return fine || api_fail_memory(p->problem);
}

/* ---- What becomes of the fields ---- */

static struct pe_field *field_of(struct api_request *request, const char *name)
{
    for (size_t i = 0; i < request->n_fields; i++)
        if (strcmp(request->fields[i].name, name) == 0)
            return &request->fields[i];
    return NULL;
}

static bool has_model(const struct api_request *request)
{
    return api_request_find(request, "hf_config") || api_request_find(request, "gguf") ||
           api_request_find(request, "preset");
}

/* The text's field becomes one of another name. */
static bool rename_field(struct pasting *p, struct pe_field *field, const char *name)
{
    const struct pe_field *other = field_of(p->request, name);
    if (other && other != field)
        return pasted_fail(p, "the text is read as %s, and %s is there, too; give one", name, name);
    field->name = name;
    return true;
}

static bool add_preset(struct pasting *p, const struct pe_preset *preset)
{
    struct pe_value value = {.kind = PE_STRING, .string = preset->name};
    return api_request_add(p->request, "preset", &value, p->problem);
}

/* The object of a tool's words. preset: the model that they name, which is taken later; value: its storage is another.
 * Each may be NULL. */
static bool put_said(struct pasting *p, const struct pe_value *to, const struct pe_preset *preset,
                     const struct pe_value *value, struct pe_value *said)
{
    enum { MEMBERS = 5 };
    struct pe_field *members = api_arena_array(&p->request->arena, MEMBERS, sizeof *members);
    size_t n = 0;
    if (!members)
        return api_fail_memory(p->problem);
    if (to)
        members[n++] = (struct pe_field){"to", *to};
    if (p->n_ignored)
        members[n++] = (struct pe_field){"ignored", {.kind = PE_LIST, .list = {p->ignored, p->n_ignored}}};
    if (p->place)
        members[n++] = (struct pe_field){"place", {.kind = PE_STRING, .string = p->place}};
    if (preset)
        members[n++] = (struct pe_field){"model", {.kind = PE_STRING, .string = preset->name}};
    if (value)
        members[n++] = (struct pe_field){"value", *value};
    *said = (struct pe_value){.kind = PE_OBJECT, .object = {members, n}};
    return true;
}

/* The names that are near, or what the name can mean. */
static bool fail_model(struct pasting *p)
{
    struct pe_preset_name name;
    struct pe_failure err;
    pe_preset_name(p->model, &name, &err);
    return pasted_fail(p,
                       "no preset has the name of the model: %s; or give its config.json as hf_config beside said, or "
                       "head_dim and layout",
                       err.detail);
}

/* Words beside a model, or that name one; without words it is the model alone. */
static bool place_words(struct pasting *p, struct pe_field *field, const struct pe_value *value,
                        const struct pe_preset *preset)
{
    bool has_words = pe_said_states(value), needs_model = !has_model(p->request);
    if (!*p->model && p->unknown_model && needs_model && !api_request_find(p->request, "head_dim"))
        return pasted_fail(p,
                           "the model is %.80s, whose value is not known: the text gives it no value, or several; "
                           "write its name",
                           p->unknown_model);
    if (*p->model && !preset && needs_model && !api_request_find(p->request, "head_dim"))
        return fail_model(p);
    if (needs_model && !preset && !api_request_find(p->request, "head_dim") && !api_member_find(value, "kv-channels") &&
        !api_member_find(value, "dim") && has_words)
        return pasted_fail(p, "the text names no model; give preset, hf_config or gguf beside said, or head_dim and "
                              "layout");
    if (!has_words && needs_model && !preset)
        return pasted_fail(p, "the text has no word of %s about positions, and names no model that is known", p->tool);
    if (!has_words && !needs_model) { /* of the other field */
        p->request->n_fields--;
        memmove(field, field + 1, (size_t)(p->request->fields + p->request->n_fields - field) * sizeof *field);
        return true;
    }
    if (!has_words) {
        field->name = "preset";
        field->value = (struct pe_value){.kind = PE_STRING, .string = preset->name};
        return true;
    }
    if (needs_model && preset && !add_preset(p, preset))
        return false;
    struct pe_value to = {.kind = PE_STRING, .string = p->tool};
    if (!has_model(p->request))
        p->place = NULL;
    return rename_field(p, field, "said") && put_said(p, &to, NULL, value, &field->value);
}

/* The name counts as the field `preset` does. */
static bool place_name(struct pasting *p, struct pe_field *field, const struct pe_preset *preset)
{
    const struct pe_value *other = api_request_find(p->request, "preset");
    if (!preset)
        return fail_model(p);
    if (other && other->kind == PE_STRING)
        return pasted_fail(p, "the text names the model %.80s, and the field preset %.80s; give one", p->model,
                           other->string);
    field->value.string = api_arena_string(&p->request->arena, p->model, strlen(p->model));
    if (!field->value.string)
        return api_fail_memory(p->problem);
    p->request->is_pasted = true;
    return rename_field(p, field, "preset");
}

/* num_ctx is the length that is asked about, where an endpoint has one. */
static bool place_length(struct pasting *p)
{
    struct pe_value value = {.kind = PE_INTEGER, .integer = p->length};
    const struct api_request *request = p->request;
    bool takes = request->route && request->route->takes_text && p->length > 0 && p->length <= INT64_C(1) << 31;
    return !takes || api_request_find(request, "length") || api_request_add(p->request, "length", &value, p->problem);
}

/* Of these every number depends, and a tool's default is not what the text has. */
static bool is_needed(const struct pasting *p)
{
    bool is = false;
    for (size_t i = 0; i < p->unread.n; i++)
        is |= strstr(p->unread.at[i], ".rope.") || strstr(p->unread.at[i], "freq_base");
    return is;
}

static bool check_unread(struct pasting *p)
{
    if (!p->unread.n)
        return true;
    if (p->request->taking && p->request->taking->shows_unread && !is_needed(p)) {
        const char **names = api_arena_array(&p->request->arena, PASTED_NAMES_MAX + 1, sizeof *names);
        if (!names)
            return api_fail_memory(p->problem);
        memcpy(names, p->unread.at, sizeof p->unread.at);
        names[p->unread.n] = NULL;
        p->request->unread = names;
        return true;
    }
    return pasted_fail(p,
                       "the text cuts the value of %s, so the numbers are not known; give the file itself, or the "
                       "key as a member of gguf",
                       p->unread.at[0]);
}

static bool place(struct pasting *p, struct pe_field *field, const char *label)
{
    static const char *const names[] = {[PASTED_KEYS] = "gguf", [PASTED_CONFIG] = "hf_config", [PASTED_WORDS] = "said"};
    struct pe_value value;
    const struct pe_preset *preset = *p->model ? pe_preset_named(p->model) : NULL;
    char where[64], at[16];
    if (p->kind == PASTED_NAME)
        return place_name(p, field, preset) && put_pasted(p, label, preset);
    snprintf(where, sizeof where, "the text, read as %s, is ", label);
    snprintf(at, sizeof at, "/%s", names[p->kind]);
    if (!api_json_value_read(p->request, p->json.bytes, p->json.n, at, where, &value, p->problem)) {
        snprintf(p->problem->error.pointer, sizeof p->problem->error.pointer, "%s", p->pointer);
        return false;
    }
    p->request->is_pasted = true;
    if (!check_unread(p) || !place_length(p))
        return false;
    field = field_of(p->request, p->pointer + 1); /* fields may have been added, not moved */
    if (p->kind == PASTED_WORDS)
        return place_words(p, field, &value, preset) && put_pasted(p, label, preset);
    field->value = value;
    return rename_field(p, field, names[p->kind]) && put_pasted(p, label, NULL);
}

/* ---- A text ---- */

static bool fail_form(struct pasting *p)
{
    char list[256] = "";
    for (size_t i = 0; i < N_FORMS; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", pe_text(forms[i].label));
    }
    return pasted_fail(p, "%s is not an object, and as a text it is none of: %s", p->pointer + 1, list);
}

static bool is_fence(const char *line, size_t n)
{
    return n >= 3 && (memcmp(line, "```", 3) == 0 || memcmp(line, "~~~", 3) == 0);
}

/* What is between fences of Markdown, where the text has some; the lines around it are skipped. */
static bool take_fenced(struct pasting *p)
{
    const char *at = p->text, *line, *before = at;
    char *fenced = strstr(p->text, "```") || strstr(p->text, "~~~")
                       ? api_arena_string(&p->request->arena, p->text, strlen(p->text))
                       : NULL;
    size_t n, used = 0;
    bool is_inside = false, is_some = false;
    if (!fenced)
        return true;
    for (; pasted_line(&at, &line, &n); before = at) {
        if (is_fence(line, n)) {
            is_inside = !is_inside;
            is_some = true;
        } else if (is_inside) {
            memcpy(fenced + used, before, (size_t)(at - before));
            used += (size_t)(at - before);
        }
    }
    fenced[used] = '\0';
    for (at = p->text, is_inside = false; is_some && pasted_line(&at, &line, &n);) {
        is_inside ^= is_fence(line, n);
        if (!is_inside && !is_fence(line, n) && !pasted_skip(p, line, n))
            return false;
    }
    p->text = is_some ? fenced : p->text;
    return true;
}

static bool read_text(struct pasting *p, struct pe_field *field)
{
    static const char mark[] = "\xef\xbb\xbf"; /* of the order of bytes */
    p->text += strncmp(p->text, mark, 3) == 0 ? 3 : 0;
    if (strlen(p->text) > PASTED_MAX)
        return api_fail(p->problem, 413, p->pointer, "the text has %zu bytes; allowed: at most %d", strlen(p->text),
                        PASTED_MAX);
    size_t i = 0;
    if (!pasted_modelfile_looks_so(p->text) && !take_fenced(p))
        return false;
    while (i < N_FORMS && !forms[i].looks_so(p->text))
        i++;
    if (i == N_FORMS)
        return fail_form(p);
    api_text_init(&p->json, 4 * PASTED_MAX);
    bool fine = forms[i].read(p) && place(p, field, forms[i].label);
    api_text_drop(&p->json);
    return fine;
}

/* ---- Words of a tool, as text ---- */

/* {"to":…,"text":…} becomes {"to":…,"value":…}, with `ignored`, `place`, and `model` if a preset has its name;
 * {"text":…} the text, in which it shows whose words they are. */
static bool expand(struct api_request *request, struct pe_value *said, const char *pointer, struct api_problem *problem)
{
    const struct pe_value *to = api_member_find(said, "to"), *text = api_member_find(said, "text");
    struct pasting p = {.request = request, .problem = problem, .pointer = pointer};
    struct pe_value value;
    if (said->object.n == 1 && text->kind == PE_STRING) {
        *said = *text;
        return true;
    }
    bool fine = api_said_flags(&p, said), has_value = p.json.n;
    const struct pe_preset *preset = fine && *p.model ? pe_preset_named(p.model) : NULL;
    if (fine && has_value)
        fine = api_json_value_read(request, p.json.bytes, p.json.n, "", "the text's flags are ", &value, problem);
    api_text_drop(&p.json);
    return fine && put_said(&p, to, preset, has_value ? &value : NULL, said);
}

static bool expand_within(struct api_request *request, const char *name, struct pe_value *value,
                          char pointer[PE_POINTER_MAX], struct api_problem *problem)
{
    size_t length = strlen(pointer);
    bool is_object = value->kind == PE_OBJECT, fine = true;
    api_pointer_push(pointer, name, strlen(name));
    for (size_t i = 0; is_object && fine && i < value->object.n; i++) {
        struct pe_field *field = (struct pe_field *)(uintptr_t)&value->object.fields[i];
        fine = expand_within(request, field->name, &field->value, pointer, problem);
    }
    for (size_t i = 0; value->kind == PE_LIST && fine && i < value->list.n; i++) {
        char index[24];
        snprintf(index, sizeof index, "%zu", i);
        fine = expand_within(request, index, (struct pe_value *)(uintptr_t)&value->list.items[i], pointer, problem);
    }
    if (fine && is_object && strcmp(name, "said") == 0 && api_member_find(value, "text")) {
        api_pointer_push(pointer, "text", 4);
        fine = expand(request, value, pointer, problem);
    }
    pointer[length] = '\0';
    return fine;
}

/* The model that words name counts unless another one is there. */
static bool take_model(struct pasting *p, struct pe_value *said)
{
    const struct pe_value *model = api_member_find(said, "model");
    const struct pe_preset *preset = model && model->kind == PE_STRING ? pe_preset_named(model->string) : NULL;
    struct pe_field *members = preset ? api_arena_array(&p->request->arena, said->object.n, sizeof *members) : NULL;
    size_t n = 0;
    if (!preset) /* a member that there is not, which is refused later */
        return true;
    if (!members)
        return api_fail_memory(p->problem);
    for (size_t i = 0; i < said->object.n; i++)
        if (&said->object.fields[i].value != model)
            members[n++] = said->object.fields[i];
    said->object.fields = members;
    said->object.n = n;
    return has_model(p->request) || add_preset(p, preset);
}

/* Without a model there is nothing that they are on top of. */
static bool drop_place(struct pasting *p, struct pe_value *said)
{
    struct pe_field *members = (struct pe_field *)(uintptr_t)said->object.fields;
    for (size_t i = 0; !has_model(p->request) && i < said->object.n; i++)
        if (strcmp(members[i].name, "place") == 0)
            members[i] = members[--said->object.n];
    return true;
}

bool api_pasted_take(struct api_request *request, struct api_problem *problem)
{
    static const char *const names[] = {"hf_config", "gguf", "said"};
    char place[PE_POINTER_MAX] = "";
    for (size_t i = 0; i < request->n_fields; i++)
        if (!expand_within(request, request->fields[i].name, &request->fields[i].value, place, problem))
            return false;
    for (size_t i = 0; i < 3; i++) {
        char pointer[16];
        struct pe_field *field = field_of(request, names[i]);
        struct pasting p = {.request = request, .problem = problem, .pointer = pointer};
        snprintf(pointer, sizeof pointer, "/%s", names[i]);
        if (!field)
            continue;
        if (field->value.kind == PE_OBJECT && i == 2 &&
            !(take_model(&p, &field->value) && drop_place(&p, &field_of(request, names[i])->value)))
            return false;
        if (field->value.kind != PE_STRING)
            continue;
        p.text = field->value.string;
        if (!read_text(&p, field))
            return false;
    }
    return true;
}
