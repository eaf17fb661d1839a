/* Parts of outputs and numbers of their blocks, against sums in the plainest order: any pieces of a part give the part,
 * each failed allocation is survived. More values: tests/http/formats/test_slice.py. */
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"
#include "tests/support/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Outputs filled one row at a time, many rows at a time, with trailing axes, and with rows too long for the stack. */
static const struct {
    enum pe_operation_id operation;
    const char *json;
    struct pe_slice slice;
    const char *output;
    uint64_t shape[4]; /* of q, k and v for attention */
} blocks[] = {
    {PE_ENCODE,
     "{'scheme':'sinusoidal','dim':11,'len':90}",
     {.cuts = {{false, 3, PE_UNSET_INT, 7}, {false, PE_UNSET_INT, -1, 3}}, .n_cuts = 2},
     NULL,
     {0}},
    {PE_ENCODE, "{'scheme':'sinusoidal','dim':2500,'len':40}", {.cuts = {{false, 1, 38, 9}}, .n_cuts = 1}, NULL, {0}},
    {PE_ENCODE,
     "{'scheme':'sinusoidal','dim':5000,'len':20}",
     {.cuts = {{false, 0, -1, 6}, {false, 3, PE_UNSET_INT, 2}}, .n_cuts = 2},
     NULL,
     {0}},
    {PE_ENCODE,
     "{'scheme':'rope','head_dim':6,'len':70,'form':'matrix'}",
     {.cuts = {{false, 2, PE_UNSET_INT, 7}, {false, 0, PE_UNSET_INT, 2}, {true, 1, 0, 0}}, .n_cuts = 3},
     NULL,
     {0}},
    {PE_ENCODE,
     "{'scheme':'alibi','num_heads':5,'len':90,'causal':true}",
     {.cuts = {{false, 0, PE_UNSET_INT, 2}, {false, 0, PE_UNSET_INT, 8}, {false, 1, -1, 4}}, .n_cuts = 3},
     "bias",
     {0}},
    {PE_ENCODE,
     "{'scheme':'recursive','dim':2600,'len':9,'seed':1,'hidden':8}",
     {.cuts = {{false, 0, PE_UNSET_INT, 4}}, .n_cuts = 1},
     NULL,
     {0}},
    {PE_ATTEND,
     "{'scheme':'alibi'}",
     {.cuts = {{true, 0, 0, 0}, {false, 0, PE_UNSET_INT, 3}, {false, 5, PE_UNSET_INT, 7}}, .n_cuts = 3},
     "probs",
     {1, 4, 300, 16}},
    {PE_ATTEND,
     "{'scheme':'alibi','causal':true}",
     {.cuts = {{false, 0, 2, 2}, {false, 0, 2, 9}, {false, 0, 290, 2}, {false, 0, PE_UNSET_INT, 3}}, .n_cuts = 4},
     "scores",
     {3, 2, 300, 16}},
    {PE_ATTEND,
     "{'scheme':'rope','tensor_layout':'bnhd'}",
     {.cuts = {{false, 0, 1, 1}, {false, 0, PE_UNSET_INT, 170}, {false, 0, PE_UNSET_INT, 2}}, .n_cuts = 3},
     "output",
     {1, 300, 3, 12}},
    {PE_ATTEND,
     "{'scheme':'none'}",
     {.cuts = {{false, 0, 1, 1}, {false, 0, PE_UNSET_INT, 2}, {false, 0, PE_UNSET_INT, 300}}, .n_cuts = 3},
     "probs",
     {1, 2, 2300, 4}},
    {PE_ATTEND,
     "{'scheme':'none'}",
     {.cuts = {{true, 0, 0, 0}, {false, 1, PE_UNSET_INT, 2}, {false, 0, PE_UNSET_INT, 11}}, .n_cuts = 3},
     "row_entropy",
     {1, 4, 300, 8}},
};

static double naive_step(enum pe_reduce how, double so_far, double x, size_t n_before)
{
    if (n_before == 0)
        return how == PE_REDUCE_ABSMAX ? fabs(x) : x;
    switch (how) {
    case PE_REDUCE_MEAN: return so_far + x;
    case PE_REDUCE_MIN: return fmin(so_far, x);
    case PE_REDUCE_MAX: return fmax(so_far, x);
    default: return fmax(so_far, fabs(x));
    }
}

struct range {
    size_t from, to, step, n;
};

static struct range range_of(const struct pe_slice *slice, unsigned axis, size_t n)
{
    struct pe_cut cut = {.start = PE_UNSET_INT, .stop = PE_UNSET_INT, .step = 1};
    if (axis < slice->n_cuts)
        cut = slice->cuts[axis];
    struct range r = {.from = cut.start == PE_UNSET_INT ? 0 : (size_t)cut.start, .to = n, .step = (size_t)cut.step};
    if (cut.is_index)
        return (struct range){r.from, r.from + 1, 1, 1};
    if (cut.stop != PE_UNSET_INT)
        r.to = cut.stop < 0 ? n - (size_t)-cut.stop : (size_t)cut.stop;
    r.n = (r.to - r.from - 1) / r.step + 1;
    return r;
}

