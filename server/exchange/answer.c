/* Owns the answering of a received request: from the cache, on the loop, or by a worker, alone or together with equal
 * requests.
 *
 * The decision is about time. A loop may compute what takes less than handing it to a worker and back (some ten
 * microseconds); everything else goes to a worker, because each millisecond here is one for every connection of this
 * loop. So small answers are looked up by the bytes of their request before anything is parsed; then api/ reads and
 * plans, and states whether the loop may build; then requests equal to one that a worker has already begun wait for its
 * answer (answers.c).
 *
 * A client that disconnects, or whose time limit is reached, gives up its own interest only: a worker that others wait
 * for goes on. If the answer cannot be shared, or none waited when the worker asked, one of them leads next. */
#include "server/exchange/exchange.h"

#include "server/loop/loop.h"

static struct exchange *exchange_of(struct job *job)
{
    return (struct exchange *)(void *)((char *)job - offsetof(struct exchange, answering.job));
}

static bool is_unwanted(const struct exchange *x) { return exchange_reason(x) != EXCHANGE_GOES_ON; }

static bool is_unwanted_part(const struct answers_part *part)
{
    return is_unwanted(
        (const struct exchange *)(const void *)((const char *)part - offsetof(struct exchange, answering.part)));
}

/* Neither this request nor an equal one that follows it waits for the answer. */
static bool is_in_vain(struct exchange *x)
{
    return is_unwanted(x) && !answers_are_awaited(x->all->answers, &x->answering.part);
}

/* api/ calls this while it reads, plans and draws. */
static bool yield_and_ask(void *x) /* worker */
{
    job_yield();
    return is_in_vain(x);
}

static void spend(struct job *job, uint64_t ns) { exchange_spend(exchange_of(job), ns); } /* worker */

static void answer_work(struct job *job) /* worker */
{
    struct exchange *x = exchange_of(job);
    if (is_in_vain(x))
        return;
    x->answering.is_aged = job_age(job) > x->all->options->max_queue_age * CLOCK_SECOND;
    if (x->answering.is_aged)
        return; /* the client has most likely given up: the time is better spent on the next request */
    api_speak(&x->call->api);
    pe_watch(yield_and_ask, x);
    /* Goes on where the loop has stopped: this thread may wait. */
    struct api_request *request = x->answering.request;
    struct api_reply *reply = NULL;
    x->answering.request = NULL; /* both calls take it */
    x->answering.made =
        api_read(x->all->host, &x->call->api, &request, &reply) == API_READ ? api_build(request) : reply;
    pe_watch(NULL, NULL);
    api_speak(NULL);
}

/* Gives the reply to all equal requests that follow this one. A ready reply gets its body first, since only one thread
 * may create it. An unwanted reply that is not repeatable may be that of abandoned work. */
static void give_followers(struct exchange *x, struct api_reply *reply)
{
    bool is_whole = reply && exchange_make_whole(x, reply);
    bool is_given_up = !is_whole || x->answering.is_aged || (is_unwanted(x) && !reply->is_repeatable);
    answers_complete(x->all->answers, &x->answering.part, is_given_up ? NULL : reply, x->call);
}

static void answer_done(struct job *job)
{
    struct exchange *x = exchange_of(job);
    struct exchange_answering *answering = &x->answering;
    answering->part.waits_since = job->waits_since;
    if (x->state != EXCHANGE_WORKING) { /* too late: the request has been refused, or its client has disconnected */
        give_followers(x, answering->made);
        exchange_set_aside(x, answering->made);
        exchange_drop(x);
        return;
    }
    x->reply = answering->made;
    x->timing.answer_ns = job->work_ns;
    x->timing.queue_ns = job->queue_ns;
    if (answering->is_aged) {
        api_speak(&x->call->api);
        exchange_refuse(x, REFUSED_AGE, x->all->options->max_queue_age);
        api_speak(NULL);
    }
    x->state = EXCHANGE_DECIDED;
    give_followers(x, x->reply);
    exchange_resume(x); /* go_on is called; it does nothing if the client has disconnected meanwhile */
    exchange_drop(x);
}

/* The exchange is suspended, and has one more owner until answer_done. */
static void submit(struct exchange *x)
{
    x->answering.job = (struct job){.work = answer_work,
                                    .done = answer_done,
                                    .spend = spend,
                                    .is_first = true,
                                    .client = x->client,
                                    .waits_since = x->answering.part.waits_since};
    job_submit(x->all->loop, &x->answering.job);
}

/* Followers were never in the queue, so if their leader has given up, there may be too many of them for it. */
static bool is_refused_by_queue(struct exchange *x)
{
    if (!exchange_queue_is_full(x))
        return false;
    answers_complete(x->all->answers, &x->answering.part, NULL, NULL);
    exchange_refuse(x, REFUSED_QUEUE, x->all->options->max_queue);
    return true;
}

/* The leader of this request has its answer. Without a reply the request is answered on its own, or follows another. */
static void shared(struct loop_call *call)
{
    struct exchange *x =
        (struct exchange *)(void *)((char *)call - offsetof(struct exchange, answering.part.completed));
    struct answers_part *part = &x->answering.part;
    if (x->state != EXCHANGE_WORKING) { /* too late, as in answer_done */
        exchange_set_aside(x, part->reply);
        exchange_drop(x);
        return;
    }
    bool is_wanted = !part->reply && !exchange_is_gone(x);
    if (is_wanted && part->may_join && answers_join(x->all->answers, &x->call->api, part) == ANSWERS_FOLLOWS)
        return;
    x->reply = part->reply;
    api_speak(&x->call->api);
    bool is_refused = is_wanted && is_refused_by_queue(x);
    api_speak(NULL);
    if (is_wanted && !is_refused) {
        submit(x);
        return;
    }
    x->state = EXCHANGE_DECIDED;
    exchange_resume(x);
    exchange_drop(x);
}

static bool answer_by_worker(struct exchange *x)
{
    if (exchange_queue_is_full(x)) {
        exchange_refuse(x, REFUSED_QUEUE, x->all->options->max_queue);
        return exchange_send(x);
    }
    x->state = EXCHANGE_WORKING;
    x->n_owners++;
    x->answering.part =
        (struct answers_part){.completed = {.fire = shared}, .loop = x->all->loop, .is_unwanted = is_unwanted_part};
    transport_suspend(x->connection);
    if (answers_join(x->all->answers, &x->call->api, &x->answering.part) != ANSWERS_FOLLOWS)
        submit(x);
    return true;
}

/* The way of an answer, each step once: find, read and check (api_read), build, send. The loop goes down it until a
 * step would wait or take more than about a millisecond; from there on a worker does. */
bool exchange_answer(struct exchange *x)
{
    struct api_call *call = &x->call->api;
    if (x->call->body.n_bytes > EXCHANGE_INLINE_BODY_MAX)
        return answer_by_worker(x);
    x->reply = answers_find(x->all->answers, call);
    x->answering.is_from_cache = x->reply;
    if (x->reply)
        return exchange_send(x);
    uint64_t begun_at = clock_now();
    call->must_not_block = true;
    enum api_outcome outcome = api_read(x->all->host, call, &x->answering.request, &x->reply);
    if (outcome == API_READ) {
        x->reply = api_build(x->answering.request);
        x->answering.request = NULL;
    }
    x->timing.answer_ns = clock_now() - begun_at;
    exchange_spend(x, x->timing.answer_ns);
    if (outcome != API_ELSEWHERE)
        return exchange_send(x);
    call->must_not_block = false;
    return answer_by_worker(x);
}
