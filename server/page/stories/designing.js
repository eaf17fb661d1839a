/* Story: to be filled. */
import { figure, section, slide } from './parts.js';

export default [
  section('start', 1, figure('order', 'curves', { configs: { a: { scheme: 'sinusoidal', dim: 64, len: 64 } }, address: 'cols=0,1,6', touch: [slide('base', 10, 100000, { spacing: 'log' })] })),
];
