/* The sequence of a request: the positions of its tokens, queries and keys. It is resolved in two steps: numbers of
 * positions, whose time follows from the numbers that are sent; and the positions of packed sequences and segments,
 * which may be many thousands from a few bytes. */
#ifndef PE_SEQUENCE_H
#define PE_SEQUENCE_H

#include "core/params.h"
#include "core/waves/waves.h"

/* ---- Segments ---- */

/* Multimodal sequences: turns a list of segments (text, image, video, audio, audio inside video) into the three
 * position ids of every token (time, height, width), as the Qwen-VL and Omni models and VideoRoPE count them
 * (segments.c names the papers). The list is read and its tokens are counted while a plan is checked; one pass over the
 * tokens computes their ids while it is built. */

enum pe_position_style {
    PE_QWEN2_5_VL, /* the default */
    PE_QWEN2_VL,
    PE_QWEN2_5_VL_INT_SECONDS, /* later versions of transformers: int() of the seconds per grid */
    PE_QWEN3_VL,               /* each frame is a segment of its own, after the text of its timestamp */
    PE_QWEN2_5_OMNI,           /* TMRoPE */
    PE_QWEN3_OMNI,
    PE_VIDEOROPE,
    PE_ERNIE4_5_VL, /* as qwen2_vl, but the frames of a video are merged two by two */
    PE_GLM4V,       /* as qwen3_vl */
    PE_FLUX,        /* from here on: image generators (segments_images.c) */
    PE_FLUX2,
    PE_QWEN_IMAGE,
    PE_LUMINA2,
    PE_Z_IMAGE,
    PE_IDEOGRAM4,
    PE_OVIS_IMAGE,
    PE_LONGCAT_IMAGE,
    PE_HUNYUAN_IMAGE_3
};
static inline bool pe_position_style_is_image(enum pe_position_style style) { return style >= PE_FLUX; }
unsigned pe_position_style_axes(enum pe_position_style style);
/* What an axis of an image generator's ids counts, for a sentence (Chinese by pe_text_in); NULL: as elsewhere. */
const char *pe_position_style_axis(enum pe_position_style style, unsigned axis);
/* Does the place of an image of a generator depend on what is around it, so that a grid alone is none? */
bool pe_position_style_is_placed(enum pe_position_style style);
/* Refuses frames that an image of this style has not, and a second image where no axis states which it is. `before`:
 * images before it; has_number: the segment states its own. */
enum pe_status pe_position_style_check_image(enum pe_position_style style, uint64_t frames, size_t before,
                                             bool has_number, const char *at, struct pe_failure *err);
extern const char *const pe_position_styles[]; /* their words, NULL-terminated */

/* The parameters beside the list; parameters that a style does not use are ignored. */
struct pe_segment_rules {
    enum pe_position_style style;
    int64_t spatial_merge_size;                        /* patches per token along each side of a grid, from 1 */
    double tokens_per_second;                          /* qwen2_5_vl, qwen2_5_vl_int_seconds */
    double position_id_per_seconds, seconds_per_chunk; /* the Omni models; chunks are of qwen2_5_omni only */
    double temporal_scale;                             /* videorope: delta */
    enum { PE_IDS_PUBLISHED, PE_IDS_TRANSFORMERS_5 } id_rules;
};
extern const char *const pe_id_rules[]; /* their words, NULL-terminated */
enum { PE_SEGMENT_AXES_MAX = 4 };

/* Ids of all tokens, owned by the caller; pe_segments_drop frees them. */
struct pe_segments {
    uint64_t n; /* tokens, at most PE_LISTED_POSITIONS_MAX */
    unsigned n_axes;
    /* Time, height, width, or the style's own: [n] each; ids[0] is the one allocation. Some styles' may be below 0. */
    double *ids[PE_SEGMENT_AXES_MAX];
    /* 1 + largest id - n: what decoding adds to the cache position. VideoRoPE looks at the time ids alone, as its next
     * text does. A largest id with a fraction (qwen3_omni, videorope) counts as its floor, because this is an integer
     * on the wire; the published code keeps the fraction. */
    int64_t rope_delta;
    bool is_fractional; /* some id is not an integer; then all ids are float32 values */
};

/* A list of segments as read (core/sequence/sequence.h). */
struct pe_segment_list {
    struct pe_segment_rules rules;
    struct pe_segment_block *at; /* [n], owned by the caller, who frees it; NULL: none */
    size_t n;
    uint64_t n_tokens;
};

/* Reads the list of segments (a PE_LIST of PE_OBJECT; pointer of errors "/segments/2/grid") and counts their tokens.
 * PE_TOO_LARGE: more segments or tokens than core/limits.h allows. On failure list->at is NULL. */
