"""First inputs and dictionaries of the fuzz targets, from what the tests know already.

    python3 tests/fuzz/seeds.py OUT        writes OUT/NAME/… for each target and tests/fuzz/dict/NAME.dict

`make fuzz-corpus` then keeps of them, and of what longer runs have found, what reaches something of its own.
"""
import json
import pathlib
import re
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/http/transport")]
import heads as head_table  # noqa: E402
from truth import gguf_writer  # noqa: E402
HTTP = "{} HTTP/1.1\r\nHost: h\r\n{}\r\n{}"


def golden():
    """Every request with an answer that is known."""
    for path in sorted(ROOT.glob("tests/golden/**/request.json")):
        request = json.loads(path.read_text())
        yield request.get("request", request)


def examples():
    """Schemes' examples, from their descriptors."""
    for path in sorted(ROOT.glob("core/schemes/*/*.c")):
        found = re.search(r'\.example = ((?:\s*"(?:[^"\\]|\\.)*")+)', path.read_text())
        if found:
            text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', found[1]))
            yield text.replace('\\"', '"')


def requests():
    texts = list(examples()) + [json.dumps(g) for g in golden()]
    texts += [json.dumps({"preset": name, "len": 2}) for name in ("llama-3.1", "qwen2-vl", "t5", "gpt2", "swinv2")]
    return [text for text in texts if len(text) < 700]


def configs():
    """The quoted config.json of tests/core/models/test_hf_config.c, whose strings have single quotes."""
    text = (ROOT / "tests/core/models/test_hf_config.c").read_text()
    for found in re.finditer(r'(?:"(?:[^"\\]|\\.)*"[\s\\]*)+', text):
        joined = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', found[0])).replace("'", '"')
        if joined.startswith("{") and '"scheme"' not in joined:
            yield joined
            yield "sliding_attention\n" + joined


