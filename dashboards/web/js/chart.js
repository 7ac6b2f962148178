// A moving chart with its title, its newest figures as a legend, and the same in words for who does not see it.

import { fill, h } from './dom.js';
import { colour } from './theme.js';

const HEIGHT = 150;
/** Between the times at the axis, in seconds. */
const MINUTES = [60, 120, 300];
const POWERS = Array.from({ length: 50 }, (_, power) => 2 ** power);
/** What a chart shows, in seconds. */
const SPAN = 300;

/**
 * A card with a chart of some measures of the figures: `{title, unit(value), least, lines: [{name, label}]}`: the
 * axis goes up to `least` at least, and `binary` ones have ticks at powers of two.
 */
export class Chart {
  constructor({ title, unit, lines, note, least = 1, binary = false }) {
    Object.assign(this, { unit, lines, title, least, binary });
    this.legend = h('dl', { class: 'legend' });
    this.area = h('div', { class: 'plot', role: 'img' });
    this.card = h('section', { class: 'card chart' }, h('h2', {}, title, note && h('small', {}, note)), this.legend, this.area);
    this.resized = new ResizeObserver(() => this.fit());
    this.resized.observe(this.area);
  }

  /** Shows what there is now. */
  show(figures) {
    this.figures = figures;
    const newest = this.lines.map(({ name }) => this.unit(figures.last(name)));
    fill(
      this.legend,
      this.lines.map(({ label }, at) =>
        h('div', {}, h('dt', {}, h('i', { class: `swatch series-${at + 1}` }), label), h('dd', {}, newest[at])),
      ),
    );
    const words = this.lines.map(({ label }, at) => `${label} ${newest[at]}`).join(', ');
    this.area.setAttribute('aria-label', `${this.title} over the last five minutes; now ${words}`);
    if (!this.plot) this.draw();
    const now = Math.max(figures.time / 1000, SPAN);
    this.plot?.batch(() => {
      this.plot.setData([figures.times, ...this.lines.map(({ name }) => figures.points[name])], false);
      this.plot.setScale('x', { min: now - SPAN, max: now });
    });
  }

  /** Draws it anew, in the colours of now. */
  draw() {
    this.plot?.destroy();
    this.plot = null;
    const width = this.area.clientWidth;
    if (width === 0) return;
    const [text, grid] = [colour('--text-quiet'), colour('--line')];
    const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { show: false }, font: '11px system-ui, sans-serif' };
    const series = this.lines.map(({ label }, at) => {
      const stroke = colour(`--series-${at + 1}`);
      return { label, stroke, width: 1.75, points: { show: false }, fill: at === 0 ? faint(stroke) : undefined };
    });
    this.plot = new globalThis.uPlot(
      {
        width,
        height: HEIGHT,
        padding: [8, 18, 0, 0],
        legend: { show: false },
        cursor: { show: false },
        scales: { x: { time: true, auto: false }, y: { range: (_, low, high) => [0, Math.max(high * 1.15, this.least)] } },
        axes: [
          { ...axis, size: 24, space: 48, incrs: MINUTES, values: (_, splits) => splits.map(clockMinutes) },
          { ...axis, size: 58, space: 36, incrs: this.binary ? POWERS : undefined, values: (_, splits) => splits.map((value) => this.unit(value)) },
        ],
        series: [{}, ...series],
      },
      [[], ...this.lines.map(() => [])],
      this.area,
    );
  }

  fit() {
    const width = this.area.clientWidth;
    if (width === 0) return;
    if (this.plot) this.plot.setSize({ width, height: HEIGHT });
    else if (this.figures) this.show(this.figures);
  }

  /** Takes on the colours of another theme. */
  repaint() {
    if (!this.plot) return;
    this.draw();
    this.show(this.figures);
  }

  close() {
    this.resized.disconnect();
    this.plot?.destroy();
  }
}

function clockMinutes(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
}

const faint = (rgb) => rgb.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.12)');
