/* All single figures of /metrics, in the order of the page; figures with the same name are together.
 *
 *     COUNTED(ID, name, type, labels, help)         the server adds to METRICS_ID as events happen (metrics_add)
 *     READ(expression, name, type, labels, help)    read when the page is produced; now: metrics.c's struct snapshot
 */
#define CANCELLED(ID, stage)                                                                                           \
    COUNTED(CANCELLED_##ID, "posenc_cancelled_total", counter, "{stage=\"" stage "\"}",                                \
            "Requests cancelled: the client disconnected or read too slowly, or the request's own time was over.")
#define REJECTED(ID, reason)                                                                                           \
    COUNTED(REJECTED_##ID, "posenc_rejected_total", counter, "{reason=\"" reason "\"}",                                \
            "Requests refused because of the server's state or limits, their head, their token or its quota.")
#define EXPERIMENTS_ENDED(ID, outcome)                                                                                 \
    COUNTED(EXPERIMENTS_##ID, "posenc_experiments_total", counter, "{outcome=\"" outcome "\"}",                        \
            "Experiments that have ended.")

COUNTED(CONNECTIONS, "posenc_connections", gauge, "", "Open connections.")
COUNTED(IN_FLIGHT, "posenc_in_flight_requests", gauge, "", "Requests that have begun and not ended.")
COUNTED(STREAMS, "posenc_streams", gauge, "", "Answers being streamed.")
COUNTED(POOL_BYTES, "posenc_buffer_bytes", gauge, "", "Memory of the buffers for pieces of streamed answers.")
READ(admission_memory(), "posenc_taken_memory_bytes", gauge, "",
     "Memory of --max-memory that requests in progress have reserved.")
COUNTED(HYPOTHESES, "posenc_hypotheses_searched_total", counter, "", "Hypotheses that diagnoses have tried.")
COUNTED(EXPERIMENTS, "posenc_experiments", gauge, "", "Experiments that are training.")
EXPERIMENTS_ENDED(DONE, "done")   /* with their results */
EXPERIMENTS_ENDED(ENDED, "ended") /* the client left, or the time was over */
COUNTED(EXPERIMENT_STEPS, "posenc_experiment_steps_total", counter, "",
        "Steps of training of experiments that have ended.")
COUNTED(SENT_BYTES, "posenc_sent_bytes_total", counter, "", "Bytes of answer bodies handed to the network.")
COUNTED(RECEIVED_BYTES, "posenc_received_bytes_total", counter, "", "Bytes of request bodies received.")
COUNTED(NOT_MODIFIED, "posenc_client_cache_hits_total", counter, "",
        "Requests answered 304: the client's copy is still the answer.")
COUNTED(ANSWERS_HITS, "posenc_cache_hits_total", counter, "", "Requests answered from the answer cache.")
COUNTED(ANSWERS_MISSES, "posenc_cache_misses_total", counter, "", "Requests looked up in the answer cache in vain.")
COUNTED(ANSWERS_BYTES, "posenc_cache_bytes", gauge, "", "Memory of the answer cache.")
COUNTED(ANSWERS_SHARED, "posenc_shared_answers_total", counter, "",
        "Requests answered by the work for an equal request that arrived at the same time.")
CANCELLED(RECEIVING, "receiving")    /* the client left before its request was complete */
CANCELLED(WAITING, "waiting")        /* the client left before its answer began */
CANCELLED(SENDING, "sending")        /* the client left before its answer ended */
CANCELLED(SLOW, "slow")              /* cut off: the client read too slowly */
CANCELLED(LATE, "late")              /* cut off: the request's own time limit was reached */
REJECTED(QUEUE, "queue")             /* the queue is full */
REJECTED(TIMEOUT, "timeout")         /* the client sent too slowly */
REJECTED(LATE, "late")               /* no answer within the request's own time limit */
REJECTED(HEAD, "head")               /* a head that could be read in two ways */
REJECTED(MEMORY, "memory")           /* no memory */
REJECTED(AGE, "age")                 /* waited too long for a worker */
REJECTED(STREAMS, "streams")         /* too many answers in progress */
REJECTED(CONNECTIONS, "connections") /* too many connections */
REJECTED(DRAINING, "draining")       /* the server is shutting down */
REJECTED(LIMIT, "limit")             /* 413: body, answer or work over a limit */
REJECTED(TOKEN, "token")             /* 401, 403: no token, a wrong token, or one without the right */
REJECTED(QUOTA, "quota")             /* 429: a token's quota is used up */
READ(now->jobs.n_queued, "posenc_queued_jobs", gauge, "", "Pieces of work waiting for a worker.")
READ(now->jobs.n_waiting, "posenc_waiting_requests", gauge, "", "Requests that no worker has begun yet.")
READ(now->jobs.n_parked, "posenc_parked_jobs", gauge, "", "Pieces of work begun that wait for their next turn.")
READ(now->jobs.n_yields, "posenc_yields_total", counter, "", "Turns that ended before their piece of work was done.")
COUNTED(WORKERS, "posenc_workers", gauge, "", "Worker threads; each computes one piece of work at a time.")
READ(now->jobs.n_busy, "posenc_busy_workers", gauge, "", "Workers that are computing.")
READ(now->jobs.n_done, "posenc_jobs_total", counter, "", "Pieces of work done.")
READ(seconds(now->jobs.busy_ns), "posenc_worker_busy_seconds_total", counter, "", "Time workers have spent computing.")
READ(pe_undecided_count(), "posenc_undecided_values_total", counter, "",
     "Values nearer to a rounding boundary than double-double can resolve.")
READ(log_n_dropped(), "posenc_log_dropped_total", counter, "", "Log lines lost because their reader was too slow.")
READ(now->process.cpu_seconds, "process_cpu_seconds_total", counter, "", "User and system time of the process.")
READ(now->process.resident_bytes, "process_resident_memory_bytes", gauge, "", "Resident memory.")
READ(now->process.virtual_bytes, "process_virtual_memory_bytes", gauge, "", "Virtual memory.")
READ(now->process.n_fds, "process_open_fds", gauge, "", "Open file descriptors.")
READ(now->process.fds_max, "process_max_fds", gauge, "", "Most file descriptors the process may open.")
READ(now->process.started_at, "process_start_time_seconds", gauge, "", "Start of the process since the epoch.")

#undef CANCELLED
#undef REJECTED
#undef EXPERIMENTS_ENDED
