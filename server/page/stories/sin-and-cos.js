/* Why the sinusoidal encoding has a sine and a cosine of each frequency. */
import { figure, slide } from './parts.js';

const wave = { scheme: 'sinusoidal', dim: 64, len: 64 };
const narrow = { ...wave, dim: 32 };
const base = slide('base', 100, 1e6, { spacing: 'log' });
const width = (least, most) => slide('dim', least, most, { step: 2 });

/* [24, 8]: sines of base 10000, then their cosines in reverse order. No scheme has such a table, so it is given as
 * numbers. */
const FLIPPED = [
  [0, 0, 0, 0, 1, 1, 1, 1], [.84147, .09983, .01, .001, 1, .99995, .995, .5403],
  [.9093, .19867, .02, .002, 1, .9998, .98007, -.41615], [.14112, .29552, .03, .003, 1, .99955, .95534, -.98999],
  [-.7568, .38942, .03999, .004, .99999, .9992, .92106, -.65364],
  [-.95892, .47943, .04998, .005, .99999, .99875, .87758, .28366],
  [-.27942, .56464, .05996, .006, .99998, .9982, .82534, .96017],
  [.65699, .64422, .06994, .007, .99998, .99755, .76484, .7539],
  [.98936, .71736, .07991, .008, .99997, .9968, .69671, -.1455],
  [.41212, .78333, .08988, .009, .99996, .99595, .62161, -.91113],
  [-.54402, .84147, .09983, .01, .99995, .995, .5403, -.83907],
  [-.99999, .89121, .10978, .011, .99994, .99396, .4536, .00443],
  [-.53657, .93204, .11971, .012, .99993, .99281, .36236, .84385],
  [.42017, .96356, .12963, .013, .99992, .99156, .2675, .90745],
  [.99061, .98545, .13954, .014, .9999, .99022, .16997, .13674],
  [.65029, .99749, .14944, .015, .99989, .98877, .07074, -.75969],
  [-.2879, .99957, .15932, .016, .99987, .98723, -.0292, -.95766],
  [-.9614, .99166, .16918, .017, .99986, .98558, -.12884, -.27516],
  [-.75099, .97385, .17903, .018, .99984, .98384, -.2272, .66032],
  [.14988, .9463, .18886, .019, .99982, .982, -.32329, .9887],
  [.91295, .9093, .19867, .02, .9998, .98007, -.41615, .40808],
  [.83666, .86321, .20846, .021, .99978, .97803, -.50485, -.54773],
  [-.00885, .8085, .21823, .022, .99976, .9759, -.5885, -.99996],
  [-.84622, .74571, .22798, .023, .99974, .97367, -.66628, -.53283],
];

export default [
  figure('wavelengths', 'scaling', {
    configs: { a: { scheme: 'sinusoidal', dim: 64 } }, address: 'train=512&eval=4096', touch: [base, width(8, 256)],
  }),
  figure('cosine-sum', 'distance', { configs: { a: wave }, address: 'cur=53,0', touch: [width(2, 128), base] }),
  figure('sin-only', 'distance', {
    configs: { a: wave }, address: 'pairing=sin&cur=48,48', controls: ['pairing', 'm'],
  }),
  figure('layouts', 'table', {
    configs: { a: narrow, b: { ...narrow, layout: 'half' } }, address: 'cur=8,0', versions: ['alternating', 'blocks'],
    touch: [base],
  }),
  figure('layouts-products', 'distance', {
    configs: { a: wave, b: { ...wave, layout: 'half' } }, address: 'cur=8,0', versions: ['alternating', 'blocks'],
    touch: [width(2, 128), base],
  }),
  figure('mismatched', 'distance', {
    configs: { a: { ...wave, other_base: 500 }, b: { ...wave, other_base: 10000 } },
    address: 'pairing=mismatched&cur=8,0', versions: ['other', 'same'],
    touch: [slide('other_base', 100, 1e6, { spacing: 'log', slots: 'a', text: 'cosBase' })],
  }),
  figure('flipped', 'distance', {
    configs: { a: { scheme: 'learned', dim: 8, len: 24, table: FLIPPED }, b: { ...wave, dim: 8, len: 24 } },
    address: 'cur=8,0', versions: ['printed', 'defined'],
  }),
];
