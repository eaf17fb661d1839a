/* Groups of fields that the rows of rotary presets repeat. */
#ifndef PE_MODELS_ROPE_ROWS_H
#define PE_MODELS_ROPE_ROWS_H

#include "core/models/field.h"

#define ROPE(layout_, head_dim_, base_)                                                                                \
    PE_WORD("scheme", "rope"), PE_INT("head_dim", head_dim_), PE_NUMBER("base", base_), PE_WORD("layout", layout_)
#define ROTARY(dim_) PE_INT("rotary_dim", dim_)
#define HALF "half"
#define INTERLEAVED "interleaved"

#define SCALING(type_, ...) PE_OBJECT_OF("scaling", PE_WORD("type", type_), __VA_ARGS__)
#define TRAINED_ON(n_) PE_INT("original_max_position_embeddings", n_)
#define LLAMA3(factor_, low_, high_)                                                                                   \
    SCALING("llama3", PE_NUMBER("factor", factor_), PE_NUMBER("low_freq_factor", low_),                                \
            PE_NUMBER("high_freq_factor", high_), TRAINED_ON(8192))
#define YARN(factor_, trained_on_)                                                                                     \
    SCALING("yarn", PE_NUMBER("factor", factor_), TRAINED_ON(trained_on_), PE_NUMBER("beta_fast", 32),                 \
            PE_NUMBER("beta_slow", 1))
#define YARN_MSCALE(factor_, trained_on_, mscale_)                                                                     \
    SCALING("yarn", PE_NUMBER("factor", factor_), TRAINED_ON(trained_on_), PE_NUMBER("beta_fast", 32),                 \
            PE_NUMBER("beta_slow", 1), PE_NUMBER("mscale", mscale_), PE_NUMBER("mscale_all_dim", mscale_))
#define LONGROPE(short_, long_, n_, trained_on_, max_)                                                                 \
    SCALING("longrope", PE_LIST_AT("short_factor", short_, n_), PE_LIST_AT("long_factor", long_, n_),                  \
            TRAINED_ON(trained_on_), PE_INT("max_position_embeddings", max_))

#endif
