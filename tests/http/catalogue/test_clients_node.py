"""posenc.js in node, against the service and against servers that break off; and both libraries over TLS with a token."""
import contextlib
import json
import shutil
import ssl
import subprocess

import numpy as np
import pytest

from handed_out import CHUNKED, LYING, NODE, Rough, Stalled, bare, folder, without_length, lying_heads  # noqa: F401
from truth import gguf_writer as gguf
from token_files import LINES, READER, token_server

RAW = [b"Content-Type: application/octet-stream", b'Posenc-Tensors: cos;dtype="f32";shape="2,2";offset=0']
NONE = {  # what encode() of posenc.js may be given in place of an answer
    "a login page": bare(200, b"<html>", b"Content-Type: text/html"),
    "header dropped": bare(200, bytes(16), RAW[0]),
    "header empty": bare(200, bytes(16), RAW[0], b"Posenc-Tensors: "),
    "204": b"HTTP/1.1 204 X\r\nConnection: close\r\n\r\n",
    "206": bare(206, bytes(16), *RAW, b"Content-Range: bytes 0-15/99"),
    "202": bare(202, bytes(16), *RAW),
    "cut": bare(200, bytes(8), *RAW, length=16),
    "cut, no length": without_length(bytes(8), *RAW),
    "chunked, cut": CHUNKED.replace(b"\r\n\r\n", b"\r\n" + b"\r\n".join(RAW) + b"\r\n\r\n") + b"10\r\nabc",
    "stalled": Stalled(bare(200, bytes(8), *RAW, length=16)),
    "silent": Stalled(b""),
    "waits for months": bare(503, b"{}", b"Retry-After: 3000000"),
}
RUN_NONE = """
import Posenc from './posenc.mjs';
for (const [name, url] of Object.entries(JSON.parse(process.argv[2]))) {
  const posenc = new Posenc(url, { timeout: name === 'waits for months' ? 20 : 1, retries: 3 });   // counted: not cut off on a busy machine
  for (const ask of [() => posenc.encode({ scheme: 'rope', len: 2 }), () => posenc.schemes(), () => posenc.rotate({ scheme: 'rope', q: Float32Array.of(1, 2) })]) {
    if (name === 'silent' && String(ask).includes('rotate')) continue;   // the clock of an upload runs from its answer's first byte
    await ask().then((value) => console.log(`${name}: ${JSON.stringify(value)}`), (error) => ['Refusal', 'Away'].includes(error.name) || console.log(`${name}: ${error}`));
  }
}
const posenc = new Posenc(process.argv[3]);
const stop = new AbortController();
setTimeout(() => stop.abort(), 200);
await posenc.encode({ scheme: 'rope' }, { signal: stop.signal }).then(console.log, (error) => console.log(error.name));
process.exit();
"""
RUN_REST = """
import Posenc from './posenc.mjs';
await new Posenc(process.argv[2]).encode({ scheme: 'rope', len: 2 }).catch((error) => console.log(error.name, error.message));
"""


@pytest.mark.skipif(not NODE, reason="node is not installed")
def test_the_module_takes_nothing_else_for_an_answer(folder):
    with contextlib.ExitStack() as stack:
        all = {name: stack.enter_context(Rough(answer)) for name, answer in NONE.items()}
        busy = stack.enter_context(Rough(bare(503, b"{}", b"Retry-After: 50")))
        (folder / "none.mjs").write_text(RUN_NONE)
        done = subprocess.run([NODE, "none.mjs", json.dumps({name: rough.url for name, rough in all.items()}), busy.url], cwd=folder, env={}, capture_output=True, text=True, timeout=40)
        assert (done.returncode, done.stdout) == (0, "AbortError\n"), done.stderr
        assert all["waits for months"].asked == 3 and busy.asked == 1


@pytest.mark.skipif(not NODE, reason="node is not installed")
def test_the_module_does_not_wait_long_for_the_rest_of_a_small_answer(folder):
    """Without a timeout of the caller's: the service sends an answer of this size at once."""
    with Rough(NONE["stalled"]) as rough:
        (folder / "rest.mjs").write_text(RUN_REST)
        done = subprocess.run([NODE, "rest.mjs", rough.url], cwd=folder, env={}, capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stdout) == (0, f"Away {rough.url} gives no whole answer: no byte for 4 s\n"), done.stderr


RUN_AWAY = """
import Posenc from './posenc.mjs';
for (const url of process.argv.slice(2)) await new Posenc(url).schemes().then(() => console.log('answer'), (error) => console.log(`${error.name} ${error.message}`));
"""


