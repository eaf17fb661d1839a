/* Tensors of a request as weights, and weights computed from a seed.
 *
 * A seeded tensor must be the same on every machine, in every part that is asked for, and not depend on what else is
 * drawn. So it is no stream of a generator: element i is a function of seed, name and i (a counter-based generator,
 * Salmon et al. 2011; here SplitMix64's finaliser, Steele et al. 2014), made normal by the inverse of the distribution
 * function (Wichura 1988, AS 241), whose logarithm is plain arithmetic and not the C library's.
 *
 * Sizes that a tensor fixes (its heads, its table's rows) are set from it, and two tensors that disagree are refused.
 */
#include "core/request/request.h"
#include "core/numeric/numeric.h"
#include "core/operation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The generator ---- */

static const uint64_t GOLDEN = 0x9E3779B97F4A7C15;

uint64_t pe_seed_hash(int64_t seed, const char *name)
{
    uint64_t h = 0xCBF29CE484222325; /* FNV-1a, 64 bits */
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001B3;
    return (uint64_t)seed * GOLDEN ^ h;
}

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

static double polynomial(const double *c, size_t n, double x)
{
    double sum = c[n - 1];
    for (size_t i = n - 1; i-- > 0;)
        sum = sum * x + c[i];
    return sum;
}

/* ln(x) of a normal double, by plain arithmetic that is the same everywhere: x = 2^e·m, ln m = 2·atanh((m-1)/(m+1)). */
static double logarithm(double x)
{
    int e;
    double m = frexp(x, &e);
    if (m < 0x1.6a09e667f3bcdp-1) { /* √½: keeps |z| below 0.172 */
        m *= 2;
        e--;
    }
    double z = (m - 1) / (m + 1), square = z * z, sum = 0;
    for (int k = 23; k >= 1; k -= 2)
        sum = sum * square + 1.0 / k;
    return (double)e * 0x1.62e42fefa39efp-1 + 2 * z * sum;
}

enum { AS241_TERMS = 8 };
static const double central[2][AS241_TERMS] = {
    {3.3871328727963666080e0, 1.3314166789178437745e+2, 1.9715909503065514427e+3, 1.3731693765509461125e+4,
     4.5921953931549871457e+4, 6.7265770927008700853e+4, 3.3430575583588128105e+4, 2.5090809287301226727e+3},
    {1, 4.2313330701600911252e+1, 6.8718700749205790830e+2, 5.3941960214247511077e+3, 2.1213794301586595867e+4,
     3.9307895800092710610e+4, 2.8729085735721942674e+4, 5.2264952788528545610e+3}};
static const double middle[2][AS241_TERMS] = {
    {1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
     1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4},
    {1, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1, 1.48103976427480074590e-1,
     1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9}};
static const double tail[2][AS241_TERMS] = {
    {6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
     2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7},
    {1, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2, 7.86869131145613259100e-4,
     1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15}};

static double ratio(const double c[2][AS241_TERMS], double r)
{
    return polynomial(c[0], AS241_TERMS, r) / polynomial(c[1], AS241_TERMS, r);
}

/* Φ⁻¹(u), 0 < u < 1: Wichura 1988, Applied Statistics 37, algorithm AS 241. */
static double normal_quantile(double u)
{
    double q = u - 0.5;
    if (fabs(q) <= 0.425)
        return q * ratio(central, 0.180625 - q * q);
    double r = sqrt(-logarithm(q < 0 ? u : 1 - u));
    double x = r <= 5 ? ratio(middle, r - 1.6) : ratio(tail, r - 5);
    return q < 0 ? -x : x;
}

double pe_seed_uniform(uint64_t hash, uint64_t i)
{
    uint64_t k = mix(hash + (i + 1) * GOLDEN) >> 11;
    return ((double)k + 0.5) * 0x1p-53;
}

double pe_seed_normal(uint64_t hash, uint64_t i) { return normal_quantile(pe_seed_uniform(hash, i)); }

