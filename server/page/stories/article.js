/* A story as a page: table of contents, sections, paragraphs, live figures that are built when they come near. */
import { busy } from '../ask.js';
import { make } from '../dom.js';
import { papersOf } from '../papers.js';
import { storyCard } from '../views/parts.js';
import { word } from '../words.js';
import { stories } from './list.js';
import { LiveFigure } from './live.js';
import { prose } from './prose.js';

const NEAR = '600px 0px';   /* so far outside of the window a figure is built already */

export class Article {
  #figures = [];

  /* page: of the address; story: its name; sections: of its Markdown; figures: of its module. */
  constructor(page, story, sections, figures) {
    Object.assign(this, { page, story });
    this.rows = new Map(figures.map((row) => [row.name, row]));
    this.links = sections.map(({ key }, i) => make('a', { 'data-sec': i + 1 }, prose('span', key)));
    this.contents = make('nav', { 'data-toc': '', 'aria-label': word('story.contents') },
      make('ol', null, this.links.map((link) => make('li', null, link))));
    this.sections = sections.map((section, i) => this.section(section, i + 1));
    this.element = make('article', { class: 'story', 'data-story': story }, this.contents,
      make('div', { class: 'story-text' }, this.sections, this.papers(figures), this.others()));
  }

  section({ key, parts }, number) {
    const rows = [[]];
    for (const part of parts) {
      rows.at(-1).push(part);
      if (part.figure) rows.push([]);
    }
    return make('section', { 'data-sec': number, tabindex: -1 }, prose('h2', key),
      rows.filter((row) => row.length).map((row) => this.row(row)));
  }

  /* Paragraphs and the figure that they speak of, which stand beside each other where there is room. */
  row(parts) {
    const texts = parts.filter((part) => !part.figure).map((part) => prose('p', part.key));
    const { figure } = parts.at(-1);
    return make('div', { class: 'story-row' }, texts.length ? make('div', { class: 'story-prose' }, texts) : null,
      figure ? this.figure(figure) : null);
  }

  figure(name) {
    const one = new LiveFigure(this.page, this.story, this.rows.get(name));
    this.#figures.push(one);
    return one.element;
  }

  /* Of all schemes that a figure shows, in the order of the catalogue. */
  papers(figures) {
    const { catalogue } = this.page;
    const configs = figures.flatMap((row) => Object.values(row.configs ?? {}));
    const shown = new Set(configs.map((config) => catalogue.schemeOf(config)));
    return papersOf(catalogue.catalogue().schemes.filter((row) => shown.has(row) && row.paper));
  }

  /* Where to go from the end. */
  others() {
    this.cards = stories.filter(({ name }) => name !== this.story).map(({ name }) => storyCard(name));
    return make('nav', { class: 'cards', 'aria-label': word('story.others') }, this.cards);
  }

  /* Now that it stands in the page; until it is known which figures are near, the page is not at rest. */
  watch() {
    busy.begin();
    let first = true;
    this.observer = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) if (isIntersecting) this.near(target);
      if (first) busy.end();
      first = false;
    }, { rootMargin: NEAR });
    for (const { element } of this.#figures) this.observer.observe(element);
  }

  near(element) {
    this.observer.unobserve(element);
    this.#figures.find((one) => one.element === element).load();
  }

  /* The address, in links too. */
  update({ sec }) {
    const href = (story, number = null) => this.page.href('story', { story, sec: number });
    this.links.forEach((link, i) => {
      link.href = href(this.story, i + 1);
      if (i + 1 === sec) link.setAttribute('aria-current', 'true');
      else link.removeAttribute('aria-current');
    });
    for (const card of this.cards) card.href = href(card.dataset.story);
    for (const one of this.#figures) one.show();
  }

  /* Figures above it are built when they come near and grow: the section is held in its place until the reader
   * scrolls. */
  goTo(sec) {
    const section = this.sections[sec - 1];
    this.letGo?.();
    if (!section) return;
    const hold = () => section.scrollIntoView();
    hold();
    const place = section.getBoundingClientRect().top;
    const growing = new ResizeObserver(hold);
    const onScroll = () => Math.abs(section.getBoundingClientRect().top - place) > 2 && this.letGo();
    this.letGo = () => {
      growing.disconnect();
      window.removeEventListener('scroll', onScroll);
      this.letGo = null;
    };
    growing.observe(section.parentElement);
    window.addEventListener('scroll', onScroll, { passive: true });
  }

  close() {
    this.letGo?.();
    this.observer?.disconnect();
    for (const one of this.#figures) one.close();
  }
}
