/* The estimated cost of planning: never less memory than planning allocates, never less time than it takes. Every
 * scheme is planned at the ends of its parameters' ranges, with every operation, and measured by the allocator and the
 * clock. */
#include "core/scheme.h"
#include "tests/support/alloc.h"
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The largest plan of these tests. */
#define TEST_NS 5e7
#define TEST_BYTES (64.0 * 1024 * 1024)

/* ---- Measuring ---- */

struct caller {
    double most_bytes, bytes; /* bytes: asked for last */
    bool has_refused;
};

static enum pe_status admit(void *self, double bytes, struct pe_failure *err)
{
    struct caller *c = self;
    c->bytes = bytes;
    c->has_refused = bytes > c->most_bytes;
    return c->has_refused ? err->status = PE_CANCELLED : PE_OK;
}

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

struct measured {
    enum pe_status status;
    struct caller caller;
    bool is_planned;           /* within the limits of the test, whether or not it was refused */
    double said_ns, ns, bytes; /* bytes: without the workspace reserved for filling, admitted later */
    double check_ns, check_bytes, most_check_bytes; /* of the first half, and what it may take */
    struct pe_failure err;
};

/* Numbers that the request sends, and its segments. */
static void count_numbers(const struct pe_field *fields, size_t n_fields, double *n_numbers, double *n_segments)
{
    for (size_t i = 0; i < n_fields; i++) {
        const struct pe_value *v = &fields[i].value;
        uint64_t n = 0;
        if (v->kind == PE_ARRAY && pe_shape_count(v->array.shape, v->array.rank, &n))
            *n_numbers += (double)n;
        if (v->kind == PE_LIST)
            *n_segments += (double)v->list.n;
        if (v->kind == PE_OBJECT)
            count_numbers(v->object.fields, v->object.n, n_numbers, n_segments);
    }
}

/* As pe_plan_check states it. */
static double most_check_bytes(const struct pe_request *request)
{
    double n_numbers = 0, n_segments = 0;
    count_numbers(request->fields, request->n_fields, &n_numbers, &n_segments);
    return (64 << 10) + 8 * n_numbers + 64 * n_segments;
}

static double most_check_ns(const struct pe_request *request)
{
    double n_numbers = 0, n_segments = 0;
    count_numbers(request->fields, request->n_fields, &n_numbers, &n_segments);
    return 1e5 + 40 * n_numbers + 2000 * n_segments;
}

/* Plans in two halves, and leaves the second out if it would take longer. */
static struct measured measure(const struct pe_request *request, double most_ns, double most_bytes)
{
    struct measured m = {.caller = {.most_bytes = most_bytes}, .err = {.detail = ""}};
    struct pe_request asked = *request;
    struct pe_plan *plan = NULL;
    asked.admit = admit;
    asked.caller = &m.caller;
    alloc_watch();
    double begun = cpu_ns();
    m.status = pe_plan_check(&asked, &plan, &m.err);
    m.check_ns = m.ns = cpu_ns() - begun;
    m.check_bytes = (double)alloc_peak();
    m.said_ns = plan ? plan->cost.ns : 0;
    m.is_planned = m.said_ns <= most_ns && !m.caller.has_refused;
    if (plan && m.is_planned) {
        assert_int_equal(pe_plan_builder(plan), m.said_ns <= PE_READY_NS_MAX ? PE_READY : PE_WORKER);
        begun = cpu_ns();
        m.status = pe_plan_build(plan, &m.err);
        m.ns += cpu_ns() - begun;
        m.is_planned = !m.caller.has_refused;
    }
    m.bytes = (double)alloc_peak();
    if (plan && m.is_planned && !m.status)
        m.bytes -= pe_plan_bytes(plan) * 4 / 3;
    pe_plan_free(plan);
    return m;
}

/* Other processes disturb the clock, for a moment of the machine: so the least time of several tries counts, and they
 * are spread over half a second. */
enum { TRIES = 24 };
static void wait_a_moment(int try)
{
    if (try >= 4)
        nanosleep(&(struct timespec){.tv_nsec = 25000000}, NULL);
}

/* Sanitizers add their own time. */
static bool has_clock(void) { return !getenv("POSENC_SANITIZED"); }

/* ---- Laws ---- */

/* Checking takes what its header states, whatever is asked for. So it has drawn no numbers and filled no table. A
 * thread that serves others is not delayed, whether its request is planned, refused, or left to a worker. */
