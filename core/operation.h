/* An operation is one row of function pointers, at the end of a file in its folder. core/plan.c, core/slice.c and
 * core/slice.c call these functions and know no operation by name. Functions that an operation does not need
 * are NULL. */
#ifndef PE_OPERATION_H
#define PE_OPERATION_H

#include "core/scheme.h"

struct pe_operation {
    struct pe_operation_info info;
    enum pe_operation_id id;

    /* Does the scheme support the operation? The functions and rows of its descriptor decide. */
    bool (*can)(const struct pe_scheme *scheme);
    /* Fails with the reason why the scheme does not support the operation. */
    enum pe_status (*refuse)(const struct pe_scheme *scheme, struct pe_failure *err);

    /* The steps of planning, in order. open() reads the operation's own fields from the request, before the scheme's
     * parameters are read, because a field may belong to both. read() runs after that: it reads the operation's
     * tensors and fixes sizes in the scheme's config. Both mark the fields that they have used in taken[]. */
    enum pe_status (*open)(struct pe_plan *plan, const struct pe_request *request, bool *taken, struct pe_failure *err);
    enum pe_status (*read)(struct pe_plan *plan, const struct pe_request *request, bool *taken, struct pe_failure *err);
    /* kind: do queries and keys have separate positions? sizes: which lengths do the tensors fix? Every operation
     * has both. */
    enum pe_sequence_kind (*kind)(const struct pe_plan *plan);
    struct pe_sequence_sizes (*sizes)(const struct pe_plan *plan);
    /* Runs when the numbers of positions are known: sets everything that the scheme's cost() needs. */
    enum pe_status (*begin)(struct pe_plan *plan, const struct pe_request *request, struct pe_failure *err);
    /* Nanoseconds that init() takes at most on a slow machine, estimated from what is known before the scheme's plan().
     * It ends pe_plan_check. Every operation has it. */
    double (*ns)(const struct pe_plan *plan);
    /* Runs after the scheme's plan(): outputs, tables, working memory. Every operation has it. */
    enum pe_status (*init)(struct pe_plan *plan, const struct pe_request *request, struct pe_failure *err);
    /* Writes the fields of the resolved config that are not among the scheme's rows, at most n_printed_max, and
     * returns their number. */
    size_t (*print)(const struct pe_plan *plan, struct pe_field *fields);
    size_t n_printed_max;
    void (*drop)(struct pe_plan *plan); /* frees plan->state and other memory of the operation, which may be incomplete
                                           after a failure */

    /* Filling: elements first … first+n-1 of output i, like pe_fill, or blocks of its rows. An operation has one of
     * the two. */
    void (*fill)(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, void *dst);
    void (*fill_block)(const struct pe_plan *plan, size_t i, const struct pe_block *block, void *dst);
    /* Like pe_fill_line, for a whole output. NULL: no output is Toeplitz. */
    bool (*line)(const struct pe_plan *plan, size_t i, uint64_t matrix, uint64_t first, size_t n, void *dst);

    /* is_counted_whole: init() has put the whole cost of filling into plan->work, whichever part of the outputs the
     * request slices. bytes: the working memory of the threads that fill at the same time; NULL: none. */
    bool is_counted_whole;
    double (*bytes)(const struct pe_plan *plan);

    /* Is this row of info.inputs a weight that such a request can take, as pe_request_weights lists them? NULL: none
     * is. */
    bool (*takes_weight)(const struct pe_scheme *scheme, const struct pe_request *request, const char *name);
};

/* The operation's row. */
const struct pe_operation *pe_operation_get(enum pe_operation_id id);

#endif
