/* Every text of a diagnosis, in English and Chinese: what a code means, and the sentences that state it in an answer.
 *
 * The placeholders of a sentence are members of its finding: {found} and {believed}, {position} of `angles_f32` and
 * `undecided`, {candidate} of `undecided`. A code with several sentences lists the usual one first. */
#ifndef PE_DIAGNOSIS_TEXTS_H
#define PE_DIAGNOSIS_TEXTS_H

#include "core/posenc.h"

struct pe_fault_text {
    const char *code;
    struct pe_about about;
    const struct pe_text *details; /* [n_details], at least one */
    size_t n_details;
};

size_t pe_n_fault_texts(void);
const struct pe_fault_text *pe_fault_text_at(size_t i);
const struct pe_fault_text *pe_fault_text_find(const char *code); /* NULL if there is none */

/* The sentences of slopes_other and slopes_order. */
enum { PE_SAY_SLOPES_FIT, PE_SAY_SLOPES_LINEAR, PE_SAY_SLOPES_PLAIN, PE_SAY_SLOPES_HALVED, PE_SAY_SLOPES_BF16 };
enum { PE_SAY_SLOPES_REVERSED, PE_SAY_SLOPES_SORTED };

/* The tables of the files texts_*.c; they end with .code = NULL. */
extern const struct pe_fault_text pe_texts_of_rotary[], pe_texts_of_tables[], pe_texts_of_bias[], pe_texts_of_answers[];

/* One row: a code with one sentence. */
#define PE_FAULT_TEXT(code_, label_, label_zh_, summary_, summary_zh_, detail_, detail_zh_)                            \
    {                                                                                                                  \
        .code = code_, .about = {label_, label_zh_, summary_, summary_zh_},                                            \
        .details = (const struct pe_text[]){{detail_, detail_zh_}}, .n_details = 1                                     \
    }
/* The same with a list of sentences. */
#define PE_FAULT_TEXTS(code_, label_, label_zh_, summary_, summary_zh_, details_)                                      \
    {                                                                                                                  \
        .code = code_, .about = {label_, label_zh_, summary_, summary_zh_}, .details = details_,                       \
        .n_details = sizeof(details_) / sizeof *(details_)                                                             \
    }

#endif