static void assert_spares_a_loop(const struct pe_request *request, const char *what)
{
    double build = 1e18, check = 1e18, most_check = most_check_ns(request);
    for (int i = 0; has_clock() && i < TRIES && (build > PE_READY_NS_MAX || check > most_check); i++) {
        wait_a_moment(i);
        struct measured m = measure(request, PE_READY_NS_MAX, TEST_BYTES);
        build = fmin(build, m.ns - m.check_ns);
        check = fmin(check, m.check_ns);
    }
    if (has_clock() && build > 2 * PE_READY_NS_MAX)
        fail_msg("%s: a thread that serves others was held up for %.2f ms", what, build / 1e6);
    if (has_clock() && check > 2 * most_check)
        fail_msg("%s: checking took %.3f ms, allowed: %.3f", what, check / 1e6, most_check / 1e6);
}

static bool assert_covers(const struct pe_request *request, const char *what)
{
    struct measured m = measure(request, TEST_NS, TEST_BYTES);
    if (getenv("POSENC_COSTS")) /* shows the origin of the numbers in core/request/request.h */
        printf("%d ns %.3g of %.3g, check %.3g of %.3g, bytes %.3g of %.3g, check %.3g of %.3g %s\n", m.status, m.ns,
               m.said_ns, m.check_ns, most_check_ns(request), m.bytes, m.caller.bytes, m.check_bytes,
               most_check_bytes(request), what);
    if (m.check_bytes > most_check_bytes(request))
        fail_msg("%s: checking took %.0f bytes, stated: %.0f", what, m.check_bytes, most_check_bytes(request));
    if (!m.is_planned)
        return true;
    if (m.bytes > m.caller.bytes)
        fail_msg("%s: said %.0f bytes, planning took %.0f", what, m.caller.bytes, m.bytes);
    if (m.said_ns == 0)
        return false; /* refused by the first half */
    for (int i = 0; has_clock() && i < TRIES && m.ns > m.said_ns; i++) {
        wait_a_moment(i);
        m = measure(request, TEST_NS, TEST_BYTES);
    }
    if (has_clock() && m.ns > 2 * m.said_ns + PE_READY_NS_MAX / 10)
        fail_msg("%s: said %.3f ms, planning took %.3f", what, m.said_ns / 1e6, m.ns / 1e6);
    return m.status == PE_OK;
}

/* Whether the request is planned, or would be with more time and memory. */
static bool check(const struct pe_request *request, const char *what)
{
    assert_spares_a_loop(request, what);
    return assert_covers(request, what);
}

static bool check_json(const char *json, enum pe_operation_id operation)
{
    struct test_request r;
    test_request_parse(&r, json);
    r.request.operation = operation;
    bool is_planned = check(&r.request, json);
    test_request_drop(&r);
    return is_planned;
}

/* ---- Requests by name ---- */

TEST(every_example_is_covered)
{
    for (size_t s = 0; s < pe_n_schemes(); s++)
        if (pe_scheme_can(pe_scheme_at(s), PE_ENCODE))
            assert_true(check_json(pe_scheme_at(s)->example, PE_ENCODE));
}

static struct measured measure_json(const char *json)
{
    struct test_request r;
    test_request_parse(&r, json);
    struct measured m = measure(&r.request, TEST_NS, TEST_BYTES);
    test_request_drop(&r);
    return m;
}

/* Common requests are planned at once, and reserve not much more memory than they need. */
TEST(usual_requests_are_quick)
{
    for (size_t s = 0; s < pe_n_schemes(); s++) {
        char json[256];
        const struct pe_scheme_info *info = pe_scheme_at(s);
        if (!pe_scheme_can(info, PE_ENCODE))
            continue;
        snprintf(json, sizeof json, "{'scheme':'%s','len':512}", info->name);
        struct measured m = measure_json(json);
        snprintf(json, sizeof json, "{'scheme':'%s','len':512,'seed':0}", info->name);
        m = m.status ? measure_json(json) : m;
        if (m.status)
            fail_msg("%s: %s", json, m.err.detail);
        bool is_heavy = strcmp(info->name, "floater") == 0 || strcmp(info->name, "recursive") == 0;
        if (!is_heavy && m.said_ns > PE_READY_NS_MAX)
            fail_msg("%s: said to take %.2f ms", json, m.said_ns / 1e6);
        if (m.caller.bytes > 3 * m.bytes + 128 * 1024)
            fail_msg("%s: said %.0f bytes, planning took %.0f", json, m.caller.bytes, m.bytes);
    }
}

