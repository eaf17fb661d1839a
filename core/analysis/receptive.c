/* receptive: how far the last query sees if keys have no content, so that its attention is the softmax of its bias.
 *
 *     mass_h(d) = Σ over keys with |δ| ≤ d of softmax(bias_h)[key]
 *
 * This is the window that an encoding has by itself: ALiBi's heads see some multiple of 1/slope, T5's their buckets
 * (Chi et al. 2023, arXiv 2212.10356, call it the receptive field and measure it on trained models). The last query is
 * asked because it has the most keys. Keys are sorted by distance once; heads share the order. */
#include "core/analysis/analysis.h"

#include <stdlib.h>
#include <string.h>

/* The keys of the last query, nearest first, and room for one head. */
struct view {
    const struct pe_plan *plan;
    size_t output; /* of its plan: bias */
    size_t n_heads, n_keys, n_queries;
    size_t n_seen;    /* keys that the last query sees */
    size_t n_places;  /* different distances of those */
    struct key *keys; /* [n_keys]; the first n_seen are seen, nearest first */
    double *row;      /* [n_keys]: biases of one head by key */
    double *weights;  /* [n_keys]: by distance */
    double *terms;    /* [n_keys] */
    double *mass;     /* [n_places]: cumulated */
};

struct key {
    double distance; /* |δ|; infinite: not seen */
    size_t key;
};

static int compare_keys(const void *left, const void *right)
{
    const struct key *a = left, *b = right;
    if (a->distance != b->distance)
        return a->distance < b->distance ? -1 : 1;
    return a->key < b->key ? -1 : a->key > b->key;
}

/* False: cancelled, and the head's biases may not be computed. */
static bool read_head(const struct view *v, size_t head)
{
    pe_fill(v->plan, v->output, (head * v->n_queries + v->n_queries - 1) * v->n_keys, v->n_keys, v->row);
    return !pe_is_cancelled();
}

static bool list_keys(struct view *v)
{
    const struct pe_sequence *seq = &v->plan->seq;
    double query = pe_position_at(&seq->q[0], seq->q[0].n - 1);
    if (!read_head(v, 0))
        return false;
    for (size_t j = 0; j < v->n_keys; j++) {
        bool is_seen = v->row[j] != -(double)INFINITY;
        v->keys[j] = (struct key){is_seen ? fabs(pe_position_at(&seq->k[0], j) - query) : (double)INFINITY, j};
        v->n_seen += is_seen;
    }
    qsort(v->keys, v->n_keys, sizeof *v->keys, compare_keys);
    for (size_t i = 0; i < v->n_seen; i++)
        v->n_places += i == 0 || v->keys[i].distance != v->keys[i - 1].distance;
    return true;
}

static enum pe_status begin(struct view *v, const struct pe_subject *subject, struct pe_failure *err)
{
    const struct pe_plan *plan = subject->plan;
    *v = (struct view){.plan = plan, .n_heads = subject->dim};
    while (strcmp(pe_plan_output(plan, v->output)->name, "bias") != 0)
        v->output++;
    v->n_keys = (size_t)plan->seq.k[0].n;
    v->n_queries = (size_t)plan->seq.q[0].n;
    v->keys = malloc(v->n_keys * (sizeof *v->keys + 4 * sizeof(double)));
    if (!v->keys)
        return pe_no_memory(err);
    v->row = (double *)(void *)(v->keys + v->n_keys);
    v->weights = v->row + v->n_keys;
    v->terms = v->weights + v->n_keys;
    v->mass = v->terms + v->n_keys;
    if (list_keys(v))
        return PE_OK;
    free(v->keys);
    return pe_cancelled(err);
}

/* ---- One head ---- */

struct reach {
    double half, ninety, ninety_nine, entropy, mean_distance;
};

/* Weights e^(bias - largest), nearest first; returns their sum. */
static double weigh(const struct view *v)
{
    double most = -(double)INFINITY;
    for (size_t i = 0; i < v->n_seen; i++)
        most = fmax(most, v->row[v->keys[i].key]);
    for (size_t i = 0; i < v->n_seen; i++)
        v->weights[i] = exp(v->row[v->keys[i].key] - most);
    return pe_sum(v->weights, v->n_seen);
}

static double entropy_of(const struct view *v, double sum)
{
    for (size_t i = 0; i < v->n_seen; i++) {
        double p = v->weights[i] / sum;
        v->terms[i] = p > 0 ? -p * log(p) : 0;
    }
    return pe_sum(v->terms, v->n_seen);
}

static double mean_distance_of(const struct view *v, double sum)
{
    for (size_t i = 0; i < v->n_seen; i++)
        v->terms[i] = v->weights[i] / sum * v->keys[i].distance;
    return pe_sum(v->terms, v->n_seen);
}

/* The least distance within which the mass is `share`, but for what rounding may take from it. */
static double distance_of(const struct view *v, double share)
{
    size_t place = 0;
    for (size_t i = 0; i < v->n_seen; i++) {
        place += i > 0 && v->keys[i].distance != v->keys[i - 1].distance;
        if (v->mass[place] >= share - 1e-12)
            return v->keys[i].distance;
    }
    return v->keys[v->n_seen - 1].distance;
}

