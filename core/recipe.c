/* The frameworks' float32 recipe, value by value. */
#include "core/recipe.h"
#include "core/dtype.h"

static float recipe_value(const struct pe_wave *wave, float position)
{
    float angle = position * (float)wave->fh, values[2];
    if (wave->quarter == PE_LINEAR)
        return angle * (float)wave->ah;
    pe_sincos_f32((double)angle, &values[1], &values[0]);
    float value = values[wave->quarter & 1] * (float)wave->ah;
    return wave->quarter & 2 ? 0.0f - value : value; /* 0 - 0 is +0 */
}

void pe_recipe_fill(const struct pe_wave *columns, enum pe_dtype dtype, const struct pe_positions *axes, uint64_t row0,
                    size_t n_rows, size_t n_cols, void *dst, size_t stride)
{
    for (size_t i = 0; i < n_rows; i++)
        for (size_t j = 0; j < n_cols; j++) {
            float position = (float)pe_position_at(&axes[columns[j].axis], row0 + i);
            pe_store(dtype, dst, i * stride + j, (double)recipe_value(&columns[j], position));
        }
}