static const char *const large[] = {
    "{'scheme':'sinusoidal','dim':65536,'len':4}",
    "{'scheme':'rope','head_dim':4096,'len':100000}",
    "{'scheme':'xpos','head_dim':4096,'len':1000}",
    "{'scheme':'rope','head_dim':128,'len':262144,'preset':'llama-3.1'}",
    "{'scheme':'alibi','num_heads':1024,'len':4096}",
    "{'scheme':'alibi','num_heads':8,'len':131072}",
    "{'scheme':'t5','num_heads':1024,'len':4096,'seed':1}",
    "{'scheme':'kerple','num_heads':16,'len':65536}",
    "{'scheme':'sandwich','num_heads':16,'len':65536}",
    "{'scheme':'floater','dim':512,'len':2500,'seed':1}",
    "{'scheme':'recursive','dim':512,'len':50000,'seed':1}",
    "{'scheme':'swinv2','num_heads':64,'grid':[32,32],'seed':1}",
    "{'scheme':'beit','num_heads':128,'grid':[64,64],'seed':1}",
    "{'scheme':'fire','num_heads':512,'hidden':128,'len':64,'seed':1}",
    "{'scheme':'fourier','num_freqs':32,'grid':[256,256]}",
    "{'scheme':'sinusoidal','dim':1024,'grid':[300,300]}",
};

TEST(large_plans_are_covered)
{
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        check_json(large[i], PE_ENCODE);
}

/* Each scheme by its name alone, with any sequence that it accepts. */
TEST(every_preset_is_covered)
{
    static const char *const sequences[] = {"'len':64",          "'grid':[8,8]", "'grid':[2,8,8]",
                                            "'seed':1,'len':64", "'seed':1",     "'seed':1,'grid':[14,14]"};
    for (size_t i = 0; i < pe_n_presets(); i++) {
        size_t n_planned = 0;
        for (size_t j = 0; j < sizeof sequences / sizeof *sequences; j++) {
            char json[256];
            snprintf(json, sizeof json, "{'preset':'%s',%s}", pe_preset_at(i)->name, sequences[j]);
            n_planned += check_json(json, PE_ENCODE);
        }
        if (!n_planned)
            fail_msg("%s can be planned with none of the sequences", pe_preset_at(i)->name);
    }
}

/* A model's config, and the same numbers as plain parameters. */
static const char *const alike[][2] = {
    {"{'hf_config':{'model_type':'bert','hidden_size':65536,'num_attention_heads':16,'max_position_embeddings':9},"
     "'len':4}",
     "{'scheme':'learned','dim':65536,'rows':9,'len':4}"},
    {"{'hf_config':{'model_type':'llama','hidden_size':65536,'num_attention_heads':16,'rope_theta':10000},'len':9999}",
     "{'scheme':'rope','head_dim':4096,'len':9999}"},
    {"{'hf_config':{'model_type':'bloom','hidden_size':65536,'n_head':4096},'len':4096}",
     "{'scheme':'alibi','num_heads':4096,'len':4096}"},
    {"{'hf_config':{'model_type':'t5','num_heads':1024,'d_kv':64,'relative_attention_num_buckets':4096},"
     "'layer_type':'encoder','len':4096}",
     "{'scheme':'t5','num_heads':1024,'num_buckets':4096,'len':4096}"},
};

TEST(a_config_counts_like_its_numbers)
{
    for (size_t i = 0; i < sizeof alike / sizeof *alike; i++) {
        struct measured model = measure_json(alike[i][0]), plain = measure_json(alike[i][1]);
        if (model.said_ns < plain.said_ns || model.caller.bytes < plain.caller.bytes ||
            model.said_ns > 2 * plain.said_ns || model.caller.bytes > 2 * plain.caller.bytes)
            fail_msg("%s: %.0f ns, %.0f bytes; said plainly %.0f, %.0f", alike[i][0], model.said_ns, model.caller.bytes,
                     plain.said_ns, plain.caller.bytes);
    }
}

/* ---- Schemes at their parameters' ends ---- */

TEST(every_scheme_that_plans_says_what_it_takes)
{
    for (size_t s = 0; s < pe_n_schemes(); s++) {
        const struct pe_scheme *scheme = pe_scheme_get(pe_scheme_at(s)->name);
        if (scheme->plan && !scheme->cost)
            fail_msg("%s has plan() and no cost()", scheme->info.name);
    }
}

