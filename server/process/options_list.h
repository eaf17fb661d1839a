/* All options: OPTION(type, field, the rest of its row). The field is also the key in the configuration file
 * (max_body), and with other signs the flag (--max-body) and the environment variable (POSENC_MAX_BODY). process.h
 * makes the field of struct options from the row, so the type cannot be another; options.c makes the table. */
OPTION(TEXT, config, .unit = "FILE", .text = "JSON file with options, e.g. {\"max_body\": \"1GiB\"}")
OPTION(TEXT, host, .fallback = "127.0.0.1", .unit = "ADDRESS",
       .text = "address or name to listen on; 0.0.0.0 or :: for all interfaces")
OPTION(TEXTS, allowed_host, .unit = "NAME",
       .text = "further name that Host may have while only this machine reaches the server and no token is needed; "
               "repeatable")
OPTION(COUNT, port, .fallback = "8080", .max = 65535, .unit = "PORT", .text = "port to listen on; 0 picks a free one")
OPTION(TEXT, tcp_cc, .unit = "NAME",
       .text = "TCP congestion control, e.g. cubic; without it the system's choice, or on loopback one that does not "
               "pace")
OPTION(TEXT, socket, .unit = "PATH",
       .text = "Unix socket to listen on instead of --host and --port; its owner and group may connect")
OPTION(TEXT, tls_cert, .unit = "FILE",
       .text = "certificate chain (PEM); serves HTTPS with TLS 1.2 or 1.3; SIGHUP reloads it with its key")
OPTION(TEXT, tls_key, .unit = "FILE", .text = "private key (PEM) of --tls-cert")
OPTION(TEXT, token_file, .unit = "FILE",
       .text = "token file: lines NAME TOKEN read|write [requests=N/s] [work=SECONDS/s] [streams=N]; without it anyone "
               "may use the server")
OPTION(BYTES, max_body, .fallback = "256MiB", .min = KIB, .max = 1024 * GIB, .unit = "BYTES",
       .text = "largest request body")
OPTION(BYTES, max_json, .fallback = "256MiB", .min = KIB, .max = 1024 * GIB, .unit = "BYTES",
       .text = "most JSON in one request; tensors sent as files do not count")
OPTION(BYTES, max_answer, .fallback = "64GiB", .min = KIB, .max = 1048576 * GIB, .unit = "BYTES",
       .text = "largest answer")
OPTION(COUNT, max_work, .fallback = "10000000000000", .min = 1, .max = UINT64_C(1) << 62, .unit = "N",
       .text = "most multiplications for one answer, or other work that takes as long")
OPTION(COUNT, max_analysis, .fallback = "1000000000000", .min = 1, .max = UINT64_C(1) << 62, .unit = "N",
       .text = "most multiply-adds of one analysis, diagnosis, or comparison of a configuration with other tools")
OPTION(COUNT, experiments, .fallback = "1", .max = 64, .unit = "N",
       .text = "experiments that may train at a time, each on a thread of its own; a further one gets 429; 0: none")
OPTION(SECONDS, experiment_seconds, .fallback = "600", .min = 1, .max = 86400, .unit = "SECONDS",
       .text = "longest time for one experiment")
OPTION(WORD, mcp, .fallback = "on", .words = switch_words, .unit = "on|off",
       .text = "whether /mcp, the Model Context Protocol, is answered")
OPTION(TEXT, public_url, .unit = "URL",
       .text = "where clients reach this server, as https://posenc.example.org, for links in answers of /mcp; without "
               "it Host names it, and X-Forwarded-Proto of a trusted proxy the protocol")
OPTION(TEXTS, cors_origin, .unit = "ORIGIN",
       .text = "origin whose pages may read answers, e.g. https://example.org; repeatable; * allows all")
OPTION(TEXTS, frame_origin, .unit = "ORIGIN",
       .text = "origin whose pages may show a figure of the web page (/?embed) in a frame, e.g. https://example.org; "
               "repeatable; * allows all")
OPTION(TEXT, ui_dir, .unit = "DIR",
       .text = "folder with the web page's files, read at every request instead of those in the program; for those who "
               "write the page")
OPTION(NETWORKS, trusted_proxy, .unit = "NETWORK",
       .text = "proxy whose X-Forwarded-For names the client, e.g. 10.0.0.0/8, or unix for all of --socket; repeatable")
OPTION(TEXT, weights_dir, .unit = "DIR",
       .text = "folder of stored weights, each as NAME.safetensors, and presets, NAME.preset.json; several servers may "
               "share it; without it they are in memory only")
OPTION(SECONDS, weights_refresh, .fallback = "5", .max = 86400, .unit = "SECONDS",
       .text = "how often --weights-dir is compared with what is in memory; 0: only at SIGHUP")
OPTION(TEXT, store, .unit = "PLACE",
       .text = "bucket of an S3-compatible store of stored weights and presets, instead of --weights-dir, as "
               "s3://BUCKET/PREFIX; several servers may share it")
