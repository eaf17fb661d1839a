/* The operation rotate, for every scheme that describes a pe_rotation: tensors in, tensors of the same shape out.
 *
 * Rows of a tensor are heads at positions, in the order of its layout ([b, h, n, d], [b, n, h, d], packed). Each row
 * needs the cosines of its position, and several heads share a position, so whether a table pays depends on the layout:
 * it is stored while planning if several heads share each position and it is not too large; else a window of it is
 * computed while filling. Queries and keys at the same positions share one.
 *
 * Whether an operand is rotated in float is decided for each: f32, f16 and bf16 in and out, no factors that depend on
 * the position (xPos), no layout that moves pairs. rotate_rows.c and kernels/rotate.c do the work. */
#include "core/operation.h"
#include "core/request/request.h"
#include "core/encode/encode.h"
#include "core/rotate/rotate_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rotate_fields {
    int tensor_layout;
    struct pe_query_scale query_scale;
};

static const struct pe_param rotate_rows[] = {
    PE_P_WORD(rotate_fields, tensor_layout, pe_tensor_layout_words, "tensor layout", PE_TENSOR_LAYOUT_ABOUT,
              .group = PE_G_ATTENTION),
    PE_P_QUERY_SCALE(rotate_fields),
    PE_P_END,
};

/* One tensor to be rotated. Each row is one head at one position; the position of row r is number (r / inner) % n,
 * counted from that of its batch row where each has its own. */
struct operand {
    struct pe_operand sent;
    size_t id;                 /* its row among the scheme's inputs */
    uint64_t inner;            /* rows from one position to the next */
    uint64_t batch, n_batches; /* rows from one batch row to the next, where each has its positions; else 1 */
    const struct pe_positions *positions; /* [axes] */
    void *table;                          /* [n, 2 · n_pairs]: cosines, then sines; NULL: computed while filling */
    const double *factors;                /* of positions: queries that are scaled by theirs; NULL: not */
    bool by_floats;                       /* the table has floats and rows are rotated in float; else both use double */
};

enum { OPERANDS_MAX = 2 };

struct pe_rotator {
    struct operand operands[OPERANDS_MAX];
    size_t n_operands;
    size_t of_output[OPERANDS_MAX]; /* the operand of each output */
    struct pe_row_rotation turn;
    void *tables[OPERANDS_MAX]; /* owned; operands at the same positions share one */
    struct pe_query_scale query_scale;
    double *factors; /* of the queries; owned */
};

static const struct pe_rotator *rotator_of(const struct pe_plan *plan) { return plan->state; }

/* ---- Reading the tensors ---- */

static enum pe_status read_operand(struct pe_plan *plan, const struct pe_request *request, size_t id,
                                   enum pe_tensor_layout layout, bool *taken, struct pe_failure *err)
{
    struct pe_rotator *rotator = plan->state;
    struct operand *op = &rotator->operands[rotator->n_operands];
    op->id = id;
    op->batch = op->n_batches = 1;
    /* Of the request, or of the model it names; 0: not given. */
    int64_t d = 0;
    bool is_given = pe_plan_gave(plan, "head_dim") &&
                    pe_param_integer(plan->scheme->info.params, plan->config, "head_dim", strlen("head_dim"), &d);
    uint64_t head_dim = is_given && d > 0 ? (uint64_t)d : 0;
    enum pe_status status =
        pe_operand_take(&op->sent, request, plan->scheme->info.inputs[id].name, layout, head_dim, taken, err);
    if (!status && !op->sent.tensor.data)
        return PE_OK;
    rotator->n_operands++; /* freed with the plan, also after a failure */
    op->inner = op->sent.row_step / (op->sent.width ? op->sent.width : 1);
    if (status)
        return status;
    /* The tensors' last axis is the scheme's head_dim, unless the request gives another. */
    const struct pe_operand *first = &rotator_of(plan)->operands[0].sent;
    if (op->sent.width == first->width)
        return pe_fix_size(plan, "head_dim", op->sent.width, op->sent.name, err);
    char pointer[16] = "/";
    strncat(pointer, op->sent.name, 8);
    return pe_fail(err, pointer, "the last axis of %s is %llu, that of %s is %llu; both are head_dim", op->sent.name,
                   (unsigned long long)op->sent.width, first->name, (unsigned long long)first->width);
}

