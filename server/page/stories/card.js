/* The card that leads to a story. */
import { make } from '../dom.js';
import { word } from '../words.js';

/* Its address is set by its owner. */
export const storyCard = (name) => make('a', { class: 'card', 'data-story': name },
  make('strong', null, word(`story.${name}`)), make('span', { class: 'hint capital' }, word(`story.${name}.lead`)));
