/* How other programs name the dtypes: one row each. */
#include "api/numbers/numbers.h"

#include <stdio.h>
#include <string.h>

/* In the order in which OIP's refusal lists them. NumPy has no bf16: it loads the code that ml_dtypes writes for it as
 * raw bytes. */
static const struct {
    enum pe_dtype dtype;
    int rank;
    const char *names[API_N_NAMINGS];
} rows[PE_N_DTYPES] = {
    {PE_BOOL, 0, {[API_OIP] = "BOOL", [API_NUMPY] = "b1", [API_ZARR] = "bool", [API_SAFETENSORS] = "BOOL"}},
    {PE_I8, 2, {[API_OIP] = "INT8", [API_NUMPY] = "i1", [API_ZARR] = "int8", [API_SAFETENSORS] = "I8"}},
    {PE_I16, 3, {[API_OIP] = "INT16", [API_NUMPY] = "i2", [API_ZARR] = "int16", [API_SAFETENSORS] = "I16"}},
    {PE_I32, 7, {[API_OIP] = "INT32", [API_NUMPY] = "i4", [API_ZARR] = "int32", [API_SAFETENSORS] = "I32"}},
    {PE_I64, 11, {[API_OIP] = "INT64", [API_NUMPY] = "i8", [API_ZARR] = "int64", [API_SAFETENSORS] = "I64"}},
    {PE_U8, 1, {[API_OIP] = "UINT8", [API_NUMPY] = "u1", [API_ZARR] = "uint8", [API_SAFETENSORS] = "U8"}},
    {PE_U16, 4, {[API_OIP] = "UINT16", [API_NUMPY] = "u2", [API_ZARR] = "uint16", [API_SAFETENSORS] = "U16"}},
    {PE_U32, 8, {[API_OIP] = "UINT32", [API_NUMPY] = "u4", [API_ZARR] = "uint32", [API_SAFETENSORS] = "U32"}},
    {PE_U64, 12, {[API_OIP] = "UINT64", [API_NUMPY] = "u8", [API_ZARR] = "uint64", [API_SAFETENSORS] = "U64"}},
    {PE_F16, 5, {[API_OIP] = "FP16", [API_NUMPY] = "f2", [API_ZARR] = "float16", [API_SAFETENSORS] = "F16"}},
    {PE_BF16, 6, {[API_OIP] = "BF16", [API_SAFETENSORS] = "BF16"}},
    {PE_F32, 9, {[API_OIP] = "FP32", [API_NUMPY] = "f4", [API_ZARR] = "float32", [API_SAFETENSORS] = "F32"}},
    {PE_F64, 10, {[API_OIP] = "FP64", [API_NUMPY] = "f8", [API_ZARR] = "float64", [API_SAFETENSORS] = "F64"}},
};

const char api_numpy_dtypes[] = "f2, f4, f8, i1 to i8, u1 to u8, b1 (bfloat16: send safetensors)";
const char api_safetensors_dtypes[] = "F32, F64, F16, BF16, I8 to I64, U8 to U64, BOOL";

static size_t row_of(enum pe_dtype dtype)
{
    size_t i = 0;
    while (rows[i].dtype != dtype)
        i++;
    return i;
}

const char *api_dtype_name(enum api_naming naming, enum pe_dtype dtype) { return rows[row_of(dtype)].names[naming]; }

enum pe_dtype api_dtype_find(enum api_naming naming, const char *name)
{
    for (size_t i = 0; i < PE_N_DTYPES; i++)
        if (rows[i].names[naming] && strcmp(rows[i].names[naming], name) == 0)
            return rows[i].dtype;
    return PE_DTYPE_NONE;
}

void api_dtypes_print(enum api_naming naming, char *out, size_t room)
{
    size_t used = 0;
    for (size_t i = 0; i < PE_N_DTYPES && used < room; i++)
        if (rows[i].names[naming])
            used += (size_t)snprintf(out + used, room - used, "%s%s", used ? ", " : "", rows[i].names[naming]);
}

char api_numpy_order(enum pe_dtype dtype) { return pe_dtype_size(dtype) == 1 ? '|' : '<'; }

int api_safetensors_rank(enum pe_dtype dtype) { return rows[row_of(dtype)].rank; }
