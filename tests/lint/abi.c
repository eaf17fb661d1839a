/* Size and offsets of the struct that a program lays out itself, and the numbers of words. A program that was compiled
 * with an older header of the same ABI depends on them. `make abi` compiles this file. */
#include "core/posenc.h"

#define SIZE(s, bytes) _Static_assert(sizeof(struct s) == bytes, "struct " #s " does not have " #bytes " bytes");
#define OFFSET(s, field, at)                                                                                           \
    _Static_assert(offsetof(struct s, field) == at, #field " of struct " #s " is not at byte " #at);
#define VALUE(name, number) _Static_assert((int)name == number, #name " is not " #number);

SIZE(pe_error, 804)
OFFSET(pe_error, pointer, 4)
OFFSET(pe_error, detail, 164)

VALUE(PE_OK, 0)
VALUE(PE_INVALID, 1)
VALUE(PE_TOO_LARGE, 2)
VALUE(PE_NO_MEMORY, 3)
VALUE(PE_CANCELLED, 4)
VALUE(PE_F32, 0)
VALUE(PE_F64, 1)
VALUE(PE_F16, 2)
VALUE(PE_BF16, 3)
VALUE(PE_I32, 4)
VALUE(PE_I64, 5)
VALUE(PE_I16, 6)
VALUE(PE_I8, 7)
VALUE(PE_U8, 8)
VALUE(PE_U16, 9)
VALUE(PE_U32, 10)
VALUE(PE_U64, 11)
VALUE(PE_BOOL, 12)
VALUE(PE_F8_E4M3, 13)
VALUE(PE_F8_E5M2, 14)
VALUE(PE_DTYPE_NONE, -1)
VALUE(PE_RANK_MAX, 8)
VALUE(PE_ISA_BASE, 0)
VALUE(PE_ISA_AVX2, 1)
VALUE(PE_ISA_AVX512, 2)