enum { FIELDS_MAX = 48, NUMBERS = 1 << 18 };
static double numbers[NUMBERS], rising[NUMBERS];
static float floats[NUMBERS];

/* A request as it grows. */
struct wish {
    struct pe_field fields[FIELDS_MAX];
    size_t n;
};

static struct pe_value array_of(enum pe_dtype dtype, const void *data, unsigned rank, const uint64_t *shape)
{
    struct pe_value v = {.kind = PE_ARRAY, .from_text = dtype == PE_F64, .array = {.dtype = dtype, .rank = rank}};
    uint64_t n = 0;
    memcpy(v.array.shape, shape, rank * sizeof *shape);
    assert_true(pe_shape_count(shape, rank, &n) && n <= NUMBERS);
    v.array.data = data;
    return v;
}

static struct pe_value list_of(const double *data, uint64_t n) { return array_of(PE_F64, data, 1, &n); }

static void add(struct wish *w, const char *name, struct pe_value v)
{
    assert_true(w->n < FIELDS_MAX);
    w->fields[w->n++] = (struct pe_field){name, v};
}

static void add_integer(struct wish *w, const char *name, int64_t x)
{
    add(w, name, (struct pe_value){.kind = PE_INTEGER, .integer = x});
}

static void add_word(struct wish *w, const char *name, const char *word)
{
    add(w, name, (struct pe_value){.kind = PE_STRING, .string = word});
}

/* A sequence that numbers itself, so that runs of this test are alike. */
static uint64_t dice = 1;
static uint64_t roll(uint64_t n)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (dice >> 33) % n;
}

/* An end of the row's range, or something between. */
static double some_number(const struct pe_param *row)
{
    static const double usual[] = {1, 2, 7, 64, 512, 1024, 4096, 32768, 65536};
    double x = roll(3) == 0 ? row->min : roll(2) == 0 ? row->max : usual[roll(sizeof usual / sizeof *usual)];
    return x < row->min ? row->min : x > row->max ? row->max : x;
}

static void add_parameter(struct wish *w, const struct pe_param *row)
{
    size_t n_words = 0;
    while (row->words && row->words[n_words])
        n_words++;
    if (row->type == PE_T_INT)
        add_integer(w, row->name, (int64_t)some_number(row));
    else if (row->type == PE_T_REAL)
        add(w, row->name, (struct pe_value){.kind = PE_REAL, .real = some_number(row)});
    else if (row->type == PE_T_BOOL)
        add(w, row->name, (struct pe_value){.kind = PE_BOOLEAN, .boolean = roll(2)});
    else if (row->type == PE_T_WORD)
        add_word(w, row->name, row->words[roll(n_words)]);
}

/* One of every `rarity` parameters, and a seed for every other request. */
static void add_parameters(struct wish *w, const struct pe_param *rows, uint64_t rarity)
{
    static const struct pe_value seed = {.kind = PE_INTEGER, .integer = 0};
    for (; rows->name; rows++)
        if (strcmp(rows->name, "seed") == 0 && roll(3))
            add(w, "seed", seed);
        else if (strcmp(rows->name, "seed") != 0 && roll(rarity) == 0)
            add_parameter(w, rows);
}

static const struct pe_field pieces[][2] = {
    {{"type", {.kind = PE_STRING, .string = "text"}}, {"len", {.kind = PE_INTEGER, .integer = 100000}}},
    {{"type", {.kind = PE_STRING, .string = "text"}}, {"len", {.kind = PE_INTEGER, .integer = 7}}}};
static const struct pe_value segments[] = {{.kind = PE_OBJECT, .object = {pieces[0], 2}},
                                           {.kind = PE_OBJECT, .object = {pieces[1], 2}}};

static void add_grid(struct wish *w)
{
    static const double sides[] = {1, 2, 7, 14, 64, 224, 1024, 65536, 2000};
    static double grid[3];
    for (size_t i = 0; i < 3; i++)
        grid[i] = sides[roll(sizeof sides / sizeof *sides)];
    add(w, "grid", list_of(grid, 2 + (roll(4) == 0)));
}

