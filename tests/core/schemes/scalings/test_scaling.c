/* Context scalings: reference values, frequencies and factors from mpmath and NumPy (written by
 * tests/truth/scaling.py's formulas), objects pasted from public configs, the resolved config read again, and
 * refusals. */
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

/* A rule's own field, as resolved. */
static const void *field_of(const struct resolved *r, const char *name)
{
    return (const char *)&r->s + pe_param_find(pe_scaling_params, name)->offset;
}

static double real_of(const struct resolved *r, const char *name) { return *(const double *)field_of(r, name); }

static const char *word_of(const struct resolved *r, const char *name)
{
    return pe_param_find(pe_scaling_params, name)->words[*(const int *)field_of(r, name)];
}

static void assert_digits(const char *json, double value, const char *digits)
{
    char text[32];
    snprintf(text, sizeof text, "%.12g", value);
    if (strcmp(text, digits) != 0)
        fail_msg("%s: %s, expected %s", json, text, digits);
}

/* ---- Reference values ---- */

#define YARN(rest) "{'type':'yarn'," rest "}"
#define DEEPSEEK_V3                                                                                                    \
    YARN("'factor':40,'original_max_position_embeddings':4096,'beta_fast':32,'beta_slow':1,'mscale':1.0,"              \
         "'mscale_all_dim':1.0")
#define GPT_OSS                                                                                                        \
    "{'rope_type':'yarn','factor':32.0,'beta_fast':32.0,'beta_slow':1.0,'truncate':false,"                             \
    "'original_max_position_embeddings':4096}"
#define QWEN "{'rope_type':'yarn','type':'yarn','factor':4.0,'original_max_position_embeddings':32768}"
#define LLAMA_3                                                                                                        \
    "{'factor':8.0,'low_freq_factor':1.0,'high_freq_factor':4.0,"                                                      \
    "'original_max_position_embeddings':8192,'rope_type':'llama3'}"
#define LLAMA_3_UNSTRETCHED                                                                                            \
    "{'type':'llama3','factor':1,'low_freq_factor':1,'high_freq_factor':1,"                                            \
    "'original_max_position_embeddings':8192}"
#define GEMMA_4 "{'rope_type':'proportional','partial_rotary_factor':0.25,'rope_theta':1000000.0}"
#define DYNAMIC "{'type':'dynamic','factor':2.0,'max_position_embeddings':4096}"

/* AR, section 21 */
static const struct {
    const char *json;
    double base;
    int dim;
    double seq_len;
    int c;
    const char *inv_freq;
} printed[] = {
    {"{}", 1e4, 128, 1, 1, "0.86596432336"},
    {"{'type':'default'}", 1e4, 128, 1, 31, "0.0115478198469"},
    {"{'rope_type':'default'}", 1e4, 128, 1, 63, "0.000115478198469"},
    {"{'type':'ntk','factor':4}", 1e4, 128, 1, 63, "2.88695496172e-05"},
    {DYNAMIC, 1e4, 128, 8192, 1, "0.850994291341"},
    {DYNAMIC, 1e4, 128, 8192, 63, "3.8492732823e-05"},
    {DYNAMIC, 1e4, 128, 100, 63, "0.000115478198469"},
    {LLAMA_3, 5e5, 128, 1, 28, "0.00321144599475"},
    {LLAMA_3, 5e5, 128, 1, 29, "0.0021665707635"},
    {LLAMA_3, 5e5, 128, 1, 35, "9.55621235396e-05"},
    {LLAMA_3, 5e5, 128, 1, 63, "3.06892598891e-07"},
    {GPT_OSS, 150000, 64, 1, 8, "0.0508132748155"},
    {GPT_OSS, 150000, 64, 1, 9, "0.0317056961847"},
    {GPT_OSS, 150000, 64, 1, 12, "0.00679495948973"},
    {GPT_OSS, 150000, 64, 1, 17, "0.000129318701245"},
    {GPT_OSS, 150000, 64, 1, 31, "3.02351142812e-07"},
    {DEEPSEEK_V3, 1e4, 64, 1, 11, "0.0390069265671"},
    {DEEPSEEK_V3, 1e4, 64, 1, 16, "0.0055"},
    {DEEPSEEK_V3, 1e4, 64, 1, 31, "3.33380358041e-06"},
    {QWEN, 1e6, 128, 1, 24, "0.00537532149079"},
    {QWEN, 1e6, 128, 1, 63, "3.10234440188e-07"},
    {GEMMA_4, 1e6, 512, 1, 63, "0.0333762469429"},
    {GEMMA_4, 1e6, 512, 1, 64, "0"},
};

