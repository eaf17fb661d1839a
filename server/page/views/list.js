/* The views of the page, in the order of its navigation: name, and how its module is loaded when it is opened; its
 * texts are `view.NAME` and `view.NAME.lead`. A new view is one row here and a file or a folder beside this. `group`:
 * the question under which the navigation has it, `group.NAME`; `alone`: no configurations are beside it; `difference`:
 * it shows b - a; `silent`: it shows itself what configurations differ in, or compares no tables; `story`: the one that
 * explains it. With a view comes the look of all; the gallery needs none, so the first load leaves it out. */
import { styled } from '../styled.js';

const look = () => styled(new URL('./views.css', import.meta.url));
const view = (group, name, load, more) => ({
  group, name, load: async () => (await Promise.all([load(), look()]))[0], ...more,
});
const alone = true;
const difference = true;
const silent = true;

export const views = [
  view('learn', 'gallery', null, { alone, load: () => import('./gallery/view.js') }),
  view('learn', 'walk', () => import('./walk.js'), { alone }),
  view('learn', 'story', () => import('./story.js'), { alone }),
  view('see', 'table', () => import('./table/view.js'), { difference, story: 'introduction' }),
  view('see', 'curves', () => import('./curves/view.js'), { difference, story: 'sin-and-cos' }),
  view('see', 'rotate', () => import('./rotate/view.js'), { story: 'designing' }),
  view('see', 'attention', () => import('./attention/view.js'), { difference, silent, story: 'designing' }),
  view('see', 'bias', () => import('./bias/view.js'), { difference, story: 'three-encodings' }),
  view('see', 'distance', () => import('./distance.js'), { difference, story: 'sin-and-cos' }),
  view('see', 'multimodal', () => import('./multimodal/view.js'), { silent, story: 'introduction' }),
  view('see', 'trajectory', () => import('./trajectory/view.js'), { difference, story: 'designing' }),
  view('compare', 'models', () => import('./models/view.js'), { story: 'designing' }),
  view('compare', 'scaling', () => import('./scaling/view.js'), { story: 'designing' }),
  view('compare', 'explain', () => import('./explain/view.js'), { silent, story: 'designing' }),
  view('compare', 'properties', () => import('./properties.js'), { story: 'designing' }),
  view('compare', 'extrapolate', () => import('./extrapolate.js'), { story: 'three-encodings' }),
  view('diagnose', 'diagnose', () => import('./diagnose/view.js'), { silent, story: 'absolute-relative' }),
  view('train', 'experiment', () => import('./experiment.js'), { silent, story: 'three-encodings' }),
  view('service', 'docs', () => import('./docs/view.js'), { alone }),
  view('service', 'server', () => import('./server/view.js'), { alone }),
  view('service', 'weights', () => import('./weights.js'), { alone }),
];

export const groups = [...new Set(views.map(({ group }) => group))];
export const viewNamed = (name) => views.find((row) => row.name === name);
