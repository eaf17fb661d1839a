/* Context scalings: what only the core shows. Frequencies to the last bits of a double-double, which tables far away
 * need; laws of resolved configs and of the rules' own fields. Values and refusals:
 * tests/cases/scalings_by_hand.jsonl. */
#include "core/schemes/scalings/scaling.h"
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PAIRS_MAX = 256 };

struct resolved {
    struct pe_scaling given, s; /* s: as the answer shows it */
    struct pe_scaling_use use;
    struct pe_failure err;
    size_t n_pairs;
    struct pe_dd inv_freq[PAIRS_MAX];
};

static struct pe_scaling_use use_of(double base, int dim, double seq_len)
{
    return (struct pe_scaling_use){.base = base, .dim = dim, .seq_len = seq_len, .head_dim = dim};
}

static enum pe_status read_fields(const struct pe_field *fields, size_t n, struct resolved *r)
{
    bool taken[TEST_FIELDS_MAX + 32] = {false};
    memset(&r->given, 0xee, sizeof r->given); /* every field must be set by its row or by resolving */
    struct pe_scaling_resolved resolved;
    enum pe_status status = pe_params_read(pe_scaling_params, &r->given, fields, n, taken, "/scaling", &r->err);
    for (size_t i = 0; !status && i < n; i++)
        assert_true(taken[i]);
    if (!status)
        status = pe_scaling_resolve(&r->given, &r->use, &resolved, &r->err);
    if (status)
        return status;
    pe_scaling_ladder(&resolved, &r->use, r->n_pairs, r->inv_freq);
    r->s = r->given;
    pe_scaling_show(&resolved, &r->s);
    return PE_OK;
}

/* The lists of a resolved scaling are borrowed from the request: drop it afterwards. */
static void resolve(struct resolved *r, struct test_request *request, const char *json, struct pe_scaling_use use)
{
    *r = (struct resolved){.use = use, .n_pairs = (size_t)use.dim / 2};
    test_request_parse(request, json);
    if (read_fields(request->fields, request->n, r))
        fail_msg("%s: refused at %s: %s", json, r->err.pointer, r->err.detail);
}

/* ---- Frequencies ---- */

#define YARN(rest) "{'type':'yarn','factor':32,'original_max_position_embeddings':4096" rest "}"
#define LLAMA_8                                                                                                        \
    "{'type':'llama3','factor':8,'low_freq_factor':1,'high_freq_factor':4,"                                            \
    "'original_max_position_embeddings':8192}"
#define LONGROPE(rest)                                                                                                 \
    "{'type':'longrope','short_factor':[1,1.5,2,2.5],'long_factor':[2,3.25,17,64.81],'factor':32,"                     \
    "'original_max_position_embeddings':4096" rest "}"
#define DYNAMIC(rest) "{'type':'dynamic','factor':2,'max_position_embeddings':4096" rest "}"

/* inv_freq[c] as two doubles, from mpmath (60 digits, truncated): one of each way to compute it. */
static const struct {
    const char *json;
    double base;
    int dim;
    double seq_len;
    int c;
    double hi, lo;
} frequencies[] = {
    {YARN(",'truncate':false"), 150000, 64, 1, 12, 0x1.bd5080c93a3a2p-8, -0x1.ebec8a1dc0ae4p-63},
    {YARN(",'extrapolation_factor':0.5"), 10000, 64, 1, 16, 0x1.7ed186b204b9ep-9, 0x1.4dfb461ac812ep-63},
    {"{'convention':'ggml','divisors':[1,2,4,8]}", 10000, 8, 1, 2, 0x1.47ae147ae147bp-9, -0x1.eb851eb851eb8p-65},
    {LLAMA_8, 500000, 128, 1, 29, 0x1.1bfa0d25be313p-9, -0x1.12346e3464265p-64},
    {"{'type':'ntk','factor':4}", 10000, 128, 1, 63, 0x1.e459c57e28a47p-16, -0x1.0c68548856221p-70},
    {DYNAMIC(), 10000, 128, 8192, 63, 0x1.42e683a9706dap-15, -0x1.65e070b5c82d7p-70},
    {"{'type':'linear','factor':3}", 10000, 128, 1, 63, 0x1.42e683a9706dap-15, -0x1.65e070b5c82d7p-70},
    {"{'type':'proportional','partial_rotary_factor':0.3,'factor':7}", 10000, 80, 1, 11, 0x1.73d61dee803d8p-7,
     -0x1.092452f9e0a69p-62},
    {LONGROPE(), 10000, 8, 4097, 1, 0x1.f81f81f81f820p-6, -0x1.f81f81f81f820p-60},
};

