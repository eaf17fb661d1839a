/* Turns of jobs that compute for long, as they breathe; what is noted of them; jobs with a thread of their own. */
#include "server/loop/loop.h"
#include "tests/support/cmocka.h"

#include <sched.h>
#include <stdatomic.h>

enum { N_JOBS_MAX = 120 };

/* A job that computes for so long, asking as it goes. */
struct piece {
    struct job job;
    uint64_t ns; /* by its own clock: time in which it has its turn */
    atomic_uint_fast64_t spent;
    bool is_done;
};

static struct loop *loop;
static atomic_int n_computing, most_computing;
static struct piece *order[N_JOBS_MAX];
static size_t n_done;

static void pretend(uint64_t ns)
{
    uint64_t begun_at = clock_now();
    int n = atomic_fetch_add(&n_computing, 1) + 1, most = atomic_load(&most_computing);
    while (n > most && !atomic_compare_exchange_weak(&most_computing, &most, n)) {
    }
    while (clock_now() - begun_at < ns) {
    }
    atomic_fetch_sub(&n_computing, 1);
}

static void work(struct job *job)
{
    const struct piece *piece = (struct piece *)job;
    enum { STEP_NS = 1000 * 1000 };
    for (uint64_t ns = 0; ns < piece->ns; ns += STEP_NS) {
        pretend(STEP_NS);
        job_yield();
    }
}

static void done(struct job *job)
{
    struct piece *piece = (struct piece *)job;
    assert_false(piece->is_done);
    piece->is_done = true;
    order[n_done++] = piece;
}

static void spend(struct job *job, uint64_t ns) { atomic_fetch_add(&((struct piece *)job)->spent, ns); }

static void submit(struct piece *piece, uint64_t client, uint64_t ms)
{
    *piece = (struct piece){.ns = ms * CLOCK_MS};
    piece->job = (struct job){.work = work, .done = done, .spend = spend, .client = client, .is_first = true};
    job_submit(loop, &piece->job);
}

static void run_until(size_t n)
{
    for (uint64_t end = clock_now() + 60 * CLOCK_SECOND; n_done < n;) {
        assert_true(clock_now() < end);
        loop_turn(loop);
    }
}

static void begin(size_t n_workers)
{
    jobs_set_workers(n_workers);
    loop = loop_new(64);
    assert_non_null(loop);
    n_done = 0;
    atomic_store(&most_computing, 0);
}

static void end(void)
{
    loop_free(loop);
    jobs_end_workers();
}

static size_t place_of(const struct piece *piece)
{
    size_t i = 0;
    while (order[i] != piece)
        i++;
    return i;
}

TEST(test_a_short_job_of_another_client_does_not_wait_for_long_ones)
{
    static struct piece many[4], one;
    begin(1);
    uint64_t n_yields = jobs_figures().n_yields;
    for (size_t i = 0; i < 4; i++)
        submit(&many[i], 1, 400);
    submit(&one, 2, 1);
    run_until(5);
    assert_int_equal(place_of(&one), 0);
    assert_true(one.job.queue_ns < many[0].job.work_ns); /* a turn or two */
    assert_true(jobs_figures().n_yields > n_yields + 20);
    assert_int_equal(most_computing, 1);
    end();
}

TEST(test_a_short_job_of_the_same_client_neither)
{
    static struct piece many[4], one;
    begin(1);
    for (size_t i = 0; i < 4; i++)
        submit(&many[i], 1, 400);
    submit(&one, 1, 1);
    run_until(5);
    assert_int_equal(place_of(&one), 0);
    end();
}

/* Time in which a job waits for its turn is none of its work, though time it computes is, all of it. */
TEST(test_what_is_noted)
{
    static struct piece two[2];
    begin(1);
    uint64_t busy_ns = jobs_figures().busy_ns, begun_at = clock_now(), sum = 0;
    for (size_t i = 0; i < 2; i++)
        submit(&two[i], 1 + i, 300);
    run_until(2);
    uint64_t ns = clock_now() - begun_at;
    for (size_t i = 0; i < 2; i++) {
        assert_true(two[i].job.work_ns >= 300 * CLOCK_MS);
        assert_int_equal(two[i].spent, two[i].job.work_ns);
        sum += two[i].job.work_ns;
    }
    assert_true(sum <= ns);
    assert_int_equal(jobs_figures().busy_ns - busy_ns, sum);
    assert_int_equal(jobs_figures().n_parked, 0);
    assert_int_equal(jobs_figures().n_busy, 0);
    end();
}