enum pe_status pe_segments_read(struct pe_segment_list *list, const struct pe_value *segments,
                                const struct pe_segment_rules *rules, struct pe_failure *err);
/* Computes the ids of their tokens. Fails without memory, or if an id passes 2^40. On failure *out is untouched. */
enum pe_status pe_segments_lay_out(struct pe_segments *out, const struct pe_segment_list *list, struct pe_failure *err);
void pe_segments_drop(struct pe_segments *segments); /* of zeros: nothing */

/* Shared by segments_read.c, which reads the list of segments, and segments.c, which lays out their tokens. */

enum pe_segment_type { PE_TEXT, PE_IMAGE, PE_VIDEO, PE_AUDIO, PE_AUDIO_IN_VIDEO };

enum { PE_SEGMENT_ENDS = 2 }; /* start tokens of a video with sound, and end tokens: one of vision, one of audio */

/* A segment with its sizes in tokens. */
struct pe_segment_block {
    enum pe_segment_type type;
    uint64_t frames, rows, cols; /* of a grid, after merging; else 0 */
    uint64_t len;                /* text or audio */
    double seconds;              /* from one frame to the next */
    bool has_number;             /* an image's own number, where the segment states it */
    int64_t number;
    uint64_t n; /* all tokens */
};

/* Ids of an image generator's style: fills ids[axis][token]. */
void pe_segments_lay_images(const struct pe_segment_list *list, double *const *ids);

/* TMRoPE's chunks hold int(position_id_per_seconds * seconds_per_chunk) ids. */
double pe_segment_chunk_ids(const struct pe_segment_rules *rules);

/* ---- The sequence ---- */

/* A padded batch. */
struct pe_padding_fields {
    struct pe_reals attention_mask;
    int padding;          /* PE_UNSET_WORD: skipped */
    int64_t pad_position; /* PE_UNSET_INT: 1 */
};
enum { PE_PADDING_SKIPPED, PE_PADDING_COUNTED };
extern const char *const pe_padding_words[];

/* Part `rank` of a sequence that is split among `of` machines. */
struct pe_shard_fields {
    bool is_given;
    int64_t rank, of;
    int split; /* PE_UNSET_WORD: zigzag */
};
enum { PE_SPLIT_ZIGZAG, PE_SPLIT_CONTIGUOUS };

/* What the levels of a list of positions are. */
enum pe_positions_layout { PE_BY_AXES, PE_BY_BATCH, PE_BY_BATCH_AXES, PE_BY_AXES_BATCH };
extern const char *const pe_positions_layout_words[];

/* The fields as given. */
struct pe_sequence_fields {
    struct pe_padding_fields padded; /* first: PE_PADDING_PARAMS counts offsets from it */
    struct pe_shard_fields shard;
    int positions_layout; /* PE_UNSET_WORD: axes */
    int64_t len, offset;
    struct pe_reals positions, grid, lens, cu_seqlens;
    const struct pe_value *grid_coords, *segments, *tokens;
    int64_t q_len, k_len, q_offset;
    struct pe_reals q_positions, k_positions;
    /* Rules of grids and segments; the resolved config includes them. */
    int order, position_style, id_rules;
    int64_t spatial_merge_size;
    double tokens_per_second, position_id_per_seconds, seconds_per_chunk, temporal_scale;
};

/* How the operation uses the fields. */
enum pe_sequence_kind {
    PE_ONE_SEQUENCE, /* one run or list of n positions; queries and keys cannot differ */
    PE_TWO_SEQUENCES /* queries and keys, which may be the same */
};

/* Sizes that tensors fix; 0: not fixed. */
struct pe_sequence_sizes {
    uint64_t q, k;
    const char *k_tensor; /* the name of the tensor that fixes k; NULL: "k" */
    uint64_t prefix;      /* rows of the tensors before those of the sequence, which q and k do not count */
};

struct pe_sequence {
    unsigned n_axes;
    struct pe_positions q[PE_AXES_MAX], k[PE_AXES_MAX]; /* [n_axes]; where there is one sequence, k is the one to use */
    unsigned n_grid;                                    /* axes of the grid the positions come from; 0: none */
    uint64_t grid[PE_AXES_MAX];
    /* Packed sequences, segments and shards before pe_sequence_lay_out: .n is known, and no position. */
    bool is_counted;
    bool has_segments;
    struct pe_segment_list blocks; /* before they are laid out */
    struct pe_segments segments;
    uint32_t *piece;  /* [n]: which of several packed sequences a position belongs to; NULL: there is one. Owned. */
    double *owned[2]; /* converted lists; pe_sequence_drop frees them */
    double *lens;     /* the lengths that cu_seqlens gives; owned */
};

