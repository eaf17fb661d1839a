/* Fields as table rows: the constants of presets, as a request would write them. Use these macros at file scope
 * only, where the arrays they define live as long as the program. */
#ifndef PE_MODELS_FIELD_H
#define PE_MODELS_FIELD_H

#include "core/posenc.h"

#define TF(path_) "transformers models/" path_ /* a source */

#define PE_COUNT(type, ...) (sizeof((const type[]){__VA_ARGS__}) / sizeof(type))

#define PE_WORD(name_, word_)                                                                                          \
    {                                                                                                                  \
        .name = name_, .value = {.kind = PE_STRING, .string = word_ }                                                  \
    }
#define PE_INT(name_, number_)                                                                                         \
    {                                                                                                                  \
        .name = name_, .value = {.kind = PE_INTEGER, .integer = number_ }                                              \
    }
#define PE_NUMBER(name_, number_)                                                                                      \
    {                                                                                                                  \
        .name = name_, .value = {.kind = PE_REAL, .real = number_ }                                                    \
    }
#define PE_FLAG(name_, flag_)                                                                                          \
    {                                                                                                                  \
        .name = name_, .value = {.kind = PE_BOOLEAN, .boolean = flag_ }                                                \
    }
/* A list of numbers: n doubles at data, or written out. */
#define PE_LIST_AT(name_, data_, n_)                                                                                   \
    {                                                                                                                  \
        .name = name_, .value = {                                                                                      \
            .kind = PE_ARRAY,                                                                                          \
            .from_text = true,                                                                                         \
            .array = {.dtype = PE_F64, .rank = 1, .shape = {n_}, .data = data_}                                        \
        }                                                                                                              \
    }
#define PE_LIST_OF(name_, ...) PE_LIST_AT(name_, ((const double[]){__VA_ARGS__}), PE_COUNT(double, __VA_ARGS__))
#define PE_OBJECT_OF(name_, ...)                                                                                       \
    {                                                                                                                  \
        .name = name_, .value = {                                                                                      \
            .kind = PE_OBJECT,                                                                                         \
            .object = {(const struct pe_field[]){__VA_ARGS__}, PE_COUNT(struct pe_field, __VA_ARGS__)}                 \
        }                                                                                                              \
    }

/* One layer type and its fields; NULL: all layers. */
#define PE_LAYER(type_, ...)                                                                                           \
    {                                                                                                                  \
        .layer_type = type_, .fields = (const struct pe_field[]){__VA_ARGS__},                                         \
        .n_fields = PE_COUNT(struct pe_field, __VA_ARGS__)                                                             \
    }
/* The member `layers` of a struct pe_preset. */
#define PE_LAYERS(...)                                                                                                 \
    .layers = (const struct pe_preset_layer[]){__VA_ARGS__}, .n_layers = PE_COUNT(struct pe_preset_layer, __VA_ARGS__)
#define PE_ALL_LAYERS(...) PE_LAYERS(PE_LAYER(NULL, __VA_ARGS__))

/* Each file of rows ends with its table; presets.c puts the tables in order. */
struct pe_preset_table {
    const struct pe_preset *rows;
    size_t n;
};
#define PE_PRESET_TABLE(rows_)                                                                                         \
    {                                                                                                                  \
        .rows = rows_, .n = sizeof rows_ / sizeof *rows_                                                               \
    }
extern const struct pe_preset_table pe_presets_llama, pe_presets_qwen, pe_presets_phi, pe_presets_others,
    pe_presets_multimodal, pe_presets_absolute, pe_presets_bias, pe_presets_relative;

#endif