TEST(frequencies_match_mpmath)
{
    struct resolved r;
    struct test_request request;
    for (size_t i = 0; i < sizeof frequencies / sizeof *frequencies; i++) {
        resolve(&r, &request, frequencies[i].json,
                use_of(frequencies[i].base, frequencies[i].dim, frequencies[i].seq_len));
        struct pe_dd got = r.inv_freq[frequencies[i].c], off = dd_sub(got, dd(frequencies[i].hi));
        if (!(fabs(dd_sub(off, dd(frequencies[i].lo)).hi) <= 0x1p-98 * frequencies[i].hi))
            fail_msg("%s, pair %d: %a %a", frequencies[i].json, frequencies[i].c, got.hi, got.lo);
        test_request_drop(&request);
    }
}

/* ---- Laws ---- */

TEST(without_stretch_the_ladder_is_the_default)
{
    static const char *const same[] = {
        "{'type':'mrope','rope_type':'default','mrope_section':[16,24,24]}",
        "{'type':'linear','factor':1}",
        "{'type':'linear','factor':5,'convention':'tgi'}",
        "{'type':'ntk','factor':1}",
        DYNAMIC(),
        "{'type':'proportional','partial_rotary_factor':1}",
        "{'type':'llama3','factor':1,'low_freq_factor':1,'high_freq_factor':1,'original_max_position_embeddings':8192}",
    };
    struct resolved plain, r;
    struct test_request first, request;
    for (int float32 = 0; float32 < 2; float32++) {
        struct pe_scaling_use use = use_of(1e4, 128, 4096);
        use.float32 = float32;
        resolve(&plain, &first, "{}", use);
        for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
            resolve(&r, &request, same[i], use);
            assert_memory_equal(r.inv_freq, plain.inv_freq, 64 * sizeof *r.inv_freq);
            assert_true(r.s.attention_factor == 1);
            test_request_drop(&request);
        }
        test_request_drop(&first);
    }
}

/* A resolved config, printed and read for another sequence, resolves to the same and prints the same. */
static void assert_fixed_point(const char *json, double seq_len, bool float32)
{
    struct resolved r, again;
    struct test_request request;
    struct pe_field fields[64], fields_again[64], *nested = NULL;
    struct pe_scaling_use use = use_of(1e4, 8, seq_len);
    use.float32 = float32;
    resolve(&r, &request, json, use);
    size_t n = pe_params_print(pe_scaling_params, &r.s, fields, &nested);
    again = r;
    again.use.seq_len += 100000;
    if (read_fields(fields, n, &again))
        fail_msg("%s: its config is refused at %s: %s", json, again.err.pointer, again.err.detail);
    assert_memory_equal(again.inv_freq, r.inv_freq, sizeof r.inv_freq);
    assert_memory_equal(&again.s.attention_factor, &r.s.attention_factor, sizeof(double));
    assert_int_equal(pe_params_print(pe_scaling_params, &again.s, fields_again, &nested), n);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(fields_again[i].name, fields[i].name);
        assert_int_equal(fields_again[i].value.kind, fields[i].value.kind);
        if (fields[i].value.kind == PE_REAL)
            assert_memory_equal(&fields_again[i].value.real, &fields[i].value.real, sizeof(double));
        if (fields[i].value.kind == PE_STRING)
            assert_string_equal(fields_again[i].value.string, fields[i].value.string);
    }
    test_request_drop(&request);
}

