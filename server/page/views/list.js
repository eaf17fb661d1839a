/* The views of the page, in the order of its navigation: name, and how its module is loaded when it is opened; its
 * texts are `view.NAME` and `view.NAME.lead`. A new view is one row here and one file beside this. `alone`: no
 * configurations stand beside it; `difference`: it shows b - a; `unlisted`: the navigation does not lead there. */

const view = (name, load, more) => ({ name, load, ...more });
const alone = true;
const difference = true;

export const views = [
  view('gallery', () => import('./gallery.js'), { alone }),
  view('table', () => import('./table.js'), { difference }),
  view('curves', () => import('./curves.js'), { difference }),
  view('rotate', () => import('./rotate.js')),
  view('attention', () => import('./attention.js'), { difference }),
  view('scaling', () => import('./scaling.js')),
  view('bias', () => import('./bias.js'), { difference }),
  view('distance', () => import('./distance.js'), { difference }),
  view('multimodal', () => import('./multimodal.js')),
  view('properties', () => import('./properties.js')),
  view('extrapolate', () => import('./extrapolate.js')),
  view('trajectory', () => import('./trajectory.js'), { difference }),
  view('weights', () => import('./weights.js'), { alone }),
  view('diagnose', () => import('./diagnose.js')),
  view('experiment', () => import('./experiment.js')),
  view('story', () => import('./story.js'), { alone, unlisted: true }),
  view('docs', () => import('./docs.js'), { alone }),
  view('server', () => import('./server.js'), { alone }),
];

export const viewNamed = (name) => views.find((row) => row.name === name);
