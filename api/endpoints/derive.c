/* /derive: the steps of one number. The answer is one JSON document, lines of text, or TeX to paste, complete before it
 * is sent. */
#include "api/endpoints/endpoints.h"
#include "api/replies/replies.h"
#include "api/requests/requests.h"
#include "api/routes.h"

#include <stdio.h>
#include <string.h>

static const char *lone_tensor(const struct pe_tensor *tensor)
{
    (void)tensor;
    return "table";
}

static const struct api_taking taking = {.tensor = lone_tensor, .params = pe_derive_params};

static bool is_tex(const struct api_request *request) { return strcmp(request->format->name, "tex") == 0; }

static bool check_format(struct api_request *request)
{
    return api_study_is_document(request) || is_tex(request) ||
           api_fail(&request->problem, 406, api_form_format(&request->form) ? "/format" : "",
                    "a derivation is JSON, text or TeX and has no tensor, so %s cannot carry it",
                    request->format->name);
}

static bool derive_read(struct api_request *request)
{
    return api_study_read(request, &taking) && check_format(request);
}

/* ---- Text ---- */

static const char *word(const struct pe_value *object, const char *name)
{
    const struct pe_value *value = api_member_find(object, name);
    return value && value->kind == PE_STRING ? value->string : "";
}

/* Columns that a terminal shows, as the house's symbols and Chinese have them. */
static size_t width_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void put_padded(struct api_text *text, const char *word_, size_t width)
{
    api_text_put(text, word_);
    for (size_t n = width_of(word_); n < width; n++)
        api_text_put(text, " ");
}

static size_t widest(const struct pe_value *steps, const char *name)
{
    size_t most = 0;
    for (size_t i = 0; i < steps->list.n; i++) {
        size_t n = width_of(word(&steps->list.items[i], name));
        most = n > most ? n : most;
    }
    return most;
}

/* A step a line: its symbol, its value, its formula. */
static void put_steps(struct api_text *text, const struct pe_value *steps, const char *behind)
{
    size_t symbols = widest(steps, "symbol"), values = widest(steps, "value");
    for (size_t i = 0; i < steps->list.n; i++) {
        const struct pe_value *step = &steps->list.items[i];
        put_padded(text, word(step, "symbol"), symbols + 2);
        const char *last = word(step, behind);
        if (*last) {
            put_padded(text, word(step, "value"), values + 2);
            api_text_put(text, last);
        } else
            api_text_put(text, word(step, "value"));
        api_text_put(text, "\n");
    }
}

static void put_number(struct api_text *text, const struct pe_value *one)
{
    const struct pe_value *number = api_member_find(one, "number"), *rounded = api_member_find(one, "float32");
    api_text_put(text, word(number, "tensor"));
    api_text_value(text, api_member_find(number, "index"));
    api_text_put(text, " = ");
    api_text_value(text, api_member_find(number, "value"));
    api_text_format(text, "  %s\n", word(number, "bits"));
    put_steps(text, api_member_find(one, "steps"), "text");
    if (rounded && rounded->kind == PE_LIST) {
        api_text_format(text, "%s:\n", word(one, "recipe"));
        put_steps(text, rounded, "error");
    }
    api_text_put(text, word(one, "detail"));
    api_text_put(text, "\n");
}

/* ---- TeX ---- */

static void put_tex(struct api_text *text, const struct pe_value *one)
{
    const struct pe_value *steps = api_member_find(one, "steps");
    api_text_put(text, "\\begin{align*}\n");
    for (size_t i = 0; i < steps->list.n; i++) {
        const struct pe_value *step = &steps->list.items[i];
        const char *tex = word(step, "tex"), *equals = strstr(tex, " = ");
        bool has_value = *word(step, "value");
        if (!has_value) {
            api_text_format(text, "&%s", tex);
        } else if (equals) {
            api_text_add(text, tex, (size_t)(equals - tex));
            api_text_format(text, " &= %s = %s", equals + 3, word(step, "value"));
        } else
            api_text_format(text, "%s &= %s", tex, word(step, "value"));
        api_text_put(text, i + 1 < steps->list.n ? " \\\\\n" : "\n");
    }
    api_text_put(text, "\\end{align*}\n");
}

/* ---- The answer ---- */

static void put_answer(const struct api_request *request, const struct pe_value *answer, struct api_text *text)
{
    const struct pe_value *numbers = api_member_find(answer, "numbers");
    size_t n = numbers ? numbers->list.n : 1;
    if (!is_tex(request) && !api_study_is_sentences(request)) {
        api_text_value(text, answer);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const struct pe_value *one = numbers ? &numbers->list.items[i] : answer;
        api_text_put(text, i ? "\n" : "");
        (is_tex(request) ? put_tex : put_number)(text, one);
    }
}

static struct api_reply *derive_build(struct api_request *request)
{
    struct pe_failure err;
    struct pe_derive *derive = NULL;
    struct pe_derive_request core = {.fields = request->fields,
                                     .n_fields = request->n_fields,
                                     .dtype = pe_answer_dtype(request->form.dtype),
                                     .max_work = (double)request->host->max_work,
                                     .lang = request->lang,
                                     .caller_fields = api_form_names,
                                     .admit = api_memory_admit,
                                     .caller = request};
    struct api_text text;
    api_memory_settle(request);
    if (pe_derive_new(&core, &derive, &err)) {
        api_memory_fail(request, &err);
        return NULL;
    }
    api_text_init(&text, API_TEXT_MAX);
    put_answer(request, pe_derive_answer(derive), &text);
    const char *scheme = pe_derive_scheme(derive)->name;
    pe_derive_free(derive);
    return api_reply_set_scheme(api_study_reply(request, &text, true), scheme);
}

const struct api_steps api_derive = {{derive_read, api_take_weights}, NULL, derive_build, 0};
