/* The stories, in the order they are read: name, and how its module is loaded when it is opened. Texts: `story.NAME`
 * and `story.NAME.lead` in text/LANG.json, all others in NAME.LANG.md. */

const story = (name, load) => ({ name, load });

export const stories = [
  story('designing', () => import('./designing.js')),
  story('introduction', () => import('./introduction.js')),
  story('three-encodings', () => import('./three-encodings.js')),
  story('sin-and-cos', () => import('./sin-and-cos.js')),
  story('absolute-relative', () => import('./absolute-relative.js')),
];

/* Read like a story, but by steps: views/walk.js. */
export const walk = story('walk', () => import('./walk.js'));

export const storyNamed = (name) => stories.find((row) => row.name === name);