TEST(resolved_configs_are_fixed_points)
{
    static const struct {
        const char *json;
        double seq_len;
    } rows[] = {
        {"{}", 1},
        {"{'type':'linear','factor':2}", 1},
        {YARN(",'mscale':0.707"), 1},
        {YARN(",'mscale':0.707,'convention':'vllm'"), 1},
        {YARN(",'mscale_all_dim':0.707,'convention':'mlx'"), 1},
        {YARN(",'attention_factor':1.25,'mscale':3,'mscale_all_dim':1"), 1},
        {YARN(",'beta_slow':7e-6"), 1},
        {LLAMA_8, 1},
        {LONGROPE(), 4097},
        {LONGROPE(",'short_mscale':1.1,'long_mscale':1.2"), 5000},
        {LONGROPE(",'convention':'mlx'"), 1},
        {DYNAMIC(), 8192},
        {DYNAMIC(), -7}, /* negative positions only */
        {DYNAMIC(",'convention':'vllm'"), 100},
        {"{'rope_type':'proportional','partial_rotary_factor':0.25,'rope_theta':1000000.0}", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int float32 = 0; float32 < 2; float32++)
            assert_fixed_point(rows[i].json, rows[i].seq_len, float32);
}

static const struct pe_field *printed_field(const struct pe_field *fields, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

TEST(printed_config_has_what_is_in_use)
{
    struct resolved r;
    struct test_request request;
    struct pe_field fields[64], *nested = NULL;
    resolve(&r, &request, "{'rope_type':'default'}", use_of(1e4, 8, 1));
    assert_int_equal(pe_params_print(pe_scaling_params, &r.s, fields, &nested), 2);
    assert_string_equal(fields[0].value.string, "default");
    assert_string_equal(fields[1].name, "attention_factor");
    test_request_drop(&request);
    resolve(&r, &request, "{'type':'yarn','original_max_position_embeddings':4096,'max_position_embeddings':8192}",
            use_of(1e4, 8, 1));
    size_t n = pe_params_print(pe_scaling_params, &r.s, fields, &nested);
    static const char *const in_use[] = {"type", "factor", "beta_fast", "truncate", "convention", "attention_factor"};
    for (size_t i = 0; i < sizeof in_use / sizeof *in_use; i++)
        assert_non_null(printed_field(fields, n, in_use[i]));
    assert_true(printed_field(fields, n, "factor")->value.real == 2);
    assert_null(printed_field(fields, n, "rope_type"));
    assert_null(printed_field(fields, n, "list"));
    assert_null(printed_field(fields, n, "max_position_embeddings"));
    test_request_drop(&request);
}

/* {"type":NAME} with what the rule needs. */
static void print_object(const struct pe_scaling_rule *rule, char *json, size_t room)
{
    size_t at = (size_t)snprintf(json, room, "{'type':'%s'", rule->name);
    for (const struct pe_scaling_need *need = rule->needs; need->name; need++) {
        const struct pe_param *row = pe_param_find(pe_scaling_params, need->name);
        at += (size_t)snprintf(json + at, room - at, ",'%s':", need->name);
        at += row->type == PE_T_REALS
                  ? (size_t)snprintf(json + at, room - at, "[1,1,1,1]")
                  : (size_t)snprintf(json + at, room - at, "%g", need->usual != 0 ? need->usual : fmin(64, row->max));
    }
    bool takes_factor = pe_scaling_takes(rule, "factor") && !pe_scaling_needs(rule, "factor");
    snprintf(json + at, room - at, takes_factor ? ",'factor':2}" : "}");
}

static bool has_own(const struct pe_scaling_rule *rule, const char *name)
{
    return (rule->fields && pe_param_find(rule->fields, name)) || (rule->pasted && pe_param_find(rule->pasted, name));
}

/* Whatever the kind of the field, and whatever its default. */
TEST(printed_config_has_no_field_of_another_rule)
{
    struct resolved r;
    struct test_request request;
    struct pe_field fields[64], *nested = NULL;
    for (int i = 0; i < PE_N_SCALINGS; i++) {
        char json[512];
        print_object(pe_scaling_at(i), json, sizeof json);
        resolve(&r, &request, json, use_of(1e4, 8, 1));
        size_t n = pe_params_print(pe_scaling_params, &r.s, fields, &nested);
        for (size_t k = 0; k < n; k++)
            for (int j = 0; j < PE_N_SCALINGS; j++)
                if (has_own(pe_scaling_at(j), fields[k].name) && !has_own(pe_scaling_at(i), fields[k].name))
                    fail_msg("%s shows %s of %s", json, fields[k].name, pe_scaling_at(j)->name);
        test_request_drop(&request);
    }
}

/* ---- What no request of /encode brings here ---- */

static void assert_refused(const char *json, struct pe_scaling_use use, const char *pointer, const char *word)
{
    struct resolved r = {.use = use, .n_pairs = (size_t)use.dim / 2};
    struct test_request request;
    test_request_parse(&request, json);
    if (!read_fields(request.fields, request.n, &r))
        fail_msg("%s: was accepted", json);
    if (strcmp(r.err.pointer, pointer) != 0 || !strstr(r.err.detail, word))
        fail_msg("%s: expected \"%s\" at %s, got \"%s\" at %s", json, word, pointer, r.err.detail, r.err.pointer);
    test_request_drop(&request);
}

TEST(refusals)
{
    struct pe_scaling_use partial = use_of(1e4, 8, 1);
    partial.head_dim = 16;
    assert_refused("{'type':'proportional','partial_rotary_factor':0.5}", partial, "/scaling/type", "whole head");
    assert_refused("{'type':'longrope','factor':2,'short_factor':[1,nan,1,1]}", use_of(1e4, 8, 1),
                   "/scaling/short_factor", "nan at index 1");
}