static void add_sequence(struct wish *w)
{
    static const int64_t lengths[] = {1, 8, 100, 4096, 1000000, INT64_C(1) << 31, INT64_C(1) << 40};
    static const double lens[] = {100, 4000, 100000};
    static const int64_t stored[4096];
    uint64_t n = sizeof stored / sizeof *stored;
    switch (roll(8)) {
    case 0: add(w, "positions", list_of(roll(2) ? numbers : rising, roll(2) ? 8192 : 8)); break;
    case 1: add(w, "positions", array_of(PE_I64, stored, 1, &n)); break;
    case 2: add_grid(w); break;
    case 3: add_grid(w); break;
    case 4: add(w, "lens", list_of(lens, 1 + roll(3))); break;
    case 5: add(w, "segments", (struct pe_value){.kind = PE_LIST, .list = {segments, 1 + roll(2)}}); break;
    case 6:
        add_integer(w, "q_len", lengths[roll(7)]);
        add_integer(w, "k_len", lengths[roll(7)]);
        break;
    default: add_integer(w, "len", lengths[roll(7)]); break;
    }
}

static void add_operand(struct wish *w, const char *name, uint64_t heads, uint64_t n, uint64_t width)
{
    const uint64_t shape[4] = {1, heads, n, width};
    bool is_text = roll(2);
    add(w, name, array_of(is_text ? PE_F64 : PE_F32, is_text ? (const void *)numbers : floats, 4, shape));
}

static void add_operands(struct wish *w, bool with_values)
{
    static const uint64_t n_heads[] = {1, 8, 64}, lengths[] = {1, 7, 128, 512}, widths[] = {2, 8, 64};
    uint64_t heads = n_heads[roll(3)], width = widths[roll(3)], n = lengths[roll(4)];
    while (heads * width * n > NUMBERS)
        n = (n + 1) / 2;
    add_operand(w, "q", heads, roll(2) ? n : 1, width);
    add_operand(w, "k", heads, n, width);
    if (with_values && roll(2))
        add_operand(w, "v", heads, n, roll(2) ? width : 5);
}

static void add_embeddings(struct wish *w)
{
    static const uint64_t widths[] = {4, 32, 512, 4096}, lengths[] = {1, 30};
    const uint64_t shape[2] = {lengths[roll(2)], widths[roll(4)]};
    bool is_text = roll(2);
    add(w, "x", array_of(is_text ? PE_F64 : PE_F32, is_text ? (const void *)numbers : floats, 2, shape));
    if (roll(2))
        add_integer(w, "seed", 0);
}

static void add_tokens(struct wish *w)
{
    enum { WORDS = 600 };
    static struct pe_value words[WORDS];
    static char texts[WORDS][8];
    for (size_t i = 0; i < WORDS; i++) {
        snprintf(texts[i], sizeof texts[i], "w%zu", i);
        words[i] = (struct pe_value){.kind = PE_STRING, .string = texts[i]};
    }
    add(w, "tokens", (struct pe_value){.kind = PE_LIST, .list = {words, roll(2) ? 3 : WORDS}});
}

static void add_mask(struct wish *w) { add(w, "key_mask", list_of(numbers, 1 + roll(512))); }

static void add_rest(struct wish *w, const struct pe_scheme_info *info, enum pe_operation_id operation)
{
    uint64_t way = operation == PE_ATTEND ? roll(4) : 0;
    if (operation == PE_ENCODE)
        add_sequence(w);
    else if (way < 2)
        add_operands(w, operation == PE_ATTEND);
    else
        (way == 2 ? add_embeddings : add_tokens)(w);
    if (operation == PE_ATTEND && way >= 2)
        add_parameters(w, pe_operation_at(PE_ATTEND)->params, 6);
    if (roll(6) == 0 && !info->is_additive)
        add_mask(w);
}

/* The first field of a name counts, and a request has each once. */
static void drop_doubles(struct wish *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        size_t j = 0;
        while (j < n && strcmp(w->fields[j].name, w->fields[i].name) != 0)
            j++;
        if (j == n)
            w->fields[n++] = w->fields[i];
    }
    w->n = n;
}

static void describe(const struct wish *w, char *text, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n && n < room; i++) {
        const struct pe_value *v = &w->fields[i].value;
        n += (size_t)snprintf(text + n, room - n, " %s=", w->fields[i].name);
        if (n < room && v->kind == PE_STRING)
            n += (size_t)snprintf(text + n, room - n, "%s", v->string);
        else if (n < room && v->kind == PE_ARRAY)
            n += (size_t)snprintf(text + n, room - n, "[%g…] of %llu %llu %llu %llu", *(const double *)v->array.data,
                                  (unsigned long long)v->array.shape[0], (unsigned long long)v->array.shape[1],
                                  (unsigned long long)v->array.shape[2], (unsigned long long)v->array.shape[3]);
        else if (n < room)
            n += (size_t)snprintf(text + n, room - n, "%.17g", v->kind == PE_REAL ? v->real : (double)v->integer);
    }
}

