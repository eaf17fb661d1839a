"""Every row, in the order of the table: name, what it is, its sort, how it is measured, what it needs, and whether it is of
`make bench-quick` too."""
import computing as c
import serving as s
from computing import UNITS, of_limit, of_numbers, of_peer, of_product, of_torch, of_training
from rows import COMMIT, LIMIT, PEER, group
from serving import COMPUTED, of_diagnosis, of_nginx, of_paths

TORCH = ["numpy", "torch"]
NGINX = ["nginx", "wrk"]
FASTAPI = ["torch", "fastapi", "uvicorn"]
TABLE = "/encode?scheme=sinusoidal&dim=128&len=2048"
ALIBI = "/encode?scheme=alibi&num_heads=8&outputs=bias"

row = group("core")
row("table", "f32 table, 512×128 in cache, correctly rounded", LIMIT, of_limit("table", UNITS), quick=True)
row("table_numpy", "the same, against NumPy f32", PEER, of_peer("table", c.numpy_table, "NumPy"), ["numpy"], quick=True)
row("table_torch", "the same, against torch f32", PEER, of_peer("table", lambda: of_torch("table"), "torch"), TORCH, quick=True)
row("table_avx2", "f32 table with AVX2", LIMIT, of_limit("table_avx2", UNITS))
row("table_base", "f32 table, plain instructions", LIMIT, of_limit("table_base", UNITS))
row("list", "position list f32", LIMIT, of_limit("list", UNITS), quick=True)
row("table_bf16", "bf16 table", LIMIT, of_limit("table_bf16", UNITS), quick=True)
row("table_f16", "f16 table", LIMIT, of_limit("table_f16", UNITS), quick=True)
row("rotate", "RoPE on q, k f32, out of place", LIMIT, of_limit("rotate", "memcpy"), quick=True)
row("rotate_in_place", "RoPE on q, k f32, in place", LIMIT, of_limit("rotate_in_place", "memcpy"))
row("rotate_torch", "RoPE on q, k f32, against torch rotate_half", PEER, of_peer("rotate", lambda: of_torch("rotate_half"), "torch"), TORCH)
row("alibi", "Toeplitz bias 8×1024×1024", LIMIT, of_limit("alibi", "memset"), quick=True)
row("alibi_torch", "the same, against torch ALiBi", PEER, of_peer("alibi", lambda: of_torch("alibi"), "torch"), TORCH)
row("t5_torch", "T5's bias, against torch T5", PEER, of_peer("t5", lambda: of_torch("t5"), "torch"), TORCH)
row("growth", "streamed table of 1 GiB, against 64 of 16 MiB", LIMIT, c.growth)
row("offset", "table of 16 MiB at offset 2^40, against offset 0", LIMIT, c.offset)
row("workers", "two workers over one, tables summed up in cache, against what two bare threads gain", LIMIT, c.workers)

row = group("attention")  # 8 heads, 2048 positions, 64 channels
row("probs", "attention probabilities, against the bare QKᵀ product", LIMIT, of_limit("probs", "sgemm", (5, 2), 5), quick=True)
for name, what in (("shaw", "Shaw's map"), ("transformer_xl", "Transformer-XL's map"), ("deberta", "DeBERTa's map")):
    row(name, what, LIMIT, of_limit(name, UNITS, (5, 2), 3))
    row(f"{name}_torch", f"{what}, against torch", PEER, of_peer(name, lambda name=name: of_torch(name), "torch", (5, 2), 3), TORCH)

row = group("analysis")  # all pairs of rows, beside the bare product of the Gram matrix in the same process
row("unique", "nearest two of 16384×512 sinusoidal rows (quick: of 4096), against dgemm of the Gram matrix", LIMIT,
    of_product("unique", "sinusoidal"), quick=True)
row("unique_equal", "the same of rows that are all equal, where no pair can be given up", LIMIT, of_product("unique", "none"))
row("similarity", "similarity of 16384×512 rows by distance, against dgemm of the Gram matrix", LIMIT, of_product("similarity", "sinusoidal"))

row = group("text")
row("json", "JSON out, shortest f32", PEER, of_numbers("print f32 shortest", "jansson build and dump, 9 digits", "jansson"), quick=True)
row("json_digits", "JSON out, 4 digits", PEER, of_numbers("print f32, 4 digits", "snprintf %.4f", "snprintf"), quick=True)
row("json_in", "JSON number arrays in", PEER, of_numbers("read shortest f32", "jansson", "jansson"), quick=True)
row("json_map", "JSON out, Toeplitz map 8×1024×1024, the whole answer", LIMIT, of_limit("json_map", "memcpy", (5, 3), 5), quick=True)

