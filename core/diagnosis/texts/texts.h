/* How the texts of faults are written: a label, a summary and the sentences of a finding, in English (zh.po has the
 * Chinese).
 *
 * The placeholders of a sentence are members of its finding: {pointer}, {found} and {believed}, {largest} and {row} of
 * `angles_f32`, {position} and {candidate} of `undecided`, {nearest} and {worst} of `unexplained`, {nearest} of
 * `inv_freq_other`, {meaning} of `scaled`, {heads} of `channels_permuted`. A value that may be a list or an object is
 * not named in a sentence. A fault with several sentences has one for each alternative; `scaled` has one for a factor
 * that has a meaning. */
#ifndef PE_DIAGNOSIS_TEXTS_H
#define PE_DIAGNOSIS_TEXTS_H

#include "core/diagnosis/diagnosis.h"

#define FAULT_TEXT(name, code_, kind_, label_, summary_, detail_)                                                      \
    const struct pe_fault_info pe_fault_info_##name = {.code = code_,                                                  \
                                                       .kind = kind_,                                                  \
                                                       .about = {label_, summary_},                                    \
                                                       .details = (const char *const[]){detail_},                      \
                                                       .n_details = 1}
#define FAULT_TEXTS(name, code_, kind_, label_, summary_, details_)                                                    \
    const struct pe_fault_info pe_fault_info_##name = {.code = code_,                                                  \
                                                       .kind = kind_,                                                  \
                                                       .about = {label_, summary_},                                    \
                                                       .details = details_,                                            \
                                                       .n_details = sizeof(details_) / sizeof *(details_)}

#endif
