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
/* Columns of a model under transform `sinusoid` at any position of one axis. */
void pe_recipe_at(const struct pe_model *model, double position, size_t col0, size_t n, double *out);
/* The same of cos (t 0) and sin (1), where the model's waves are the cosines. */
void pe_recipe_tables(const struct pe_model *model, size_t t, uint64_t i, uint64_t col0, size_t n, double *out);
/* Completes the columns that a plan gave: quarter turns, whatever the arithmetic; the losses. */
void pe_wave_columns(struct pe_model *model);
/* Angles of the columns at position number i, with their sign; and frequencies, or by how much they are divided. */
void pe_recipe_angles(const struct pe_model *model, uint64_t i, uint64_t col0, size_t n, double *out);
void pe_recipe_ladder(const struct pe_model *model, bool as_divisors, uint64_t col0, size_t n, double *out);
/* What right f32 code may lose of the angles of the columns: |position|·loss. */
void pe_wave_phases(const struct pe_model *model, uint64_t i, uint64_t col0, size_t n, double *out);
/* The same as a share of the frequency of each column. */
void pe_wave_losses(const struct pe_model *model, size_t col0, size_t n, double *out);

/* rotary_row.c. Before any row: keeps the factors of rows, where the scheme scales them, and states what decides them.
 */
enum pe_status pe_factors_open(struct pe_diagnosis *d, struct pe_model *model, struct pe_error *err);
/* Cosines, then sines, of position number i, [n_columns]. */
void pe_rotary_row(const struct pe_model *model, uint64_t i, double *out);

/* evidence/rotary.c: the row `in` rotated to position number i by a model of PE_OF_ROTATED, and the phases of its
 * channels. */
void pe_rotated_at(const struct pe_model *model, uint64_t i, const double *in, double *out, double *phase);

/* evidence/rotary.c: a row of q as it is rotated, its channels in this order (an order of the rotated vector is none of
 * q). */
void pe_input_in_order(const struct pe_diagnosis *d, const struct pe_channels *channels, uint64_t row, double *out);
/* evidence/rotary.c: 1 for each rotated channel of a model of PE_OF_ROTATED, 0 for one that passes by. */
void pe_rotated_channels(const struct pe_model *model, uint64_t col0, size_t n, double *out);

#endif
