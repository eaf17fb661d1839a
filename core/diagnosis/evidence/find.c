/* Which tensors came: exactly one kind of evidence, whole, and alike where there are two. */
#include "core/diagnosis/diagnosis.h"
#include "core/params.h"
#include "core/request/request.h"

#include <math.h>
#include <string.h>

static const struct pe_evidence_kind *const kinds[] = {
    &pe_evidence_encoding, &pe_evidence_tables,    &pe_evidence_rotated, &pe_evidence_keys,    &pe_evidence_bias,
    &pe_evidence_buckets,  &pe_evidence_index,     &pe_evidence_index_h, &pe_evidence_index_w, &pe_evidence_angles,
    &pe_evidence_freqs,    &pe_evidence_freqs_cis, &pe_evidence_cos_sin, &pe_evidence_matrix,  &pe_evidence_rope_freqs,
    &pe_evidence_scores,   &pe_evidence_probs,     &pe_evidence_ids, /* beside another kind they are the belief's
                                                                        positions */
    &pe_evidence_inv_freq};                                          /* beside another kind it is the belief's list */
enum { N_KINDS = sizeof kinds / sizeof *kinds };

#define WAYS                                                                                                           \
    "encoding; cos and sin; q and q_out; k and k_out; all four; bias; buckets; index; index_h; index_w; "              \
    "position_ids; angles or freqs; "                                                                                  \
    "freqs_cis; "                                                                                                      \
    "cos_sin; matrix; inv_freq; rope_freqs; scores or probs, with q and k; values"

static const struct pe_value *field(const struct pe_diagnosis *d, const char *name)
{
    for (size_t i = 0; name && i < d->request->n_fields; i++)
        if (pe_same(d->request->fields[i].name, name))
            return &d->request->fields[i].value;
    return NULL;
}

bool pe_kind_has_name(const char *name)
{
    for (size_t k = 0; k < N_KINDS; k++) {
        for (size_t i = 0; kinds[k]->tensors[i]; i++)
            if (pe_same(kinds[k]->tensors[i], name))
                return true;
        if (kinds[k]->input && pe_same(kinds[k]->input, name))
            return true;
    }
    return false;
}

/* q and k beside scores or probabilities are what these were computed from. */
static bool has_map(const struct pe_diagnosis *d) { return field(d, "scores") || field(d, "probs"); }

static bool has_any(const struct pe_diagnosis *d, const struct pe_evidence_kind *kind)
{
    bool any = field(d, kind->input) && !has_map(d);
    for (size_t i = 0; kind->tensors[i]; i++)
        any |= field(d, kind->tensors[i]) != NULL;
    return any;
}

/* Of queries and keys together, all four are needed (diagnosis.c). */
static enum pe_status refuse_three(const struct pe_diagnosis *d, struct pe_failure *err)
{
    static const char *const all[] = {"q", "q_out", "k", "k_out"};
    char pointer[24] = "/";
    size_t i = 0;
    while (i < 3 && field(d, all[i]))
        i++;
    strncat(pointer, all[i], sizeof pointer - 2);
    return pe_fail(err, pointer, "%s is missing; send q and q_out, k and k_out, or all four", all[i]);
}

/* Rotated tensors, or a second map, beside a map. */
static enum pe_status refuse_beside_map(const struct pe_evidence_kind *other, const struct pe_evidence_kind *map,
                                        struct pe_failure *err)
{
    char pointer[24] = "/";
    strncat(pointer, other->id == PE_OF_MAPS ? map->tensors[0] : other->tensors[0], sizeof pointer - 2);
    return pe_fail(err, pointer, "the request has %s and %s; send one of %s", other->tensors[0], map->tensors[0],
                   pe_text(WAYS));
}

/* The first field of the request that is of this kind. */
static const char *field_of(const struct pe_diagnosis *d, const struct pe_evidence_kind *kind)
{
    for (size_t i = 0; kind->tensors[i]; i++)
        if (field(d, kind->tensors[i]))
            return kind->tensors[i];
    return kind->input;
}

