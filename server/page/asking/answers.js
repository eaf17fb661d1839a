/* What an answer's bytes say: tensors of a raw answer by its header Posenc-Tensors, numbers of a JSON answer as the
 * API wrote them. Pure. Bits are widened here; no number is computed. */

const ITEM = /^([A-Za-z*][\w!#$%&'*+.^`|~:/-]*)/;
const KEY = /^;[ ]*([a-z*][a-z0-9_.*-]*)/;
const VALUE = /^=(?:"((?:[ !#-[\]-~]|\\["\\])*)"|(-?\d{1,15})(?![\d.])|([A-Za-z*][\w!#$%&'*+.^`|~:/-]*)|\?([01]))/;

/* A list of tokens with parameters (RFC 8941): [{ name, dtype, shape, offset }]. */
export function readTensorList(header) {
  let rest = header.replace(/^ +| +$/g, '');
  const tensors = [];
  const take = (pattern, what) => {
    const found = pattern.exec(rest);
    if (!found) throw new SyntaxError(`Posenc-Tensors: ${what} expected at "${rest}"`);
    rest = rest.slice(found[0].length);
    return found;
  };
  while (rest) {
    const name = take(ITEM, 'a name')[1];
    const parameters = {};
    while (rest.startsWith(';')) {
      const key = take(KEY, 'a parameter')[1];
      const [, text, integer, token, bit] = rest.startsWith('=') ? take(VALUE, 'a value') : [];
      parameters[key] = text?.replace(/\\(.)/g, '$1') ?? (integer ? Number(integer) : token ?? bit !== '0');
    }
    tensors.push(tensor(name, parameters));
    if (rest) {
      take(/^[ \t]*,[ \t]*/, 'a comma');
      if (!rest) throw new SyntaxError('Posenc-Tensors: ends with a comma');
    }
  }
  return tensors;
}

function tensor(name, { dtype, shape, offset }) {
  const whole = Number.isSafeInteger(offset) && offset >= 0;
  if (!READERS[dtype] || typeof shape !== 'string' || !/^(\d+(,\d+)*)?$/.test(shape) || !whole) {
    throw new SyntaxError(`Posenc-Tensors: ${name} has dtype ${dtype}, shape ${shape}, offset ${offset}`);
  }
  return { name, dtype, shape: shape ? shape.split(',').map(Number) : [], offset };
}

/* One reader per dtype: bytes of one element, and a view or a wider copy of `count` of them. */
const READERS = {
  f64: [8, (buffer, at, count) => new Float64Array(buffer, at, count)],
  f32: [4, (buffer, at, count) => new Float32Array(buffer, at, count)],
  i64: [8, (buffer, at, count) => new BigInt64Array(buffer, at, count)],
  i32: [4, (buffer, at, count) => new Int32Array(buffer, at, count)],
  bf16: [2, (buffer, at, count) => widen(new Uint16Array(buffer, at, count), (bits) => bits << 16)],
  f16: [2, (buffer, at, count) => widen(new Uint16Array(buffer, at, count), bitsOfHalf)],
  f8_e4m3: [1, (buffer, at, count) => Float32Array.from(new Uint8Array(buffer, at, count), (code) => E4M3[code])],
  f8_e5m2: [1, (buffer, at, count) => widen(new Uint8Array(buffer, at, count), (code) => bitsOfHalf(code << 8))],
};

export const bytesOf = (dtype) => READERS[dtype]?.[0];
export const valuesOf = (dtype, buffer, at, count) => READERS[dtype][1](buffer, at, count);

function widen(halves, bitsOf) {
  const bits = new Uint32Array(halves.length);
  for (let i = 0; i < halves.length; i++) bits[i] = bitsOf(halves[i]);
  return new Float32Array(bits.buffer);
}

/* The bits of an f32 with the value of an f16: sign, exponent with bias 127 instead of 15, fraction. */
function bitsOfHalf(half) {
  const sign = (half & 0x8000) << 16;
  const exponent = (half >> 10) & 31;
  const fraction = half & 1023;
  if (exponent === 31) return sign | 0x7f800000 | fraction << 13;
  if (exponent) return sign | (exponent + 112) << 23 | fraction << 13;
  if (!fraction) return sign;
  const shift = Math.clz32(fraction) - 21;   /* a subnormal half is a normal float */
  return sign | (113 - shift) << 23 | (fraction << shift & 1023) << 13;
}

/* The numbers of e4m3fn: 0x7f and 0xff are NaN, all others finite. (e5m2 is the upper half of an f16.) */
const E4M3 = Float32Array.from({ length: 256 }, (_, code) => {
  const exponent = code >> 3 & 15;
  const size = (exponent ? 8 + (code & 7) : code & 7) * 2 ** (Math.max(exponent, 1) - 10);
  return (code & 127) === 127 ? NaN : code < 128 ? size : -size;
});

/* [{ name, dtype, shape, values }]; a view into the buffer where it stands aligned. */
export function readRaw(buffer, header) {
  return readTensorList(header).map(({ name, dtype, shape, offset }) => {
    const [size, read] = READERS[dtype];
    const count = shape.reduce((product, side) => product * side, 1);
    const end = offset + count * size;
    if (end > buffer.byteLength) throw new RangeError(`${name} ends at byte ${end} of ${buffer.byteLength}`);
    const values = offset % size ? read(buffer.slice(offset, end), 0, count) : read(buffer, offset, count);
    return { name, dtype, shape, values };
  });
}

/* The tensors of a JSON answer, each number as the text that stands there: 1.0 stays "1.0", a 64-bit id keeps all its
 * digits, "Infinity" loses its quotes. { name: { dtype, shape, texts } }, texts flat in row-major order. */
export function readNumbers(json) {
  const quoted = json.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (part) => part[0] === '"' ? part : `"${part}"`);
  const { tensors = {} } = JSON.parse(quoted);
  return Object.fromEntries(Object.entries(tensors).map(([name, { dtype, shape, data }]) => (
    [name, { dtype, shape: shape.map(Number), texts: [data ?? []].flat(Infinity) }])));
}
