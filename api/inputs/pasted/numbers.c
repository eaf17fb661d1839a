/* Numbers as programs print them, in place of a tensor.
 *
 *     tensor([[ 1.0000,  0.5403, -0.4161],         [[ 1.          0.54030231 ... -0.41614684]
 *             ...,                                   ...
 *             [ 0.9602,  0.7539,  0.2837]])         [ 0.96017029  0.75390225 ...  0.28366219]]
 *     12:00:01 INFO row 0: [1.0, 0.5403]           $1 = {1, 0.540302277, 0 <repeats 6 times>}
 *     [0] = 1.0000                                 1.0e+03 *
 *
 * A text is read in two ways. Brackets with nothing but numbers in them are a tensor: those with the most numbers, or,
 * if they are rows, all rows of one length one after another. Without such brackets, each line is a row. What a log
 * puts before every line is blanked first. Nothing is guessed: rows of different lengths are refused, and what
 * follows "..." keeps its place only if the shape is known. */
#include "api/inputs/pasted/pasted.h"
#include "api/operations.h"
#include "core/studies.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { EXPANDED_MAX = 1 << 22 }; /* numbers of a tensor with gaps, left out or not */

bool pasted_refuse(const struct pasted_numbers *p, const char *what)
{
    return api_fail(p->problem, 422, p->pointer, "%s", pe_text(what));
}

/* ---- The text ---- */

/* What people paste has other signs for "-" and "...": then the rest moves forward. */
static void put_plain_signs(char *text)
{
    static const char *const signs[][2] = {{"\xe2\x80\xa6", "..."},
                                           {"\xe2\x8b\xaf", "..."},
                                           {"\xe2\x8b\xae", "..."},
                                           {"\xe2\x88\x92", "-"},
                                           {"\xc2\xa0", " "}};
    size_t n = 0;
    for (const char *p = text; *p;) {
        size_t i = 0, n_signs = sizeof signs / sizeof *signs;
        while (i < n_signs && strncmp(p, signs[i][0], strlen(signs[i][0])) != 0)
            i++;
        if (i == n_signs) {
            text[n++] = *p++;
            continue;
        }
        memcpy(text + n, signs[i][1], strlen(signs[i][1]));
        n += strlen(signs[i][1]);
        p += strlen(signs[i][0]);
    }
    text[n] = '\0';
}

static char folded(char c) { return c >= '0' && c <= '9' ? '0' : c; }

/* A letter of a word: that of an exponent is none. */
static bool is_of_word(const char *text, size_t i)
{
    bool is_letter = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z');
    return is_letter && !((text[i] | 0x20) == 'e' && i > 0 && folded(text[i - 1]) == '0' && strchr("+-", text[i + 1]));
}

/* A bracket that is not around an index. */
static bool begins_list(const char *text)
{
    size_t digits = strspn(text + 1, "0123456789");
    return strchr("[{(", *text) && !(digits && strchr("]})", text[1 + digits]));
}

/* How much of n bytes is in front of the numbers: up to the last sign that ends such a text, or to its last word. */
static size_t prefix_of(const char *text, size_t n)
{
    size_t word = n, end;
    while (word > 0 && !is_of_word(text, word - 1))
        word--;
    if (word == 0)
        return 0;
    for (end = word; end < n && strchr("_.-", text[end]);)
        end++;
    for (size_t i = word; i < n && !begins_list(text + i); i++)
        end = strchr(":]=|>", text[i]) ? i + 1 : end;
    return end;
}