/* The rows of a batch that have positions of their own; 0: all have the same. */
static inline uint64_t pe_sequence_n_batches(const struct pe_sequence *seq) { return seq->k[0].n_batches; }

/* Refuses a tensor of another batch, named so, than the positions have. */
enum pe_status pe_sequence_wrong_batch(const struct pe_sequence_fields *f, uint64_t n_batches, const char *tensor,
                                       uint64_t batch, struct pe_failure *err);

/* The sequence of one row of the batch, which borrows its lists. */
struct pe_sequence pe_sequence_of_batch(const struct pe_sequence *seq, uint64_t batch);

/* The parameter rows of the rules alone. After pe_sequence_init, the fields of the rules in use are set. */
const struct pe_param *pe_sequence_rules(void);

/* Resolves fields into *seq (call pe_sequence_drop afterwards, also after a failure). Lists of doubles are borrowed
 * from the request, others are converted. Sets rules that are in use but not given to their defaults in *fields. */
enum pe_status pe_sequence_init(struct pe_sequence *seq, struct pe_sequence_fields *fields, enum pe_sequence_kind kind,
                                struct pe_sequence_sizes sizes, struct pe_failure *err);
/* Computes the positions of a sequence that is only counted; does nothing with another. */
enum pe_status pe_sequence_lay_out(struct pe_sequence *seq, const struct pe_sequence_fields *fields,
                                   struct pe_failure *err);
void pe_sequence_drop(struct pe_sequence *seq);

/* Copies a sequence of one axis to n_axes axes. */
void pe_sequence_spread(struct pe_sequence *seq, unsigned n_axes);

/* floor(largest position) + 1 over all axes: the length of the sequence for dynamic scalings. */
double pe_sequence_reach(const struct pe_sequence *seq);

/* ---- A padded batch ---- */

#define PE_PADDING_PARAMS                                                                                              \
    PE_P_REALS(pe_padding_fields, attention_mask, 0, 1, "attention mask",                                              \
               "of a padded batch, [batch][n] or [n]: 1 for a token, 0 for padding; gives the positions",              \
               .group = PE_G_SEQUENCE),                                                                                \
        PE_P_WORD(pe_padding_fields, padding, pe_padding_words, "padding",                                             \
                  "of attention_mask: skipped (default) counts tokens, as transformers; counted counts columns, as "   \
                  "vLLM",                                                                                              \
                  .fallback = PE_UNSET_WORD, .group = PE_G_SEQUENCE),                                                  \
        PE_P_INT(pe_padding_fields, pad_position, PE_UNSET, -PE_POSITION_MAX, PE_POSITION_MAX, "position of padding",  \
                 "of attention_mask, where padding is skipped: the position of padding itself; default 1",             \
                 .group = PE_G_SEQUENCE, .usual = {-1, 1})

/* A mask of ones and zeros, and the rule for its positions. */
struct pe_padding {
    const struct pe_reals *mask; /* borrowed from the fields */
    uint64_t n_batches, n;       /* rows, columns */
    bool is_counted;
    double pad_position, offset; /* offset: of the first token; 0 by default */
};
/* Fails unless the mask has one axis or two, and ones and zeros, among them a one. */
enum pe_status pe_padding_read(struct pe_padding *padding, const struct pe_padding_fields *fields,
                               struct pe_failure *err);
bool pe_padding_is_token(const struct pe_padding *padding, uint64_t i); /* counted flat */
/* The positions [n_batches, n] by a rule, also of the mask mirrored in each row. */
void pe_padding_positions(const struct pe_padding *padding, bool is_counted, bool is_mirrored, double *out);

/* ---- Between the files ---- */

/* batches.c: positions in another layout than axes; those of a mask; the lengths of cu_seqlens, which become
 * fields->lens; a shard, and its positions. */
enum pe_status pe_sequence_init_batch(struct pe_sequence *seq, const struct pe_sequence_fields *f,
                                      struct pe_sequence_sizes sizes, struct pe_failure *err);
enum pe_status pe_sequence_wrong_levels(const struct pe_tensor *t, enum pe_positions_layout layout,
                                        struct pe_failure *err);
enum pe_status pe_sequence_init_grid(struct pe_sequence *seq, struct pe_sequence_fields *f, struct pe_failure *err);
enum pe_status pe_sequence_init_grid_coords(struct pe_sequence *seq, const struct pe_sequence_fields *f,
                                            struct pe_failure *err);
