/* What a story is made of. A story's module has as its default export a list of sections; all words are in its texts,
 * text/STORY.LANG.json, in the markup of prose.js:
 *
 *   section('order', 2, figure(…), 1)   STORY.order is its title; two paragraphs, a figure, a third paragraph:
 *                                       STORY.order.1, STORY.order.2, STORY.order.3
 *   figure('dogs', 'attention', {       #fig-dogs, drawn by that view; STORY.fig.dogs: what is seen, STORY.fig.dogs.try: what
 *                                       to touch, and what happens then
 *     configs: { a: { … } },            requests, as in an address
 *     address: 'cols=0,1&cur=3,0',      whatever else an address says
 *     touch: [slide(…), pick(…)],       controls of the story; a figure is touched itself too
 *     versions: ['printed', 'defined'], what a, b… are: `story.printed`, or a text STORY.NAME of the story's own
 *     controls: true,                   shows the view's own controls, which are hidden else
 *   }) */

export const section = (name, ...parts) => ({ name, parts });
export const figure = (name, view, more) => ({ touch: [], ...more, name, view });

/* A slider for a field of the configurations, 'scaling.factor' too. slots: of those ('ab'), else of all; spacing 'log';
 * whole: false for reals; text: STORY.TEXT is its name, else the catalogue's. */
export const slide = (field, min, max, more) => ({ kind: 'slide', field, min, max, ...more });

/* Buttons for the values of a field; null: without it. */
export const pick = (field, values, more) => ({ kind: 'pick', field, values, ...more });