TEST(reference_values_to_the_printed_digit)
{
    struct resolved r;
    struct test_request request;
    for (size_t i = 0; i < sizeof printed / sizeof *printed; i++) {
        resolve(&r, &request, printed[i].json, use_of(printed[i].base, printed[i].dim, printed[i].seq_len));
        assert_digits(printed[i].json, r.inv_freq[printed[i].c].hi, printed[i].inv_freq);
        test_request_drop(&request);
    }
}

TEST(factors_of_public_models)
{
    struct resolved r;
    struct test_request request;
    resolve(&r, &request, GPT_OSS, use_of(150000, 64, 1));
    assert_digits("gpt-oss", r.s.attention_factor, "1.34657359028");
    assert_true(isnan(r.s.softmax_scale_factor));
    test_request_drop(&request);
    resolve(&r, &request, DEEPSEEK_V3, use_of(1e4, 64, 1));
    assert_true(r.s.attention_factor == 1);
    assert_true(fabs(r.s.softmax_scale_factor - 1.87385) < 5e-6);
    test_request_drop(&request);
    resolve(&r, &request, QWEN, use_of(1e6, 128, 1));
    assert_digits("qwen2.5", r.s.attention_factor, "1.13862943611");
    test_request_drop(&request);
    resolve(&r, &request,
            "{'type':'su','short_factor':[1],'long_factor':[2],'original_max_position_embeddings':4096,"
            "'max_position_embeddings':131072}",
            use_of(1e4, 2, 1));
    assert_digits("phi-3", r.s.attention_factor, "1.19023807142");
    assert_true(r.s.factor == 32);
    test_request_drop(&request);
}

/* ---- mpmath and NumPy ---- */

/* The beginnings of the rows below. */
#define YARN_32 "{'type':'yarn','factor':32,'original_max_position_embeddings':4096"
#define LLAMA_8                                                                                                        \
    "{'type':'llama3','factor':8,'low_freq_factor':1,'high_freq_factor':4,"                                            \
    "'original_max_position_embeddings':8192}"
#define LONGROPE_4                                                                                                     \
    "{'type':'longrope','short_factor':[1,1.5,2,2.5],'long_factor':[2,3.25,17,64.81],"                                 \
    "'original_max_position_embeddings':4096"
#define DYNAMIC_2 "{'type':'dynamic','factor':2,'max_position_embeddings':4096"