enum pe_status pe_sequence_init_mask(struct pe_sequence *seq, const struct pe_sequence_fields *f,
                                     struct pe_sequence_sizes sizes, struct pe_failure *err);
enum pe_status pe_sequence_read_cu_seqlens(struct pe_sequence *seq, struct pe_sequence_fields *f,
                                           struct pe_failure *err);
enum pe_status pe_sequence_init_shard(struct pe_sequence *seq, const struct pe_sequence_fields *f,
                                      struct pe_sequence_sizes sizes, struct pe_failure *err);
enum pe_status pe_sequence_lay_out_shard(struct pe_sequence *seq, const struct pe_sequence_fields *f,
                                         struct pe_failure *err);

/* sequence.c: doubles of a list, converted into *owned where they are others; a run. */
enum pe_status pe_sequence_doubles(const struct pe_reals *from, const double **data, double **owned,
                                   struct pe_failure *err);
enum pe_status pe_sequence_run(struct pe_positions *p, double first, uint64_t n, const char *pointer,
                               struct pe_failure *err);

/* Shared by sequence.c and sequence_fields.c: whether a field is given, and which fields it may not contradict. */

/* The field order, of a grid. */
enum { PE_ROW_MAJOR, PE_MERGE };

static inline bool pe_given(int64_t field) { return field != PE_UNSET_INT; }

/* Refuses a sequence that is given in no way or in several (fixed: tensors give its length, so none is fine), and
 * fields that this way of giving it does not use. */
enum pe_status pe_sequence_check(const struct pe_sequence_fields *f, enum pe_sequence_kind kind, bool fixed,
                                 struct pe_failure *err);

/* The field that gives the sequence. */
const char *pe_sequence_pointer(const struct pe_sequence_fields *fields);

/* A length that tensors fix need not be given, but may not be contradicted. fixed = 0: none does. prefix: rows of the
 * tensor before the fixed ones. */
enum pe_status pe_sequence_check_size(const char *pointer, uint64_t n, uint64_t fixed, const char *tensor,
                                      uint64_t prefix, struct pe_failure *err);

/* The same for a sequence that queries and keys share. */
enum pe_status pe_sequence_check_sizes(const char *pointer, uint64_t n, struct pe_sequence_sizes sizes,
                                       struct pe_failure *err);

/* ---- Masks ---- */

/* Which keys a query sees: causal masks, windows, padding. A hidden key gets the bias -inf, and no attention. */

struct pe_mask_fields {
    bool causal;
    int64_t window, window_right;
    struct pe_reals key_mask;
};

#define PE_MASK_PARAMS                                                                                                 \
    PE_P_BOOL(pe_mask_fields, causal, false, "causal mask", "true: a query does not see keys after it (-inf)",         \
              .level = PE_BASIC, .group = PE_G_MASK),                                                                  \
        PE_P_INT(pe_mask_fields, window, PE_UNSET, 1, PE_POSITION_MAX, "window",                                       \
                 "number of keys seen to the left, including the query's own position; default all",                   \
                 .group = PE_G_MASK, .usual = {1, 512}),                                                               \
        PE_P_INT(pe_mask_fields, window_right, PE_UNSET, 0, PE_POSITION_MAX, "window to the right",                    \
                 "number of keys seen to the right; default window - 1, with causal 0", .group = PE_G_MASK,            \
                 .usual = {0, 512}),                                                                                   \
        PE_P_REALS(pe_mask_fields, key_mask, 0, 1, "key mask",                                                         \
                   "1 for keys that may be seen, 0 for padding: [k_len]; for /attention also [batch, k_len]",          \
                   .group = PE_G_MASK)

struct pe_mask {
    double reach_left, reach_right; /* a key is seen if q - k < reach_left and k - q ≤ reach_right … */
    bool causal;                    /* … and, if causal, k <= q … */
    uint8_t *seen;                  /* … and seen[batch % n_masks, key] is 1; NULL: all are seen. Owned. */
    uint64_t n_masks;               /* 1, or one for each sequence of a batch */
};

/* Fills *mask (pe_mask_drop afterwards, also after a failure). Each of n_batches may have its own mask. */
enum pe_status pe_mask_init(struct pe_mask *mask, const struct pe_mask_fields *fields, uint64_t k_len,
                            uint64_t n_batches, struct pe_failure *err);
void pe_mask_drop(struct pe_mask *mask);

/* Is a key at the distance rel = k_pos - q_pos visible, apart from padding? */
bool pe_mask_reaches(const struct pe_mask *mask, double rel);

/* Is padding the only reason to hide a key? */
bool pe_mask_is_far(const struct pe_mask *mask);

#endif