row = group("small")
row("get", "small GET, 1 I/O thread: requests/s", PEER, s.per_second(s.get_loads), NGINX, quick=True)
row("get_cpu", "small GET: server CPU for each request", PEER, s.cpu_each(s.get_loads), NGINX, quick=True)
row("get_computed", "small GET, answer cache off: requests/s", LIMIT, s.per_second(s.get_loads, COMPUTED), NGINX, quick=True)
row("get_computed_cpu", "small GET, answer cache off: server CPU for each request", LIMIT, s.cpu_each(s.get_loads, COMPUTED), NGINX, quick=True)
row("get_2", "small GET, 2 I/O threads: requests/s", PEER, s.per_second(s.get_loads_2, against="nginx, 2 workers"), NGINX)
row("post", "small POST, JSON in and out, answer cache off: requests/s", LIMIT, s.per_second(s.post_loads, COMPUTED), NGINX)
row("post_cached", "small POST, with the answer cache: requests/s", PEER, s.per_second(s.post_loads), NGINX)

row = group("large")
row("stream", "raw answer 16 MiB, default settings, reader in C", PEER, of_nginx(s.in_c(15), s.LARGE, "/large"), ["nginx"], quick=True)
row("stream_cpu", "the same: server CPU", PEER, s.stream_cpu, ["nginx"], quick=True)
row("stream_huge", "raw answer 256 MiB, default settings, reader in C", PEER, of_nginx(s.in_c(2), s.HUGE, "/huge"), ["nginx"])
row("stream_curl", "raw answer 256 MiB, default settings, curl", PEER, of_nginx(s.curl_speed, s.HUGE, "/huge"), ["nginx", "curl"])
row("stream_cubic", "raw answer 16 MiB under cubic, against a bare send() loop", LIMIT, s.of_send(True), quick=True)
row("stream_bare", "the same under the default settings", LIMIT, s.of_send(False))
row("p99", "p99 of small requests while two clients stream", PEER, s.p99, ["nginx"], quick=True)
row("upload", "upload of 16 MiB, against a bare recv() loop; cubic on the client", LIMIT, s.upload, quick=True)
row("memory", "memory of a stream of GiB over idle, against the whole answer", LIMIT, s.memory, quick=True)

row = group("diagnosis")
row("analyze_rope", "usual metrics of rope [2048, 128] but extrapolation, properties: CPU", COMMIT, s.analyze_rope, quick=True)
row("diagnose_rotated", "level-1 diagnosis of q, q_out [1,32,2048,128] f32: CPU", COMMIT, of_diagnosis("scheme=rope", s.rotated, "layout_swapped"))
row("diagnose_tables", "level-1 diagnosis of cos, sin [2048,64] f32: CPU", COMMIT,
    of_diagnosis("scheme=rope", s.tables(scheme="rope", base=500000, head_dim=128, len=2048), "base_other", 9), quick=True)
row("diagnose_blind", "cos, sin [8192,128] of Llama 3.1 without a belief: CPU", COMMIT,
    of_diagnosis("", s.tables(preset="llama-3.1", form="concat", len=8192), "identified"))
row("diagnose_noise", "cos, sin [1,8192,128] that nothing explains: CPU", COMMIT,
    of_diagnosis("", s.noise("cos", "sin", shape=(1, 8192, 128)), "unexplained"))
row("diagnose_xpos", "q, q_out [246,64] of xPos that nothing explains: CPU", COMMIT,
    of_diagnosis("scheme=xpos", s.noise("q", "q_out", shape=(246, 64)), "unexplained"))
row("analyses_health", "p99 of /healthz beside eight of the largest analyses", LIMIT, s.analyses_health)

row = group("experiment")  # one decoder trained for 600 steps and evaluated; the peer gets its sequences ready made
row("experiment_alibi", "600 steps of /experiments under ALiBi, against torch", PEER, of_training("alibi"), ["numpy", "mpmath", "torch"])
row("experiment_rope", "600 steps of /experiments under RoPE, against torch", PEER, of_training("rope"), ["numpy", "mpmath", "torch"])

row = group("frameworks")
row("fastapi_small", "8×16 table as JSON, 64 connections: requests/s", PEER, s.fastapi_small, [*FASTAPI, "wrk"])
row("fastapi_json", "2048×128 table as JSON", PEER, of_paths(TABLE, "/table", 5, 3), FASTAPI)
row("fastapi_raw", "2048×128 table as bytes", PEER, of_paths(TABLE + "&format=raw", "/table?form=raw", 5, 15), FASTAPI)
row("fastapi_alibi_json", "8×1024×1024 ALiBi as JSON", PEER, of_paths(ALIBI + "&len=1024", "/alibi", 3, 1), FASTAPI)
row("fastapi_alibi_raw", "8×2048×2048 ALiBi as bytes", PEER, of_paths(ALIBI + "&len=2048&format=raw", "/alibi?n=2048&form=raw", 5, 2), FASTAPI)
row("fastapi_memory", "resident memory after these; of the peer, its largest process", PEER, s.fastapi_memory, FASTAPI)
