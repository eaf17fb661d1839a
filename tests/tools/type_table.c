/* Prints the table of model_types from their rows, as Markdown. */
#include "core/models/hf/hf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {
    [PE_HF_ROPE] = "`rope`",
    [PE_HF_LEARNED] = "`learned`",
    [PE_HF_PATCHES] = "`learned`, of patches",
    [PE_HF_SINUSOIDAL] = "`sinusoidal`",
    [PE_HF_ALIBI] = "`alibi`",
    [PE_HF_MPT] = "`alibi`",
    [PE_HF_FALCON] = "`rope`, or `alibi` if alibi is true",
    [PE_HF_T5] = "`t5`",
    [PE_HF_BUCKETS] = "`t5`",
    [PE_HF_LAYOUTLM] = "`t5`, three tables",
    [PE_HF_NEZHA] = "`shaw`",
    [PE_HF_DEBERTA] = "`deberta`",
    [PE_HF_TRANSFO_XL] = "`transformer_xl`",
    [PE_HF_XLNET] = "`xlnet`",
    [PE_HF_CONFORMER] = "`conformer`, or `shaw` if relative_key",
    [PE_HF_SWIN] = "",
    [PE_HF_BEIT] = "`beit`",
    [PE_HF_PARTS] = "parts",
    [PE_HF_NONE] = "`none`",
};

/* "a|b" as "a, b"; a bar would end the table's cell. */
static void print_names(const char *names)
{
    for (; *names; names++)
        printf(*names == '|' ? ", " : "%c", *names);
}

static void print_pairs(const char *before, const char *names)
{
    if (!names)
        return;
    printf("%s", before);
    print_names(names);
}

static void print_rotary(const struct pe_hf_model *row)
{
    printf(" %s", row->layout ? row->layout
                  : strstr(row->fields ? row->fields : "", "qk_rope") ? "interleaved"
                                                                      : "half");
    print_pairs(", channels ", row->channels);
    printf("%s", row->clockwise ? ", direction -1" : "");
    print_pairs("; only if ", row->rope_if);
}

/* The object, its type if it says none, and what holds without it. */
static void print_nested(const struct pe_hf_model *row)
{
    print_pairs("that of ", row->inner);
    print_pairs(", else ", row->inner_type);
    print_pairs("; without it ", row->made);
    printf("%s", row->must_hold ? "; refused without it" : "");
}

/* Where the config does not list its layers. */
static void print_turns(const struct pe_hf_model *row)
{
    static const char *const turns[] = {
        [PE_HF_AT_END] = "the last of each period",
        [PE_HF_AT_START] = "the first of each period",
        [PE_HF_FROM_LAST] = "each period's first, counted from the last layer",
        [PE_HF_AND_FIRST] = "the last of each period and the first layer",
        [PE_HF_AND_LAST] = "the last of each period and the last layer",
    };
    print_pairs("; mixes ", row->mixed);
    if (row->period)
        printf(", the second %s, %s", turns[row->turn], row->period);
}

static void print_what(const struct pe_hf_model *row)
{
    if (row->kind == PE_HF_NESTED)
        print_nested(row);
    else if (row->kind == PE_HF_OTHER)
        printf("refused: %s", row->style);
    else if (row->kind == PE_HF_SWIN)
        printf("`%s`", row->style);
    else
        printf("%s", kinds[row->kind]);
    if (row->kind == PE_HF_ROPE)
        print_rotary(row);
    print_pairs("; layer types ", row->layers);
    print_pairs("; none in ", row->none);
    print_turns(row);
    print_pairs("; refused with ", row->refuses);
    print_pairs("; needs one of ", row->needs);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct pe_hf_model *const *)a)->types, (*(const struct pe_hf_model *const *)b)->types);
}

int main(void)
{
    static const struct pe_hf_model *rows[2000];
    size_t n = 0;
    for (const struct pe_hf_model *row; n < 2000 && (row = pe_hf_model_at(n)); n++)
        rows[n] = row;
    qsort(rows, n, sizeof *rows, by_name);
    puts("| model_type | positions | the class's values for missing fields | read in transformers' models/ "
         "|\n|---|---|---|---|");
    for (size_t i = 0; i < n; i++) {
        printf("| ");
        print_names(rows[i]->types);
        printf(" | ");
        print_what(rows[i]);
        print_pairs(" | ", rows[i]->fields ? rows[i]->fields : "");
        printf(" | %s%s |\n", rows[i]->source, rows[i]->unread ? " (unverified)" : "");
    }
    return 0;
}
