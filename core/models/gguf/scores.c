/* What llama.cpp multiplies and caps scores by, of one kind of layers. */
#include "core/models/gguf/gguf.h"
#include "core/params.h"

#include <math.h>
#include <stdio.h>

/* ln(floor((p + offset)/length) + 1)·beta + 1; the offset is 1 in Llama 4 only. */
static enum pe_status put_temperature(struct pe_gguf_reader *r, unsigned kind)
{
    double beta = 0, length = 0;
    int64_t n = 0;
    if (r->row->temperature == PE_GGUF_TEMPERATURE_OF_STILL && kind & PE_GGUF_STILL)
        pe_hf_put_query_scale(r->out, "llama4", 0.1, 8192);
    if (r->row->temperature < PE_GGUF_TEMPERATURE_ORIGINAL || !pe_gguf_has(r, PE_GGUF_TEMPERATURE_SCALE))
        return PE_OK;
    if (pe_gguf_real(r, PE_GGUF_TEMPERATURE_SCALE, &beta) || pe_gguf_original(r, &length))
        return r->err->status;
    if (r->row->temperature == PE_GGUF_TEMPERATURE_LENGTH_OF) {
        if (pe_gguf_count(r, PE_GGUF_TEMPERATURE_LENGTH, &n))
            return r->err->status;
        length = (double)n;
    }
    if (beta != 0 && length > 0)
        pe_hf_put_query_scale(r->out, "ministral", beta, length);
    return PE_OK;
}

/* embedding_length/head_count; 0: scores are refused without these keys. */
static enum pe_status width_of_head(struct pe_gguf_reader *r, double *width)
{
    int64_t embedding = 0, heads = 0;
    char pointer[PE_POINTER_MAX];
    *width = 0;
    if (pe_gguf_count(r, PE_GGUF_EMBEDDING, &embedding) || pe_gguf_size(r, PE_GGUF_HEADS, NULL, &heads))
        return r->err->status;
    if (embedding && heads) {
        *width = (double)(embedding / heads);
        return PE_OK;
    }
    enum pe_gguf_key_id missing = embedding ? PE_GGUF_HEADS : PE_GGUF_EMBEDDING;
    pe_gguf_pointer(r, missing, pointer);
    pe_fail(&r->out->scores.refusal, "/gguf",
            "%s is missing, and the softmax scale of architecture \"%.64s\" follows from "
            "embedding_length/head_count; send it, or give softmax_scale",
            pe_gguf_key_at(missing)->name, r->architecture);
    return PE_OK;
}

static enum pe_status put_scale(struct pe_gguf_reader *r)
{
    double scale = 0, width = 0;
    switch (r->row->scale) {
    case PE_GGUF_SCALE_USUAL: break;
    case PE_GGUF_SCALE_ONE: scale = 1; break;
    case PE_GGUF_SCALE_BY_KEY:
        if (pe_gguf_real(r, PE_GGUF_SCALE, &scale))
            return r->err->status;
        break;
    case PE_GGUF_SCALE_OUT:
        scale = 0.08838834764831845;
        if (pe_gguf_real(r, PE_GGUF_OUTPUT_SCALE, &scale))
            return r->err->status;
        break;
    case PE_GGUF_SCALE_OF_WIDTH:
    case PE_GGUF_SCALE_OF_27B:
        if (r->row->scale == PE_GGUF_SCALE_OF_27B && r->layers.n != r->row->layers_of_27b)
            break;
        if (width_of_head(r, &width))
            return r->err->status;
        if (width > 0)
            scale = r->row->scale == PE_GGUF_SCALE_OF_WIDTH ? 1 / width : 1 / sqrt(width);
        break;
    }
    if (scale != 0)
        pe_hf_put_number(r->out, "softmax_scale", scale);
    return PE_OK;
}

enum pe_status pe_gguf_scores(struct pe_gguf_reader *r, unsigned kind)
{
    double cap = r->row->cap;
    struct pe_model_scores *scores = &r->out->scores;
    if (pe_is_among(pe_gguf_scores_unread, r->architecture))
        snprintf(scores->notes[scores->n_notes++], PE_DETAIL_MAX,
                 pe_text("How architecture \"%.64s\" scales and caps its scores was not read in its code (unverified): "
                         "1/sqrt(head_dim) and no cap are used."),
                 r->architecture);
    scores->sinks = r->row->sinks;
    if (put_scale(r) || (cap > 0 && pe_gguf_real(r, PE_GGUF_SOFTCAP, &cap)))
        return r->err->status;
    if (cap > 0)
        pe_hf_put_number(r->out, "softcap", cap);
    return put_temperature(r, kind);
}
