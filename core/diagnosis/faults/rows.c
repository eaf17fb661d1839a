/* What became of the rows of a projection's matrix between two checkpoints. No hypothesis has these faults: the rows
 * are matched (../weights.c). */
#include "core/diagnosis/faults/faults.h"

#define CONVERSION "the conversion {found.conversion} within each of {found.heads} heads"

const struct pe_fault pe_fault_rows_permuted = {FAULT_TEXT(
    "rows_permuted", "layout", LAYOUT, 1, "rows permuted",
    "The rows of a projection are moved within each head, as the conversion of Meta's weights for Hugging Face's code "
    "moves them, or back.",
    "Beside what you expect, the rows went through " CONVERSION ".")};

const struct pe_fault pe_fault_rows_permuted_twice = {FAULT_TEXT(
    "rows_permuted_twice", "layout", LAYOUT, 3, "rows permuted twice",
    "The rows of a projection are moved within each head twice, as if weights that were converted had been converted "
    "again.",
    "Beside what you expect, the rows went through " CONVERSION ", {found.times} times.")};

const struct pe_fault pe_fault_rows_heads_other = {FAULT_TEXT(
    "rows_heads_other", "layout", LAYOUT, 1, "rows permuted for other heads",
    "The rows of a projection are moved within another number of heads, as when those of keys are converted with the "
    "heads of queries.",
    "The rows were moved within {found.heads} heads; the matrix has {believed}.")};

const struct pe_fault pe_fault_heads_order = {FAULT_TEXT(
    "heads_order", "layout", LAYOUT, 3, "heads in another order", "Whole heads of a projection are in another order.",
    "Whole heads are in another order: head i of w_found is head order[i] of the expected matrix.")};

const struct pe_fault pe_fault_rows_fused = {FAULT_TEXT(
    "rows_fused", "layout", LAYOUT, 3, "part of a fused matrix",
    "The matrix found has more rows, and the projection is a block of them, or every second, third, … block.",
    "The expected rows are in a larger matrix: {found.block} rows from row {found.first} on, and again every "
    "{found.every} rows.")};

const struct pe_fault pe_fault_rows_other = {
    FAULT_TEXT("rows_other", "layout", LAYOUT, 8, "rows in an order without a name",
               "The rows of a projection are all there, in an order that has no name.",
               "The rows are all there, in an order that has no name: row i of w_found is row rows[i] of the expected "
               "matrix.")};