/* Reads the tensors and the field tensor_layout; sets head_dim in the config from the tensors. */
static enum pe_status read_tensors(struct pe_plan *plan, const struct pe_request *request, bool *taken,
                                   struct pe_failure *err)
{
    struct rotate_fields fields;
    struct pe_rotator *rotator = plan->state = calloc(1, sizeof *rotator);
    if (!rotator)
        return pe_no_memory(err);
    enum pe_status status = pe_params_read(rotate_rows, &fields, request->fields, request->n_fields, taken, "", err);
    if (!status)
        status = pe_query_scale_read(&fields.query_scale, request->fields, request->n_fields, err);
    rotator->query_scale = fields.query_scale;
    const struct pe_input_row *inputs = plan->scheme->info.inputs;
    for (size_t id = 0; !status && inputs[id].name; id++)
        if (inputs[id].operation == PE_ROTATE)
            status = read_operand(plan, request, id, (enum pe_tensor_layout)fields.tensor_layout, taken, err);
    if (!status && rotator->n_operands == 0)
        return pe_fail(err, "/q",
                       "there is nothing to rotate; send q, k or both, of shape [batch, heads, n, head_dim]");
    return status;
}

/* Rows of a batch may have positions of their own. */
static enum pe_status set_batches(struct pe_plan *plan, const struct pe_request *request, struct pe_failure *err)
{
    struct pe_rotator *rotator = plan->state;
    uint64_t n_batches = pe_sequence_n_batches(&plan->seq);
    (void)request;
    for (size_t i = 0; n_batches > 1 && i < rotator->n_operands; i++) {
        struct operand *op = &rotator->operands[i];
        if (op->sent.n_batches != n_batches)
            return pe_sequence_wrong_batch(&plan->sequence, n_batches, op->sent.name, op->sent.n_batches, err);
        op->n_batches = n_batches;
        op->batch = op->sent.batch_step / op->sent.width;
    }
    return PE_OK;
}

static enum pe_sequence_kind kind(const struct pe_plan *plan)
{
    (void)plan;
    return PE_TWO_SEQUENCES;
}

static struct pe_sequence_sizes sizes(const struct pe_plan *plan)
{
    struct pe_sequence_sizes fixed = {.k_tensor = "k"};
    for (size_t i = 0; i < rotator_of(plan)->n_operands; i++) {
        const struct pe_operand *sent = &rotator_of(plan)->operands[i].sent;
        *(sent->name[0] == 'q' ? &fixed.q : &fixed.k) = sent->n;
    }
    return fixed;
}

/* ---- What planning will take ---- */

/* Positions of a table. */
static uint64_t count_places(const struct operand *op) { return op->sent.n * op->n_batches; }

/* A table is stored if several heads share each position. */
static bool wants_table(const struct operand *op)
{
    return op->sent.n_batches * op->sent.n_heads * op->sent.n > count_places(op);
}

/* Operands at the same positions share a table. Which tables will have floats is not known yet: doubles take longer. */
static double ns(const struct pe_plan *plan)
{
    const struct pe_rotator *rotator = rotator_of(plan);
    const struct operand *ops = rotator->operands;
    bool is_shared = rotator->n_operands == 2 && !plan->scheme->magnitude && ops[0].sent.n == ops[1].sent.n &&
                     ops[0].sent.tensor.dtype == ops[1].sent.tensor.dtype &&
                     pe_rotate_same_positions(plan, plan->seq.q, plan->seq.k);
    double sum = 0, most = 0;
    double factors = rotator->query_scale.is_given ? PE_NS_QUERY_FACTOR * (double)pe_positions_count(plan->seq.q) : 0;
    for (size_t i = 0; i < rotator->n_operands; i++) {
        double table = wants_table(&ops[i]) ? pe_rotate_table_ns(plan, count_places(&ops[i]), ops[i].sent.width) : 0;
        sum += table;
        most = fmax(most, table);
    }
    return pe_rotate_ns(ops[0].sent.width) + (is_shared ? most : sum) + factors;
}

/* ---- Outputs and tables ---- */