/* inv_freq[c] as two doubles (60 digits, truncated), and as float32 in transformers' order of operations. */
static const struct {
    const char *json;
    double base;
    int dim;
    double seq_len;
    int c;
    double hi, lo, float32;
} frequencies[] = {
    {YARN_32 ",'truncate':false}", 150000, 64, 1, 8, 0x1.a04329311f45dp-5, -0x1.355392ee299f0p-60,
     0x1.a043280000000p-5},
    {YARN_32 ",'truncate':false}", 150000, 64, 1, 9, 0x1.03bbaa06b8abdp-5, -0x1.aa70e4d79163bp-59,
     0x1.03bbaa0000000p-5},
    {YARN_32 ",'truncate':false}", 150000, 64, 1, 12, 0x1.bd5080c93a3a2p-8, -0x1.ebec8a1dc0ae4p-63,
     0x1.bd50800000000p-8},
    {YARN_32 ",'truncate':false}", 150000, 64, 1, 17, 0x1.0f3372f6a69a2p-13, -0x1.f513920e7181bp-67,
     0x1.0f33720000000p-13},
    {YARN_32 ",'truncate':false}", 150000, 64, 1, 31, 0x1.44a5a6386947dp-22, 0x1.184e046b207a5p-85,
     0x1.44a5a60000000p-22},
    {YARN_32 ",'convention':'tgi','beta_fast':7,'beta_slow':2}", 10000, 64, 1, 11, 0x1.3fb5f8b112765p-5,
     0x1.88bb3b16de9f4p-59, 0x1.3fb5f80000000p-5},
    {YARN_32 ",'convention':'tgi','beta_fast':7,'beta_slow':2}", 10000, 64, 1, 16, 0x1.6a56a56a56a57p-8,
     -0x1.6a56a56a56a57p-62, 0x1.6a56a60000000p-8},
    {YARN_32 ",'extrapolation_factor':0.5}", 10000, 64, 1, 0, 0x1.0800000000000p-1, 0x0.0p+0, 0x1.0800000000000p-1},
    {YARN_32 ",'extrapolation_factor':0.5}", 10000, 64, 1, 16, 0x1.7ed186b204b9ep-9, 0x1.4dfb461ac812ep-63,
     0x1.7ed1880000000p-9},
    {YARN_32 ",'beta_fast':4,'beta_slow':4,'truncate':false}", 10000, 64, 1, 14, 0x1.235a71c5ee5ccp-6,
     -0x1.6e187bf82451ap-60, 0x1.235a720000000p-6},
    {YARN_32 ",'beta_fast':4,'beta_slow':4,'truncate':false}", 10000, 64, 1, 15, 0x1.b4f7e2b2c2a95p-7,
     -0x1.af80838730313p-62, 0x1.b4f7e40000000p-7},
    {YARN_32 ",'beta_fast':4,'beta_slow':4,'truncate':false}", 10000, 64, 1, 16, 0x1.47ae147ae147bp-7,
     -0x1.eb851eb851eb8p-63, 0x1.47ae140000000p-7},
    {YARN_32 ",'beta_fast':4,'beta_slow':4,'truncate':false}", 10000, 64, 1, 17, 0x1.eb735f0ba1168p-8,
     0x1.aacde892bb766p-62, 0x1.eb73600000000p-8},
    {YARN_32 ",'beta_fast':4,'beta_slow':4,'truncate':false}", 10000, 64, 1, 18, 0x1.7089380241edfp-13,
     -0x1.8abd93ae19967p-68, 0x1.7089380000000p-13},
    /* the upper end is 8 of 8 channels: beyond the last one, so it becomes 7 */
    {YARN_32 ",'beta_slow':7e-6}", 10000, 8, 1, 2, 0x1.12c5f92c5f92cp-7, 0x1.7e4b17e4b17e5p-61, 0x1.12c5f80000000p-7},
    {YARN_32 ",'beta_slow':7e-6}", 10000, 8, 1, 3, 0x1.62fc962fc9630p-11, -0x1.b4e81b4e81b4fp-66,
     0x1.62fc960000000p-11},
    {"{'convention':'ggml','divisors':[1,2,4,8]}", 10000, 8, 1, 2, 0x1.47ae147ae147bp-9, -0x1.eb851eb851eb8p-65,
     0x1.47ae140000000p-9},
    {LLAMA_8, 500000, 128, 1, 28, 0x1.a4ee3f0a6907bp-9, 0x1.15807c4617a07p-63, 0x1.a4ee400000000p-9},
    {LLAMA_8, 500000, 128, 1, 29, 0x1.1bfa0d25be313p-9, -0x1.12346e3464265p-64, 0x1.1bfa0c0000000p-9},
    {LLAMA_8, 500000, 128, 1, 34, 0x1.765ba6f931578p-13, 0x1.50e7fcdac8d6ap-67, 0x1.765ba40000000p-13},
    {LLAMA_8, 500000, 128, 1, 35, 0x1.90d10c806f8c1p-14, -0x1.735eb279d0e45p-69, 0x1.90d10c0000000p-14},
    {LLAMA_8, 500000, 128, 1, 63, 0x1.4985fec80a8cbp-22, 0x1.6c73194a65546p-81, 0x1.4985fe0000000p-22},
    {"{'type':'llama3','factor':16,'low_freq_factor':1,'high_freq_factor':1,'original_max_position_embeddings':8192}",
     500000, 128, 1, 34, 0x1.ec07d4a69338fp-11, 0x1.d9f05e4045054p-68, 0x1.ec07d40000000p-11},
    {"{'type':'llama3','factor':16,'low_freq_factor':1,'high_freq_factor':1,'original_max_position_embeddings':8192}",
     500000, 128, 1, 35, 0x1.90d10c806f8c1p-15, -0x1.735eb279d0e45p-70, 0x1.90d10c0000000p-15},
    {"{'type':'ntk','factor':4}", 10000, 128, 1, 1, 0x1.b1b957fc3540dp-1, -0x1.ca6f01ba08c0fp-58, 0x1.b1b95a0000000p-1},
    {"{'type':'ntk','factor':4}", 10000, 128, 1, 63, 0x1.e459c57e28a47p-16, -0x1.0c68548856221p-70,
     0x1.e459c80000000p-16},
    {DYNAMIC_2 "}", 10000, 128, 8192, 1, 0x1.b3b58614c9541p-1, 0x1.ca79473bf71b5p-55, 0x1.b3b5860000000p-1},
    {DYNAMIC_2 "}", 10000, 128, 8192, 63, 0x1.42e683a9706dap-15, -0x1.65e070b5c82d7p-70, 0x1.42e6840000000p-15},
    {DYNAMIC_2 "}", 10000, 128, 4097, 63, 0x1.e41d41d5ede6bp-14, -0x1.0780621515e58p-70, 0x1.e41d440000000p-14},
    {DYNAMIC_2 "}", 10000, 128, 4096, 63, 0x1.e459c57e28a47p-14, -0x1.0c68548856221p-68, 0x1.e459c40000000p-14},
    {DYNAMIC_2 ",'convention':'vllm'}", 10000, 128, 100, 63, 0x1.42e683a9706dap-15, -0x1.65e070b5c82d7p-70,
     0x1.42e6840000000p-15},
    {"{'type':'linear','factor':3}", 10000, 128, 1, 63, 0x1.42e683a9706dap-15, -0x1.65e070b5c82d7p-70,
     0x1.42e6820000000p-15},
    {"{'type':'linear','factor':3,'convention':'tgi'}", 10000, 128, 1, 63, 0x1.e459c57e28a47p-14,
     -0x1.0c68548856221p-68, 0x1.e459c40000000p-14},
    {"{'type':'proportional','partial_rotary_factor':0.3,'factor':7}", 10000, 80, 1, 11, 0x1.73d61dee803d8p-7,
     -0x1.092452f9e0a69p-62, 0x1.73d61e0000000p-7},
    {"{'type':'proportional','partial_rotary_factor':0.3,'factor':7}", 10000, 80, 1, 12, 0x0.0p+0, 0x0.0p+0, 0x0.0p+0},
    {LONGROPE_4 ",'factor':32}", 10000, 8, 4096, 1, 0x1.1111111111111p-4, 0x1.1111111111111p-60, 0x1.1111120000000p-4},
    {LONGROPE_4 ",'factor':32}", 10000, 8, 4096, 3, 0x1.a36e2eb1c432dp-12, -0x1.6a161e4f765fep-66,
     0x1.a36e2e0000000p-12},
    {LONGROPE_4 ",'factor':32}", 10000, 8, 4097, 1, 0x1.f81f81f81f820p-6, -0x1.f81f81f81f820p-60, 0x1.f81f820000000p-6},
    {LONGROPE_4 ",'factor':32}", 10000, 8, 4097, 3, 0x1.02de21f44acc2p-16, -0x1.d76e9e25dcdf8p-71,
     0x1.02de220000000p-16},
    {LONGROPE_4 ",'factor':32,'convention':'vllm'}", 10000, 8, 4097, 3, 0x1.a36e2eb1c432dp-12, -0x1.6a161e4f765fep-66,
     0x1.a36e2e0000000p-12},
    {LONGROPE_4 ",'factor':32,'convention':'vllm'}", 10000, 8, 4098, 3, 0x1.02de21f44acc2p-16, -0x1.d76e9e25dcdf8p-71,
     0x1.02de220000000p-16},
    {LONGROPE_4 ",'factor':32,'convention':'mlx'}", 10000, 8, 1, 3, 0x1.02de21f44acc2p-16, -0x1.d76e9e25dcdf8p-71,
     0x1.02de220000000p-16},
    {LONGROPE_4 ",'factor':32,'convention':'tgi'}", 10000, 8, 4096, 3, 0x1.a36e2eb1c432dp-12, -0x1.6a161e4f765fep-66,
     0x1.a36e2e0000000p-12},
    {LONGROPE_4 ",'factor':32,'list':'long'}", 10000, 8, 1, 3, 0x1.02de21f44acc2p-16, -0x1.d76e9e25dcdf8p-71,
     0x1.02de220000000p-16},
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

TEST(float32_rounds_each_step)
{
    struct resolved r;
    struct test_request request;
    for (size_t i = 0; i < sizeof frequencies / sizeof *frequencies; i++) {
        struct pe_scaling_use use = use_of(frequencies[i].base, frequencies[i].dim, frequencies[i].seq_len);
        use.float32 = true;
        resolve(&r, &request, frequencies[i].json, use);
        struct pe_dd got = r.inv_freq[frequencies[i].c];
        if (got.hi != frequencies[i].float32 || got.lo != 0)
            fail_msg("%s, pair %d: %a", frequencies[i].json, frequencies[i].c, got.hi);
        test_request_drop(&request);
    }
}

/* The doubles nearest attention_factor and softmax_scale_factor (0: unset). */
static const struct {
    const char *json;
    double seq_len, attention, softmax;
} factors[] = {
    {YARN_32 "}", 1, 0x1.58b90bfbe8e7cp+0, 0},
    {YARN_32 ",'mscale':0.707}", 1, 0x1.58b90bfbe8e7cp+0, 0},
    {YARN_32 ",'mscale':0.707,'convention':'vllm'}", 1, 0x1.3eba1fc4c9c8bp+0, 0},
    {YARN_32 ",'mscale':0.707,'convention':'tgi'}", 1, 0x1.3eba1fc4c9c8bp+0, 0},
    {YARN_32 ",'mscale':0.707,'convention':'mlx'}", 1, 0x1.3eba1fc4c9c8bp+0, 0},
    {YARN_32 ",'mscale':1,'mscale_all_dim':0.707}", 1, 0x1.14e13385ee0b7p+0, 0x1.8cd2ee3f13351p+0},
    {YARN_32 ",'mscale':1,'mscale_all_dim':0}", 1, 0x1.58b90bfbe8e7cp+0, 0},
    {YARN_32 ",'mscale_all_dim':0.707,'convention':'mlx'}", 1, 0x1.14e13385ee0b7p+0, 0x1.8cd2ee3f13351p+0},
    {YARN_32 ",'attn_factor':0.5}", 1, 0x1.58b90bfbe8e7cp+0, 0},
    {YARN_32 ",'attn_factor':0.5,'convention':'vllm'}", 1, 0x1.58b90bfbe8e7cp-1, 0},
    {"{'type':'yarn','factor':0.5,'original_max_position_embeddings':4096}", 1, 0x1.0000000000000p+0, 0},
    {YARN_32 ",'attention_factor':1.25,'mscale':3,'mscale_all_dim':1}", 1, 0x1.4000000000000p+0, 0x1.d031d5f754951p+0},
    {LONGROPE_4 ",'factor':32}", 1, 0x1.30b3713738289p+0, 0},
    {LONGROPE_4 ",'factor':1}", 1, 0x1.0000000000000p+0, 0},
    {LONGROPE_4 ",'factor':32,'short_mscale':1.1,'long_mscale':1.2}", 1, 0x1.199999999999ap+0, 0},
    {LONGROPE_4 ",'factor':32,'short_mscale':1.1,'long_mscale':1.2}", 5000, 0x1.3333333333333p+0, 0},
    {"{'type':'linear','factor':2}", 1, 0x1.0000000000000p+0, 0},
};

TEST(factors_are_the_nearest_doubles)
{
    struct resolved r;
    struct test_request request;
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        resolve(&r, &request, factors[i].json, use_of(1e4, 8, factors[i].seq_len));
        double softmax = isnan(r.s.softmax_scale_factor) ? 0 : r.s.softmax_scale_factor;
        if (r.s.attention_factor != factors[i].attention || softmax != factors[i].softmax)
            fail_msg("%s: %a, %a", factors[i].json, r.s.attention_factor, softmax);
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
        DYNAMIC,
        "{'type':'proportional','partial_rotary_factor':1}",
        LLAMA_3_UNSTRETCHED,
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

TEST(proportional_of_nothing_is_nope)
{
    struct resolved r;
    struct test_request request;
    resolve(&r, &request, "{'type':'proportional','partial_rotary_factor':0}", use_of(1e4, 8, 1));
    for (size_t c = 0; c < r.n_pairs; c++)
        assert_true(r.inv_freq[c].hi == 0);
    test_request_drop(&request);
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
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        assert_fixed_point(factors[i].json, factors[i].seq_len, i % 2);
    for (size_t i = 0; i < sizeof frequencies / sizeof *frequencies; i++)
        if (frequencies[i].dim == 8 || !strstr(frequencies[i].json, "longrope"))
            assert_fixed_point(frequencies[i].json, frequencies[i].seq_len, i % 2);
    assert_fixed_point(DYNAMIC, -7, false); /* negative positions only */
    assert_fixed_point(GEMMA_4, 1, false);
    assert_fixed_point("{}", 1, false);
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
    resolve(&r, &request, YARN("'original_max_position_embeddings':4096,'max_position_embeddings':8192"),
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

/* ---- Objects of public configs, and keys without effect ---- */

#define LISTS "'short_factor':[1,1,1,1],'long_factor':[2,2,2,2],'original_max_position_embeddings':4096"

static const struct {
    const char *json;
    int type;
    double attention;
} pasted[] = {
    {"{'rope_type':'default','type':'mrope','mrope_section':[16,24,24]}", PE_SCALING_default, 1},
    {"{'mrope_interleaved':true,'mrope_section':[24,20,20],'rope_type':'default'}", PE_SCALING_default, 1},
    {"{'rope_theta':10000.0,'rope_type':'default','partial_rotary_factor':0.5}", PE_SCALING_default, 1},
    {"{'rope_type':'yarn','type':'yarn','factor':1,'original_max_position_embeddings':4096,'finetuned':true,"
     "'attn_factor':2}",
     PE_SCALING_yarn, 1},
    {"{'type':'linear','factor':4,'finetuned':false,'attn_factor':3,'beta_fast':32,'truncate':true,"
     "'original_max_position_embeddings':4096,'max_position_embeddings':9}",
     PE_SCALING_linear, 1},
    {"{'type':'longrope','long_mscale':1.24,'short_mscale':1.5," LISTS "}", PE_SCALING_longrope, 1.5},
    {"{'type':'yarn','attention_factor':1.5," LISTS "}", PE_SCALING_longrope, 1.5}, /* early Phi-3 */
    {"{'type':'su','rope_type':'longrope','factor':1," LISTS "}", PE_SCALING_longrope, 1},
    {"{'type':'dynamic','factor':6.0,'max_position_embeddings':32768,'convention':'tgi'}", PE_SCALING_dynamic, 1},
};

TEST(public_objects_paste_in)
{
    struct resolved r;
    struct test_request request;
    for (size_t i = 0; i < sizeof pasted / sizeof *pasted; i++) {
        resolve(&r, &request, pasted[i].json, use_of(1e4, 8, 1));
        assert_int_equal(r.s.type, pasted[i].type);
        assert_true(r.s.attention_factor == pasted[i].attention);
        assert_true((r.s.mrope_interleaved != NULL) == (strstr(pasted[i].json, "mrope_interleaved") != NULL));
        test_request_drop(&request);
    }
}

TEST(given_values_are_kept)
{
    struct resolved r;
    struct test_request request;
    resolve(&r, &request,
            YARN("'factor':40,'original_max_position_embeddings':4096,'mscale_all_dim':1,'softmax_scale_factor':3,"
                 "'beta_fast':0,'beta_slow':0"),
            use_of(1e4, 8, 1));
    assert_true(r.s.softmax_scale_factor == 3 && real_of(&r, "beta_fast") == 32 && real_of(&r, "beta_slow") == 1);
    test_request_drop(&request);
    resolve(&r, &request, "{'type':'longrope','factor':2,'list':'long','seq_len':7," LISTS "}", use_of(1e4, 8, 99999));
    assert_string_equal(word_of(&r, "list"), "long");
    assert_true(r.s.seq_len == 7 && r.inv_freq[0].hi == 0.5);
    test_request_drop(&request);
}

/* ---- Refusals ---- */

static const char *const refused[][3] = {
    /* json, pointer, a word of the detail; 4 pairs, 5000 positions */
    {"{'type':'yarm'}", "/scaling/type", "nearest: \"yarn\""},
    {"{'rope_type':'yarm'}", "/scaling/rope_type", "nearest: \"yarn\""},
    {"{'rope_type':'yarn','type':'linear','factor':2}", "/scaling/rope_type", "different rules"},
    {"{'rope_type':'default','type':'su'}", "/scaling/rope_type", "different rules"},
    {"{'factor':2}", "/scaling/factor", "type is \"default\""},
    {"{'type':'linear'}", "/scaling/factor", "missing"},
    {"{'type':'linear','max_position_embeddings':8}", "/scaling/factor", "whose ratio"},
    {"{'type':'linear','factor':0}", "/scaling/factor", "factor is 0"},
    {"{'type':'linear','factor':-2}", "/scaling/factor", "factor is -2"},
    {"{'type':'longrope','factor':2,'short_factor':[1,nan,1,1]}", "/scaling/short_factor", "nan at index 1"},
    {"{'type':'linear','factor':1e7}", "/scaling/factor", "to 1000000"},
    {"{'type':'linear','factor':2,'low_freq_factor':1}", "/scaling/low_freq_factor", "by type llama3 only"},
    {"{'type':'linear','factor':2,'seq_len':1}", "/scaling/seq_len", "by type dynamic and longrope only"},
    {"{'type':'linear','factor':2,'mscale':1}", "/scaling/mscale", "by type yarn only"},
    {"{'type':'linear','factor':2,'beta_fast':16}", "/scaling/beta_fast", "by type yarn only"},
    {"{'type':'linear','factor':2,'truncate':false}", "/scaling/truncate", "by type yarn only"},
    {"{'type':'linear','factor':2,'list':'long'}", "/scaling/list", "by type longrope only"},
    {"{'type':'linear','factor':2,'short_factor':[1]}", "/scaling/short_factor", "by type longrope only"},
    {"{'type':'linear','factor':2,'attention_factor':2}", "/scaling/attention_factor", "yarn and longrope"},
    {"{'type':'linear','factor':2,'finetuned':1}", "/scaling/finetuned", "true or false"},
    {"{'type':'linear','factor':2,'convention':'vlm'}", "/scaling/convention", "nearest: \"vllm\""},
    {"{'type':'ntk'}", "/scaling/factor", "missing"},
    {"{'type':'dynamic','factor':2}", "/scaling/max_position_embeddings", "missing"},
    {"{'type':'dynamic','max_position_embeddings':8,'original_max_position_embeddings':4}", "/scaling/factor",
     "missing"},
    {"{'type':'dynamic','factor':2,'max_position_embeddings':0}", "/scaling/max_position_embeddings", "is 0"},
    {YARN("'factor':2"), "/scaling/original_max_position_embeddings", "missing"},
    {YARN("'factor':2,'original_max_position_embeddings':0"), "/scaling/original_max_position_embeddings", "is 0"},
    {YARN("'original_max_position_embeddings':8"), "/scaling/factor", "missing"},
    {YARN("'factor':2,'original_max_position_embeddings':8,'truncate':'no'"), "/scaling/truncate", "\"no\""},
    {YARN("'factor':2,'original_max_position_embeddings':8,'beta_fast':-1"), "/scaling/beta_fast", "is -1"},
    {YARN("'factor':2,'original_max_position_embeddings':8,'beta_slow':1e-300"), "/scaling/beta_slow", "1e-06"},
    {YARN("'original_max_position_embeddings':1,'max_position_embeddings':1e9"), "/scaling/max_position_embeddings",
     "makes factor 1000000000"},
    {"{'type':'llama3','factor':8,'low_freq_factor':1,'high_freq_factor':4}",
     "/scaling/original_max_position_embeddings", "missing"},
    {"{'type':'llama3','low_freq_factor':1,'high_freq_factor':4,'original_max_position_embeddings':8,"
     "'max_position_embeddings':64}",
     "/scaling/factor", "missing"},
    {"{'type':'llama3','factor':8,'low_freq_factor':2,'high_freq_factor':1,'original_max_position_embeddings':8}",
     "/scaling/high_freq_factor", "at least low_freq_factor, 2"},
    {"{'type':'llama3','factor':8,'low_freq_factor':0,'high_freq_factor':1,'original_max_position_embeddings':8}",
     "/scaling/low_freq_factor", "is 0"},
    {"{'type':'longrope','factor':2,'short_factor':[1,1,1,1],'original_max_position_embeddings':8}",
     "/scaling/long_factor", "missing"},
    {"{'convention':'ggml','divisors':[1,1,1]}", "/scaling/divisors", "needed: 4"},
    {"{'convention':'ggml','divisors':[[1,1],[1,1]]}", "/scaling/divisors", "needed: 4"},
    {"{'type':'linear','factor':2,'divisors':[1,1,1,1]}", "/scaling/divisors", "\"ggml\" only"},
    {"{'type':'longrope','factor':2,'short_factor':[1,1,1],'long_factor':[1,1,1,1],"
     "'original_max_position_embeddings':8}",
     "/scaling/short_factor", "needed: 4"},
    {"{'type':'longrope','factor':2,'short_factor':[[1,1],[1,1]],'long_factor':[1,1,1,1],"
     "'original_max_position_embeddings':8}",
     "/scaling/short_factor", "2 dimensions"},
    {"{'type':'longrope','factor':2,'short_factor':[1,1,1,1],'long_factor':[1,0,1,1],"
     "'original_max_position_embeddings':8}",
     "/scaling/long_factor", "0 at index 1"},
    {"{'type':'longrope','factor':2,'short_factor':[1,1,1,1],'long_factor':[1,1,1,1]}",
     "/scaling/original_max_position_embeddings", "missing"},
    {"{'type':'longrope'," LISTS "}", "/scaling/factor", "attention_factor"},
    {"{'type':'longrope','factor':2,'short_factor':[1,1,1,1],'long_factor':[1,1,1,1],"
     "'original_max_position_embeddings':1}",
     "/scaling/original_max_position_embeddings", "logarithm"},
    {"{'type':'longrope','factor':2,'convention':'tgi'," LISTS "}", "/scaling/convention", "ask twice"},
    {"{'type':'proportional'}", "/scaling/partial_rotary_factor", "missing"},
    {"{'type':'proportional','partial_rotary_factor':1.5}", "/scaling/partial_rotary_factor", "from 0 to 1"},
};

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

TEST(refusals_name_field_value_and_rule)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_refused(refused[i][0], use_of(1e4, 8, 5000), refused[i][1], refused[i][2]);
    assert_refused("{'type':'ntk','factor':2}", use_of(1e4, 2, 1), "/scaling/type", "divides by zero");
    assert_refused(DYNAMIC, use_of(1e4, 2, 1), "/scaling/type", "divides by zero");
    struct pe_scaling_use partial = use_of(1e4, 8, 1);
    partial.head_dim = 16;
    assert_refused("{'type':'proportional','partial_rotary_factor':0.5}", partial, "/scaling/type", "whole head");
}