/* Element j of the answer from the whole as doubles. */
static double naive(const struct pe_output *whole, const struct range *ranges, enum pe_reduce how, const double *x,
                    size_t j)
{
    size_t first[PE_RANK_MAX], end[PE_RANK_MAX], at[PE_RANK_MAX], n = 0;
    double so_far = 0, hidden = 0;
    for (unsigned axis = whole->rank; axis-- > 0; j /= ranges[axis].n) {
        first[axis] = at[axis] = ranges[axis].from + j % ranges[axis].n * ranges[axis].step;
        end[axis] =
            first[axis] + ranges[axis].step < ranges[axis].to ? first[axis] + ranges[axis].step : ranges[axis].to;
    }
    for (bool more = true, is_first = true; more; is_first = false) {
        size_t flat = 0;
        for (unsigned axis = 0; axis < whole->rank; axis++)
            flat = flat * (size_t)whole->shape[axis] + at[axis];
        hidden = is_first ? x[flat] : hidden;
        if (isfinite(x[flat]))
            so_far = naive_step(how, so_far, x[flat], n++);
        more = false;
        for (unsigned axis = whole->rank; axis-- > 0 && !more;) {
            more = ++at[axis] < end[axis];
            at[axis] = more ? at[axis] : first[axis];
        }
    }
    return n == 0 || how == PE_REDUCE_SAMPLE ? hidden : how == PE_REDUCE_MEAN ? so_far / (double)n : so_far;
}

static struct pe_field tensor_of(const char *name, const uint64_t *shape)
{
    static float numbers[1 << 16];
    struct pe_field field = {name, {.kind = PE_ARRAY, .array = {.dtype = PE_F32, .rank = 4, .data = numbers}}};
    memcpy(field.value.array.shape, shape, 4 * sizeof *shape);
    for (size_t i = 0; numbers[1] == 0 && i < sizeof numbers / sizeof *numbers; i++)
        numbers[i] = (float)(random_bits() >> 40) / (1 << 22) - 2;
    return field;
}

static struct pe_plan *plan_of(struct test_request *r, size_t i, const struct pe_slice *slice, enum pe_reduce how)
{
    static const char *const tensors[] = {"q", "k", "v"};
    test_request_parse(r, blocks[i].json);
    for (size_t k = 0; blocks[i].shape[0] && k < 2 + (strcmp(blocks[i].output, "output") == 0); k++)
        r->fields[r->request.n_fields++] = tensor_of(tensors[k], blocks[i].shape);
    r->request.outputs = &blocks[i].output;
    r->request.n_outputs = blocks[i].output != NULL;
    r->request.slices = slice;
    r->request.n_slices = slice != NULL;
    r->request.reduce = how;
    return test_plan_as(r, blocks[i].operation, PE_DTYPE_NONE);
}

static enum pe_status try_to_plan(void *request)
{
    struct pe_plan *plan = NULL;
    struct pe_failure err;
    enum pe_status status = pe_plan_new(request, &plan, &err);
    pe_plan_free(plan);
    return status;
}

static double *whole_of(size_t i, struct pe_output *output)
{
    struct test_request r;
    struct pe_plan *plan = plan_of(&r, i, NULL, PE_REDUCE_SAMPLE);
    *output = *pe_plan_output(plan, 0);
    size_t n = (size_t)(output->n_rows * output->row_len);
    float *floats = malloc(n * sizeof *floats);
    double *x = malloc(n * sizeof *x);
    pe_fill(plan, 0, 0, n, floats);
    for (size_t j = 0; j < n; j++)
        x[j] = (double)floats[j];
    free(floats);
    pe_plan_free(plan);
    test_request_drop(&r);
    return x;
}

static void assert_blocks(size_t i, enum pe_reduce how)
{
    struct test_request r;
    struct pe_output whole;
    struct range ranges[PE_RANK_MAX];
    double *x = whole_of(i, &whole);
    struct pe_plan *plan = plan_of(&r, i, &blocks[i].slice, how);
    const struct pe_output *output = pe_plan_output(plan, 0);
    size_t n = (size_t)(output->n_rows * output->row_len), n_expected = 1;
    for (unsigned axis = 0; axis < whole.rank; axis++) {
        ranges[axis] = range_of(&blocks[i].slice, axis, (size_t)whole.shape[axis]);
        n_expected *= ranges[axis].n;
    }
    assert_int_equal(n, n_expected);
    float *got = malloc((n + 1) * sizeof *got);
    pe_fill(plan, 0, 0, n, got);
    for (size_t j = 0; j < n; j++)
        if (got[j] != (float)naive(&whole, ranges, how, x, j))
            fail_msg("%s, way %d: element %zu is %.9g, not %.9g", blocks[i].json, how, j, (double)got[j],
                     naive(&whole, ranges, how, x, j));
    for (size_t at = n / 3, m, k = 0; at < n && k < 40; at += m, k++) { /* any pieces give the same */
        float piece[700];
        m = 1 + (at * 7 + 5) % 699;
        m = m < n - at ? m : n - at;
        pe_fill(plan, 0, at, m, piece);
        assert_memory_equal(piece, got + at, m * sizeof *piece);
    }
    test_each_allocation_fails(try_to_plan, &r.request);
    free(got);
    free(x);
    pe_plan_free(plan);
    test_request_drop(&r);
}

TEST(blocks_are_joined_in_order)
{
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        for (enum pe_reduce how = PE_REDUCE_SAMPLE; how <= PE_REDUCE_ABSMAX; how++)
            assert_blocks(i, how);
}