def ggufs():
    """Heads of every version and type, whole and cut everywhere."""
    for head in gguf_writer.samples():
        yield head
        yield from (head[:n] for n in range(0, len(head), max(1, len(head) // 24)))

SERVER = ("llama-server -m 'a b.gguf' -c 8192 -ngl -1 --rope-scaling yarn --rope-scale=4 --rope-freq-base 1000000 \\\n"
          "  --yarn-orig-ctx 32768 --jinja --temp -0.5 # a comment\n")


def command_lines():
    """The tool, and a line of its flags: whole, cut everywhere, and with what a shell would not take."""
    lines = {
        "llama.cpp": SERVER,
        "vllm": "vllm serve a/b --hf-overrides '{\"rope_parameters\":{\"rope_type\":\"linear\",\"rope_theta\":5e5,\"factor\":2.0}}' --max-model-len 64",
        "vllm_old": "vllm serve a --rope-scaling '{\"rope_type\":\"yarn\",\"factor\":4.0,\"original_max_position_embeddings\":8}' --rope-theta 1e6",
        "sglang": "--json-model-override-args \"{\\\"rope_parameters\\\":{\\\"rope_type\\\":\\\"default\\\",\\\"rope_theta\\\":1e4}}\" --context-length 9",
        "megatron": "--position-embedding-type rope --rotary-base 10000 --rotary-percent 0.5 --kv-channels 8 --no-rope-fusion --rotary_interleaved",
    }
    for to, line in lines.items():
        yield f"{to}\n{line}"
        yield from (f"{to}\n{line[:n]}" for n in range(0, len(line), max(1, len(line) // 12)))
    for line in ("--rope-scal 2", "--rope-theta 5", "a 'b", 'a "b', "--rope-scale $S", "--rope-scale \"`s`\"", "-- - -1 --=", "--rope-scale 2 | tee",
                 "--rope-scaling none extra", "--rope-scale 2 --rope-scale 2", "--rope-scale"):
        yield f"llama.cpp\n{line}"
    yield "mlx\n--dims 4"
    yield "lama\n--a"


def query_of(text):
    request = json.loads(text)
    flat = {k: v if isinstance(v, str) else json.dumps(v, separators=(",", ":")) for k, v in request.items()}
    return "&".join(f"{k}={v}".replace("%", "%25").replace("+", "%2B").replace(" ", "+") for k, v in flat.items())


def queries():
    yield from (query_of(text) for text in requests() if len(text) < 300)
    yield "request=%7B%22scheme%22:%22rope%22,%22len%22:2%7D&digits=3"
    yield "scheme=rope&len=4&head_dim=8&outputs=cos,sin&slice=0:2,::2&dtype=f16&data=false"
    yield "scheme=alibi&num_heads=2&len=3&format=csv&digits=2"

TYPES = ["application/json", "application/x-npy", "application/zip", "application/vnd.safetensors", "image/png",
         "application/octet-stream", "text/csv", "text/plain", "application/x-ndjson", "*/*", "text/*", "*"]


def accepts():
    yield from TYPES
    yield from (f"{a};q=0.5, {b};q=0.25" for a, b in zip(TYPES, TYPES[1:]))
    yield 'text/html;x="a,b\\"c;q=0";q=1.000, */*;q=.2, , application/json ; q=0'


def ranges():
    for none in ("-", "@", "*", 'W/@, "x"', '"x",@', '"unclosed'):
        for part in ("-", "bytes=0-9", "bytes=-5", "bytes=7-", "bytes=99999-", "bytes=0-1,3-4", "items=0-1"):
            yield f"{none}\n{part}\n{'@' if len(none) > 1 else '-'}\n{none}"


def headers():
    body = '{"scheme":"rope","len":2,"head_dim":4}'
    for kind in ["application/json", "application/json; charset=utf-8", "multipart/form-data; boundary=\"a b\"",
                 "multipart/form-data;boundary=XX", *TYPES[1:6], "-"]:
        yield f"POST\n/encode\n{kind}\n-\nhttps://example.org\n-\n-\n-\n-\n{body}"
    part = '--XX\r\nContent-Disposition: form-data; name="request"\r\n\r\n' + body + "\r\n--XX--\r\n"
    yield "POST\n/encode\nmultipart/form-data;boundary=XX\n-\n-\n-\n-\n-\n-\n" + part
    yield "OPTIONS\n/rotate\n-\n-\nhttps://example.org\nPOST\ncontent-type, x-a\n-\n-\n"
    yield "POST\n/rotate\n-\ngzip\n-\n-\n-\n-\n-\n{}"
    for path in ("/", "/v2/models/rope/infer", "/schemes/rope", "/presets/t5", "/openapi.json", "/weights", "/v2"):
        yield f"GET\n{path}\n-\n-\n-\n-\n-\n3\n-\n"


def heads():
    for _, raw, _ in head_table.rows():
        line, _, fields = raw.decode("latin1").partition("\r\n\r\n")[0].partition("\r\n")
        if len(raw) < 400 and " " in line:
            yield line.partition(" ")[2] + "\n" + fields.replace("\r\n", "\n")
    yield "/encode?len=4 HTTP/1.1\nHost: localhost:8080\nContent-Length: 12\nX-Request-Id: a.b-c"
    yield "/a%20b%2f HTTP/1.0\nTransfer-Encoding: chunked"
    yield "http://h/x?y HTTP/1.1\nHost: [::1]:80\nTransfer-Encoding: Chunked\nContent-Length: 3"
    yield "* HTTP/1.1\nHost:\nHost: b\nContent-Length: 00\nContent-Length: 0"
    for time in ("2.5", "0", "1000000.0000001", "00000001", "1.", ".5", "1e3", "0.0000009"):
        yield f"/ HTTP/1.1\nHost: h\nX-Request-Timeout: {time}"
    yield "/%00%zz HTTP/1.1\nhost: x\ntraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def files():
    yield '{"max_body": "1GiB", "port": 80, "log_format": "json", "host": "::1", "kernels": "base"}'
    yield '{"cors_origin":"https://a.b https://c","weights_dir":null,"max_queue":1e3,"workers":-0}'
    yield '{ "host" : "a\\"b\\\\c\\/\\n\\t" , "x":true}'
    yield '{"port":1,"port":2}'
    yield '{"max_connections":1000000,"drain_delay":0,"header_timeout":86400,"max_work":"1"}\n'


def token_files():
    digest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    yield "alice Vn3kQ8r0YxJ2mB7tLw5z write\n"
    yield f"# who may\r\n\r\nbatch {digest} read requests=100/s streams=4\r\n\ttest test read\r\n"
    yield "a b== write work=0.5/m requests=1/h streams=2\nb a~+/-._ read\n#c d write"
    yield f"a {digest} read\nb test write\n"
    yield "a x read\na y write\n"
    yield "a x read\nb x write\n"
    for line in ("a b", "a b admin", ".a b read", "a =b read", "a b read requests=0/s", "a b read requests=0.5/s",
                 "a b read work=1e3/s", "a b read streams=1.5", "a b read streams=1 streams=1", "a b read work=1/d",
                 "n" * 64 + " t read", "n" * 65 + " t read", "a " + "t" * 512 + " read", "a " + "t" * 513 + " read"):
        yield line + "\n"


def names():
    for name in ("t5-small", "a", "A.b_c-1", ".hidden", "-x", "a b", "x" * 128, "x" * 129, "..", "é", "a\n"):
        yield name + ".safetensors"
        yield name
    yield ".posenc-0123456789abcdef"
    yield ".safetensors"
    yield "a.safetensors.safetensors"

WORDS = ["0", "-0", "1e-400", "1.7976931348623157e308", "9007199254740993", "0.1", "2.2250738585072011e-308",
         "179769313486231580793728971405301e276", "4.9406564584124654e-324", "2.4703282292062327e-324", "1e22", "1e23",
         "123456789012345678901234567890", "0.000000000000000000000000000000000001", "8.5e-45", "16777217", "1E+2"]


def talks():
    body = '{"scheme":"rope","len":2,"head_dim":4}'
    get = HTTP.format("GET /encode?scheme=alibi&num_heads=2&len=2", "Accept: text/csv\r\n", "")
    post = HTTP.format("POST /encode", f"Content-Length: {len(body)}\r\n", body)
    chunks = f"{len(body):x};a=b\r\n{body}\r\n0\r\nT: 1\r\n\r\n"
    yield get + post + get
    yield HTTP.format("POST /encode", "Transfer-Encoding: chunked\r\n", chunks)
    yield HTTP.format("POST /encode", "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", chunks)
    yield HTTP.format("POST /encode", "Transfer-Encoding: gzip, chunked\r\n", chunks)
    yield HTTP.format("POST /encode", "Content-Length: 3\r\nContent-Length: 4\r\n", "abcd")
    yield HTTP.format("POST /encode", "Content-Length : 3\r\n", "abc")
    yield HTTP.format("POST /encode", f"Expect: 100-continue\r\nContent-Length: {len(body)}\r\n", body)
    yield HTTP.format("HEAD /schemes", "", "") + HTTP.format("GET /healthz", "Connection: close\r\n", "") + get
    yield "GET / HTTP/1.0\r\n\r\n"
    yield "GET /version HTTP/1.1\r\n\r\n"
    yield "GET http://h/readyz?x HTTP/1.1\r\nHost: h\r\n\r\n"
    yield "GET /%00 HTTP/1.1\nHost: h\n folded: x\n\n"
    yield "GET / HTTP/2.0\r\nHost: h\r\n\r\n"
    yield HTTP.format("OPTIONS /encode", "Origin: https://example.org\r\nAccess-Control-Request-Method: POST\r\n", "")
    yield HTTP.format("GET /encode?scheme=rope&len=64&head_dim=64&format=raw", "Range: bytes=5-99\r\n", "")
    yield HTTP.format("GET /encode?scheme=rope&len=600&head_dim=8", "If-None-Match: *\r\nAccept: x/y\r\nAccept: */*\r\n", "")
    yield HTTP.format("PUT /weights/w", "Content-Length: 2\r\nIf-Match: *\r\n", "ab")
    yield HTTP.format("POST /v2/models/rope/infer", "Inference-Header-Content-Length: 2\r\nContent-Length: 2\r\n", "{}")


def stores():
    digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    def item(key):
        return f"<Contents><Key>{key}</Key><ETag>&quot;0123&quot;</ETag><Size>3</Size></Contents>"
    def listing(text, more):
        return f'<?xml version="1.0"?><ListBucketResult xmlns="x"><IsTruncated>{more}</IsTruncated>{text}</ListBucketResult>'
    yield listing(item("a/names/t5"), "false")
    yield listing(item("a/names/t5") + item("a/names/b&amp;c") + item("z") + "<NextContinuationToken>k&lt;</NextContinuationToken>", "true")
    yield listing("".join(item(f"a/names/n{i}") for i in range(9)), "true")
    yield "<Error><Code>NoSuchBucket</Code></Error>"
    yield f'{{"sha256":"{digest}","bytes":1104}}'
    yield f"t5 {digest} 1104 0123\nu {digest} 0 \nt5 {digest} 7 4567\n"

SEEDS = {"query": queries, "accept": accepts, "range": ranges, "headers": headers, "head": heads, "config": files, "tokens": token_files,
         "names": names, "plan": requests, "hf_config": configs, "http": talks,
         "store": stores, "gguf": ggufs, "said": command_lines}


def strings_of(*patterns):
    """The short lower-case words in quotes of our own sources: names of fields, schemes, options."""
    words = set()
    for pattern in patterns:
        for path in ROOT.glob(pattern):
            words |= set(re.findall(r'"([a-z][a-z0-9_.-]{1,30})"', path.read_text()))
            words |= {w for group in re.findall(r'"([a-z0-9_.|-]{3,200})"', path.read_text()) for w in group.split("|")}
            words |= set(re.findall(r"(?:PE_P_\w+|OPTION|FORM)\(\w+, (\w+),", path.read_text()))
    return sorted(w for w in words if 1 < len(w) < 40)


def quoted(words):
    return [f'"{w}"' for w in words]

JSON = ["{", "}", "[", "]", ":", ",", "null", "true", "false", "-1", "0.5", "1e9", "\\u0041", "[[1,2],[3,4]]"]
LINES = ["\r\n", "\n", ": ", "; ", ", ", "%00", "%2f", "-", "@", "*", "W/", '"', "bytes=", "bytes=0-0", "q=0.5", ";q=0"]
HEADS = ["Host: h\r\n", "Content-Length: ", "Transfer-Encoding: chunked\r\n", "Expect: 100-continue\r\n", "HTTP/1.0",
         "HTTP/1.1", "Connection: close\r\n", "Range: ", "Accept: ", "If-None-Match: ", "Content-Type: ", "GET ", "POST ",
         "HEAD ", "PUT ", "QUERY ", "OPTIONS ", "0\r\n\r\n", "\r\n\r\n", "X-Request-Id: ", "traceparent: ", "X-Request-Timeout: 2.5"]


def dictionaries():
    plan = quoted(strings_of("core/schemes/*/*.c", "core/sequence/*.c", "core/params*.c", "core/diagnosis/faults/*.c"))
    hf = quoted(strings_of("core/models/hf/*.[ch]"))
    form = strings_of("api/requests/form*.[ch]", "api/formats/*.c")
    yield "json", JSON + plan + quoted(form)
    yield "hf_config", JSON + hf
    flags = strings_of("core/models/targets/*.c")
    yield "said", ["llama.cpp\n", "vllm\n", "vllm_old\n", "sglang\n", "megatron\n", "'", '"', "\\", "\\\n", " -m ", "#", "=", *JSON[:6], *(f"--{w} " for w in flags)]
    yield "query", ["&", "=", "%", "+", ",", "request=", "%5B", "%7B"] + [w.strip('"') + "=" for w in plan] + form
    yield "headers", LINES + TYPES + HEADS + ["/encode", "/rotate", "/attention", "/v2/models/rope/infer", "boundary="]
    yield "config", JSON[:10] + ["\\\"", "\\\\", "\\n", "KiB", "TiB"] + quoted(
        w for w in strings_of("server/process/*option*.c", "server/process/config_file.c", "server/process/options_list.h") if "-" not in w)
    yield "tokens", [" read", " write", " requests=", " work=", " streams=", "/s", "/m", "/h", "sha256:", "#", "\r\n",
                     "\n", "\t", "=", "==", "a b read\n", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"[:58]]
    yield "store", ["<Contents>", "</Contents>", "<Key>", "</Key>", "<ETag>", "</ETag>", "<IsTruncated>true</IsTruncated>", "<Code>", "</Code>",
                    "<ListBucketResult", "<NextContinuationToken>", "</NextContinuationToken>", "a/names/", "&quot;", "&amp;", "&#34;",
                    '{"sha256":"', '","bytes":', "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"[:58], " ", "\n"]
    yield "numbers", WORDS + ["e-", "E+", ".0", "00", "99999999", "[", "]", ",", '"NaN"', '"Infinity"', '"-Infinity"']


def escaped(word):
    return "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\x{b:02x}" for b in word.encode())


def main(out):
    for name, make in SEEDS.items():
        folder = pathlib.Path(out) / name
        folder.mkdir(parents=True, exist_ok=True)
        for i, seed in enumerate(make()):
            (folder / f"seed{i:03}").write_bytes(seed if isinstance(seed, bytes) else seed.encode())
    for name, words in dictionaries():
        lines = "".join(f'"{escaped(word)}"\n' for word in dict.fromkeys(words) if 0 < len(word) < 60)
        (ROOT / "tests/fuzz/dict" / f"{name}.dict").write_text("# Made by tests/fuzz/seeds.py.\n" + lines)

if __name__ == "__main__":
    main(sys.argv[1])
