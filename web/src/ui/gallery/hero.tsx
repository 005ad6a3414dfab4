// SPDX-License-Identifier: Apache-2.0
/**
 * hero.tsx - the first screen: a small model that came with the page writes on from a beginning that
 * anybody can type over. Arcs show where it looks, bars what it takes to come next.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import { useRun } from '../state/run';
import { useStore } from '../store';
import { IconButton } from '../parts/button';
import { type Character, charactersOf } from '../think/characters';
import { topK } from '../think/maths';
import { CARDS } from './cards';
import { begin, choose, hero, type HeroState, play, runHero } from './hero_state';
import { byCharacter, lookedAt, nextOf } from './hero_maths';
import './hero.css';

const BARS = 8;
const ARCS = 9;
/** Weights below this are not drawn. */
const LEAST_WEIGHT = 0.015;

function still(): boolean {
  return matchMedia('(prefers-reduced-motion: reduce)').matches;
}

export function Hero() {
  const busy = useRun((s) => s.phase === 'running' || s.phase === 'preparing');
  const s = useStore(hero);
  useEffect(() => {
    // A run has the machine to itself.
    if (busy) return;
    if (hero.get().bytes.length === 0) {
      begin(hero.get().beginning);
      play(!still());
    }
    const control = new AbortController();
    runHero(control.signal).catch(() => {});
    return () => control.abort();
  }, [busy]);
  if (!s.card) return null;
  return (
    <div class="hero-body">
      <div class="hero-models" role="group" aria-label="The model that writes">
        {CARDS.map((card) => (
          <button
            key={card.name}
            type="button"
            class="chip"
            aria-pressed={card === s.card}
            onClick={() => choose(card)}
          >
            {card.title}
          </button>
        ))}
      </div>
      <Line s={s} />
      <Bars s={s} />
      <div class="hero-input">
        <label class="unseen" for="hero-beginning">
          A beginning, from which it goes on
        </label>
        <input
          id="hero-beginning"
          class="input"
          type="text"
          autoComplete="off"
          spellcheck={false}
          placeholder="Type a beginning"
          value={s.beginning}
          onInput={(e) => begin(e.currentTarget.value)}
        />
        <IconButton
          icon={s.playing ? 'pause' : 'play'}
          label={s.playing ? 'Let it rest' : 'Let it write'}
          onClick={() => play(!s.playing)}
        />
      </div>
      {s.problem !== '' && <p class="field-error">{s.problem}</p>}
    </div>
  );
}

/** How many characters fit, how wide each is, and how high the arcs are. */
function useColumns() {
  const place = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ columns: 40, cell: 15, sky: 84 });
  useEffect(() => {
    const box = place.current;
    if (!box) return;
    const measure = () => {
      const small = box.clientWidth < 480;
      const cell = small ? 12 : 15;
      const columns = Math.max(8, Math.floor(box.clientWidth / cell) - 1);
      setSize({ columns, cell, sky: small ? 56 : 84 });
    };
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  return { place, ...size };
}

interface Placed extends Character {
  written: boolean;
  weight: number;
}

/** The end of the text, with how much each character is looked at. */
function placed(s: HeroState, columns: number): Placed[] {
  const all = charactersOf(s.bytes);
  const from = s.bytes.length - (s.probe?.tokens.length ?? 0);
  const looked = s.probe ? byCharacter(lookedAt(s.probe), charactersOf(s.bytes.slice(from))) : [];
  const first = all.length - looked.length;
  return all
    .map((c, i) => ({ ...c, written: c.from >= s.begun, weight: looked[i - first] ?? 0 }))
    .slice(-columns);
}

function Line({ s }: { s: HeroState }) {
  const { place, columns, cell, sky } = useColumns();
  const line = placed(s, columns);
  const at = (i: number) => (i + 0.5) * cell;
  const last = line.length - 1;
  const arcs = topK(
    line.map((c, i) => (i === last ? 0 : c.weight)),
    ARCS,
  ).filter((a) => a.p > LEAST_WEIGHT);
  return (
    <div ref={place} class="hero-line">
      <svg class="hero-arcs" width={columns * cell} height={sky} aria-hidden="true">
        {arcs.map(({ id, p }) => {
          const [from, to] = [at(id), at(last)];
          const high = sky - Math.min(sky - 4, 12 + (to - from) * 0.28);
          return (
            <path
              key={id}
              d={`M${from} ${sky}C${from} ${high} ${to} ${high} ${to} ${sky}`}
              style={{ strokeWidth: 1 + 7 * p, opacity: Math.min(1, 0.25 + 1.6 * p) }}
            />
          );
        })}
      </svg>
      <p class="hero-text" style={{ '--cell': `${cell}px` }}>
        <span class="unseen">
          The text: {s.beginning}, and what the model has written behind it.
        </span>
        <span aria-hidden="true">
          {line.map((c, i) => (
            <span
              key={i}
              class={c.written ? 'hero-char hero-written' : 'hero-char'}
              style={{ '--heat': Math.round(100 * Math.min(1, Math.sqrt(c.weight))) }}
            >
              {c.mark === '␣' ? '\u00a0' : c.mark}
            </span>
          ))}
          <span class="hero-char hero-caret">{'\u00a0'}</span>
        </span>
      </p>
    </div>
  );
}

function Bars({ s }: { s: HeroState }) {
  const rows = s.probe ? topK(nextOf(s.probe), BARS) : [];
  return (
    <ol class="hero-bars" aria-label="What it takes to come next">
      {Array.from({ length: BARS }, (_, i) => {
        const row = rows[i];
        const shown = row && charactersOf([row.id])[0];
        return (
          <li key={i} class="hero-bar">
              <span class="hero-percent">
                {row ? Math.round(100 * row.p) : 0}
                <span class="hero-sign"> %</span>
              </span>
              <span class="hero-track" aria-hidden="true">
                <span
                  class="hero-fill"
                  style={{ transform: `scaleY(${row ? Math.max(0.01, row.p) : 0.01})` }}
                />
              </span>
              <span class="hero-mark">{shown?.mark ?? '·'}</span>
          </li>
        );
      })}
    </ol>
  );
}
