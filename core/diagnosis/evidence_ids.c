/* Evidence: the position ids of multimodal sequences. */
#include "core/diagnosis/diagnosis.h"

const struct pe_evidence_kind pe_evidence_ids = {
    .id = PE_OF_IDS, .tensors = {"position_ids"}, .scheme = "rope", .outputs = {"positions"}};
