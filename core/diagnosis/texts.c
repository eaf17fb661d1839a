/* Finds the texts of a code. */
#include "core/diagnosis/texts.h"

#include <string.h>

static const struct pe_fault_text *const tables[] = {pe_texts_of_rotary, pe_texts_of_tables, pe_texts_of_bias,
                                                     pe_texts_of_answers};
enum { N_TABLES = sizeof tables / sizeof *tables };

const struct pe_fault_text *pe_fault_text_at(size_t i)
{
    for (size_t t = 0; t < N_TABLES; t++)
        for (const struct pe_fault_text *row = tables[t]; row->code; row++)
            if (i-- == 0)
                return row;
    return NULL;
}

size_t pe_n_fault_texts(void)
{
    size_t n = 0;
    while (pe_fault_text_at(n))
        n++;
    return n;
}

const struct pe_fault_text *pe_fault_text_find(const char *code)
{
    for (size_t t = 0; t < N_TABLES; t++)
        for (const struct pe_fault_text *row = tables[t]; row->code; row++)
            if (strcmp(row->code, code) == 0)
                return row;
    return NULL;
}
