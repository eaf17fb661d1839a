/* What an operation is: one row, the last thing in a file of its folder. core/plan.c, core/fill.c and core/fill_whole.c
 * walk the row; they know no operation by name. Functions that an operation has no use for are NULL. */
#ifndef PE_OPERATION_H
#define PE_OPERATION_H

#include "core/scheme.h"

struct pe_operation {
    struct pe_operation_info info;
    enum pe_operation_id id;

    /* Can the scheme do it? The functions and rows of its descriptor say so. */
    bool (*can)(const struct pe_scheme *scheme);
    /* Fails with the reason why a scheme that cannot do it cannot. */
    enum pe_status (*refuse)(const struct pe_scheme *scheme, struct pe_error *err);

    /* The steps of a plan, in their order. open() takes the operation's own fields out of the request, before the
     * scheme's rows are read: both may have some. read() takes its tensors, after them, and fixes sizes in the scheme's
     * config. Both mark in taken[] what they have used. */
    enum pe_status (*open)(struct pe_plan *plan, const struct pe_request *request, bool *taken, struct pe_error *err);
    enum pe_status (*read)(struct pe_plan *plan, const struct pe_request *request, bool *taken, struct pe_error *err);
    /* Do queries and keys have positions of their own? Which lengths do tensors fix? Every operation has these two. */
    enum pe_sequence_kind (*kind)(const struct pe_plan *plan);
    struct pe_sequence_sizes (*sizes)(const struct pe_plan *plan);
    /* What the scheme must know before it plans, now that the sequence is known. */
    enum pe_status (*begin)(struct pe_plan *plan, const struct pe_request *request, struct pe_error *err);
    /* Once the scheme has planned: outputs, tables, working memory. Every operation has it. */
    enum pe_status (*init)(struct pe_plan *plan, const struct pe_request *request, struct pe_error *err);
    /* Writes the fields of the resolved config that the scheme's rows do not have, n_printed_max at most; returns how
     * many. */
    size_t (*print)(const struct pe_plan *plan, struct pe_field *fields);
    size_t n_printed_max;
    void (*drop)(struct pe_plan *plan); /* plan->state and the like, which may be half made */

    /* Filling: elements first … first+n-1 of output i, as pe_fill, or blocks of its rows. One of the two. */
    void (*fill)(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, void *dst);
    void (*fill_block)(const struct pe_plan *plan, size_t i, const struct pe_block *block, void *dst);
    /* As pe_fill_line, of a whole output. NULL: no output is Toeplitz. */
    bool (*line)(const struct pe_plan *plan, size_t i, uint64_t matrix, uint64_t first, size_t n, void *dst);

    /* What filling costs: init() has put all of it into plan->work, whatever part of the outputs is asked for. Working
     * memory of the threads that fill at one time; NULL: none. */
    bool is_counted_whole;
    double (*bytes)(const struct pe_plan *plan);

    /* Is this row of info.inputs a weight that such a request can take, as pe_request_weights lists them? NULL: none
     * is. */
    bool (*takes_weight)(const struct pe_scheme *scheme, const struct pe_request *request, const char *name);
};

/* The operation's row. */
const struct pe_operation *pe_operation_get(enum pe_operation_id id);

#endif
