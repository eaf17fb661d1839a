# Varnish in front of several posencd: a cache of answers in memory, for pictures, reduced maps and tables of megabytes.
# varnishd -a :6081 -f /path/varnish.vcl -s malloc,2g; change the addresses. Every posencd runs with --trusted-proxy and Varnish's address.
# The client's Host is passed on: a posencd on a loopback address without --token-file needs --allowed-host with the names that clients use.
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
    # posencd decodes the path and ignores this query, so each letter may also be an escape (VCL has no decoder).
    if (req.url ~ "^(?i:https?://[^/?]*)?/(m|%6[dD])(e|%65)(t|%74)(r|%72)(i|%69)(c|%63)(s|%73)([?]|$)") {
        return (synth(403));
    }
    # posencd ignores a Range beside another method than GET, or that is not one range of bytes with its ends in order, as HTTP allows.
    # Varnish would refuse its answer, or cut the range out of it.
    if (req.method != "GET" || req.http.Range !~ "^bytes=([0-9]{1,15}-[0-9]{0,15}|-0*[1-9][0-9]{0,14})$"
        || std.integer(regsub(req.http.Range, "^bytes=([0-9]*)-.*", "\1"), 0) > std.integer(regsub(req.http.Range, ".*-", ""), 999999999999999)) {
        unset req.http.Range;
    }
    if (req.method != "GET" && req.method != "HEAD") {
        # A small body is stored, so that a request without an answer can be sent again; a change never is.
        if (req.method ~ "^(POST|QUERY)$" && std.integer(req.http.Content-Length, 0) > 0 && std.integer(req.http.Content-Length, 0) <= 262144) {
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
    if (beresp.status == 503 && bereq.retries < 2 && bereq.method ~ "^(GET|HEAD|POST|QUERY)$") {
        return (retry);
    }
    # Answers of 100 MB and more are streamed, not stored; nor is any but a 200 whose Cache-Control gives it an age.
    if (beresp.http.Content-Length ~ "^[0-9]{9,}$" || beresp.status != 200 || beresp.http.Cache-Control !~ "(?i)max-?age *=") {
        set beresp.uncacheable = true;
        return (deliver);
    }
    set beresp.grace = 1h;
    # No return: the built-in rules follow, which store nothing with Set-Cookie, Vary: *, or Cache-Control: private, no-cache or no-store.
}

sub vcl_backend_error {
    if (bereq.retries < 2 && bereq.method ~ "^(GET|HEAD|POST|QUERY)$") {
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