void pe_seed_fill(int64_t seed, const char *name, double std, uint64_t first, size_t n, float *out)
{
    enum { BETWEEN = 16384 }; /* about a millisecond */
    uint64_t hash = pe_seed_hash(seed, name);
    for (size_t i = 0; i < n; i++) {
        if (i % BETWEEN == 0 && pe_is_cancelled())
            return;
        out[i] = (float)(std * pe_seed_normal(hash, first + i));
    }
}

static void read_stored(const struct pe_weights *w, uint64_t first, size_t n, double *out)
{
    size_t size = pe_dtype_size(w->tensor.dtype);
    pe_convert(PE_F64, out, w->tensor.dtype, (const char *)w->tensor.data + first * size, n);
    for (size_t i = 0; w->is_text && i < n; i++)
        out[i] = (double)(float)out[i];
}

void pe_weights_read(const struct pe_weights *w, uint64_t first, size_t n, double *out)
{
    if (w->is_by_column) {
        uint64_t rows = w->tensor.shape[0], width = w->tensor.shape[1];
        for (size_t i = 0; i < n; i++)
            read_stored(w, (first + i) % width * rows + (first + i) / width, 1, out + i);
        return;
    }
    if (!w->is_seeded) {
        read_stored(w, first, n, out);
        return;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = (double)(float)(w->std * pe_seed_normal(w->hash, first + i));
}

/* ---- Tensors of the request ---- */

enum pe_status pe_weights_take(struct pe_weights *w, const struct pe_field *field, struct pe_failure *err)
{
    uint64_t count;
    if (field->value.kind != PE_ARRAY)
        return pe_fail_at(err, "", field->name,
                          "%s is not a tensor; send nested lists of numbers, a .npy part or safetensors", field->name);
    if (!pe_shape_count(field->value.array.shape, field->value.array.rank, &count) || count == 0)
        return pe_fail_at(err, "", field->name, "%s has no elements", field->name);
    w->tensor = field->value.array;
    w->is_text = field->value.from_text;
    return PE_OK;
}

void pe_weights_seed(struct pe_weights *w, int64_t seed, const char *name, double std, const uint64_t *shape,
                     unsigned rank)
{
    *w = (struct pe_weights){.is_seeded = true, .hash = pe_seed_hash(seed, name), .std = std};
    w->tensor = (struct pe_tensor){.dtype = PE_F32, .rank = rank};
    memcpy(w->tensor.shape, shape, rank * sizeof *shape);
}

static size_t count_inputs(const struct pe_plan *plan)
{
    size_t n = 0;
    for (const struct pe_input_row *row = plan->scheme->info.inputs; row && row->name; row++)
        n++;
    return n;
}

bool pe_weights_takes(const struct pe_input_row *row, const struct pe_operation *operation)
{
    bool is_of_encoding = row->operation == PE_ENCODE && operation->info.uses_encoding;
    return !row->is_operand && (row->operation == operation->id || is_of_encoding);
}

enum pe_status pe_weights_init(struct pe_plan *plan, const struct pe_request *request, bool *taken,
                               struct pe_failure *err)
{
    size_t n = count_inputs(plan);
    if (n == 0)
        return PE_OK;
    plan->weights = calloc(n, sizeof *plan->weights);
    if (!plan->weights)
        return pe_no_memory(err);
    for (size_t id = 0; id < n; id++)
        for (size_t i = 0; i < request->n_fields; i++) {
            const struct pe_input_row *row = &plan->scheme->info.inputs[id];
            if (!pe_weights_takes(row, plan->operation) || strcmp(row->name, request->fields[i].name) != 0)
                continue;
            taken[i] = true;
            enum pe_status status = pe_weights_take(&plan->weights[id], &request->fields[i], err);
            if (status)
                return status;
        }
    return PE_OK;
}

void pe_weights_drop(struct pe_plan *plan) { free(plan->weights); }

bool pe_weights_sent(const struct pe_plan *plan, size_t id)
{
    return plan->weights[id].tensor.data && !plan->weights[id].is_seeded;
}

uint64_t pe_weights_axis(const struct pe_plan *plan, size_t id, unsigned axis)
{
    const struct pe_tensor *t = &plan->weights[id].tensor;
    return pe_weights_sent(plan, id) && axis < t->rank ? t->shape[axis] : 0;
}

static bool has_shape(const struct pe_tensor *t, const uint64_t *shape, unsigned rank)
{
    return t->rank == rank && memcmp(t->shape, shape, rank * sizeof *shape) == 0;
}

static bool find_seed(const struct pe_plan *plan, int64_t *seed, double *std)
{
    const struct pe_param *rows = plan->scheme->info.params, *row = pe_param_find(rows, "std");
    if (!row)
        row = pe_param_find(rows, "sigma"); /* the name of std in Gaussian Fourier features */
    *std = row ? *(const double *)((const char *)plan->config + row->offset) : 1;
    return pe_param_integer(rows, plan->config, "seed", 4, seed);
}

bool pe_weights_seedable(const struct pe_plan *plan)
{
    int64_t seed;
    return pe_param_integer(plan->scheme->info.params, plan->config, "seed", 4, &seed);
}

bool pe_weights_there(const struct pe_plan *plan)
{
    for (size_t id = 0; plan->weights && id < count_inputs(plan); id++)
        if (plan->weights[id].is_seeded || plan->weights[id].tensor.data)
            return true;
    return false;
}

bool pe_weights_wanted(const struct pe_plan *plan)
{
    const struct pe_request *request = plan->request;
    int64_t seed;
    double std;
    for (size_t i = 0; i < request->n_outputs; i++)
        for (const struct pe_output_row *row = plan->scheme->info.outputs; row->name; row++)
            if (row->when && strcmp(row->when, PE_WHEN_WEIGHTS) == 0 && strcmp(row->name, request->outputs[i]) == 0)
                return true;
    return plan->attention || pe_weights_there(plan) || find_seed(plan, &seed, &std);
}

enum pe_status pe_weights_need(struct pe_plan *plan, size_t id, struct pe_failure *err)
{
    uint64_t shape[PE_RANK_MAX];
    unsigned rank = pe_shape_of(plan, plan->scheme->info.inputs[id].shape, shape);
    return pe_weights_need_shape(plan, id, shape, rank, err);
}

enum pe_status pe_weights_need_shape(struct pe_plan *plan, size_t id, const uint64_t *shape, unsigned rank,
                                     struct pe_failure *err)
{
    struct pe_weights *w = &plan->weights[id];
    const char *name = plan->scheme->info.inputs[id].name;
    char pointer[48] = "/", needed[128], sent[128];
    int64_t seed;
    strncat(pointer, name, sizeof pointer - 2);
    pe_shape_print(shape, rank, needed, sizeof needed);
    if (w->tensor.data && has_shape(&w->tensor, shape, rank))
        return PE_OK;
    if (w->tensor.data) {
        pe_shape_print(w->tensor.shape, w->tensor.rank, sent, sizeof sent);
        return pe_fail(err, pointer, "%s has the shape %s; needed: %s, %s", name, sent, needed,
                       plan->scheme->info.inputs[id].shape);
    }
    if (!find_seed(plan, &seed, &w->std)) {
        pe_fail(err, pointer,
                "%s needs the tensor %s %s; three ways to give weights: sent with the request, \"%s\":[[…]] "
                "(or a .npy part, safetensors); made at random, \"seed\":0; stored and named, \"weights\":\"NAME\"",
                plan->scheme->info.name, name, needed, name);
        return pe_advise(err, PE_STORE_WEIGHTS, NULL);
    }
    pe_weights_seed(w, seed, name, w->std, shape, rank);
    return PE_OK;
}

enum pe_status pe_weights_check(struct pe_plan *plan, struct pe_failure *err)
{
    static const char *const names[] = {"seed", "std"};
    bool seeded = false;
    for (size_t id = 0; plan->weights && id < count_inputs(plan); id++) /* the hash: of rows beyond a table */
        seeded |= plan->weights[id].is_seeded || plan->weights[id].hash;
    for (size_t i = 0; plan->weights && !seeded && i < 2; i++) {
        const struct pe_param *row = pe_param_find(plan->scheme->info.params, names[i]);
        char pointer[8] = "/";
        bool is_used = i == 0 && plan->operation_uses_seed;
        if (row && pe_plan_gave_itself(plan, names[i]) && !is_used)
            return pe_fail(err, strcat(pointer, names[i]), "%s is not used here: no tensor is random", names[i]);
        if (row && row->type == PE_T_REAL)
            *(double *)((char *)plan->config + row->offset) = PE_UNSET; /* has no effect, so it is not shown */
    }
    return PE_OK;
}

/* ---- Sizes that tensors fix ---- */

/* Has a tensor fixed this size before? */
static bool is_fixed(const struct pe_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->n_fixed; i++)
        if (strcmp(plan->fixed[i], name) == 0)
            return true;
    return false;
}

