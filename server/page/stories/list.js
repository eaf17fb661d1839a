/* The stories, in the order they are read: name, the scheme whose picture its card has, and how its module is loaded
 * when it is opened. Texts: `story.NAME` and `story.NAME.lead` in text/LANG.json, all others in NAME.LANG.md. */

const story = (name, scheme, load) => ({ name, scheme, load });

export const stories = [
  story('designing', 'rope', () => import('./designing.js')),
  story('introduction', 'learned', () => import('./introduction.js')),
  story('three-encodings', 'alibi', () => import('./three-encodings.js')),
  story('sin-and-cos', 'sinusoidal', () => import('./sin-and-cos.js')),
  story('absolute-relative', 't5', () => import('./absolute-relative.js')),
];

/* Read like a story, but by steps: views/walk.js. */
export const walk = story('walk', null, () => import('./walk.js'));

export const storyNamed = (name) => stories.find((row) => row.name === name);
