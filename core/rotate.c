/* Rotation of queries and keys: tensors in, tensors of the same shape out. */
#include "core/rotate.h"
#include "core/dtype.h"
#include "core/kernels/kernels.h"
#include "core/outputs.h"
#include "core/recipe.h"

#include <stdlib.h>
#include <string.h>

enum tensor_layout { BHND, BNHD };

struct rotate_fields {
    int tensor_layout;
};

static const char *const layout_words[] = {[BHND] = "bhnd", [BNHD] = "bnhd", NULL};

static const struct pe_param rotate_rows[] = {
    PE_P_WORD(rotate_fields, tensor_layout, layout_words, "order of the axes batch, heads, positions, head_dim"),
    PE_P_END,
};

/* One tensor to be rotated. Row r of it is one head at one position, number (r / inner) % n. */
struct operand {
    const char *name;
    size_t id; /* its row among the scheme's inputs */
    struct pe_tensor tensor;
    void *owned; /* the tensor's data where it was converted */
    uint64_t n, inner;
    const struct pe_positions *positions; /* [axes] */
    double *table;                        /* [n, 2 · n_pairs]: cosines, then sines; NULL: made while filling */
};

enum { OPERANDS_MAX = 2 };

struct pe_rotator {
    struct operand operands[OPERANDS_MAX];
    size_t n_operands;
    enum tensor_layout layout;
    size_t of_output[OPERANDS_MAX]; /* which operand an output is */
    struct pe_rotation rotation;
    struct pe_wave *columns; /* 2 · n_pairs */
    struct pe_waves *waves;
    double *tables[OPERANDS_MAX]; /* owned; operands at the same positions share one */
};

/* ---- Reading the tensors ---- */

static const struct pe_field *find_field(const struct pe_request *request, const char *name, size_t *at)
{
    for (size_t i = 0; i < request->n_fields; i++)
        if (strcmp(request->fields[i].name, name) == 0) {
            *at = i;
            return &request->fields[i];
        }
    return NULL;
}

/* Where the position axis stands, and how many rows share a position in a row. */
static void place_axes(struct operand *op, enum tensor_layout layout)
{
    const struct pe_tensor *t = &op->tensor;
    bool heads_inside = layout == BNHD && t->rank > 2;
    op->n = t->shape[t->rank - (heads_inside ? 3 : 2)];
    op->inner = heads_inside ? t->shape[t->rank - 2] : 1;
}

static enum pe_status check_tensor(const struct pe_field *field, const char *pointer, struct pe_error *err)
{
    const struct pe_tensor *t = &field->value.array;
    uint64_t count;
    if (field->value.kind != PE_ARRAY)
        return pe_fail(err, pointer, "%s is not a tensor; send nested lists of numbers, a .npy part or safetensors",
                       field->name);
    if (t->rank < 2 || t->rank > 4)
        return pe_fail(err, pointer,
                       "%s has %u dimensions; allowed: [batch, heads, n, head_dim], where leading axes may be missing",
                       field->name, t->rank);
    if (!pe_shape_count(t->shape, t->rank, &count) || count == 0)
        return pe_fail(err, pointer, "%s has no elements", field->name);
    if (t->shape[t->rank - 1] > PE_HEAD_DIM_MAX)
        return pe_fail(err, pointer, "%s has head_dim %llu; allowed: up to %d", field->name,
                       (unsigned long long)t->shape[t->rank - 1], PE_HEAD_DIM_MAX);
    return PE_OK;
}

/* Numbers of JSON text without a dtype are a tensor of f32. */
static enum pe_status text_to_f32(struct operand *op, struct pe_error *err)
{
    uint64_t n;
    pe_shape_count(op->tensor.shape, op->tensor.rank, &n);
    op->owned = malloc(n * sizeof(float));
    if (!op->owned)
        return pe_no_memory(err);
    pe_convert(PE_F32, op->owned, op->tensor.dtype, op->tensor.data, n);
    op->tensor.dtype = PE_F32;
    op->tensor.data = op->owned;
    return PE_OK;
}

/* The tensors' last axis is the scheme's head_dim, unless the request says another. */
static enum pe_status fix_head_dim(struct pe_plan *plan, const struct pe_request *request, const struct operand *op,
                                   struct pe_error *err)
{
    const struct pe_param *row = pe_param_find(plan->scheme->info.params, "head_dim");
    int64_t *head_dim = (int64_t *)((char *)plan->config + row->offset);
    int64_t fixed = (int64_t)op->tensor.shape[op->tensor.rank - 1];
    size_t at;
    bool is_first = op == plan->rotator->operands;
    if (*head_dim != fixed && find_field(request, "head_dim", &at))
        return pe_fail(err, "/head_dim", "head_dim is %lld, the last axis of %s is %lld; leave head_dim out",
                       (long long)*head_dim, op->name, (long long)fixed);
    if (*head_dim != fixed && !is_first) {
        char pointer[16] = "/";
        strncat(pointer, op->name, 8);
        return pe_fail(err, pointer, "the last axis of %s is %lld, that of %s is %lld; both are head_dim", op->name,
                       (long long)fixed, plan->rotator->operands[0].name, (long long)*head_dim);
    }
    *head_dim = fixed;
    return PE_OK;
}