static bool reach_of(const struct view *v, size_t head, struct reach *r)
{
    if (!read_head(v, head))
        return false;
    double sum = weigh(v);
    *r = (struct reach){.entropy = entropy_of(v, sum), .mean_distance = mean_distance_of(v, sum)};
    double so_far = 0;
    for (size_t i = 0, place = 0; i < v->n_seen; i++) {
        so_far += v->weights[i];
        v->mass[place] = so_far / sum;
        place += i + 1 < v->n_seen && v->keys[i + 1].distance != v->keys[i].distance;
    }
    r->half = distance_of(v, .5);
    r->ninety = distance_of(v, .9);
    r->ninety_nine = distance_of(v, .99);
    return true;
}

/* ---- All heads ---- */

struct lists {
    struct pe_node *half, *ninety, *ninety_nine, *entropy, *mean_distance;
};

static struct lists put_lists(struct pe_node *out)
{
    return (struct lists){pe_put_list(out, "half"), pe_put_list(out, "ninety"), pe_put_list(out, "ninety_nine"),
                          pe_put_list(out, "entropy"), pe_put_list(out, "mean_distance")};
}

static const char *const details[] = {
    "Head {witness.head} sees farthest: without content, nine tenths of its attention lie within distance {value}.",
    "The last query sees no key.",
};

/* value and witness come first, so heads are computed once for them and once for the lists. */
static void put_widest(const struct view *v, struct pe_node *out)
{
    double widest = -1;
    size_t head = 0;
    struct reach r;
    for (size_t h = 0; h < v->n_heads && reach_of(v, h, &r); h++) {
        head = r.ninety > widest ? h : head;
        widest = fmax(widest, r.ninety);
    }
    pe_put_length(out, "value", widest);
    pe_put_integer(pe_put_object(out, "witness"), "head", (int64_t)head);
}

static enum pe_status compute(struct pe_analysis *study, struct pe_subject *subject, struct pe_node *out,
                              struct pe_failure *err)
{
    struct view v;
    enum pe_status status = begin(&v, subject, err);
    if (status)
        return status;
    if (v.n_seen) {
        put_widest(&v, out);
        double *tensor = pe_study_tensor(study, subject, "receptive");
        struct lists lists = put_lists(out);
        struct reach r;
        for (size_t h = 0; h < v.n_heads && reach_of(&v, h, &r); h++) {
            pe_put_length(lists.half, NULL, r.half);
            pe_put_length(lists.ninety, NULL, r.ninety);
            pe_put_length(lists.ninety_nine, NULL, r.ninety_nine);
            pe_put_real(lists.entropy, NULL, r.entropy);
            pe_put_real(lists.mean_distance, NULL, r.mean_distance);
            if (tensor)
                memcpy(tensor + h * v.n_places, v.mass, v.n_places * sizeof *tensor);
        }
        /* The tensor is as wide as there are distances, which is known only now. */
        for (size_t i = 0; i < study->n_tensors; i++)
            if (study->tensors[i].entry == subject->index && strcmp(study->tensors[i].row->name, "receptive") == 0)
                study->tensors[i].shape[1] = v.n_places;
    } else {
        pe_put_null(out, "value");
        pe_put_null(out, "witness");
    }
    pe_put_detail(out, study->request->lang, details[v.n_seen == 0]);
    free(v.keys);
    return PE_OK;
}

static bool applies(const struct pe_analysis *study, const struct pe_subject *subject)
{
    (void)study;
    return subject->family == PE_BIAS && subject->n_rows > 0;
}

enum { BYTES_OF_A_HEAD = 2048 };

static void cost(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost)
{
    (void)study;
    double biases = (double)subject->n * (double)subject->dim;
    cost->work = 32 * biases + pe_numbers_work(subject, biases);
    cost->bytes = (double)subject->n * (sizeof(struct key) + 4 * sizeof(double)) +
                  (double)subject->dim * BYTES_OF_A_HEAD; /* of the answer */
}

static void shape(const struct pe_analysis *study, const struct pe_subject *subject, size_t i, unsigned *rank,
                  uint64_t *shape)
{
    (void)study;
    (void)i;
    *rank = 2;
    shape[0] = subject->dim;
    shape[1] = subject->n;
}

static const struct pe_output_row tensors[] = {
    PE_OUTPUT("receptive", "num_heads,n", 1, PE_F64, false, NULL, "attention within a distance",
              "attention within each distance that the last query sees, by head"),
    {.name = NULL},
};

const struct pe_metric pe_metric_receptive = {
    .info =
        {
            .name = "receptive",
            .about = {"receptive field", "how far each head sees if attention is the softmax of its bias"},
            .applies_to = "biases by distance",
            .work = "32 n H",
            .tensors = tensors,
            .details = details,
            .n_details = sizeof details / sizeof details[0],
        },
    .applies = applies,
    .cost = cost,
    .shape = shape,
    .compute = compute,
};
