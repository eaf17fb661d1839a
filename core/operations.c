/* All operations: the list is core/operation_list.h. Answers which operations a scheme supports. */
#include "core/operation.h"

#include <assert.h>
#include <stddef.h>

#define OPERATION(name, id) extern const struct pe_operation pe_operation_##name;
#include "core/operation_list.h"
#undef OPERATION

static const struct pe_operation *const operations[PE_N_OPERATIONS] = {
#define OPERATION(name, id) [PE_##id] = &pe_operation_##name,
#include "core/operation_list.h"
#undef OPERATION
};

const struct pe_operation *pe_operation_get(enum pe_operation_id id)
{
    assert(id < PE_N_OPERATIONS && operations[id]->id == id);
    return operations[id];
}

const struct pe_operation_info *pe_operation_at(enum pe_operation_id id) { return &pe_operation_get(id)->info; }

_Static_assert(offsetof(struct pe_scheme, info) == 0, "the info of a scheme is the head of its descriptor");

bool pe_scheme_can(const struct pe_scheme_info *info, enum pe_operation_id id)
{
    return pe_operation_get(id)->can((const struct pe_scheme *)(const void *)info);
}
