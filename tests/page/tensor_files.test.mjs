/* Files of tensors against bytes written here by their formats' own rules. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import zlib from 'node:zlib';
import { pack, readTensors } from '../../server/page/views/diagnose/tensor_files.js';

const bufferOf = (bytes) => new Uint8Array(bytes).buffer;

function npy(descr, shape, data, fortran = false) {
  const head = `{'descr': '${descr}', 'fortran_order': ${fortran ? 'True' : 'False'}, 'shape': (${shape.join(', ')}${shape.length === 1 ? ',' : ''}), }`.padEnd(117) + '\n';
  return Buffer.concat([Buffer.from([0x93, ...Buffer.from('NUMPY'), 1, 0, 118, 0]), Buffer.from(head), Buffer.from(data.buffer)]);
}

/* Sizes stand in the directory only, as in a file that was streamed. */
function zip(entries) {
  const parts = [], directory = [];
  let at = 0;
  for (const [name, bytes, method] of entries) {
    const data = method ? zlib.deflateRawSync(bytes) : bytes;
    const local = Buffer.alloc(30 + name.length + 3);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(method, 8);
    local.writeUInt16LE(name.length, 26);
    local.writeUInt16LE(3, 28);
    local.write(name, 30);
    const row = Buffer.alloc(46 + name.length);
    row.writeUInt32LE(0x02014b50, 0);
    row.writeUInt16LE(method, 10);
    row.writeUInt32LE(data.length, 20);
    row.writeUInt32LE(bytes.length, 24);
    row.writeUInt16LE(name.length, 28);
    row.writeUInt32LE(at, 42);
    row.write(name, 46);
    parts.push(local, data);
    directory.push(row);
    at += local.length + data.length;
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...parts, ...directory, end]);
}

const told = (tensors) => tensors.map(({ name, dtype, shape, values }) => [name, dtype, shape, Array.from(values, Number)]);

test('a .npy, rows or columns first', async () => {
  assert.deepEqual(told(await readTensors(bufferOf(npy('<f4', [2, 3], Float32Array.of(1, 2, 3, 4, 5, 6))))), [[null, 'f32', [2, 3], [1, 2, 3, 4, 5, 6]]]);
  assert.deepEqual(told(await readTensors(bufferOf(npy('<i8', [2, 3], BigInt64Array.of(1n, 4n, 2n, 5n, 3n, 6n), true)))), [[null, 'i64', [2, 3], [1, 2, 3, 4, 5, 6]]]);
  assert.deepEqual(told(await readTensors(bufferOf(npy('<f2', [2], Uint16Array.of(0x3c00, 0xc000))))), [[null, 'f16', [2], [1, -2]]]);
});

test('complex numbers have their parts in a last axis', async () => {
  const [rows] = await readTensors(bufferOf(npy('<c8', [2, 1], Float32Array.of(1, 2, 3, 4))));
  assert.deepEqual([rows.isComplex, ...told([rows])], [true, [null, 'f32', [2, 1, 2], [1, 2, 3, 4]]]);
  const [columns] = await readTensors(bufferOf(npy('<c8', [2, 2], Float32Array.of(1, 2, 5, 6, 3, 4, 7, 8), true)));
  assert.deepEqual(told([columns]), [[null, 'f32', [2, 2, 2], [1, 2, 3, 4, 5, 6, 7, 8]]]);
  assert.deepEqual(told(await readTensors(bufferOf(npy('<c16', [1], Float64Array.of(1, 2))))), [[null, 'f64', [1, 2], [1, 2]]]);
  const head = Buffer.from(JSON.stringify({ freqs_cis: { dtype: 'C64', shape: [1], data_offsets: [0, 8] } }));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(head.length));
  assert.deepEqual(told(await readTensors(bufferOf(Buffer.concat([size, head, Buffer.from(Float32Array.of(3, 4).buffer)])))), [['freqs_cis', 'f32', [1, 2], [3, 4]]]);
});

test('a .npz, stored and compressed', async () => {
  const tensors = await readTensors(bufferOf(zip([['cos.npy', npy('<f8', [2], Float64Array.of(1, 0.5)), 0], ['sin.npy', npy('<f4', [1, 1], Float32Array.of(3)), 8]])));
  assert.deepEqual(told(tensors), [['cos', 'f64', [2], [1, 0.5]], ['sin', 'f32', [1, 1], [3]]]);
  assert.deepEqual(tensors.map((one) => one.isCompressed), [false, true]);
});

test('tensors under other names come back from the file they are packed in', async () => {
  const [one] = await readTensors(bufferOf(npy('<f4', [2, 1], Float32Array.of(7, 8))));
  const blob = pack([{ ...one, name: 'bias' }], { scheme: 'alibi' });
  const bytes = await blob.arrayBuffer();
  assert.deepEqual(told(await readTensors(bytes)), [['bias', 'f32', [2, 1], [7, 8]]]);
  assert.match(Buffer.from(bytes).toString('latin1'), /"__metadata__":\{"request":"\{\\"scheme\\":\\"alibi\\"\}"\}/);
});

test('what cannot be read is an error', async () => {
  await assert.rejects(readTensors(bufferOf(npy('>f4', [1], Float32Array.of(1)))));
  await assert.rejects(readTensors(bufferOf(npy('<f4', [9], Float32Array.of(1)))));
  await assert.rejects(readTensors(bufferOf([1, 2, 3])));
});
