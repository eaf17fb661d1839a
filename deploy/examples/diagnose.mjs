// A diagnosis in this process: npm install koffi && node diagnose.mjs [LIBRARY], libposenc.so.0 by default
import koffi from 'koffi';

const lib = koffi.load(process.argv[2] ?? 'libposenc.so.0');
const call = lib.func('void *pe_call(str method, str target, str content_type, const void *body, size_t n_body, double max_bytes, double max_work)');
const statusOf = lib.func('int pe_reply_status(const void *reply)');
const read = lib.func('intptr_t pe_reply_read(void *reply, _Out_ uint8_t *dst, size_t n)');
const free = lib.func('void pe_reply_free(void *reply)');

/** The status and the text of an answer. body must not be collected before the reply is freed, so it is named. */
function ask(target, request) {
    const body = Buffer.from(JSON.stringify(request)), pieces = [], piece = Buffer.alloc(65536);
    const reply = call('POST', target, 'application/json', body, body.length, 0, 0);
    if (!reply) throw new Error('no memory');
    for (let n; (n = Number(read(reply, piece, piece.length))) > 0;) pieces.push(Buffer.from(piece.subarray(0, n)));
    const status = statusOf(reply);
    free(reply);
    return { status, text: Buffer.concat(pieces).toString() };
}

// The neighbouring channels are rotated; the layout half pairs channel 0 with 2, and 1 with 3.
const turned = (x, y, angle) => [x * Math.cos(angle) - y * Math.sin(angle), y * Math.cos(angle) + x * Math.sin(angle)];
const { status, text } = ask('/diagnose?format=text', {
    scheme: 'rope', layout: 'half', head_dim: 4, offset: 1, q: [[1, 2, 3, 4]], q_out: [[...turned(1, 2, 1), ...turned(3, 4, 0.01)]],
});
process.stdout.write(text);
process.exitCode = status === 200 ? 0 : 2;
