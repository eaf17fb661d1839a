/* Which channel of q becomes which channel of q_out. */
#ifndef PE_DIAGNOSIS_CHANNELS_H
#define PE_DIAGNOSIS_CHANNELS_H

#include "core/diagnosis/diagnosis.h"

enum { PE_CHANNEL_WORK = 48 }; /* multiply-adds of a number that is read and compared */

/* The channels of a head that are rotated, and how they pair: c with c + n/2, or neighbours. */
struct pe_width {
    size_t first, n;
    bool is_half;
};

/* Are the pairs of q, in this order, as long as those of q_out? So they are if this order was rotated, whatever the
 * angles. */
bool pe_channels_agree(struct pe_diagnosis *d, const struct pe_channels *channels, const struct pe_width *w);

/* Is each row of q_out as long as that of q, but for one factor? So it is in whatever order the channels are. */
bool pe_channels_keep_sizes(struct pe_diagnosis *d);

/* Reads the order [head_dim] in which q was rotated by the model's angles; is_after: in which the rotated vector was
 * sent. false: there is none but the usual one. */
bool pe_channels_read(struct pe_diagnosis *d, const struct pe_model *model, bool is_after, uint32_t *order);

#endif
