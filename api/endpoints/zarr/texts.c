/* The metadata of Zarr: .zgroup, .zattrs, .zarray, .zmetadata (version 2), zarr.json (version 3). */
#include "api/endpoints/zarr/zarr.h"
#include "api/numbers/numbers.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* NaN, the least integer, or false. */
static double fill_value(enum pe_dtype dtype)
{
    return pe_dtype_is_real(dtype) ? (double)NAN : dtype == PE_BOOL ? 0 : -(double)INFINITY;
}

void zarr_fill_value(enum pe_dtype dtype, void *dst)
{
    double value = fill_value(dtype);
    pe_convert(dtype, dst, PE_F64, &value, 1);
}

static void add_fill_value(struct api_text *text, enum pe_dtype dtype)
{
    char value[sizeof(double)], printed[API_NUMBER_MAX];
    zarr_fill_value(dtype, value);
    api_text_put(text, "\"fill_value\":");
    api_text_add(text, printed, (size_t)(api_numbers_print(printed, dtype, value, 1, API_DIGITS_SHORTEST) - printed));
}

/* ---- Names of axes --------------------------------------------------------------------------------------------- */

enum { AXIS_BYTES = 160 };

static size_t own_name(const struct zarr_store *store, const struct pe_output *output, unsigned axis, const char **name)
{
    const struct pe_output_row *row = pe_plan_scheme(store->plan)->outputs;
    for (; row && row->name; row++)
        if (strcmp(row->name, output->name) == 0)
            return pe_output_axis(row, axis, name);
    return 0;
}

static bool is_same(const struct zarr_store *store, const struct pe_output *a, unsigned axis, const char *name,
                    size_t n_name)
{
    const char *other;
    return own_name(store, a, axis, &other) == n_name && memcmp(other, name, n_name) == 0;
}

/* Whether an earlier axis has the name: of this array, or of another one with another length. Readers such as xarray
 * allow neither. */
static bool is_taken(const struct zarr_store *store, size_t i, unsigned axis, const char *name, size_t n_name)
{
    uint64_t length = pe_plan_output(store->plan, i)->shape[axis];
    for (size_t k = 0; k <= i; k++) {
        const struct pe_output *output = pe_plan_output(store->plan, k);
        for (unsigned a = 0; a < (k < i ? output->rank : axis); a++)
            if (is_same(store, output, a, name, n_name) && (k == i || output->shape[a] != length))
                return true;
    }
    return false;
}

static void add_axes(struct api_text *text, const struct zarr_store *store, size_t i)
{
    const struct pe_output *output = pe_plan_output(store->plan, i);
    api_text_put(text, "[");
    for (unsigned axis = 0; axis < output->rank; axis++) {
        const char *name = "";
        size_t n = own_name(store, output, axis, &name);
        api_text_put(text, axis ? ",\"" : "\"");
        if (n > 0 && !is_taken(store, i, axis, name, n))
            api_text_add(text, name, n);
        else
            api_text_format(text, "%s_%u", output->name, axis);
        api_text_put(text, "\"");
    }
    api_text_put(text, "]");
}

/* ---- One array ------------------------------------------------------------------------------------------------- */

static void add_array_2(struct api_text *text, const struct zarr_store *store, size_t i)
{
    const struct pe_output *output = pe_plan_output(store->plan, i);
    struct zarr_grid grid = zarr_grid_of(output, store->chunk_bytes);
    api_text_put(text, "{\"zarr_format\":2,\"shape\":");
    api_text_shape(text, grid.shape, grid.rank);
    api_text_put(text, ",\"chunks\":");
    api_text_shape(text, grid.chunk, grid.rank);
    char descr[API_DESCR_BYTES];
    api_text_format(text, ",\"dtype\":\"%s\",\"compressor\":null,\"filters\":null,\"order\":\"C\",",
                    api_numpy_descr(output->dtype, descr));
    add_fill_value(text, output->dtype);
    api_text_put(text, "}");
}