OPTION(TEXT, store_endpoint, .unit = "URL",
       .text = "where that store is, as http://HOST:PORT; without it AWS_ENDPOINT_URL_S3, else Amazon's of AWS_REGION")
OPTION(TEXT, store_credentials, .unit = "FILE",
       .text = "keys of the store, as in ~/.aws/credentials, read again when it changes; without it AWS_ACCESS_KEY_ID, "
               "AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN")
OPTION(
    TEXT, store_cache, .unit = "DIR",
    .text =
        "folder that caches what was read from the store, at most --max-weights bytes, for a start without the store")
OPTION(SECONDS, store_refresh, .fallback = "5", .min = 1, .max = 86400, .unit = "SECONDS",
       .text = "how often the names in the store are compared with what is in memory")
OPTION(COUNT, store_sweep_max, .fallback = "50", .min = 1, .max = 100, .unit = "PERCENT",
       .text = "most of the blobs that are a day old that --store-sweep removes; if more have no name, and more than "
               "4, it removes none")
OPTION(
    BYTES, max_weights, .fallback = "0", .min = KIB, .max = 1048576 * GIB, .has_auto = true, .unit = "BYTES",
    .text = "total size of all stored weights; 0: a quarter of what the control group (container) allows, at most 1GiB")
OPTION(COUNT, workers, .fallback = "0", .max = 1024, .unit = "N",
       .text = "threads that compute; 0: one for each available processor")
OPTION(COUNT, io_threads, .fallback = "0", .max = 64, .unit = "N",
       .text = "threads that receive and send; 0: half as many as there are available processors")
OPTION(COUNT, max_connections, .fallback = "4096", .min = 1, .max = 1000000, .unit = "N",
       .text = "open connections; a further one gets 503")
OPTION(COUNT, max_queue, .fallback = "1024", .min = 1, .max = 1000000, .unit = "N",
       .text = "requests that may wait for a worker; a further one gets 503")
OPTION(SECONDS, max_queue_age, .fallback = "60", .min = 1, .max = 86400, .unit = "SECONDS",
       .text = "longest wait for a worker; after it a request gets 503 and is not computed")
OPTION(COUNT, max_streams, .fallback = "256", .min = 1, .max = 1000000, .unit = "N",
       .text = "long answers in progress at a time; a further one gets 429")
OPTION(BYTES, max_memory, .fallback = "0", .min = MIB, .max = 1048576 * GIB, .has_auto = true, .unit = "BYTES",
       .text = "memory of all requests in progress: bodies, plans, pictures, stream buffers; what exceeds it gets 503; "
               "0: half of what the control group (container) allows, at most 2GiB")
OPTION(BYTES, buffer_memory, .fallback = "128MiB", .min = MIB, .max = 1024 * GIB, .unit = "BYTES",
       .text = "memory for pieces of streamed answers; as much again for finished pictures")
OPTION(BYTES, answer_cache, .fallback = "16MiB", .max = 1024 * GIB, .unit = "BYTES",
       .text = "memory for the cache of small answers; 0 turns it off")
OPTION(SECONDS, connection_timeout, .fallback = "30", .min = 1, .max = 86400, .unit = "SECONDS",
       .text = "time without traffic after which a connection is closed")
OPTION(SECONDS, header_timeout, .fallback = "10", .min = 1, .max = 86400, .unit = "SECONDS",
       .text = "time a client has to send a request's head")
OPTION(SECONDS, body_timeout, .fallback = "600", .min = 1, .max = 86400, .unit = "SECONDS",
       .text = "time a client has to send a request's body")
OPTION(SECONDS, send_timeout, .fallback = "30", .min = 1, .max = 86400, .unit = "SECONDS",
       .text = "time without a byte read by the client after which an answer is cut off")
OPTION(BYTES, min_rate, .fallback = "1KiB", .max = GIB, .unit = "BYTES",
       .text = "fewest bytes per second, over 10 s, of bodies and of answers that wait for their reader")
OPTION(SECONDS, drain_seconds, .fallback = "30", .max = 86400, .unit = "SECONDS",
       .text = "time running answers have to finish after SIGTERM and --drain-delay; new requests get 503 meanwhile")
OPTION(SECONDS, drain_delay, .fallback = "0", .max = 3600, .unit = "SECONDS",
       .text = "time after SIGTERM in which requests are still served, each answer the last of its connection")
OPTION(WORD, log_format, .fallback = "text", .words = format_words, .unit = "FORMAT",
       .text = "format of the log on standard error")
OPTION(WORD, log_level, .fallback = "info", .words = level_words, .unit = "LEVEL",
       .text = "lowest severity of events that are logged")
OPTION(WORD, kernels, .fallback = "auto", .words = kernels_words, .unit = "SET",
       .text = "instruction set of the kernels, which does not change any table")
