/* Findings: contradictions and defaults, each with its consequence. */
#ifndef PE_DIALECT_FINDINGS_H
#define PE_DIALECT_FINDINGS_H

#include "core/dialects/dialects.h"

enum pe_contradiction_id {
#define FINDING(ID, level, code, label, summary, pattern) PE_##ID,
#include "core/dialects/list.h"
#undef FINDING
    PE_N_CONTRADICTIONS
};

extern const struct pe_contradiction pe_contradictions[PE_N_CONTRADICTIONS];

enum { PE_FINDINGS_MAX = 96 };

struct pe_finding {
    enum pe_contradiction_id id;
    bool is_note; /* also where the row is an error */
    char pointer[PE_POINTER_MAX];
    const struct pe_tool *reader; /* NULL: none in particular */
    unsigned kinds;               /* bits; 0: all of the language model */
    struct pe_value found, taken;
    const char *before;     /* a version of the reader; NULL: the present one */
    const char *layer_type; /* of the layers in found and taken; NULL: these are no layers */
    size_t n, of;           /* layers that differ, of so many */
    const char *pattern;    /* in place of the row's; NULL: the row's */
    const char *label;      /* of a tool that is no reader; NULL: the reader's */
    const char *name;       /* of a flag, or a key */
    const char *needs;      /* of a flag without effect: with what it counts */
    bool is_uncertain, has_distance;
    struct pe_distance distance;
    struct pe_lengths lengths; /* of sequences that differ; n = 0: all */
};

struct pe_findings {
    struct pe_explain *ex;
    struct pe_finding *list; /* [PE_FINDINGS_MAX] */
    size_t n;
    bool no_memory;
};

/* A list that is empty; and put into the answer, in its order. */
enum pe_status pe_findings_open(struct pe_findings *f, struct pe_explain *ex);
enum pe_status pe_findings_put(struct pe_findings *f, struct pe_node *root);

/* Adds one; of what is beyond the room the last is kept. */
struct pe_finding *pe_finding_add(struct pe_findings *f, enum pe_contradiction_id id, const char *at, const char *name);
static inline void pe_finding_state(struct pe_finding *finding, struct pe_value found, struct pe_value taken)
{
    finding->found = found;
    finding->taken = taken;
}
/* The consequence of two rotations in a sequence of that length, if it is worse than the one that is there. */
void pe_finding_measure(struct pe_findings *f, struct pe_finding *finding, const struct pe_turn *ours,
                        const struct pe_turn *theirs, bool is_permuted, int64_t length);

/* Are there several kinds of layers? Of config and file alike; at: pointer of the finding. */
void pe_find_kinds(struct pe_findings *f, const char *at);

void pe_find_in_config(struct pe_findings *f); /* find_hf.c */
void pe_find_in_file(struct pe_findings *f);   /* find_gguf.c */
void pe_find_in_words(struct pe_findings *f);  /* find_said.c */
bool pe_words_state_base(const struct pe_explain *ex);

#endif
