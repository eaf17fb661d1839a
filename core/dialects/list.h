/* What an explanation finds: its level, code, label, summary, and the sentence of one. {label} is the tool. The order
 * is that of the catalogue. */
FINDING(THETA_DIFFERS, "error", "theta_differs", "two bases",
        "rope_theta beside the rope object and inside it are different numbers, and tools take one or the other.",
        "rope_theta is {found} inside the rope object and another number beside it: {label} rotates with base {taken}.")
FINDING(THETA_DROPPED, "error", "theta_dropped", "base not read",
        "rope_theta is only inside rope_parameters, which some tools do not read.",
        "{label} does not read rope_parameters: it rotates with base {taken} instead of {found}.")
FINDING(THETA_DEFAULT, "note", "theta_default", "base by default",
        "No field states the base; the class's value is used.",
        "No field states the base: it is {taken}, the default of the model's class.")
FINDING(THETA_NOT_WRITTEN, "error", "theta_not_written", "base not written",
        "The converter's class for the model writes no base, so the program uses its own.",
        "{label} writes no base for this model: it rotates with base {taken} instead of {found}.")
FINDING(SCALING_DROPPED, "error", "scaling_dropped", "scaling not read",
        "The rule of scaling is only in rope_parameters, which some tools do not read.",
        "{label} does not read rope_parameters: it does not scale by {found}.")
FINDING(SCALING_TWICE, "error", "scaling_twice", "two rope objects",
        "rope_scaling and rope_parameters are both there, and differ.",
        "rope_scaling and rope_parameters are both there and differ: {label} reads {taken}, not {found}.")
FINDING(SLIDING_SCALED, "error", "sliding_scaled", "sliding layers scaled",
        "A tool scales sliding layers too, where the model was trained without.",
        "{label} scales the sliding layers too, which the model was trained without.")
FINDING(TYPE_DIFFERS, "error", "type_differs", "two types",
        "type and rope_type of one rope object name different rules.",
        "rope_type is {found} and type is {taken}: which one counts depends on the reader.")
FINDING(FACTOR_MISMATCH, "error", "factor_mismatch", "factor and lengths differ",
        "The factor is not the ratio of the two lengths, by which earlier versions scale.",
        "The factor is {found}, but max_position_embeddings/original_max_position_embeddings is {taken}: {label} "
        "before {before} scales by that.")
FINDING(ORIGINAL_MAX_PLACEMENT, "error", "original_max_placement", "original length not found",
        "A tool looks for original_max_position_embeddings in another place, and uses another number.",
        "{label} uses the original length {taken} instead of {found}: it looks in another place.")
FINDING(
    ORIGINAL_MAX_MISSING, "error", "original_max_missing", "no original length",
    "A rule that needs original_max_position_embeddings has none.",
    "original_max_position_embeddings is missing: max_position_embeddings, {taken}, is used, or the model is refused.")
FINDING(SHARE_ON_MLA, "error", "share_on_mla", "share of latent attention",
        "partial_rotary_factor beside qk_rope_head_dim, which is the number of rotated channels already.",
        "partial_rotary_factor is {found} beside qk_rope_head_dim {taken}: a reader that multiplies them rotates only "
        "that share.")
FINDING(SHARE_DROPPED, "error", "share_dropped", "share not read",
        "partial_rotary_factor is only inside the rope object, where some tools do not read it.",
        "{label} does not read partial_rotary_factor inside the rope object: it rotates the share {taken} of a head "
        "instead of {found}.")
FINDING(SHARE_DEFAULT, "note", "share_default", "share by default",
        "No field states the rotated share of a head; the class's value is used.",
        "{pointer}, the rotated share of a head, is not stated: it is {taken}, the default of the model's class, in "
        "{label}.")
FINDING(HEAD_DIM_MISMATCH, "note", "head_dim_mismatch", "head_dim is stated",
        "head_dim is not hidden_size/num_attention_heads.",
        "head_dim is {found}, not hidden_size/num_attention_heads, which is {taken}.")
FINDING(MROPE_SUM, "error", "mrope_sum", "sections do not fit",
        "The sections do not add up to half of the rotated channels.",
        "The sections of mrope_section add up to {found} pairs; {taken} are rotated.")
FINDING(MROPE_STILL_PAIRS, "error", "mrope_still_pairs", "pairs that are not rotated",
        "Interleaved sections leave pairs to a fourth coordinate, which is 0 for text and images.",
        "{label} gives {found} pairs to a fourth coordinate, which is 0: they are not rotated.")
