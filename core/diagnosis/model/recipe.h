/* Numbers of rotary tables and sinusoidal encodings that no configuration gives: computed in few bits, or with other
 * exponents. */
#ifndef PE_RECIPE_H
#define PE_RECIPE_H

#include "core/diagnosis/diagnosis.h"

/* Writes columns col0 … col0+n-1 of the model's waves at position number i, as its transforms `recipe` and `sinusoid`
 * say. The model has waves. */
void pe_recipe_fill(const struct pe_model *model, uint64_t i, uint64_t col0, size_t n, double *out);
/* The frequencies of the columns under transform `sinusoid`, which becomes the model's state; NULL: no memory. */
double *pe_recipe_frequencies(const struct pe_model *model);
/* All columns of a model under transform `sinusoid` at any position of one axis. */
void pe_recipe_at(const struct pe_model *model, double position, double *out);
/* The same of cos (t 0) and sin (1), where the model's waves are the cosines. */
void pe_recipe_tables(const struct pe_model *model, size_t t, uint64_t i, uint64_t col0, size_t n, double *out);
/* |position|·frequency of the columns. */
void pe_wave_phases(const struct pe_model *model, uint64_t i, uint64_t col0, size_t n, double *out);

/* rotary_row.c: cosines, then sines, of position number i, [n_columns]. */
void pe_rotary_row(const struct pe_model *model, uint64_t i, double *out);

/* evidence/rotary.c: 1 for each rotated channel of a model of PE_OF_ROTATED, 0 for one that passes by. */
void pe_rotated_channels(const struct pe_model *model, uint64_t col0, size_t n, double *out);

#endif
