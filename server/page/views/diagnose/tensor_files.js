/* Files of tensors: what a .npy, .npz or .safetensors holds, and tensors under other names as one file. Pure.
 *
 *   readTensors(buffer) → [{ name, dtype, shape, buffer, values }]
 *
 * Row-major; name is null in a .npy; throws what it cannot read. Complex numbers have a last axis of 2, and isComplex.
 * An entry of a .npz that was compressed has isCompressed: the server takes none. */
import { bytesOf, valuesOf } from '../../asking/answers.js';

const KINDS = { f2: 'f16', f4: 'f32', f8: 'f64', i4: 'i32', i8: 'i64', c8: 'c64', c16: 'c128' };
const PARTS = { c64: 'f32', c128: 'f64' };
const UNITS = { 2: Uint16Array, 4: Uint32Array, 8: BigUint64Array };

const textOf = (buffer, from, length) => new TextDecoder().decode(new Uint8Array(buffer, from, length));
const countOf = (shape) => shape.reduce((all, side) => all * side, 1);

export async function readTensors(buffer) {
  const start = textOf(buffer, 0, Math.min(6, buffer.byteLength));
  if (start.endsWith('NUMPY')) return [fromNpy(null, buffer)];
  return start.startsWith('PK') ? fromNpz(buffer) : fromSafetensors(buffer);
}

function tensor(name, dtype, shape, buffer) {
  if (PARTS[dtype]) return { ...tensor(name, PARTS[dtype], [...shape, 2], buffer), isComplex: true };
  const bytes = bytesOf(dtype) * countOf(shape);
  if (!(bytes <= buffer.byteLength)) throw new RangeError(`${name}: ${dtype} ${shape}`);
  const whole = buffer.slice(0, bytes);
  return { name, dtype, shape, buffer: whole, values: valuesOf(dtype, whole, 0, countOf(shape)) };
}

function fromNpy(name, buffer) {
  const view = new DataView(buffer);
  const [length, at] = view.getUint8(6) > 1 ? [view.getUint32(8, true), 12] : [view.getUint16(8, true), 10];
  const head = textOf(buffer, at, length);
  const [, kind] = /'descr': '[<=](\w\d+)'/.exec(head) ?? [];
  const shape = /'shape': \(([^)]*)\)/.exec(head)[1].split(',').filter((side) => side.trim()).map(Number);
  const data = buffer.slice(at + length);
  return tensor(name, KINDS[kind], shape,
    /'fortran_order': True/.test(head) ? inRows(data, UNITS[kind?.slice(1)], shape) : data);
}

/* The first index runs fastest in the file, the last one here. */
function inRows(buffer, Unit, shape) {
  const from = new Unit(buffer, 0, countOf(shape));
  const to = new Unit(from.length);
  const index = shape.map(() => 0);
  const steps = shape.map((_, axis) => countOf(shape.slice(0, axis)));
  for (let i = 0; i < to.length; i++) {
    to[i] = from[steps.reduce((at, step, axis) => at + step * index[axis], 0)];
    for (let axis = shape.length - 1; axis >= 0 && (index[axis] += 1) === shape[axis]; axis--) index[axis] = 0;
  }
  return to.buffer;
}

/* By the directory at the end: an entry that was streamed has no sizes before its data. */
async function fromNpz(buffer) {
  const view = new DataView(buffer);
  let end = buffer.byteLength - 22;
  while (view.getUint32(end, true) !== 0x06054b50) end -= 1;
  const found = [];
  for (let i = 0, at = view.getUint32(end + 16, true); i < view.getUint16(end + 10, true); i++) {
    const [name, extra, comment] = [28, 30, 32].map((field) => view.getUint16(at + field, true));
    const local = view.getUint32(at + 42, true);
    const data = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    const part = buffer.slice(data, data + view.getUint32(at + 20, true));
    const isCompressed = view.getUint16(at + 10, true) > 0;
    found.push({
      ...fromNpy(textOf(buffer, at + 46, name).replace(/\.npy$/, ''), isCompressed ? await inflated(part) : part),
      isCompressed,
    });
    at += 46 + name + extra + comment;
  }
  return found;
}

const inflated = (part) =>
  new Response(new Blob([part]).stream().pipeThrough(new DecompressionStream('deflate-raw'))).arrayBuffer();

function fromSafetensors(buffer) {
  const start = 8 + Number(new DataView(buffer).getBigUint64(0, true));
  const { __metadata__, ...rows } = JSON.parse(textOf(buffer, 8, start - 8));
  return Object.entries(rows).map(([name, { dtype, shape, data_offsets: [from, to] }]) => tensor(
    name, dtype.toLowerCase(), shape, buffer.slice(start + from, start + to)
  ));
}

/* Tensors and the request about them as one safetensors file. */
export function pack(tensors, request) {
  let end = 0;
  const rows = tensors.map(({ name, dtype, shape, buffer }) => [
    name, { dtype: dtype.toUpperCase(), shape, data_offsets: [end, end += buffer.byteLength] },
  ]);
  const head = new TextEncoder()
    .encode(JSON.stringify({ __metadata__: { request: JSON.stringify(request) }, ...Object.fromEntries(rows) }));
  const length = new DataView(new ArrayBuffer(8));
  length.setBigUint64(0, BigInt(head.length), true);
  return new Blob([length, head, ...tensors.map(({ buffer }) => buffer)]);
}
