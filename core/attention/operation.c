/* The row of the operation attend. */
#include "core/attention/attention.h"
#include "core/attend.h"
#include "core/encode/outputs.h"
#include "core/operation.h"

#include <string.h>

/* A scheme supports attention if it has its own terms, rotates queries and keys, or has an encoding to add to x or
 * biases to add to logits. */
static bool can(const struct pe_scheme *scheme)
{
    return scheme->attend || scheme->rotate || scheme->info.is_additive ||
           pe_output_row_find(scheme, "bias") != SIZE_MAX;
}

static enum pe_status refuse(const struct pe_scheme *scheme, struct pe_error *err)
{
    return pe_fail(err, "/scheme", "scheme \"%s\" has nothing to do with attention", scheme->info.name);
}

/* Projections compute queries, keys and values from x; one scheme projects its own table with two of them. */
static bool takes_weight(const struct pe_scheme *scheme, const struct pe_request *request, const char *name)
{
    if (strncmp(name, "w_", 2) != 0 && strncmp(name, "b_", 2) != 0)
        return false;
    bool for_table = scheme->attend && scheme->attend->uses_projections && name[2] != 'v';
    return for_table || pe_request_has(request, "x") || pe_request_has(request, "tokens");
}

const struct pe_operation pe_operation_attend = {
    .info = {.name = "attention",
             .params = pe_attention_params,
             .inputs = pe_attention_inputs,
             .outputs = pe_attention_outputs,
             .uses_encoding = true},
    .id = PE_ATTEND,
    .can = can,
    .refuse = refuse,
    .open = pe_attention_open,
    .read = pe_attention_read,
    .kind = pe_attention_kind,
    .sizes = pe_attention_sizes,
    .begin = pe_attention_begin,
    .ns = pe_attention_ns,
    .init = pe_attention_init,
    .print = pe_attention_print,
    .n_printed_max = PE_ATTENTION_FIELDS_MAX,
    .drop = pe_attention_drop,
    .fill = pe_attention_fill,
    .is_counted_whole = true, /* a map is */
    .bytes = pe_attention_bytes,
    .takes_weight = takes_weight,
};
