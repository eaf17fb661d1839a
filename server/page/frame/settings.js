/* Language and theme: what the address says, else the last choice, else what the browser prefers. */
import { setLanguage } from '../words.js';

const VALUES = { lang: ['en', 'zh'], theme: ['light', 'dark'] };
const dark = matchMedia('(prefers-color-scheme: dark)');
const preferred = {
  lang: () => navigator.languages.map((tag) => tag.slice(0, 2)).find((tag) => VALUES.lang.includes(tag)) ?? 'en',
  theme: () => dark.matches ? 'dark' : 'light',
};
const current = { lang: null, theme: null };
let addressed = current;

/* A browser that allows no storage throws when it is named. */
function storage(work) {
  try { return work(localStorage); } catch { return null; }
}

function wanted(key) {
  const last = storage((store) => store.getItem(`posenc-${key}`));
  return addressed[key] ?? VALUES[key].find((value) => value === last) ?? preferred[key]();
}

/* The dark colours are in the style once, for browsers that prefer them. A theme says instead whether they hold. */
const sheet = document.querySelector('link[rel="stylesheet"]').sheet;
const darkRule = Array.from(sheet?.cssRules ?? []).find(({ media }) => media?.mediaText === dark.media);

/* Canvases take their colours from the theme, so a new one is an event. */
function setTheme(theme) {
  if (theme === current.theme) return;
  if (darkRule) darkRule.media.mediaText = theme === 'dark' ? 'all' : 'not all';
  document.documentElement.dataset.theme = current.theme = theme;
  document.dispatchEvent(new Event('posenc:theme'));
}

/* Obeys what the address says, { lang, theme }, null each where it says nothing. */
export async function settle({ lang, theme }) {
  addressed = { lang, theme };
  setTheme(wanted('theme'));
  const language = wanted('lang');
  if (language === current.lang) return;
  await setLanguage(language);
  current.lang = language;
}

/* The other value of 'lang' or 'theme'. A choice is remembered; one that the address had made is changed there. */
export function change(key, store) {
  const value = VALUES[key].find((one) => one !== current[key]);
  storage((kept) => kept.setItem(`posenc-${key}`, value));
  if (addressed[key]) store.set({ [key]: value }, { undo: false });
  return settle({ ...addressed, [key]: addressed[key] && value });
}

/* What job() draws is on light paper, as when the page is printed. */
export function inLight(job) {
  const { theme } = current;
  setTheme('light');
  try { return job(); } finally { setTheme(theme); }
}

dark.addEventListener('change', () => setTheme(wanted('theme')));
addEventListener('beforeprint', () => setTheme('light'));
addEventListener('afterprint', () => setTheme(wanted('theme')));
