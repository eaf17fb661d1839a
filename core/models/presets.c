/* Stub. */
#include "core/models/models.h"
size_t pe_n_presets(void) { return 0; }
const struct pe_preset *pe_preset_at(size_t i)
{
    (void)i;
    return NULL;
}
const struct pe_preset *pe_preset_find(const char *name)
{
    (void)name;
    return NULL;
}
const char *pe_certainty_name(enum pe_certainty certainty)
{
    (void)certainty;
    return "";
}
enum pe_status pe_hf_config_read(const struct pe_value *config, const char *layer_type, struct pe_model_fields *out,
                                 struct pe_error *err)
{
    (void)config;
    (void)layer_type;
    (void)out;
    return pe_fail(err, "/hf_config", "stub");
}
