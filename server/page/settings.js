/* Language and theme: what the address says, else the last choice, else what the browser prefers. */
import { language, setLanguage } from './words.js';

const LANGUAGES = ['en', 'zh'];
const THEMES = ['light', 'dark'];
const dark = matchMedia('(prefers-color-scheme: dark)');
let addressed = { lang: null, theme: null };

/* A browser that allows no storage throws when it is named. */
function remembered(key, values) {
  try {
    const value = localStorage.getItem(`posenc-${key}`);
    return values.includes(value) ? value : null;
  } catch {
    return null;
  }
}

function remember(key, value) {
  try { localStorage.setItem(`posenc-${key}`, value); } catch { /* for this visit only */ }
}

const preferredLanguage = () => navigator.languages.map((tag) => tag.slice(0, 2).toLowerCase()).find((tag) => LANGUAGES.includes(tag));

const wantedLanguage = () => addressed.lang ?? remembered('lang', LANGUAGES) ?? preferredLanguage() ?? 'en';
const wantedTheme = () => addressed.theme ?? remembered('theme', THEMES) ?? (dark.matches ? 'dark' : 'light');

export const theme = () => document.documentElement.dataset.theme;

/* Canvases take their colours from the theme, so they are told of a new one. */
function setTheme(value) {
  if (value === theme()) return;
  document.documentElement.dataset.theme = value;
  document.dispatchEvent(new Event('posenc:theme'));
}

/* Obeys what the address says, { lang, theme } or null each. */
export async function settle({ lang, theme: wanted }) {
  addressed = { lang, theme: wanted };
  setTheme(wantedTheme());
  if (language() !== wantedLanguage() || !document.documentElement.dataset.language) await speak();
}

async function speak() {
  const lang = wantedLanguage();
  await setLanguage(lang);
  document.documentElement.dataset.language = lang;
}

const otherOf = (values, value) => values.find((one) => one !== value);

/* A choice is remembered; one that the address had made is changed there. */
function choose(store, key, value) {
  remember(key, value);
  if (addressed[key]) store.set({ [key]: value }, { undo: false });
  return settle({ ...addressed, [key]: addressed[key] && value });
}

export const changeLanguage = (store) => choose(store, 'lang', otherOf(LANGUAGES, language()));
export const changeTheme = (store) => choose(store, 'theme', otherOf(THEMES, theme()));

dark.addEventListener('change', () => setTheme(wantedTheme()));
addEventListener('beforeprint', () => setTheme('light'));
addEventListener('afterprint', () => setTheme(wantedTheme()));
