/* Any slider can play: a small button before it, or the key p on it. */
import { icon } from '../icons.js';
import { make } from '../dom.js';
import { bind, live, word } from '../words.js';

const TICK_MS = 80;
const STEPS = 120;      /* from one end to the other, in ten seconds */
const PATIENCE = 6;     /* ticks that it waits for the picture of the last value */
const still = matchMedia('(prefers-reduced-motion: reduce)');
let playing = null;     /* one at a time: { slider, timer } */

function stop() {
  if (!playing) return;
  clearInterval(playing.timer);
  const { write } = playing;
  playing = null;
  write();
}

/* To the end and again from the beginning, as slowly as pictures follow. */
function tick(slider) {
  if (!slider.isConnected || slider.disabled || still.matches) return stop();
  playing.waited += 1;
  if (document.documentElement.dataset.busy === '1' && playing.waited < PATIENCE) return;
  playing.waited = 0;
  const [min, max, step] = [slider.min, slider.max, slider.step].map(Number);
  const by = Math.max(step || 0, Math.round((max - min) / STEPS / (step || 1)) * (step || 1)) || (max - min) / STEPS;
  const at = slider.valueAsNumber;
  slider.value = at >= max ? min : Math.min(max, at + by);
  slider.dispatchEvent(new Event('input', { bubbles: true }));
}

/* The slider with its button; text: what it is called. */
export function playable(slider, text) {
  const face = make('span', { 'aria-hidden': 'true' });
  const button = make('button',
    { type: 'button', class: 'quiet play', tabindex: -1, 'data-play': slider.dataset.slider }, face);
  const isMine = () => playing?.slider === slider;
  const write = () => {
    face.replaceChildren(icon(isMine() ? 'stop' : 'play'));
    bind(button, 'aria-label', live(() => String(word(isMine() ? 'play.stop' : 'play.start', { what: text }))));
    bind(button, 'title', live(() => button.ariaLabel));
  };
  const toggle = () => {
    const wasMine = isMine();
    stop();
    if (wasMine || slider.disabled || still.matches) return;
    playing = { slider, write, waited: 0, timer: setInterval(() => tick(slider), TICK_MS) };
    write();
  };
  button.addEventListener('click', toggle);
  slider.addEventListener('pointerdown', () => isMine() && stop());
  slider.addEventListener('keydown', (event) => {
    if (event.key !== 'p' || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    toggle();
  });
  write();
  return make('span', { class: 'slide' }, button, slider);
}