FINDING(ATTENTION_FACTOR_IGNORED, "error", "attention_factor_ignored", "attention factor not read",
        "attention_factor, or mscale, is stated, and a tool computes another factor.",
        "{label} does not read {pointer}: it multiplies cos and sin by {taken} instead of {found}.")
FINDING(BETAS_DROPPED, "error", "betas_dropped", "ends of the ramp not read",
        "beta_fast or beta_slow is stated, and a tool uses another number.",
        "{label} does not read {pointer}: it computes the ramp with {taken} instead of {found}.")
FINDING(TRUNCATE_DROPPED, "error", "truncate_dropped", "ramp rounded",
        "truncate is false, and a tool rounds the ramp's ends.",
        "{label} does not read truncate: it rounds the ends of the ramp to whole pairs.")
FINDING(SLOPES_DROPPED, "error", "slopes_dropped", "slopes not read",
        "A tool uses the usual slopes, whatever is stated.",
        "{label} does not read alibi_bias_max: its slopes are those of {taken} instead of {found}.")
FINDING(RULE_UNKNOWN, "error", "rule_unknown", "rule without a word", "A tool has no word for the rule of scaling.",
        "{label} has no word for the rule {found}: it computes with {taken}, or stops.")
FINDING(LAYERS, "error", "layers", "other layers",
        "A tool gives the positions of a kind to other layers than the config does.",
        "{label} has the positions of {kind} in {taken}, the config has them in {found}: {n} of {of} layers differ.")
FINDING(LAYERS_DIFFER, "note", "layers_differ", "layers differ",
        "The model has kinds of layers with different positions.",
        "The layers have {found} kinds of positions: name one with layer_type.")
FINDING(FREQ_BASE_MISSING, "note", "freq_base_missing", "no base in the file",
        "The file states no base; llama.cpp uses 10000.", "The file states no base: {taken} is used.")
FINDING(FREQ_BASE_SWA_MISSING, "note", "freq_base_swa_missing", "no base of sliding layers",
        "The file states no base for sliding layers; llama.cpp uses 10000.",
        "The file states no base for sliding layers: {taken} is used.")
FINDING(DIVISORS_MISSING, "note", "divisors_missing", "no frequency factors",
        "The file looks like one of a model whose frequencies are divided, and has no divisors.",
        "The file has no rope_freqs, but its base is {found} and its context {taken}, as those of models by the rule "
        "llama3, whose files have them.")
FINDING(FACTORS_UNREAD, "error", "factors_unread", "tensor not sent",
        "A tensor that divides the frequencies is in the file, and was not sent.",
        "A tensor that divides the frequencies was not sent: the numbers of these layers are not known.")
FINDING(KEY_NOT_READ, "note", "key_not_read", "key without effect",
        "A key of the file that this architecture does not read.",
        "llama.cpp does not read {key} for this architecture: it computes with {taken} instead of {found}.")
FINDING(PATTERN_NOT_READ, "note", "pattern_not_read", "pattern not read",
        "The file lists which layers slide, and this architecture reads a period only.",
        "The list of sliding layers is not read for this architecture: its usual period holds.")
FINDING(TYPE_MISSING, "note", "type_missing", "factor without a type",
        "A factor without a type of scaling counts as linear.",
        "The file states the factor {found} and no type of scaling: it is read as {taken}.")
FINDING(LAST_LAYER_STILL, "error", "last_layer_still", "last layer without positions",
        "A window of 0 leaves the last layer without positions, where all layers should be rotated.",
        "The window is {found}: the last layer does not turn.")
FINDING(LENGTH_READ_OTHERWISE, "error", "length_read_otherwise", "length read otherwise",
        "The rule of scaling depends on the length of the sequence, and a tool reads it otherwise.",
        "The rule {found} depends on the length of the sequence, and {label} reads it otherwise.")
FINDING(FLAG_WITHOUT_EFFECT, "note", "flag_without_effect", "flag without effect",
        "Words that the tool reads, and that change nothing beside the others.",
        "{label} does not use {flag} here: it counts only with {needs}.")
FINDING(UNREAD_IN_TEXT, "error", "unread_in_text", "value cut in the text",
        "A text that was pasted has a key about positions without its whole value.",
        "The text cuts the value of {key}: it is not known, and what follows from it neither.")
