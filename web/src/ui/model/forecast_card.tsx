// SPDX-License-Identifier: Apache-2.0
/** forecast_card.tsx - what the run will need, before it starts: parameters, memory, time. */
import { Button } from '../parts/button';
import { Card } from '../parts/card';
import { Notice } from '../parts/notice';
import { Stat } from '../parts/stat';
import { P } from '../parts/term';
import { bytes, count, duration, milliseconds, roughCount } from '../format';
import type { Forecast } from '../../lib/types';
import { forecast } from '../state/forecast';
import { settings, sizeChosen } from '../state/route';
import { useStore } from '../store';
import { bytesPerToken, vocabOf, withSize } from '../run/settings';
import { adviceOf } from './advice';
import { familyOf, paramCount } from './families';
import { findSize } from './presets';
import './model.css';

export function ForecastCard() {
  const { value, problem } = useStore(forecast);
  const s = useStore(settings);
  const params = paramCount(s, vocabOf(s));
  return (
    <Card title="Forecast" aside={`${familyOf(s.family).label}, on this machine`}>
      <dl class="stats" aria-live="polite">
        <Stat name="Parameters" value={roughCount(params)} note={s.tokens === 'chars' ? 'about' : count(params)} />
        <Stat
          name="Time"
          value={value && value.seconds > 0 ? duration(value.seconds) : '–'}
          note={value && value.msPerStep > 0 ? `${milliseconds(value.msPerStep)} a step` : ''}
        />
        <Stat
          name="Memory"
          value={value ? bytes(value.memoryBytes) : '–'}
          note={
            value && value.memoryAvailableBytes > 0 ? `of ${bytes(value.memoryAvailableBytes)}` : ''
          }
        />
        <Stat
          name="A saved run"
          value={value ? bytes(value.saveBytes) : '–'}
          note={value && value.trainBytes > 0 ? `sees the text ${epochs(value.epochs * bytesPerToken(s))}` : ''}
        />
      </dl>
      {value && <Memory f={value} />}
      {problem !== '' && (
        <Notice kind="error">
          <P>{problem}</P>
        </Notice>
      )}
      {value && <Advice f={value} />}
    </Card>
  );
}

export function Advice({ f, most = Infinity }: { f: Forecast; most?: number }) {
  const s = useStore(settings);
  const lines = adviceOf(f, s).slice(0, most);
  if (lines.length === 0) return null;
  return (
    <div class="forecast-advice" aria-live="polite">
      {lines.map(({ text, size }) => {
        const other = size === undefined ? undefined : findSize(size);
        return (
          <Notice kind="warning" key={text}>
            <P>{text}</P>
            {other && (
              <Button
                onClick={() => {
                  sizeChosen.set(true);
                  settings.set(withSize(settings.get(), other));
                }}
              >
                Use {size}
              </Button>
            )}
          </Notice>
        );
      })}
    </div>
  );
}

export function epochs(n: number): string {
  if (n < 0.95) return `to ${Math.max(1, Math.round(100 * n))} %`;
  if (n < 1.5) return 'once';
  return n < 2.5 ? 'twice' : `${Math.round(n)} times`;
}

function Memory({ f }: { f: Forecast }) {
  const parts: [string, number][] = [
    ['weights', f.weightsBytes],
    ['moments', f.momentsBytes],
    ['gradients', f.gradientsBytes],
    ['best copy', f.bestBytes],
    ['workspace', f.workspaceBytes],
  ];
  const shown = parts.filter(([, n]) => n > 0);
  return (
    <div class="stack-tight">
      <div class="forecast-memory" aria-hidden="true">
        {shown.map(([name, n]) => (
          <span key={name} style={{ flexGrow: n }} />
        ))}
      </div>
      <P class="field-help">
        {`Of that: ${shown.map(([name, n]) => `${name} ${bytes(n)}`).join(', ')}.`}
      </P>
    </div>
  );
}