static void add_attributes_2(struct api_text *text, const struct zarr_store *store, size_t i)
{
    api_text_put(text, "{\"_ARRAY_DIMENSIONS\":");
    add_axes(text, store, i);
    api_text_put(text, "}");
}

static void add_array_3(struct api_text *text, const struct zarr_store *store, size_t i)
{
    const struct pe_output *output = pe_plan_output(store->plan, i);
    struct zarr_grid grid = zarr_grid_of(output, store->chunk_bytes);
    api_text_put(text, "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":");
    api_text_shape(text, grid.shape, grid.rank);
    api_text_format(text,
                    ",\"data_type\":\"%s\",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":",
                    api_dtype_name(API_ZARR, output->dtype));
    api_text_shape(text, grid.chunk, grid.rank);
    api_text_put(text, "}},\"chunk_key_encoding\":{\"name\":\"v2\",\"configuration\":{\"separator\":\".\"}},");
    add_fill_value(text, output->dtype);
    api_text_put(text, ",\"codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}],\"attributes\":{},"
                       "\"dimension_names\":");
    add_axes(text, store, i);
    api_text_put(text, "}");
}

bool zarr_text_of_output(struct api_text *text, const struct zarr_store *store, size_t i, const char *key)
{
    if (strcmp(key, ".zarray") == 0)
        add_array_2(text, store, i);
    else if (strcmp(key, ".zattrs") == 0)
        add_attributes_2(text, store, i);
    else if (strcmp(key, "zarr.json") == 0)
        add_array_3(text, store, i);
    else
        return false;
    return true;
}

/* ---- The store ------------------------------------------------------------------------------------------------- */

static void add_group(struct api_text *text) { api_text_put(text, "{\"zarr_format\":2}"); }

static void add_config(struct api_text *text, const struct zarr_store *store)
{
    api_text_named(text, "{\"scheme\":", pe_plan_scheme(store->plan)->name);
    api_text_put(text, ",\"config\":");
    api_text_value(text, pe_plan_config(store->plan));
    api_text_put(text, "}");
}

static void add_name(struct api_text *text, const char *before, const struct zarr_store *store, size_t i,
                     const char *after)
{
    api_text_format(text, "%s\"%s%s\":", before, pe_plan_output(store->plan, i)->name, after);
}

static void add_all_2(struct api_text *text, const struct zarr_store *store)
{
    api_text_put(text, "{\"zarr_consolidated_format\":1,\"metadata\":{\".zgroup\":");
    add_group(text);
    api_text_put(text, ",\".zattrs\":");
    add_config(text, store);
    for (size_t i = 0; i < pe_plan_n_outputs(store->plan); i++) {
        add_name(text, ",", store, i, "/.zarray");
        add_array_2(text, store, i);
        add_name(text, ",", store, i, "/.zattrs");
        add_attributes_2(text, store, i);
    }
    api_text_put(text, "}}");
}

static void add_all_3(struct api_text *text, const struct zarr_store *store)
{
    api_text_put(text, "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":");
    add_config(text, store);
    api_text_put(text, ",\"consolidated_metadata\":{\"kind\":\"inline\",\"must_understand\":false,\"metadata\":{");
    for (size_t i = 0; i < pe_plan_n_outputs(store->plan); i++) {
        add_name(text, i ? "," : "", store, i, "");
        add_array_3(text, store, i);
    }
    api_text_put(text, "}}}");
}

bool zarr_text_of_store(struct api_text *text, const struct zarr_store *store, const char *key)
{
    if (strcmp(key, ".zgroup") == 0)
        add_group(text);
    else if (strcmp(key, ".zattrs") == 0)
        add_config(text, store);
    else if (strcmp(key, ".zmetadata") == 0)
        add_all_2(text, store);
    else if (strcmp(key, "zarr.json") == 0)
        add_all_3(text, store);
    else
        return false;
    return true;
}
