/* Which configuration is in front, or the difference of the first two: buttons, shown from two configurations on. */
import { make } from '../dom.js';
import { word } from '../words.js';

export function frontChooser(page, { difference = true } = {}) {
  const element = make('div', { class: 'segmented front', role: 'group', 'aria-label': word('heat.front') });
  let shown = '';
  const choose = (on) => page.store.set({ on }, { undo: 'on' });
  const isPressed = (on, choices) => on === (choices.includes(page.store.state.on) ? page.store.state.on : page.front());
  const button = (on, choices) => make('button', { type: 'button', 'data-on': on, 'data-config': on, translate: 'no',
    'aria-pressed': String(isPressed(on, choices)), title: on === 'b-a' ? word('heat.difference') : word('heat.inFront', { slot: on }),
    onclick: () => choose(on) }, on.replace('-', ' − '));

  function update() {
    const slots = page.store.slots();
    const choices = [...slots, ...difference && slots.includes('a') && slots.includes('b') ? ['b-a'] : []];
    element.hidden = choices.length < 2;
    const key = `${choices} ${page.store.state.on}`;
    if (key === shown) return;
    shown = key;
    const focused = document.activeElement?.dataset.on;
    element.replaceChildren(...choices.map((on) => button(on, choices)));
    if (focused) element.querySelector(`[data-on="${focused}"]`)?.focus();
  }
  return { element, update };
}