@pytest.mark.skipif(not NODE, reason="node is not installed")
def test_the_module_says_which_address_gives_no_answer_and_why(folder, server):
    with Rough(bare(502, b"<html>")) as proxy, Rough(b"HTTP/1.1 302 X\r\nLocation: /schemes\r\nContent-Length: 0\r\nConnection: close\r\n\r\n") as loop, Rough(b"") as gone:
        gone.shutdown()
        gone.server_close()
        (folder / "away.mjs").write_text(RUN_AWAY)
        urls = [f"{server.host}:{server.port}", f"{server.host}:{server.port}/", proxy.url, loop.url, gone.url, "ftp://example.org", "http://127.0.0.1:99999"]
        done = subprocess.run([NODE, "away.mjs", *urls], cwd=folder, env={}, capture_output=True, text=True, timeout=60)
    lines = done.stdout.splitlines()
    assert lines[:2] == ["answer", "answer"] and len(lines) == 7, (done.stdout, done.stderr)
    for url, line, reason in zip(urls[2:], lines[2:], ("HTTP status 502", "redirect", "ECONNREFUSED", "unknown scheme", "URL")):
        assert line.startswith(f"Away {url} gives no whole answer: ") and reason in line, line


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    files = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", str(files / "key"), "-out", str(files / "crt")], check=True, capture_output=True)
    with token_server(LINES, "--tls-cert", str(files / "crt"), "--tls-key", str(files / "key")) as server:
        server.certificate, server.url = files / "crt", f"https://{server.host}:{server.port}"
        yield server


def test_python_over_tls_with_a_token(posenc, secure):
    context = ssl.create_default_context(cafile=str(secure.certificate))
    client = posenc.Client(secure.url, READER, context=context)
    assert client.encode(scheme="rope", len=5, head_dim=4).sin[4, 0] == np.float32(np.sin(4.0))
    with pytest.raises(posenc.Refused) as caught:
        posenc.Client(secure.url, context=context, retries=0).schemes()
    assert caught.value.status == 401
    with pytest.raises(posenc.Refused, match="certificate"):
        posenc.Client(secure.url, READER, retries=0).schemes()


SCRIPT = """
import assert from 'node:assert/strict';
import Posenc, { Refusal, version } from './posenc.mjs';
const [url, token] = process.argv.slice(2);
const posenc = new Posenc(url, { token });
assert.match(version, /^\\d/);
const { cos, sin } = await posenc.encode({ scheme: 'rope', len: 3, head_dim: 4 });
assert.deepEqual([cos.dtype, cos.shape, sin.data[2]], ['f32', [3, 2], Math.fround(Math.sin(1))]);
const { positions } = await posenc.encode({ preset: 'qwen2.5-vl', segments: [{ type: 'text', len: 2 }], outputs: ['positions'] });
assert.deepEqual([...positions.data].map(Number), [0, 1, 0, 1, 0, 1]);
const q = { shape: [1, 1, 2, 4], data: Float64Array.from([1, 2, 3, 4, 5, 6, 7, 8]) };
const turned = await posenc.rotate({ scheme: 'rope', layout: 'interleaved', q });
assert.deepEqual([turned.q.dtype, turned.q.shape], ['f64', [1, 1, 2, 4]]);
assert.ok(Math.abs(turned.q.data[4] - (5 * Math.cos(1) - 6 * Math.sin(1))) < 1e-14);
assert.ok((await posenc.check({ scheme: 'rope', layout: 'interleaved', q, q_out: turned.q })).explained);
const pairs = { scheme: 'rope', head_dim: 4, cos, sin };
assert.match(String(await posenc.check(pairs)), /layout_swapped/);
assert.doesNotMatch(String(await posenc.check({ scheme: 'rope', layout: 'interleaved', q, q_out: turned.q })), /would not show/);
const angles = { shape: [3, 2], data: Float32Array.from([0, 0, 1, 0.01, 2, 0.02]) };
const freqs_cis = { shape: [3, 2, 2], data: Float32Array.from([...cos.data].flatMap((c, i) => [c, sin.data[i]])) };
const cos_sin = { shape: [3, 4], data: Float32Array.from([0, 1, 2].flatMap((row) => [cos, sin].flatMap(({ data }) => [...data.slice(2 * row, 2 * row + 2)]))) };
const matrix = { shape: [3, 2, 2, 2], data: Float32Array.from([...cos.data].flatMap((c, i) => [c, -sin.data[i], sin.data[i], c])) };
for (const held of [{ inv_freq: Float32Array.of(1, 0.01) }, { rope_freqs: Float32Array.of(1, 1) }, { angles }, { freqs: angles }, { freqs_cis }, { cos_sin }, { matrix }, { k: q, k_out: turned.q, layout: 'interleaved' }]) {
  assert.ok((await posenc.check({ scheme: 'rope', head_dim: 4, ...held })).explained, Object.keys(held)[0]);
}
await assert.rejects(posenc.check({ scheme: 'rope', layout: 'half', q, q_out: turned.q }), (error) => error.name === 'Mismatch' && /interleaved/.test(error.message));
await assert.rejects(posenc.encode({ scheme: 'rop' }), (error) => error instanceof Refusal && error.status === 422 && error.problem.pointer === '/scheme');
assert.equal((await posenc.schemes('rope')).name, 'rope');
assert.deepEqual([...(await posenc.picture({ scheme: 'rope', len: 8 })).slice(1, 4)], [80, 78, 71]);
assert.equal((await posenc.analyze({ configs: [{ scheme: 'rope', len: 8 }], metrics: ['wavelengths'] })).results.length, 1);
const translation = await posenc.translate({ preset: 'llama-3.1' }, ['vllm', 'mlx']);
assert.deepEqual(translation.targets.map(({ to, exact }) => [to, exact]), [['vllm', true], ['mlx', true]]);
assert.match(String(translation), /^vllm: exact\\n    --hf-overrides '/);
assert.equal((await posenc.explain({ preset: 'llama-3.1' })).dialect, 'preset');
const derivation = await posenc.derive({ preset: 'llama-3.1', position: 8192, pair: 29 });
assert.equal(derivation.number.bits, '0x3ee7c7f3');
assert.match(String(derivation), /^cos\\[8192,29\\] = 0.45269737  0x3ee7c7f3\\nw  0.0026160992529250352744  base/);
let told = 0;
await posenc.encode({ scheme: 'rope', len: 5000 }, { onProgress: (received) => { told = received; } });
assert.equal(told, 5000 * 32 * 8);
if (token) await assert.rejects(new Posenc(url).schemes(), (error) => error.status === 401);
console.log('all fine');
"""


