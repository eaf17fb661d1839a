/* Files of tensors against bytes written here by their formats' own rules. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pack, readTensors } from '../../server/page/views/diagnose/tensor_files.js';

const bufferOf = (bytes) => new Uint8Array(bytes).buffer;

function npy(descr, shape, data, fortran = false) {
  const head = `{'descr': '${descr}', 'fortran_order': ${fortran ? 'True' : 'False'}, 'shape': (${shape.join(', ')}${shape.length === 1 ? ',' : ''}), }`.padEnd(117) + '\n';
  return Buffer.concat([Buffer.from([0x93, ...Buffer.from('NUMPY'), 1, 0, 118, 0]), Buffer.from(head), Buffer.from(data.buffer)]);
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