enum pe_status pe_fix_size(struct pe_plan *plan, const char *name, uint64_t size, const char *tensor,
                           struct pe_failure *err)
{
    const struct pe_param *row = pe_param_find(plan->scheme->info.params, name);
    int64_t *field = (int64_t *)((char *)plan->config + row->offset);
    char pointer[48] = "/";
    if (is_fixed(plan, name))
        return PE_OK;
    if ((uint64_t)*field != size && pe_plan_gave(plan, name)) {
        strncat(pointer, name, sizeof pointer - 2);
        pe_fail(err, pointer, "%s is %lld, the tensor %s makes it %llu", name, (long long)*field, tensor,
                (unsigned long long)size);
        return pe_leave_out(err, "; leave %s out", name);
    }
    if ((double)size < row->min || (double)size > row->max) {
        strncat(pointer, tensor, sizeof pointer - 2);
        return pe_fail(err, pointer, "%s makes %s %llu; allowed: from %.0f to %.0f", tensor, name,
                       (unsigned long long)size, row->min, row->max);
    }
    *field = (int64_t)size;
    if (plan->n_fixed < sizeof plan->fixed / sizeof *plan->fixed)
        plan->fixed[plan->n_fixed++] = name;
    return PE_OK;
}

/* The length of the axis called name of the first tensor sent that has it, and that tensor's name; 0: none has. */
static uint64_t sent_size(const struct pe_plan *plan, const char *name, const char **tensor)
{
    for (size_t id = 0; plan->weights && id < count_inputs(plan); id++) {
        uint64_t size = 0;
        unsigned rank = 0;
        for (const char *axis = plan->scheme->info.inputs[id].shape; *axis; rank++) {
            size_t n = strcspn(axis, ",");
            if (n == strlen(name) && memcmp(axis, name, n) == 0)
                size = pe_weights_axis(plan, id, rank);
            axis += n + (axis[n] == ',');
        }
        if (size && rank == plan->weights[id].tensor.rank) {
            *tensor = plan->scheme->info.inputs[id].name;
            return size;
        }
    }
    return 0;
}

enum pe_status pe_fix_sizes(struct pe_plan *plan, const char *const *names, struct pe_failure *err)
{
    const char *tensor;
    enum pe_status status = PE_OK;
    for (; !status && *names; names++) {
        uint64_t size = sent_size(plan, *names, &tensor);
        status = size ? pe_fix_size(plan, *names, size, tensor, err) : PE_OK;
    }
    return status;
}

double pe_size_most(const struct pe_plan *plan, const char *name)
{
    const char *tensor;
    int64_t given = 0;
    pe_param_integer(plan->scheme->info.params, plan->config, name, strlen(name), &given);
    return fmax((double)given, (double)sent_size(plan, name, &tensor));
}

double *pe_weights_all(const struct pe_plan *plan, size_t id)
{
    const struct pe_weights *w = &plan->weights[id];
    uint64_t n = 0;
    pe_shape_count(w->tensor.shape, w->tensor.rank, &n);
    double *out = malloc((n ? n : 1) * sizeof *out);
    if (out)
        pe_weights_read(w, 0, n, out);
    return out;
}
