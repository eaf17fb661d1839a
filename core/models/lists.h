/* LongRoPE's factors (arXiv 2402.13753) of public checkpoints, one per pair, as decimals; transformers keeps them as
 * f32.
 */
#ifndef PE_MODELS_LISTS_H
#define PE_MODELS_LISTS_H

enum { PE_PHI3_PAIRS = 48, PE_PHI4_PAIRS = 48, PE_MINICPM4_PAIRS = 64 };

extern const double pe_phi3_short[PE_PHI3_PAIRS], pe_phi3_long[PE_PHI3_PAIRS]; /* Phi-3-mini-128k, April 2024 */
extern const double pe_phi4_short[PE_PHI4_PAIRS], pe_phi4_long[PE_PHI4_PAIRS]; /* Phi-4-mini */
extern const double pe_minicpm4[PE_MINICPM4_PAIRS];                            /* MiniCPM4-8B, both lists */

#endif
