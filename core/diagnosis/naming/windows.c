/* Relations of the index of a window: its strides, where it begins, and sides that changed places. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/maps.h"
#include "core/diagnosis/naming/relations.h"

#include <math.h>

const struct pe_fault pe_fault_index_strides = {
    FAULT_TEXT("index_strides", "bias", BIAS, 2, "other index of a window",
               "The relative index of a window has other strides, as where height and width are mixed up.",
               "The relative index of a window has other strides."),
    .pointer = "", .schemes = "swin|swinv2|beit", .evidence = PE_EVIDENCE_BIT(BIAS) | PE_EVIDENCE_BIT(BUCKETS)};

enum { ROWS, COLUMNS, FIRST };

static bool set_stride(struct pe_diagnosis *d, const struct pe_named *named, struct pe_edit *edit)
{
    struct pe_strides *s = &edit->transforms.strides;
    (void)d;
    *(named->related.row == FIRST ? &s->first : &s->by[named->related.row]) = named->related.found;
    return true;
}

static double row_stride(const struct pe_strides *s, const uint64_t *sides)
{
    (void)sides;
    return s->by[0];
}

static double column_stride(const struct pe_strides *s, const uint64_t *sides)
{
    (void)sides;
    return s->by[1];
}

/* By how much the index begins elsewhere than its strides need. */
static double beginning(const struct pe_strides *s, const uint64_t *sides)
{
    return s->first - (double)(sides[0] - 1) * s->by[0] - (double)(sides[1] - 1) * s->by[1];
}

/* Which quantity differs. */
static const struct row {
    struct pe_relation relation;
    double (*value)(const struct pe_strides *s, const uint64_t *sides);
} rows[] = {
    [ROWS] = {{&pe_fault_index_strides, 1, NULL,
               "The index of the window moves by {found} from one row of patches to the next; in the configuration by "
               "{believed}."},
              row_stride},
    [COLUMNS] =
        {{&pe_fault_index_strides, 1, NULL,
          "The index of the window moves by {found} from one column of patches to the next; in the configuration by "
          "{believed}."},
         column_stride},
    [FIRST] =
        {{&pe_fault_index_strides, 1, NULL,
          "The index of the window is {found} where query and key are one patch; in the configuration {believed}."},
         beginning},
};

size_t pe_relate_window(struct pe_diagnosis *d, struct pe_edit *edit, struct pe_part *parts)
{
    struct pe_window_index index;
    size_t n = 0;
    if (!pe_measure_window(d, edit, &index))
        return 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double found = rows[i].value(&index.found, index.sides), believed = rows[i].value(&index.believed, index.sides);
        bool is_first = i == FIRST;
        struct pe_named *named = found == believed
                                     ? NULL
                                     : pe_part_add(d, &rows[i].relation, is_first ? index.found.first : found,
                                                   is_first ? index.believed.first : believed, parts, &n);
        if (!named)
            continue;
        named->related.row = i;
        named->apply = set_stride;
    }
    return n;
}