@pytest.mark.skipif(not NODE, reason="node is not installed")
@pytest.mark.parametrize("kind", ["plain", "worker", "secure"])
def test_the_module_in_node(folder, kind, request):
    (folder / "use.mjs").write_text(SCRIPT)
    (folder / "worker.mjs").write_text("import { Worker } from 'node:worker_threads'; new Worker('./use.mjs', { argv: process.argv.slice(2) });")
    server = request.getfixturevalue("secure" if kind == "secure" else "server")
    arguments = [server.url, READER] if kind == "secure" else [f"http://{server.host}:{server.port}", ""]
    env = {"NODE_EXTRA_CA_CERTS": str(server.certificate)} if kind == "secure" else {}
    done = subprocess.run([NODE, "worker.mjs" if kind == "worker" else "use.mjs", *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "all fine\n"), done.stderr


GGUF_SCRIPT = """
import { readFileSync } from 'node:fs';
import { readGguf } from './posenc.mjs';
const read = async (path) => readGguf(new Blob([readFileSync(path)])).catch((error) => error.message);
console.log(JSON.stringify(await Promise.all(process.argv.slice(2).map(read))));
"""


@pytest.mark.skipif(not NODE, reason="node is not installed")
def test_the_module_reads_a_gguf_file_as_the_other_client_does(folder, posenc, tmp_path):
    (folder / "read_gguf.mjs").write_text(GGUF_SCRIPT)
    large = gguf.head(gguf.ARCHITECTURES["llama"][0] + [("tokenizer.ggml.merges", "string[]", ["a" * 50] * 60000)], gguf.FREQS)
    files, lying = [*(gguf.file(name) for name in gguf.ARCHITECTURES), *gguf.samples(), gguf.file("llama")[:-40], large], []
    for i, file in enumerate([*lying_heads(), *LYING]):
        (tmp_path / f"lie{i}.gguf").write_bytes(file)
        try:
            posenc.read_gguf(tmp_path / f"lie{i}.gguf")
            files.append(file)
        except ValueError:
            lying.append(file)
    assert len(files) > 50 and len(lying) > 100
    bad = [b"", b"GGML" + bytes(40), gguf.file("llama")[:300], gguf.head([("general.architecture", "string", "llama")], version=1)]
    paths = [tmp_path / f"{i}.gguf" for i in range(len(files) + len(bad) + len(lying))]
    for path, file in zip(paths, [*files, *bad, *lying]):
        path.write_bytes(file)
    done = subprocess.run([NODE, "read_gguf.mjs", *map(str, paths)], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout, parse_int=float)  # JavaScript has no others
    assert found[: len(files)] == [posenc.read_gguf(path) for path in paths[: len(files)]]
    for message, words in zip(found[len(files) :], ["begin with GGUF", "begin with GGUF", "ends at byte 300", "version 1"]):
        assert words in message
    assert all(isinstance(message, str) and "no GGUF file that can be read" in message for message in found[len(files) :])


@pytest.mark.skipif(not NODE, reason="node is not installed")
def test_the_module_asks_again(folder):
    with Rough(bare(503, b"{}", b"Retry-After: 1"), bare(200, b'{"schemes":[]}', b"Content-Type: application/json")) as rough:
        code = f"import Posenc from './posenc.mjs'; console.log(JSON.stringify(await new Posenc('{rough.url}/').schemes()));"
        done = subprocess.run([NODE, "--input-type=module", "-e", code], cwd=folder, env={}, capture_output=True, text=True, timeout=30)
        assert (done.stdout, rough.asked) == ('{"schemes":[]}\n', 2), done.stderr
