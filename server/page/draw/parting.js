/* Where two tensors part, from their difference. Pure. */

/* values: rows × cols, row-major; least: what counts as apart. Gives { cols: [those that part], first: [row, col] or
 * null, most: [row, col], value: the largest |Δ| }: the first in order of rows. Cells that are not finite in one of
 * them count as nothing. */
export function partings({ values, rows, cols }, least) {
  const parted = new Set();
  let [first, most, value] = [null, [0, 0], 0];
  for (let row = 0, i = 0; row < rows; row++) {
    for (let col = 0; col < cols; col++, i++) {
      const size = Math.abs(values[i]);
      if (size > value && size < Infinity) [value, most] = [size, [row, col]];
      if (!(size > least && size < Infinity)) continue;
      parted.add(col);
      first ??= [row, col];
    }
  }
  return { cols: [...parted].sort((one, other) => one - other), first, most, value };
}

const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/* [[name, of one, of other]]: the fields of two resolved configurations that differ. Of two schemes, and of two kinds
 * of one object, only which they are: what else they have is not the same thing. */
export function differing(one, other) {
  if (one.scheme !== other.scheme) return [['scheme', one.scheme, other.scheme]];
  return Object.keys({ ...one, ...other }).filter((name) => !same(one[name], other[name])).flatMap((name) => {
    const [mine, theirs] = [one[name], other[name]];
    if (!isObject(mine) || !isObject(theirs)) return [[name, mine, theirs]];
    if (mine.type !== theirs.type) return [[name, mine.type, theirs.type]];
    return differing(mine, theirs).map(([inner, ...both]) => [`${name}.${inner}`, ...both]);
  });
}
