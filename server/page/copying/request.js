/* A picture's request as text to copy: curl, Python, JSON. Pure. Each gives the whole output in front, not the
 * window. */

const HEREDOC_BYTES = 2 ** 16;   /* Linux takes at most 128 KiB as one argument */

/* ---- quoting ---- */

/* One word for a POSIX shell, whatever stands in it; shell() leaves a plain word as it is. */
export const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
export const shell = (text) => /^[\w%+,./:=@-]+$/.test(text) ? text : quoted(text);

/* JSON and Python agree on strings and numbers, not on three names. */
export function python(value, indent = '') {
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value !== 'object') return JSON.stringify(value);
  const inner = `${indent}    `;
  const parts = Array.isArray(value) ? value.map((one) => python(one, inner))
    : Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${python(one, inner)}`);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  return laid(parts, open, close, indent);
}

/* The same layout for JSON: what is short stays on one line. */
export function json(value, indent = '') {
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const inner = `${indent}  `;
  const parts = Array.isArray(value) ? value.map((one) => json(one, inner))
    : Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${json(one, inner)}`);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  return laid(parts, open, close, indent, '  ', '');
}

/* JSON on one line, with spaces at which a narrow panel may break it. */
export function line(value) {
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(line).join(', ')}]`;
  return `{${Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${line(one)}`).join(', ')}}`;
}

function laid(parts, open, close, indent, step = '    ', last = ',') {
  const whole = `${open}${parts.join(', ')}${close}`;
  const short = whole.length <= 60 && !whole.includes('\n');
  if (!parts.length || (short && (open === '[' || indent))) return whole;
  const inner = `${indent}${step}`;
  return `${open}\n${inner}${parts.join(`,\n${inner}`)}${last}\n${indent}${close}`;
}

/* ---- the request of one file ---- */

/* Dtypes that NumPy has not: such an output is saved as safetensors, and Python widens its bits. */
export const widened = (body, dtype) => WIDENED[dtype ?? body.dtype];

/* Some answers are no tensors: their file is JSON. `plain` of a request names what Python prints of it. */
const isPlain = ({ outputs }, { plain }) => plain || outputs?.length === 0;

/* The body that answers exactly one tensor as a file. */
export function fileBody(body, about) {
  const { output, dtype, plain } = about;
  if (plain) return body;
  const outputs = body.outputs ?? (output ? [output] : undefined);
  const format = isPlain(body, about) ? 'json' : widened(body, dtype) ? 'safetensors' : 'npy';
  return outputs ? { ...body, outputs, format } : { ...body, format };
}

/* rope-cos.npy */
export function fileName(body, { output, scheme }, ending = fileBody(body, {}).format) {
  const parts = [scheme ?? body.scheme ?? body.preset ?? 'posenc',
    body.outputs?.length === 1 ? body.outputs[0] : output];
  const stem = parts.filter(Boolean).join('-').replace(/[^A-Za-z0-9._]+/g, '-').replace(/^[-.]+/, '');
  return `${stem || 'posenc'}.${ending}`;
}

/* ---- texts ---- */

/* { curl, python, json } of a view's request { path, body }. about: origin, token (true: one is needed), output and its
 * dtype and scheme where known, minus: the request that a difference subtracts. A request whose answer is no tensor
 * brings { curl(about), python(about) } as `texts`. */
export function texts(request, about) {
  const { curl, python: own } = request.texts ?? {};
  if (curl) return { curl: curl(about), python: own(about), json: json(request.body) };
  return { curl: curlText(request, about), python: pythonText(request, about), json: json(request.body) };
}

function curlText({ path, body }, about) {
  const file = fileBody(body, about);
  const data = line(file);
  const long = data.length > HEREDOC_BYTES;
  const lines = [
    `curl -f ${shell(about.origin + path)}`,
    about.token && '-H "Authorization: Bearer $TOKEN"',
    long ? '--data-binary @-' : `-d ${shell(data)}`,
    `-o ${shell(fileName(body, about, file.format ?? 'json'))}`,
  ].filter(Boolean);
  const call = lines.join(' \\\n  ');
  return long ? `${call} <<'REQUEST'\n${data}\nREQUEST` : call;
}

function pythonText(request, about) {
  const { minus } = about;
  const asked = ({ body }) => `ask(${python(pythonBody(body, about))})`;
  const parts = [imports(about), askFunction(request, about)];
  if (minus) {
    parts.push(`a = ${asked(minus)}`, `b = ${asked(request)}`, 'x = b - a');
  } else {
    parts.push(`x = ${asked(request)}`);
  }
  const shown = isPlain(request.body, about) ? `x["${about.plain ?? 'results'}"]` : 'x.dtype, x.shape';
  return `${parts.join('\n')}\nprint(${shown})`;
}

/* A difference is one of f64 windows on the page, so here too. */
function pythonBody(body, about) {
  const wide = about.minus ? { ...body, dtype: 'f64' } : body;
  const file = fileBody(wide, about.minus ? { ...about, dtype: 'f64' } : about);
  return file.format === 'safetensors' ? { ...file, format: 'raw' } : file;
}

function imports({ token }) {
  const modules = ['io', 'json', token && 'os', 'urllib.error', 'urllib.request'].filter(Boolean);
  return `${modules.map((one) => `import ${one}`).join('\n')}\n\nimport numpy as np\n`;
}

function askFunction({ path, body }, about) {
  const widen = !about.minus && widened(body, about.dtype);
  const headers = ['"Content-Type": "application/json"',
    about.token && '"Authorization": "Bearer " + os.environ["TOKEN"]'];
  return [
    '',
    'def ask(request):',
    `    headers = {${headers.filter(Boolean).join(', ')}}`,
    `    call = urllib.request.Request(${JSON.stringify(about.origin + path)}, json.dumps(request).encode(), headers)`,
    '    try:',
    '        with urllib.request.urlopen(call) as answer:',
    ...widen
      ? widen
      : [`            return ${isPlain(body, about) ? 'json.load(answer)' : 'np.load(io.BytesIO(answer.read()))'}`],
    '    except urllib.error.HTTPError as error:',
    '        raise SystemExit(error.read().decode())',
    '',
    '',
  ].join('\n');
}

const ofBits = (value, ...lines) => [
  '            shape = answer.headers["Posenc-Tensors"].split(\'shape="\')[1].split(\'"\')[0]',
  ...lines.map((one) => `            ${one}`),
  `            return ${value}.reshape([int(n) for n in shape.split(",")])`,
];
const WIDENED = {
  bf16: ofBits('bits.view("<f4")',
    'bits = np.frombuffer(answer.read(), "<u2").astype("<u4") << 16  # bf16: the upper half of an f32'),
  f8_e5m2: ofBits('bits.view("<f2").astype("f4")',
    'bits = np.frombuffer(answer.read(), "u1").astype("<u2") << 8  # e5m2: the upper half of an f16'),
  f8_e4m3: ofBits('table[np.frombuffer(answer.read(), "u1")]',
    'code = np.arange(128)  # e4m3fn: a sign, 4 bits of exponent, 3 of fraction; the last code is NaN',
    'table = np.ldexp(np.where(code < 8, code, 8 + code % 8), np.maximum(code >> 3, 1) - 10).astype("f4")',
    'table[127] = np.nan',
    'table = np.concatenate([table, -table])'),
};

/* ---- the size of a download ---- */

const BYTES = { f64: 8, f32: 4, i64: 8, i32: 4, f16: 2, bf16: 2, f8_e4m3: 1, f8_e5m2: 1 };

export function bytesOf({ dtype, shape }) {
  return shape.reduce((product, side) => product * side, BYTES[dtype] ?? 4);
}
