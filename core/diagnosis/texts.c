/* The texts of every fault and finding, in both languages. */
#include "core/diagnosis/diagnosis.h"

#define FAULT(name_, kind_) const struct pe_fault_info pe_fault_info_##name_ = {.code = #name_, .kind = #kind_};
#include "core/diagnosis/list.h"
#undef FAULT