static enum pe_status read_operand(struct pe_plan *plan, const struct pe_request *request, const struct pe_field *field,
                                   size_t id, struct pe_error *err)
{
    struct pe_rotator *rotator = plan->rotator;
    struct operand *op = &rotator->operands[rotator->n_operands];
    char pointer[16] = "/";
    strncat(pointer, field->name, 8);
    enum pe_status status = check_tensor(field, pointer, err);
    if (status)
        return status;
    *op = (struct operand){.name = plan->scheme->info.inputs[id].name, .id = id, .tensor = field->value.array};
    place_axes(op, rotator->layout);
    rotator->n_operands++;
    if (field->value.from_text && (status = text_to_f32(op, err)))
        return status;
    return fix_head_dim(plan, request, op, err);
}

enum pe_status pe_rotator_read(struct pe_plan *plan, const struct pe_request *request, bool *taken,
                               struct pe_error *err)
{
    struct rotate_fields fields;
    struct pe_rotator *rotator = plan->rotator = calloc(1, sizeof *rotator);
    if (!rotator)
        return pe_no_memory(err);
    enum pe_status status = pe_params_read(rotate_rows, &fields, request->fields, request->n_fields, taken, "", err);
    rotator->layout = status ? BHND : (enum tensor_layout)fields.tensor_layout;
    const struct pe_input_row *inputs = plan->scheme->info.inputs;
    for (size_t id = 0; !status && inputs[id].name; id++) {
        size_t at;
        const struct pe_field *field = find_field(request, inputs[id].name, &at);
        if (!field || inputs[id].operation != PE_ROTATE)
            continue;
        taken[at] = true;
        status = read_operand(plan, request, field, id, err);
    }
    if (!status && rotator->n_operands == 0)
        return pe_fail(err, "/q",
                       "there is nothing to rotate; send q, k or both, of shape [batch, heads, n, head_dim]");
    return status;
}

struct pe_sequence_sizes pe_rotator_sizes(const struct pe_plan *plan)
{
    struct pe_sequence_sizes sizes = {.k_tensor = "k"};
    for (size_t i = 0; i < plan->rotator->n_operands; i++) {
        const struct operand *op = &plan->rotator->operands[i];
        *(op->name[0] == 'q' ? &sizes.q : &sizes.k) = op->n;
    }
    return sizes;
}

/* ---- Outputs and tables ---- */

static enum pe_status choose(struct pe_plan *plan, const struct pe_request *request, struct pe_error *err)
{
    struct pe_rotator *rotator = plan->rotator;
    const char *names[OPERANDS_MAX + 1] = {NULL};
    for (size_t i = 0; i < rotator->n_operands; i++)
        names[i] = rotator->operands[i].name;
    plan->n_outputs = request->n_outputs ? request->n_outputs : rotator->n_operands;
    for (size_t i = 0; i < plan->n_outputs; i++) {
        size_t which = request->n_outputs ? 0 : i;
        while (request->n_outputs && names[which] && strcmp(names[which], request->outputs[i]) != 0)
            which++;
        if (which == rotator->n_operands) {
            plan->n_outputs = 0;
            return pe_output_unknown(plan, i, request->outputs[i], names, err);
        }
        rotator->of_output[i] = which;
    }
    return PE_OK;
}

/* Real outputs are of the dtype asked for, else of the first tensor's if that is real. */
static void shape_outputs(struct pe_plan *plan, const struct pe_request *request)
{
    const struct pe_rotator *rotator = plan->rotator;
    enum pe_dtype first = rotator->operands[0].tensor.dtype;
    if (request->dtype == PE_DTYPE_NONE && pe_dtype_is_real(first))
        plan->dtype = first;
    for (size_t i = 0; i < plan->n_outputs; i++) {
        const struct operand *op = &rotator->operands[rotator->of_output[i]];
        struct pe_output *output = &plan->outputs[i];
        output->name = op->name;
        output->dtype = plan->dtype;
        output->rank = op->tensor.rank;
        memcpy(output->shape, op->tensor.shape, sizeof output->shape);
        output->row_len = op->tensor.shape[op->tensor.rank - 1];
        pe_shape_count(op->tensor.shape, op->tensor.rank - 1, &output->n_rows);
    }
}