static enum pe_status choose(struct pe_plan *plan, const struct pe_request *request, struct pe_failure *err)
{
    struct pe_rotator *rotator = plan->state;
    const char *names[OPERANDS_MAX + 1] = {NULL};
    for (size_t i = 0; i < rotator->n_operands; i++)
        names[i] = rotator->operands[i].sent.name;
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

enum { TABLE_ALIGNMENT = 64 }; /* bytes of a cache line */

static size_t round_up(uint64_t n_bytes)
{
    return (size_t)(n_bytes + TABLE_ALIGNMENT - 1) / TABLE_ALIGNMENT * TABLE_ALIGNMENT;
}

/* Bytes of one row of the operand's table. */
static size_t row_bytes_of(const struct pe_rotator *rotator, const struct operand *op)
{
    return 2 * rotator->turn.rotation.n_pairs * (op->by_floats ? sizeof(float) : sizeof(double));
}

static void fill_table(const struct pe_plan *plan, const struct operand *op, uint64_t row0, uint64_t n_rows,
                       void *table)
{
    const struct pe_row_rotation *turn = &rotator_of(plan)->turn;
    if (op->by_floats)
        pe_rotate_floats(turn, plan, op->positions, row0, (size_t)n_rows, table);
    else
        pe_rotate_table(turn, plan, op->positions, op->id, row0, (size_t)n_rows, table);
}

/* Does the first operand have a table that this one can share? */
static bool shares(const struct pe_plan *plan, const struct operand *op)
{
    const struct operand *first = rotator_of(plan)->operands;
    return op != first && !plan->scheme->magnitude && op->by_floats == first->by_floats &&
           pe_rotate_same_positions(plan, op->positions, first->positions) && first->table;
}

/* The factors of the queries, if they are scaled. Rows are multiplied in double then, and rounded once. */
static enum pe_status make_factors(struct pe_plan *plan, struct operand *op, struct pe_failure *err)
{
    struct pe_rotator *rotator = plan->state;
    const struct pe_query_scale *scale = &rotator->query_scale;
    enum pe_status status = pe_query_scale_check(scale, plan->seq.n_axes, op->positions, err);
    if (!status)
        status = pe_query_factors(scale, plan, op->positions, count_places(op), &rotator->factors, err);
    op->factors = rotator->factors;
    return status;
}

static enum pe_status prepare(struct pe_plan *plan, size_t i, struct pe_failure *err)
{
    struct pe_rotator *rotator = plan->state;
    struct operand *op = &rotator->operands[i];
    bool is_query = op->sent.name[0] == 'q', is_scaled = is_query && rotator->query_scale.is_given;
    op->positions = is_query ? plan->seq.q : plan->seq.k;
    op->by_floats = !is_scaled && pe_rotate_by_floats(&rotator->turn, plan, op->sent.tensor.dtype, plan->dtype);
    enum pe_status status = is_scaled ? make_factors(plan, op, err) : PE_OK;
    if (status)
        return status;
    /* The table is stored if several heads share each position and it is not too large. */
    uint64_t row_bytes = row_bytes_of(rotator, op);
    if (shares(plan, op)) {
        op->table = rotator->operands[0].table;
        return PE_OK;
    }
    if (!wants_table(op) || count_places(op) > PE_ROTATION_TABLE_MAX / row_bytes)
        return PE_OK;
    if (pe_plan_admit(plan, (double)(count_places(op) * row_bytes), err))
        return err->status;
    op->table = rotator->tables[i] = aligned_alloc(TABLE_ALIGNMENT, round_up(count_places(op) * row_bytes));
    if (!op->table)
        return pe_no_memory(err);
    fill_table(plan, op, 0, count_places(op), op->table);
    return PE_OK;
}

/* Runs when sequence and config are resolved: prepares the outputs, the tensors sent, and the tables. */
static enum pe_status init(struct pe_plan *plan, const struct pe_request *request, struct pe_failure *err)
{
    struct pe_rotator *rotator = plan->state;
    enum pe_status status = pe_outputs_twice(request, err);
    if (!status)
        status = pe_outputs_alloc(plan, OPERANDS_MAX + request->n_outputs, err);
    if (!status)
        status = choose(plan, request, err);
    if (status)
        return status;
    /* Real outputs have the requested dtype, else the first tensor's dtype if that is real. */
    enum pe_dtype first = rotator->operands[0].sent.tensor.dtype;
    if (request->dtype == PE_DTYPE_NONE && pe_dtype_is_real(first))
        plan->dtype = first;
    for (size_t i = 0; i < plan->n_outputs; i++) {
        const struct pe_operand *sent = &rotator->operands[rotator->of_output[i]].sent;
        struct pe_output *output = &plan->outputs[i];
        output->name = sent->name;
        output->dtype = plan->dtype;
        output->rank = sent->tensor.rank;
        memcpy(output->shape, sent->tensor.shape, sizeof output->shape);
        output->row_len = sent->tensor.shape[sent->tensor.rank - 1]; /* flat: all heads */
        pe_shape_count(sent->tensor.shape, sent->tensor.rank - 1, &output->n_rows);
    }
    status = pe_rotate_init(&rotator->turn, plan, err);
    for (size_t i = 0; !status && i < rotator->n_operands; i++)
        status = prepare(plan, i, err);
    return status;
}

static void drop(struct pe_plan *plan)
{
    struct pe_rotator *rotator = plan->state;
    if (!rotator)
        return;
    for (size_t i = 0; i < OPERANDS_MAX; i++) {
        pe_operand_drop(&rotator->operands[i].sent);
        free(rotator->tables[i]);
    }
    pe_rotate_drop(&rotator->turn);
    free(rotator->factors);
    free(rotator);
}

/* ---- Filling ---- */

/* Table rows for a window of positions, computed again when a position outside the window is needed. */
struct window {
    uint64_t first, n;
    _Alignas(TABLE_ALIGNMENT) char rows[PE_SCRATCH_BYTES];
};

/* Returns the table's rows from a position on. *n is the number wanted, and becomes the number available. */
static const void *table_at(const struct pe_plan *plan, const struct operand *op, uint64_t position, uint64_t *n,
                            struct window *w)
{
    size_t row_bytes = row_bytes_of(rotator_of(plan), op);
    if (op->table)
        return (const char *)op->table + position * row_bytes;
    if (position < w->first || position >= w->first + w->n) {
        uint64_t room = sizeof w->rows / row_bytes, left = op->inner > 1 ? count_places(op) - position : *n;
        w->first = position;
        w->n = left < room ? left : room;
        fill_table(plan, op, position, w->n, w->rows);
    }
    uint64_t there = w->first + w->n - position;
    *n = *n < there ? *n : there;
    return w->rows + (position - w->first) * row_bytes;
}

/* How many rows from row r on, at most `most`, are at one position (then inner > 1) or at consecutive positions. */
static uint64_t stretch(const struct operand *op, uint64_t r, uint64_t most)
{
    uint64_t same = op->n_batches > 1 && op->batch < op->inner ? op->batch : op->inner; /* rows at one position */
    uint64_t left = op->inner > 1 ? same - r % same : op->sent.n - r % op->sent.n;
    return left < most ? left : most;
}

static uint64_t place_of(const struct operand *op, uint64_t r)
{
    uint64_t batch = op->n_batches > 1 ? r / op->batch % op->n_batches : 0;
    return batch * op->sent.n + r / op->inner % op->sent.n;
}

/* place: the number of the first row's position. */
static void turn_some(const struct pe_plan *plan, const struct operand *op, const void *table, uint64_t place,
                      const char *x, enum pe_dtype to, char *y, const struct pe_rotate_extent *e)
{
    const struct pe_row_rotation *turn = &rotator_of(plan)->turn;
    enum pe_dtype from = op->sent.tensor.dtype;
    size_t d = op->sent.width, step = op->inner > 1 ? 0 : 2 * turn->rotation.n_pairs;
    if (op->by_floats) {
        pe_rotate_rows(turn, table, step, from, x, to, y, e);
        return;
    }
    const double *cosines = table;
    for (uint64_t h = 0; h < e->n_heads; h++)
        for (uint64_t i = 0; i < e->n_rows; i++) {
            uint64_t at = h * e->apart + i * d;
            const char *in = x + at * pe_dtype_size(from);
            char *out = y + at * pe_dtype_size(to);
            if (op->factors) {
                /* A row of queries, times its factor. */
                double row[PE_HEAD_DIM_MAX];
                pe_rotate_row(turn, cosines + i * step, from, in, PE_F64, row);
                for (size_t j = 0; j < turn->rotation.head_dim; j++)
                    row[j] *= op->factors[place + (step ? i : 0)];
                pe_convert(to, out, PE_F64, row, turn->rotation.head_dim);
            } else {
                pe_rotate_row(turn, cosines + i * step, from, in, to, out);
            }
        }
}

/* Whole rows. */
static void fill_rows(const struct pe_plan *plan, const struct operand *op, enum pe_dtype to, uint64_t row0,
                      uint64_t n_rows, char *y)
{
    struct window w;
    w.first = w.n = 0;
    size_t d = op->sent.width, in_bytes = d * pe_dtype_size(op->sent.tensor.dtype), bytes = d * pe_dtype_size(to);
    for (uint64_t r = row0, n; r < row0 + n_rows; r += n, y += n * bytes) {
        n = stretch(op, r, row0 + n_rows - r);
        const void *table = table_at(plan, op, place_of(op, r), &n, &w);
        turn_some(plan, op, table, place_of(op, r), (const char *)op->sent.tensor.data + r * in_bytes, to, y,
                  &(struct pe_rotate_extent){n, 1, 0});
    }
}

/* Fills rows. Rows of whole heads are rotated together if there is a stored table for them. */
static void fill_any(const struct pe_plan *plan, const struct operand *op, enum pe_dtype to, uint64_t row0,
                     uint64_t n_rows, char *y)
{
    uint64_t n = op->sent.n, before = (n - row0 % n) % n, row_bytes = op->sent.width * pe_dtype_size(to);
    if (!op->table || op->inner > 1 || op->n_batches > 1 || n_rows < before + 2 * n) {
        fill_rows(plan, op, to, row0, n_rows, y);
        return;
    }
    uint64_t n_heads = (n_rows - before) / n, behind = before + n_heads * n;
    const char *x =
        (const char *)op->sent.tensor.data + (row0 + before) * op->sent.width * pe_dtype_size(op->sent.tensor.dtype);
    fill_rows(plan, op, to, row0, before, y);
    turn_some(plan, op, op->table, 0, x, to, y + before * row_bytes,
              &(struct pe_rotate_extent){n, n_heads, n * op->sent.width});
    fill_rows(plan, op, to, row0 + behind, n_rows - behind, y + behind * row_bytes);
}

static void fill_block(const struct pe_plan *plan, size_t i, const struct pe_block *b, void *dst)
{
    const struct operand *op = &rotator_of(plan)->operands[rotator_of(plan)->of_output[i]];
    enum pe_dtype to = plan->outputs[i].dtype;
    size_t size = pe_dtype_size(to);
    uint64_t width = op->sent.width, heads = plan->outputs[i].row_len / width, end = b->col0 + b->n_cols;
    if (b->n_cols == heads * width) {
        fill_any(plan, op, to, b->row0 * heads, b->n_rows * heads, dst);
        return;
    }
    _Alignas(double) char row[PE_HEAD_DIM_MAX * sizeof(double)]; /* a pair may reach outside the part of a row that is
                                                                    wanted, so the whole row is computed */
    char *to_next = dst;
    for (uint64_t r = 0; r < b->n_rows; r++)
        for (uint64_t col = b->col0, n; col < end; col += n, to_next += n * size) {
            uint64_t left = width - col % width;
            n = left < end - col ? left : end - col;
            fill_rows(plan, op, to, (b->row0 + r) * heads + col / width, 1, row);
            memcpy(to_next, row + col % width * size, n * size);
        }
}

/* ---- The row ---- */

/* The resolved config has what changes the numbers; the order of axes is that of the tensors. */
static size_t print(const struct pe_plan *plan, struct pe_field *fields)
{
    const struct pe_query_scale *s = &rotator_of(plan)->query_scale;
    if (s->is_given)
        fields[0] = (struct pe_field){"query_scale", pe_query_scale_value(s)};
    return s->is_given;
}

static bool can(const struct pe_scheme *scheme) { return scheme->rotate != NULL; }

static enum pe_status refuse(const struct pe_scheme *scheme, struct pe_failure *err)
{
    return pe_fail(err, "/scheme", "scheme \"%s\" cannot rotate; schemes of the rotary family can, as \"rope\"",
                   scheme->info.name);
}

const struct pe_operation pe_operation_rotate = {
    .info = {.name = "rotate"},
    .id = PE_ROTATE,
    .can = can,
    .refuse = refuse,
    .read = read_tensors,
    .kind = kind,
    .sizes = sizes,
    .begin = set_batches,
    .ns = ns,
    .init = init,
    .print = print,
    .n_printed_max = 1,
    .fill_block = fill_block,
    .drop = drop,
};