/* Blanks what all lines begin with, digits aside, if it has a word. */
static void blank_prefix(char *text)
{
    size_t n = 0, n_lines = 0;
    const char *first = NULL;
    for (char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t length = strcspn(line, "\n"), i = 0;
        if (strspn(line, " \t\r") >= length)
            continue;
        n = first ? n : length;
        first = first ? first : line;
        while (i < n && i < length && folded(first[i]) == folded(line[i]))
            i++;
        n = i;
        n_lines++;
    }
    size_t last = first ? strcspn(first, "\n") : 0; /* numbers follow it */
    while (last > 0 && folded(first[last - 1]) != '0')
        last--;
    n = n_lines > 1 ? prefix_of(first, n < last ? n : last) : 0;
    for (char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        memset(line, ' ', strcspn(line, "\n") < n ? strcspn(line, "\n") : n);
}

/* ---- The tensor ---- */

/* Are neighbouring columns alike, as where each pair is there twice? */
static bool is_repeated(const struct pasted_numbers *r, const struct pasted_list *g)
{
    uint64_t width = g->shape[g->rank - 1];
    bool is_alike = g->gap[g->rank - 1] > 1, is_any = false;
    for (size_t i = 0; is_alike && i + 1 < g->n; i += (size_t)width) {
        const double *x = r->numbers + g->first + i;
        is_alike = x[0] == x[1];
        is_any |= fabs(x[0]) != 1 && x[0] != 0;
    }
    return is_alike && is_any;
}

/* Fields of the request that state the configuration, [API_FIELDS_MAX + 2]; a length where it has no sequence. */
static size_t belief_of(const struct api_request *request, struct pe_field *fields)
{
    static const char sequences[] = "len|positions|grid|lens|segments|tokens|attention_mask|cu_seqlens|q_len|k_len";
    static const char others[] = "tensors|kind|values|decimals|strict|weights|position_ids|tensor_layout|form";
    bool has_sequence = false;
    size_t n = 0;
    for (size_t i = 0; i < request->n_fields; i++) {
        const char *name = request->fields[i].name;
        if (pasted_is_among(others, name, strlen(name)) || pe_kind_has_name(name))
            continue;
        has_sequence |= pasted_is_among(sequences, name, strlen(name));
        fields[n++] = request->fields[i];
    }
    if (!has_sequence)
        fields[n++] = (struct pe_field){"len", {.kind = PE_INTEGER, .integer = 1}};
    return n;
}

/* The columns that the believed configuration gives a table; 0: none is believed, or its tables are not asked for. */
static uint64_t believed_width(const struct pasted_numbers *r, const struct pasted_list *g)
{
    const char *name = *r->pointer ? r->pointer + 1 : "";
    const char *output = pasted_is_among("cos|sin|angles|freqs", name, strlen(name)) ? "cos" : name;
    struct pe_field fields[API_FIELDS_MAX + 2];
    size_t n = belief_of(r->request, fields);
    if (strcmp(output, "cos") == 0)
        fields[n++] = (struct pe_field){"form", {.kind = PE_STRING, .string = "pairs"}};
    const struct pe_request request = {
        .operation = PE_ENCODE, .fields = fields, .n_fields = n, .dtype = PE_F32, .outputs = &output, .n_outputs = 1};
    struct pe_failure err;
    struct pe_plan *plan = NULL;
    if (!pasted_is_among("cos|inv_freq|encoding", output, strlen(output)) || pe_plan_new(&request, &plan, &err))
        return 0;
    const struct pe_output *o = pe_plan_output(plan, 0);
    bool is_wide = strcmp(output, "cos") == 0 && is_repeated(r, g);
    uint64_t width = o->shape[o->rank - 1];
    pe_plan_free(plan);
    return is_wide ? 2 * width : width;
}

/* The rows that it states; 0: it does not. */
static uint64_t believed_length(const struct api_request *request)
{
    const struct pe_value *len = api_request_find(request, "len");
    return len && len->kind == PE_INTEGER && len->integer > 0 ? (uint64_t)len->integer : 0;
}

/* Fills in the gaps by the whole shape; without one, what is behind a gap has no place. */
static bool place_gaps(const struct pasted_numbers *r, struct pasted_list *g, struct pe_tensor *whole,
                       struct pe_print *print)
{
    *whole = (struct pe_tensor){.dtype = PE_F64, .rank = g->rank};
    for (unsigned a = 0; a < g->rank; a++) {
        bool is_gap = g->gap[a] != PASTED_NOWHERE;
        uint64_t stated = r->stated.rank == g->rank ? r->stated.shape[a] : 0;
        if (is_gap && !stated && a + 1 == g->rank)
            stated = believed_width(r, g);
        if (is_gap && !stated && a + 2 == g->rank)
            stated = believed_length(r->request);
        whole->shape[a] = !is_gap ? g->shape[a] : stated ? stated : g->gap[a];
        if (is_gap && !stated && (a + 1 == g->rank || g->gap[a] == 0))
            return pasted_refuse(r, "the text leaves out columns (...), and does not state how many: send "
                                    "{\"data\":\"tensor(…)\",\"shape\":[…]}, or print all numbers");
        if (stated && (is_gap ? stated < g->shape[a] : stated != g->shape[a]))
            return pasted_refuse(r, "the shape that is stated has fewer numbers than the text, or other axes");
        if (is_gap && stated) {
            print->has_gaps = true;
            print->gaps[a].from = g->gap[a];
            print->gaps[a].to = stated - (g->shape[a] - g->gap[a]);
        }
    }
    return true;
}

/* The element of the whole tensor that number i of the group is; PASTED_NOWHERE: it was dropped. */
static uint64_t element_of(const struct pasted_list *g, const struct pe_tensor *whole, const struct pe_print *print,
                           uint64_t i)
{
    uint64_t at = 0, step = 1;
    for (unsigned a = g->rank; a-- > 0; step *= whole->shape[a], i /= g->shape[a]) {
        uint64_t k = i % g->shape[a];
        k += g->gap[a] != PASTED_NOWHERE && k >= g->gap[a] ? print->gaps[a].to - print->gaps[a].from : 0;
        if (k >= whole->shape[a])
            return PASTED_NOWHERE;
        at += k * step;
    }
    return at;
}

static bool expand(const struct pasted_numbers *r, struct pasted_list *g, struct pe_tensor *whole,
                   struct pe_print *print)
{
    uint64_t n;
    if (!place_gaps(r, g, whole, print))
        return false;
    if (!pe_shape_count(whole->shape, whole->rank, &n) || n > EXPANDED_MAX)
        return api_fail(r->problem, 413, r->pointer,
                        "the shape that is stated has more than %d numbers; print some rows, and send their positions",
                        EXPANDED_MAX);
    double *to = api_arena_array(&r->request->arena, (size_t)n, sizeof *to);
    if (!to)
        return api_fail_memory(r->problem);
    memset(to, 0, (size_t)n * sizeof *to);
    for (size_t i = 0; i < g->n; i++) {
        uint64_t at = element_of(g, whole, print, i);
        if (at != PASTED_NOWHERE)
            to[at] = r->numbers[g->first + i];
    }
    whole->data = to;
    return true;
}

static bool to_dtype(const struct pasted_numbers *r, struct pe_value *value)
{
    uint64_t n;
    pe_shape_count(value->array.shape, value->array.rank, &n);
    void *narrow = api_arena_array(&r->request->arena, (size_t)n, pe_dtype_size(r->dtype));
    if (!narrow)
        return api_fail_memory(r->problem);
    pe_convert(r->dtype, narrow, PE_F64, value->array.data, (size_t)n);
    value->array.dtype = r->dtype;
    value->array.data = narrow;
    value->from_text = false;
    return true;
}

bool api_printed_read(struct api_request *request, const char *text, const struct pe_tensor *stated,
                      const char *pointer, struct pe_value *value, struct api_problem *problem)
{
    struct pasted_numbers r = {
        .request = request, .problem = problem, .pointer = pointer, .factor = 1, .dtype = PE_DTYPE_NONE};
    struct pasted_list list;
    size_t n = strlen(text), room = n / 2 + 1 + PASTED_REPEATED_MAX;
    if (n > PASTED_MAX)
        return api_fail(problem, 413, pointer, "the text has %zu bytes; allowed: at most %d", n, PASTED_MAX);
    char *copy = api_arena_string(&request->arena, text, n);
    r.numbers = api_arena_array(&request->arena, room, sizeof *r.numbers);
    if (!copy || !r.numbers)
        return api_fail_memory(problem);
    put_plain_signs(copy);
    blank_prefix(copy);
    r.text = copy;
    if (!pasted_lists_read(&r, room, &list))
        return false;
    r.stated = stated ? *stated : r.stated;
    struct pe_print print = {.half = 0};
    struct pe_tensor tensor = {.dtype = PE_F64, .rank = list.rank, .data = r.numbers + list.first};
    bool has_gaps = false;
    for (unsigned a = 0; a < list.rank; a++)
        has_gaps |= list.gap[a] != PASTED_NOWHERE;
    memcpy(tensor.shape, list.shape, sizeof tensor.shape);
    for (size_t i = 0; r.factor != 1 && i < list.n; i++)
        r.numbers[list.first + i] *= r.factor;
    if (has_gaps && !expand(&r, &list, &tensor, &print))
        return false;
    print.half = pasted_half(&list.digits, &print.is_scientific) * (print.is_scientific ? 1 : r.factor);
    struct pe_print *kept = api_arena_alloc(&r.request->arena, sizeof *kept);
    if (!kept)
        return api_fail_memory(r.problem);
    *kept = print;
    *value = (struct pe_value){.kind = PE_ARRAY, .from_text = true, .array = tensor};
    value->print = print.half > 0 || print.has_gaps ? kept : NULL;
    return r.dtype == PE_DTYPE_NONE || to_dtype(&r, value);
}

/* ---- Fields ---- */

bool api_takes_prints(const struct api_request *request) { return request->route && request->route->takes_prints; }

static bool read_printed(struct api_request *request, const struct pe_value *const_value, const char *pointer,
                         struct api_problem *problem)
{
    struct pe_value *value = (struct pe_value *)(uintptr_t)const_value; /* in the request, or in its arena */
    return value->kind != PE_STRING || api_printed_read(request, value->string, NULL, pointer, value, problem);
}

bool api_printed_take(struct api_request *request, struct api_problem *problem)
{
    char pointer[PE_POINTER_MAX];
    for (size_t i = 0; i < request->n_fields; i++) {
        const struct pe_field *f = &request->fields[i];
        bool are_members = strcmp(f->name, "tensors") == 0 && f->value.kind == PE_OBJECT;
        snprintf(pointer, sizeof pointer, "%s", "");
        api_pointer_push(pointer, f->name, strlen(f->name));
        if (pe_kind_has_name(f->name) && !read_printed(request, &f->value, pointer, problem))
            return false;
        for (size_t k = 0; are_members && k < f->value.object.n; k++) {
            const char *name = f->value.object.fields[k].name;
            snprintf(pointer, sizeof pointer, "%s", "/tensors");
            api_pointer_push(pointer, name, strlen(name));
            if (!read_printed(request, &f->value.object.fields[k].value, pointer, problem))
                return false;
        }
    }
    return true;
}
