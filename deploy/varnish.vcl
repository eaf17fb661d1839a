# Varnish in front of several posencd: a cache of answers in memory, for pictures, reduced maps and tables of megabytes.
# varnishd -a :6081 -f /path/varnish.vcl -s malloc,2g; change the addresses. Every posencd runs with --trusted-proxy and Varnish's address.
# Small answers posencd itself gives faster.
vcl 4.1;

import directors;
import std;

# 503 after SIGTERM: no new requests.
probe ready {
    .url = "/readyz";
    .interval = 1s;
    .timeout = 1s;
    .window = 3;
    .threshold = 2;
    .initial = 2;
}

backend posencd1 { .host = "127.0.0.1"; .port = "8081"; .probe = ready; .connect_timeout = 2s; .first_byte_timeout = 300s; .max_connections = 256; }
backend posencd2 { .host = "127.0.0.1"; .port = "8082"; .probe = ready; .connect_timeout = 2s; .first_byte_timeout = 300s; .max_connections = 256; }
backend posencd3 { .host = "127.0.0.1"; .port = "8083"; .probe = ready; .connect_timeout = 2s; .first_byte_timeout = 300s; .max_connections = 256; }

sub vcl_init {
    new all = directors.round_robin();
    all.add_backend(posencd1);
    all.add_backend(posencd2);
    all.add_backend(posencd3);
}

sub vcl_recv {
    set req.backend_hint = all.backend();
    if (req.url == "/metrics") {
        return (synth(403));
    }
    if (req.method != "GET" && req.method != "HEAD") {
        # A small body is kept, so that what got no answer can be asked again; a change never is.
        if (req.url !~ "^/(weights|presets)/" && std.integer(req.http.Content-Length, 0) > 0 && std.integer(req.http.Content-Length, 0) <= 262144) {
            std.cache_req_body(256KB);
        }
        return (pass);
    }
    # Varnish would fetch all bytes up to the range; answers to tokens are not shared.
    if (req.http.Range || req.http.Authorization) {
        return (pass);
    }
    if (req.url ~ "^/encode\?") {
        return (hash);
    }
    return (pass);
}

sub vcl_backend_fetch {
    # Another server each time.
    if (bereq.retries > 0) {
        set bereq.backend = all.backend();
    }
}

sub vcl_backend_response {
    if (beresp.status == 503 && bereq.retries < 2 && bereq.url !~ "^/(weights|presets)/") {
        return (retry);
    }
    # Answers of 100 MB and more are streamed, not kept.
    if (beresp.http.Content-Length ~ "^[0-9]{9,}$") {
        set beresp.uncacheable = true;
    }
    set beresp.grace = 1h;
    return (deliver);
}

sub vcl_backend_error {
    if (bereq.retries < 2 && bereq.url !~ "^/(weights|presets)/") {
        return (retry);
    }
    set beresp.status = 503;
    set beresp.http.Content-Type = "application/problem+json";
    set beresp.http.Retry-After = "1";
    set beresp.body = """{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"no server can take the request now; try again","error":"no server can take the request now; try again"}""";
    return (deliver);
}

sub vcl_synth {
    set resp.http.Content-Type = "application/problem+json";
    set resp.body = """{"type":"about:blank","title":"Forbidden","status":403,"detail":"this path is served inside only","error":"this path is served inside only"}""";
    return (deliver);
}

sub vcl_deliver {
    # What is kept has the names of the request that it was computed for.
    if (obj.hits > 0) {
        unset resp.http.traceparent;
        unset resp.http.X-Request-Id;
        if (req.http.X-Request-Id) {
            set resp.http.X-Request-Id = req.http.X-Request-Id;
        }
    }
    set resp.http.X-Cache = obj.hits > 0;
}
