/* The views of the page, in the order of its navigation: name, and how its module is loaded when it is opened; its
 * texts are `view.NAME` and `view.NAME.lead`. A new view is one row here and a file or a folder beside this. `alone`:
 * no configurations are beside it; `difference`: it shows b - a; `unlisted`: the navigation does not lead there. */

const view = (name, load, more) => ({ name, load, ...more });
const alone = true;
const difference = true;

export const views = [
  view('gallery', () => import('./gallery/view.js'), { alone }),
  view('table', () => import('./table/view.js'), { difference }),
  view('curves', () => import('./curves/view.js'), { difference }),
  view('rotate', () => import('./rotate/view.js')),
  view('attention', () => import('./attention/view.js'), { difference }),
  view('scaling', () => import('./scaling/view.js')),
  view('bias', () => import('./bias/view.js'), { difference }),
  view('distance', () => import('./distance.js'), { difference }),
  view('multimodal', () => import('./multimodal/view.js')),
  view('properties', () => import('./properties.js')),
  view('extrapolate', () => import('./extrapolate.js')),
  view('trajectory', () => import('./trajectory/view.js'), { difference }),
  view('weights', () => import('./weights.js'), { alone }),
  view('diagnose', () => import('./diagnose/view.js')),
  view('experiment', () => import('./experiment.js')),
  view('story', () => import('./story.js'), { alone, unlisted: true }),
  view('docs', () => import('./docs/view.js'), { alone }),
  view('server', () => import('./server/view.js'), { alone }),
];

export const viewNamed = (name) => views.find((row) => row.name === name);
