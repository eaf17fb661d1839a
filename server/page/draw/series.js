/* Colours and dashes that tell the lines of a picture apart, in both themes. Pure. */

/* Neighbours differ in hue and lightness; all keep a contrast of 3:1 against the paper of their theme. */
const COLORS = {
  light: ['#2563c9', '#c2570c', '#23863a', '#b0308c', '#7446d6', '#0b7f89', '#c62828', '#7d6c00'],
  dark: ['#78a9ff', '#ff9f5f', '#68cf7a', '#f48fd2', '#bba3ff', '#46cdd8', '#ff8f86', '#d8c24c'],
};
const TURN = { light: 0.4, dark: 0.45 };   /* how far later rounds of the list go towards black or white */

/* In pixels of the page: short gaps, so that a dashed line still reads as one. */
const DASHES = [[], [9, 3], [4, 3], [14, 3, 3, 3], [2, 2.5], [6, 3, 2, 3]];

export const colorOf = (i, theme) => {
  const list = COLORS[theme];
  const round = Math.floor(i / list.length);
  return round
    ? mix(list[i % list.length], theme === 'dark' ? '#ffffff' : '#000000', 1 - (1 - TURN[theme]) ** round)
    : list[i % list.length];
};

export const dashOf = (i) => DASHES[i % DASHES.length];

const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const fromChannels = (values) => `#${values.map((value) => Math.round(value).toString(16).padStart(2, '0')).join('')}`;

/* The colour a share of the way from one to another, #rrggbb all three. */
export function mix(from, to, share) {
  const [start, end] = [channels(from), channels(to)];
  return fromChannels(start.map((value, i) => value + (end[i] - value) * share));
}