/* Cosines and sines of n_rows positions; for operands whose size depends on the position (xPos), that too. */
static void fill_table(const struct pe_plan *plan, const struct operand *op, uint64_t row0, size_t n_rows,
                       double *table)
{
    const struct pe_rotator *rotator = plan->rotator;
    size_t pairs = rotator->rotation.n_pairs, width = 2 * pairs;
    if (plan->arith == PE_ARITH_FLOAT32)
        pe_recipe_fill(rotator->columns, PE_F64, op->positions, row0, n_rows, width, table, width);
    else
        pe_waves_fill(rotator->waves, PE_F64, op->positions, row0, n_rows, 0, width, table, width);
    for (size_t i = 0; plan->scheme->magnitude && i < n_rows; i++) {
        double factors[PE_HEAD_DIM_MAX / 2], *row = table + i * width;
        plan->scheme->magnitude(plan, op->id, op->positions, row0 + i, 1, factors);
        for (size_t c = 0; c < width; c++)
            row[c] *= factors[c % pairs];
    }
}

static bool same_positions(const struct pe_plan *plan, const struct pe_positions *a, const struct pe_positions *b)
{
    for (unsigned axis = 0; axis < plan->seq.n_axes; axis++)
        if (!pe_positions_same(&a[axis], &b[axis]))
            return false;
    return true;
}

/* A table is kept where several heads share each position and it is not too large. */
static enum pe_status make_table(struct pe_plan *plan, size_t i, struct pe_error *err)
{
    struct pe_rotator *rotator = plan->rotator;
    struct operand *op = &rotator->operands[i];
    uint64_t n_rows, row_bytes = 2 * rotator->rotation.n_pairs * sizeof(double);
    op->positions = op->name[0] == 'q' ? plan->seq.q : plan->seq.k;
    pe_shape_count(op->tensor.shape, op->tensor.rank - 1, &n_rows);
    if (i > 0 && !plan->scheme->magnitude && same_positions(plan, op->positions, rotator->operands[0].positions) &&
        rotator->operands[0].table) {
        op->table = rotator->operands[0].table;
        return PE_OK;
    }
    if (n_rows <= op->n || op->n > PE_ROTATION_TABLE_MAX / row_bytes)
        return PE_OK;
    op->table = rotator->tables[i] = malloc(op->n * row_bytes);
    if (!op->table)
        return pe_no_memory(err);
    fill_table(plan, op, 0, op->n, op->table);
    return PE_OK;
}

static enum pe_status make_waves(struct pe_plan *plan, struct pe_error *err)
{
    struct pe_rotator *rotator = plan->rotator;
    plan->scheme->rotate(plan, &rotator->rotation, NULL);
    size_t width = 2 * rotator->rotation.n_pairs;
    rotator->columns = calloc(width, sizeof *rotator->columns);
    if (!rotator->columns)
        return pe_no_memory(err);
    plan->scheme->rotate(plan, &rotator->rotation, rotator->columns);
    enum pe_status status = pe_check_phases(plan, rotator->columns, width, err);
    if (!status && plan->arith == PE_ARITH_EXACT && pe_waves_new(rotator->columns, width, &rotator->waves))
        return pe_no_memory(err);
    return status;
}

enum pe_status pe_rotator_init(struct pe_plan *plan, const struct pe_request *request, struct pe_error *err)
{
    enum pe_status status = pe_outputs_twice(request, err);
    if (!status)
        status = pe_outputs_alloc(plan, OPERANDS_MAX + request->n_outputs, err);
    if (!status)
        status = choose(plan, request, err);
    if (status)
        return status;
    shape_outputs(plan, request);
    status = make_waves(plan, err);
    for (size_t i = 0; !status && i < plan->rotator->n_operands; i++)
        status = make_table(plan, i, err);
    return status;
}

void pe_rotator_drop(struct pe_plan *plan)
{
    struct pe_rotator *rotator = plan->rotator;
    if (!rotator)
        return;
    for (size_t i = 0; i < OPERANDS_MAX; i++) {
        free(rotator->operands[i].owned);
        free(rotator->tables[i]);
    }
    pe_waves_free(rotator->waves);
    free(rotator->columns);
    free(rotator);
}

/* ---- Filling ---- */

/* Cosines and sines of a window of positions, made when a position outside it is asked for. */
struct window {
    uint64_t first, n;
    double values[PE_SCRATCH_BYTES / sizeof(double)]; /* [n, 2 · n_pairs] */
};

static const double *cosines_at(const struct pe_plan *plan, const struct operand *op, uint64_t position,
                                struct window *w)
{
    size_t width = 2 * plan->rotator->rotation.n_pairs;
    if (op->table)
        return op->table + position * width;
    if (position < w->first || position >= w->first + w->n) {
        uint64_t room = sizeof w->values / sizeof *w->values / width, left = op->n - position;
        w->first = position;
        w->n = left < room ? left : room;
        fill_table(plan, op, w->first, (size_t)w->n, w->values);
    }
    return w->values + (position - w->first) * width;
}