static enum pe_status refuse_two(const struct pe_diagnosis *d, const struct pe_evidence_kind *first,
                                 const struct pe_evidence_kind *second, struct pe_failure *err)
{
    char pointer[24] = "/";
    strncat(pointer, field_of(d, second), sizeof pointer - 2);
    return pe_fail(err, pointer, "the request has %s and %s; send one of %s", field_of(d, first), field_of(d, second),
                   pe_text(WAYS));
}

static enum pe_status choose_kind(struct pe_diagnosis *d, struct pe_failure *err)
{
    const struct pe_evidence_kind *found = NULL;
    for (size_t i = 0; i < N_KINDS; i++) {
        if (!has_any(d, kinds[i]) || (found && kinds[i]->is_parameter))
            continue;
        if (found == &pe_evidence_rotated && kinds[i] == &pe_evidence_keys)
            return refuse_three(d, err);
        if (found && kinds[i]->id == PE_OF_MAPS)
            return refuse_beside_map(found, kinds[i], err);
        if (found)
            return refuse_two(d, found, kinds[i], err);
        found = kinds[i];
    }
    if (found == &pe_evidence_tables && !(field(d, "cos") && field(d, "sin")))
        found = field(d, "cos") ? &pe_evidence_cosines : &pe_evidence_sines;
    d->evidence.kind = found;
    d->evidence.first_table = found == &pe_evidence_sines;
    return found ? PE_OK : pe_fail(err, "", "there is no tensor to explain; send one of %s", pe_text(WAYS));
}

static enum pe_status take_tensor(struct pe_diagnosis *d, const char *name, struct pe_tensor *tensor, bool *is_text,
                                  const struct pe_print **print, struct pe_failure *err)
{
    char pointer[24] = "/";
    uint64_t n;
    const struct pe_value *v = field(d, name);
    strncat(pointer, name, sizeof pointer - 2);
    if (!v)
        return pe_fail(err, pointer, "%s is missing; send one of %s", name, pe_text(WAYS));
    if (v->kind != PE_ARRAY)
        return pe_fail(err, pointer, "%s is not a tensor; send nested lists of numbers, a .npy part or safetensors",
                       name);
    if (!pe_shape_count(v->array.shape, v->array.rank, &n) || n == 0 || v->array.rank == 0)
        return pe_fail(err, pointer, "%s has no elements", name);
    *tensor = v->array;
    *is_text = v->from_text;
    *print = v->print;
    return PE_OK;
}

/* The queries and keys of a map. */
static enum pe_status take_operands(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_evidence *e = &d->evidence;
    const struct pe_print **prints = e->printed.operands;
    for (size_t i = 0; i < PE_N_OPERANDS; i++) {
        const char *name = pe_operand_names[i];
        const char pointer[] = {'/', name[0], '\0'};
        if (!field(d, name))
            return pe_fail(err, pointer, "%s is missing; %s are explained with q and k, before rotation", name,
                           e->kind->tensors[0]);
        if (take_tensor(d, name, &e->operands[i], &e->operand_is_text[i], &prints[i], err) ||
            pe_printed_is_whole(prints[i], name, err))
            return err->status;
    }
    return PE_OK;
}

static double bytes_of(const struct pe_tensor *t, bool is_text)
{
    uint64_t n;
    pe_shape_count(t->shape, t->rank, &n);
    return (double)n * (double)pe_dtype_size(is_text ? PE_F32 : t->dtype);
}

static enum pe_status check_bytes(const struct pe_evidence *e, struct pe_failure *err)
{
    double bytes = e->kind->input ? bytes_of(&e->input, e->input_is_text) : 0;
    for (size_t i = 0; e->kind->id == PE_OF_MAPS && i < PE_N_OPERANDS; i++)
        bytes += bytes_of(&e->operands[i], e->operand_is_text[i]);
    for (size_t t = 0; t < e->n_tensors; t++)
        bytes += bytes_of(&e->tensors[t], e->is_text[t]);
    if (bytes <= (double)PE_EVIDENCE_BYTES_MAX)
        return PE_OK;
    pe_fail(
        err, "",
        "the tensors have %.0f bytes; allowed: at most %llu (64 MiB). Some rows are enough: send those of the first "
        "256 positions and of the last one, with `positions`, and of few heads",
        bytes, PE_EVIDENCE_BYTES_MAX);
    return err->status = PE_TOO_LARGE;
}