/* More than there are threads, of many clients: each is done once, and no more compute at a time than there are
 * workers. */
TEST(test_many)
{
    static struct piece pieces[N_JOBS_MAX];
    begin(3);
    for (size_t i = 0; i < N_JOBS_MAX; i++)
        submit(&pieces[i], i % 50, 25);
    for (bool seen = false; n_done < N_JOBS_MAX;) {
        loop_turn(loop);
        struct jobs_figures now = jobs_figures();
        seen |= now.n_parked > 0;
        assert_true(now.n_parked <= 128 && now.n_busy <= 3);
        if (n_done == N_JOBS_MAX)
            assert_true(seen);
    }
    assert_true(most_computing <= 3);
    end();
}

/* The end waits for all that have begun, and those that have not. */
TEST(test_the_end)
{
    static struct piece pieces[20];
    begin(2);
    for (size_t i = 0; i < 20; i++)
        submit(&pieces[i], i, 30);
    end();
    assert_int_equal(n_done, 20);
}

/* One job waits for what another has, which waits for its turn. */
static atomic_bool is_free;

static void hold(struct job *job)
{
    work(job);
    atomic_store(&is_free, true);
}

static void await(struct job *job)
{
    (void)job;
    while (!atomic_load(&is_free))
        job_wait();
}

TEST(test_waiting_for_one_that_waits)
{
    static struct piece holder, waiting[6];
    begin(1);
    atomic_store(&is_free, false);
    holder = (struct piece){.ns = 100 * CLOCK_MS, .job = {.work = hold, .done = done, .client = 1}};
    job_submit(loop, &holder.job);
    for (size_t i = 0; i < 6; i++) {
        waiting[i] = (struct piece){.job = {.work = await, .done = done, .client = 2 + i % 2}};
        job_submit(loop, &waiting[i].job);
    }
    run_until(7);
    end();
}

/* Jobs that are away keep no worker from others, and none of them counts as parked; one of a client that has many away
 * may not leave. */
static atomic_size_t n_left, n_refused;

static void leave(struct job *job)
{
    if (job_leave()) {
        atomic_fetch_add(&n_left, 1);
        while (!atomic_load(&is_free)) {
            job_yield(); /* these two do nothing for it */
            job_wait();
        }
    } else {
        atomic_fetch_add(&n_refused, 1);
    }
    job_return();
    work(job);
}

TEST(test_leaving)
{
    enum { AWAY = 60 };
    static struct piece away[AWAY], other;
    begin(1);
    atomic_store(&is_free, false);
    for (size_t i = 0; i < AWAY; i++) {
        away[i] = (struct piece){.ns = CLOCK_MS};
        away[i].job = (struct job){.work = leave, .done = done, .client = i < AWAY - 2 ? 1 : i};
        job_submit(loop, &away[i].job);
    }
    while (atomic_load(&n_left) + atomic_load(&n_refused) < AWAY)
        loop_turn(loop);
    assert_true(atomic_load(&n_left) >= 20 && atomic_load(&n_refused) >= 20);
    submit(&other, 7, 500);
    run_until(atomic_load(&n_refused) + 1);
    while (jobs_figures().n_busy > 0) /* a thread gives up its seat just after its job was reported */
        sched_yield();
    assert_int_equal(jobs_figures().n_parked, 0);
    atomic_store(&is_free, true);
    run_until(AWAY + 1);
    assert_true(most_computing <= 1);
    for (size_t i = 0; i < AWAY; i++)
        assert_true(away[i].job.work_ns < 400 * CLOCK_MS); /* without the wait */
    end();
}

/* Jobs that never breathe have all workers, and one that must not wait has a thread of its own. */
TEST(test_aside)
{
    static struct piece stubborn, aside;
    begin(1);
    atomic_store(&is_free, false);
    stubborn = (struct piece){.job = {.work = await, .done = done}};
    job_submit(loop, &stubborn.job);
    aside = (struct piece){.job = {.work = hold, .done = done}};
    job_submit_aside(loop, &aside.job);
    run_until(2);
    end();
}
