/* What a story's module is made of. Its default export lists the figures; the text is NAME.LANG.md (markdown.js).
 *
 *   figure('dogs', 'attention', {       #fig-dogs, drawn by that view
 *     configs: { a: { … } },            requests, as in an address
 *     address: 'cols=0,1&cur=3,0',      whatever else an address says
 *     touch: [slide(…), pick(…)],       controls of the story; a figure is touched itself too
 *     versions: ['printed', 'defined'], what a, b… are: `story.printed`, or a name of the story's own
 *     controls: ['task', 'seed'],       of the view's own controls those that are shown; else none
 *     beside: true,                     its one picture is about square: its caption stands beside it
 *   }) */

export const figure = (name, view, more) => ({ touch: [], ...more, name, view });

/* A slider for a field of the configurations, 'scaling.factor' too. slots: of those ('ab'), else of all; spacing 'log';
 * whole: false for reals; text: its name in the story, else the catalogue's. */
export const slide = (field, min, max, more) => ({ kind: 'slide', field, min, max, ...more });

/* Buttons for the values of a field; null: without it. */
export const pick = (field, values, more) => ({ kind: 'pick', field, values, ...more });