static enum pe_status check_same(const struct pe_tensor *a, const char *a_name, const struct pe_tensor *b,
                                 const char *b_name, struct pe_failure *err)
{
    char pointer[24] = "/", shapes[2][96];
    if (a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0)
        return PE_OK;
    strncat(pointer, b_name, sizeof pointer - 2);
    pe_shape_print(a->shape, a->rank, shapes[0], sizeof shapes[0]);
    pe_shape_print(b->shape, b->rank, shapes[1], sizeof shapes[1]);
    return pe_fail(err, pointer, "%s has the shape %s, %s has %s; both must be the same", a_name, shapes[0], b_name,
                   shapes[1]);
}

static enum pe_status check_alike(const struct pe_evidence *e, struct pe_failure *err)
{
    const char *const *names = e->kind->tensors;
    if (e->kind->input)
        return check_same(&e->input, e->kind->input, &e->tensors[0], names[0], err);
    return e->n_tensors > 1 ? check_same(&e->tensors[0], names[0], &e->tensors[1], names[1], err) : PE_OK;
}

static enum pe_status see_tensors(struct pe_evidence *e, struct pe_failure *err)
{
    enum pe_status status = e->kind->view ? e->kind->view(e, err) : PE_OK;
    for (size_t t = 1; !status && e->kind->view && t < e->n_tensors; t++)
        e->is_text[t] = e->is_text[0];
    for (size_t t = 1; !status && e->kind->view && t < e->n_tensors; t++)
        e->printed.of[t] = e->printed.of[0];
    return status;
}

/* Rows are the last axis. */
static void set_rows(struct pe_evidence *e)
{
    const struct pe_tensor *t = &e->tensors[0];
    pe_shape_count(t->shape, t->rank - 1, &e->n_rows);
    e->row_len = t->shape[t->rank - 1];
    e->sent = *t;
    e->dtype = pe_evidence_is_whole(e) ? PE_I64 : e->is_text[0] ? PE_F32 : t->dtype;
    if (e->kind->id == PE_OF_LADDER && e->dtype != PE_F64)
        e->dtype = PE_F32; /* few bits of a frequency are a mistake, in whatever dtype they are sent */
    e->narrow = PE_DTYPE_NONE;
}

/* How the tensors were printed; by the field `decimals`, if it is there. */
static enum pe_status read_digits(struct pe_diagnosis *d, struct pe_failure *err)
{
    bool taken[PE_FIELDS_MAX] = {false};
    struct pe_evidence *e = &d->evidence;
    const struct pe_tensor *sent = pe_evidence_sent(e);
    e->printed.rank = sent->rank;
    memcpy(e->printed.shape, sent->shape, sizeof e->printed.shape);
    if (pe_printed_is_whole(e->printed.input, e->kind->input, err))
        return err->status;
    if (!field(d, "decimals"))
        return PE_OK;
    if (d->request->n_fields > PE_FIELDS_MAX)
        return pe_fail(err, "", "the request has %zu fields; allowed: at most %d", d->request->n_fields, PE_FIELDS_MAX);
    enum pe_status status =
        pe_params_read(pe_typed_params(), &d->typed_fields, d->request->fields, d->request->n_fields, taken, "", err);
    if (!status)
        pe_printed_state(e, 0.5 * pow(10, -(double)d->typed_fields.decimals));
    return status;
}

enum pe_status pe_evidence_find(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_evidence *e = &d->evidence;
    enum pe_status status = choose_kind(d, err);
    if (!status && e->kind->input)
        status = take_tensor(d, e->kind->input, &e->input, &e->input_is_text, &e->printed.input, err);
    for (size_t t = 0; !status && e->kind->tensors[t]; t++, e->n_tensors++)
        status = take_tensor(d, e->kind->tensors[t], &e->tensors[t], &e->is_text[t], &e->printed.of[t], err);
    if (!status && e->kind->id == PE_OF_MAPS)
        status = take_operands(d, err);
    if (!status)
        status = check_bytes(e, err);
    if (!status)
        status = check_alike(e, err);
    if (!status)
        status = see_tensors(e, err);
    if (status)
        return status;
    set_rows(e);
    return read_digits(d, err);
}