/* V-JEPA 2's rotation, which is none: channel i of a block of C pairs takes the cosine and sine of pair i mod C. */
static void rotate_tiled(const struct pe_rotation_block *b, const double *cosines, const double *sines, const double *x,
                         double *y)
{
    for (size_t i = 0; i < 2 * b->n_pairs; i++) {
        double cosine = cosines[b->pair0 + i % b->n_pairs], sine = sines[b->pair0 + i % b->n_pairs];
        y[b->first + i] = i % 2 ? x[b->first + i] * cosine + x[b->first + i - 1] * sine
                                : x[b->first + i] * cosine - x[b->first + i + 1] * sine;
    }
}

/* Pairs of neighbours are written as halves: transformers' rope_interleave of DeepSeek. */
static void move_to_halves(size_t n_pairs, double *y)
{
    double turned[PE_HEAD_DIM_MAX];
    memcpy(turned, y, 2 * n_pairs * sizeof *y);
    for (size_t c = 0; c < n_pairs; c++) {
        y[c] = turned[2 * c];
        y[n_pairs + c] = turned[2 * c + 1];
    }
}

/* One row from a tensor of any dtype to one of any real dtype, in double. */
static void rotate_any(const struct pe_rotation *rot, const double *cosines, enum pe_dtype from, const char *x,
                       enum pe_dtype to, char *y)
{
    double in[PE_HEAD_DIM_MAX], out[PE_HEAD_DIM_MAX];
    const double *sines = cosines + rot->n_pairs;
    pe_convert(PE_F64, in, from, x, rot->head_dim);
    memcpy(out, in, rot->head_dim * sizeof *out);
    for (size_t i = 0; i < rot->n_blocks; i++) {
        const struct pe_rotation_block *b = &rot->blocks[i];
        size_t first = rot->offset + b->first;
        if (rot->is_tiled)
            rotate_tiled(b, cosines, sines, in + rot->offset, out + rot->offset);
        else
            pe_kernels()->rotate_f64(cosines + b->pair0, sines + b->pair0, in + first, out + first, b->n_pairs, b->step,
                                     b->partner);
    }
    if (rot->to_half)
        move_to_halves(rot->n_pairs, out + rot->offset);
    pe_convert(to, y, PE_F64, out, rot->head_dim);
}

static void rotate_floats(const struct pe_rotation *rot, const double *cosines, const float *x, float *y)
{
    const double *sines = cosines + rot->n_pairs;
    if (2 * rot->n_pairs < rot->head_dim)
        memcpy(y, x, rot->head_dim * sizeof *y);
    for (size_t i = 0; i < rot->n_blocks; i++) {
        const struct pe_rotation_block *b = &rot->blocks[i];
        size_t first = rot->offset + b->first;
        pe_kernels()->rotate_f32(cosines + b->pair0, sines + b->pair0, x + first, y + first, b->n_pairs, b->step,
                                 b->partner);
    }
}

static void rotate_row(const struct pe_rotation *rot, const double *cosines, enum pe_dtype from, const void *x,
                       enum pe_dtype to, void *y)
{
    if (from == PE_F32 && to == PE_F32 && !rot->is_tiled && !rot->to_half)
        rotate_floats(rot, cosines, x, y);
    else
        rotate_any(rot, cosines, from, x, to, y);
}

void pe_rotator_fill(const struct pe_plan *plan, size_t i, const struct pe_block *b, void *dst)
{
    const struct pe_rotator *rotator = plan->rotator;
    const struct operand *op = &rotator->operands[rotator->of_output[i]];
    enum pe_dtype to = plan->outputs[i].dtype;
    size_t d = rotator->rotation.head_dim, in_size = pe_dtype_size(op->tensor.dtype), size = pe_dtype_size(to);
    struct window w;
    w.first = w.n = 0;
    char *at = dst;
    for (uint64_t r = b->row0; r < b->row0 + b->n_rows; r++, at += b->n_cols * size) {
        const double *cosines = cosines_at(plan, op, r / op->inner % op->n, &w);
        const char *x = (const char *)op->tensor.data + r * d * in_size;
        if (b->n_cols == d) {
            rotate_row(&rotator->rotation, cosines, op->tensor.dtype, x, to, at);
            continue;
        }
        _Alignas(double) char row[PE_HEAD_DIM_MAX * sizeof(double)]; /* a part of a row: pairs may reach outside it, so
                                                                        the whole row is made */
        rotate_row(&rotator->rotation, cosines, op->tensor.dtype, x, to, row);
        memcpy(at, row + b->col0 * size, b->n_cols * size);
    }
}
