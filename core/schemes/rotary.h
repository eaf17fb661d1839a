/* The rotary family: what rope and its relatives share. Every variant is a frequency per pair of channels, a coordinate
 * rule, a pairing layout and a factor on cos and sin:
 *
 *     angle[n, c] = direction · pos[n] · inv_freq[c],   c = 0 … C-1,  C = rotary_dim/2
 *     y1 = x1·cos - x2·sin,   y2 = x2·cos + x1·sin       (counter-clockwise; RoFormer, arXiv 2104.09864, equation 34)
 *
 * A scheme of the family keeps a struct pe_rotary in its plan's tables, puts PE_ROTARY_OUTPUTS and PE_ROTARY_INPUTS in
 * its descriptor and uses the functions below as its own. */
#ifndef PE_ROTARY_H
#define PE_ROTARY_H

#include "core/scheme.h"

enum pe_rotary_layout { PE_LAYOUT_INTERLEAVED, PE_LAYOUT_HALF };
enum pe_rotary_form { PE_FORM_PAIRS, PE_FORM_EXPANDED, PE_FORM_CONCAT, PE_FORM_COMPLEX, PE_FORM_MATRIX };
extern const char *const pe_rotary_layouts[], *const pe_rotary_forms[];

/* A resolved rotation; plan->tables of the schemes of the family, made by pe_rotary_new, freed by pe_rotary_drop. */
struct pe_rotary {
    size_t head_dim, rotary_offset, n_pairs;
    enum pe_rotary_layout layout;
    enum pe_rotary_form form;
    int direction; /* 1 or -1 */
    bool float32;  /* inv_freq are the frameworks' floats */
    struct pe_dd attention_factor;
    struct pe_dd inv_freq[]; /* [n_pairs], radians per position */
};

struct pe_rotary *pe_rotary_new(size_t n_pairs); /* NULL: no memory */
void pe_rotary_drop(struct pe_plan *plan);

bool pe_rotary_columns(const struct pe_plan *plan, size_t id, struct pe_wave *columns);
void pe_rotary_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id, const struct pe_block *block,
                    void *dst);
enum pe_dtype pe_rotary_dtype(const struct pe_plan *plan, size_t id, enum pe_dtype usual);
void pe_rotary_rotate(const struct pe_plan *plan, struct pe_rotation *rotation, struct pe_wave *columns);

extern const struct pe_output_row pe_rotary_outputs[];
extern const struct pe_input_row pe_rotary_inputs[];

#endif
