"""First inputs and dictionaries of the fuzz targets, from what the tests know already.

    python3 tests/fuzz/seeds.py OUT        writes OUT/NAME/… for each target and tests/fuzz/dict/NAME.dict

`make fuzz-corpus` then keeps of them, and of what longer runs have found, what reaches something of its own.
Requests are those of the rows of tests/cases; what no row has is a line of seeds.jsonl: `cut` says in how many places it is cut off, too.
"""
import collections
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/http/transport")]
import heads as head_table  # noqa: E402
from truth import gguf_writer  # noqa: E402


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def cut(seed, places):
    """The whole, and what is left of it where it is cut off."""
    return [seed, *(seed[:n] for n in range(0, len(seed), max(1, len(seed) // places)))]


def requests():
    """What rows send as JSON, but drawn tensors and lists that only the rows' reader can make."""
    for path in sorted(ROOT.glob("tests/cases/*.jsonl")):
        texts = [json.dumps(row["request"]) for row in lines(path) if isinstance(row.get("request"), dict)]
        yield from (text for text in texts if '{"$' not in text and len(text) < 700)


def query_of(text):
    request = json.loads(text)
    flat = {k: v if isinstance(v, str) else json.dumps(v, separators=(",", ":")) for k, v in request.items()}
    return "&".join(f"{k}={v}".replace("%", "%25").replace("+", "%2B").replace(" ", "+") for k, v in flat.items())


def heads():
    for _, raw, _ in head_table.rows():
        line, _, fields = raw.decode("latin1").partition("\r\n\r\n")[0].partition("\r\n")
        if len(raw) < 400 and " " in line:
            yield line.partition(" ")[2] + "\n" + fields.replace("\r\n", "\n")


def seeds():
    """{target: its first inputs}"""
    found = collections.defaultdict(list)
    for row in lines(HERE / "seeds.jsonl"):
        found[row["target"]] += cut(row["seed"], row["cut"]) if "cut" in row else [row["seed"]]
    found["plan"] += requests()
    found["query"] += [query_of(text) for text in found["plan"] if len(text) < 300]
    files = [json.dumps(request["hf_config"]) for request in map(json.loads, found["plan"]) if "hf_config" in request]
    found["hf_config"] += [before + text for text in files for before in ("", "sliding_attention\n")]
    found["head"] += heads()
    found["gguf"] += [part for head in gguf_writer.samples() for part in cut(head, 24)]
    return found

TYPES = ["application/json", "application/x-npy", "application/zip", "application/vnd.safetensors", "image/png",
         "application/octet-stream", "text/csv", "text/plain", "application/x-ndjson", "*/*", "text/*", "*"]
WORDS = ["0", "-0", "1e-400", "1.7976931348623157e308", "9007199254740993", "0.1", "2.2250738585072011e-308",
         "179769313486231580793728971405301e276", "4.9406564584124654e-324", "2.4703282292062327e-324", "1e22", "1e23",
         "123456789012345678901234567890", "0.000000000000000000000000000000000001", "8.5e-45", "16777217", "1E+2"]


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
    flags = strings_of("core/tools/tools/*.c")
    yield "said", ["llama.cpp\n", "vllm\n", "vllm_old\n", "sglang\n", "megatron\n", "'", '"', "\\", "\\\n", " -m ", "#", "=", *JSON[:6], *(f"--{w} " for w in flags)]
    yield "pasted", ["llama_model_loader: - kv   0: ", "print_info: ", " str = ", " f32 = ", " arr[i32,4] = [", "...", " | 1 | ", "UINT32", "FROM ", "PARAMETER num_ctx ",
                     "vllm serve ", "llama-server -m ", "MODEL_ARGS=(", "A=", "+=(", "${A[@]}", "${A:-", "LLM(", "llama_context: ", "\\\n", "$X", "rope_theta: ", "&a ", "*a", "- ", *JSON[:6], *(f"--{w} " for w in flags)]
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
    for name, made in seeds().items():
        folder = pathlib.Path(out) / name
        folder.mkdir(parents=True, exist_ok=True)
        for i, seed in enumerate(made):
            (folder / f"seed{i:04}").write_bytes(seed if isinstance(seed, bytes) else seed.encode())
    for name, words in dictionaries():
        lines = "".join(f'"{escaped(word)}"\n' for word in dict.fromkeys(words) if 0 < len(word) < 60)
        (ROOT / "tests/fuzz/dict" / f"{name}.dict").write_text("# Made by tests/fuzz/seeds.py.\n" + lines)

if __name__ == "__main__":
    main(sys.argv[1])
