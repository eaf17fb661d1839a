/* Evidence: bias and buckets. */
#include "core/diagnosis/diagnosis.h"

const struct pe_evidence_kind pe_evidence_bias = {
    .id = PE_OF_BIAS, .tensors = {"bias"}, .scheme = "alibi", .outputs = {"bias"}};
const struct pe_evidence_kind pe_evidence_buckets = {
    .id = PE_OF_BUCKETS, .tensors = {"buckets"}, .scheme = "t5", .outputs = {"buckets"}};