static bool check_wish(const struct pe_scheme_info *info, enum pe_operation_id operation)
{
    static const enum pe_dtype dtypes[] = {PE_DTYPE_NONE, PE_F64, PE_BF16};
    static const char *const output[] = {"output"};
    struct wish w = {.n = 0};
    char what[1024];
    add_word(&w, "scheme", info->name);
    add_parameters(&w, info->params, 2 + roll(8));
    add_rest(&w, info, operation);
    drop_doubles(&w);
    describe(&w, what, sizeof what);
    bool has_output = operation == PE_ATTEND && roll(3) == 0;
    struct pe_request request = {.operation = operation,
                                 .fields = w.fields,
                                 .n_fields = w.n,
                                 .dtype = dtypes[roll(3)],
                                 .outputs = output,
                                 .n_outputs = has_output};
    return check(&request, what);
}

TEST(parameters_at_their_ends_are_covered)
{
    enum { WISHES = 120 };
    for (size_t i = 0; i < NUMBERS; i++)
        rising[i] = (double)(3 * i);
    for (size_t s = 0; s < pe_n_schemes(); s++)
        for (enum pe_operation_id o = 0; o < PE_N_OPERATIONS; o++) {
            const struct pe_scheme_info *info = pe_scheme_at(s);
            size_t n_planned = 0;
            if (!pe_scheme_can(info, o))
                continue;
            for (size_t i = 0; i < WISHES; i++)
                n_planned += check_wish(info, o);
            if (n_planned < WISHES / 50)
                fail_msg("%s: %zu of %d requests could be planned", info->name, n_planned, (int)WISHES);
        }
}

/* Many rows of a single pair: work that is done for whole groups of columns shows here. */
TEST(a_narrow_head_is_covered)
{
    static const char *const ariths[] = {"exact", "float32"};
    static const uint64_t n_queries[4] = {1, 8, 1, 2}, n_keys[4] = {1, 8, 512, 2};
    for (size_t i = 0; i < 2; i++) {
        struct wish w = {.n = 0};
        add_word(&w, "scheme", "rope");
        add_integer(&w, "head_dim", 2);
        add_word(&w, "arith", ariths[i]);
        add(&w, "q", array_of(PE_F32, floats, 4, n_queries));
        add(&w, "k", array_of(PE_F32, floats, 4, n_keys));
        struct pe_request request = {.operation = PE_ROTATE, .fields = w.fields, .n_fields = w.n};
        assert_true(check(&request, ariths[i]));
    }
}

/* q and k beside each other, or q alone. Numbers in JSON would count by themselves, so these are of a file. */
static double said_of_rotating(enum pe_dtype q, enum pe_dtype k)
{
    static const uint64_t shape[4] = {1, 2, 2048, 64};
    struct wish w = {.n = 0};
    add_word(&w, "scheme", "rope");
    add(&w, "q", array_of(q, q == PE_F64 ? (const void *)numbers : floats, 4, shape));
    if (k != PE_DTYPE_NONE)
        add(&w, "k", array_of(k, k == PE_F64 ? (const void *)numbers : floats, 4, shape));
    for (size_t i = 1; i < w.n; i++)
        w.fields[i].value.from_text = false;
    struct pe_request request = {.operation = PE_ROTATE, .fields = w.fields, .n_fields = w.n};
    struct measured m = measure(&request, TEST_NS, TEST_BYTES);
    assert_int_equal(m.status, PE_OK);
    return m.said_ns;
}

/* Tensors at the same positions are turned by one table of floats or of doubles. Where one has floats and the other
 * doubles, each takes its own. */
TEST(two_tensors_take_one_table_or_two)
{
    double of_floats = said_of_rotating(PE_F32, PE_DTYPE_NONE), of_doubles = said_of_rotating(PE_F64, PE_DTYPE_NONE);
    assert_true(said_of_rotating(PE_F32, PE_F32) < 1.2 * of_floats);
    assert_true(said_of_rotating(PE_F64, PE_F64) < 1.2 * of_doubles);
    assert_true(said_of_rotating(PE_F32, PE_F64) > 0.9 * (of_floats + of_doubles));
}
