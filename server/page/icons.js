/* Small pictures of the toolbars: strokes on a square of 24, in the colour of the text beside them. */
import { make, svg } from './dom.js';

const STROKES = {
  undo: 'M9 14 4 9l5-5M4 9h10a6 6 0 0 1 0 12h-3',
  redo: 'm15 14 5-5-5-5M20 9H10a6 6 0 0 0 0 12h3',
  add: 'M12 5v14M5 12h14',
  close: 'm6 6 12 12M18 6 6 18',
  paste: 'M9 4H6v17h12V4h-3M9 2.5h6v4H9z',
  help: 'M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4M12 17.5v.5M12 2.5a9.5 9.5 0 1 0 0 19 9.5 9.5 0 0 0 0-19z',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M5 19l2-2M17 7l2-2',
  theme: 'M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z',
  'zoom-in': 'M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.5 15.5 21 21M7.5 10.5h6M10.5 7.5v6',
  'zoom-out': 'M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.5 15.5 21 21M7.5 10.5h6',
  fit: 'M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5',
  one: 'M6 8l3-2v12M12 10v.5M12 14v.5M15 8l3-2v12',
  save: 'M12 4v11M7 10.5l5 5 5-5M4 20h16',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  link: 'M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-5.7-5.7l-1 1M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 5.7 5.7l1-1',
  play: 'M8 5v14l11-7z',
  stop: 'M7 7h10v10H7z',
  reset: 'M4 4v6h6M4.5 10a8 8 0 1 1-.5 4',
};

export const icon = (name) =>
  svg('svg', { viewBox: '0 0 24 24', 'aria-hidden': 'true', class: 'glyph' }, svg('path', { d: STROKES[name] }));

/* A button with a picture (a name of above, or an element) in place of its text. */
export const tool = (face, text, attributes) => make('button',
  { type: 'button', class: 'icon quiet', 'aria-label': text, title: text, ...attributes },
  typeof face === 'string' ? icon(face) : face);
