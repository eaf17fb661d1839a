/* The columns of a sinusoid that its similarity compares: all, the sines or cosines alone, or cosines of another base,
 * which shows why sines and cosines come in pairs: sin·sin + cos·cos depends on the distance only. */
#ifndef PE_PAIRING_H
#define PE_PAIRING_H

#include "core/analysis/internal.h"

/* The rules of `pairing` and `other_base`. */
enum pe_status pe_pairing_check(const struct pe_analysis *study, const struct pe_subject *subject,
                                struct pe_error *err);

/* Does the request ask for other columns than all of this subject? */
bool pe_pairing_is_other(const struct pe_analysis *study, const struct pe_subject *subject);

/* Those columns of its rows; free with pe_rows_drop. */
enum pe_status pe_pairing_rows(struct pe_analysis *study, const struct pe_subject *subject, struct pe_rows *rows,
                               struct pe_error *err);

#endif
