// SPDX-License-Identifier: Apache-2.0
/** text_view.tsx - where the text comes from, what was found in it, and its fingerprint. */
import { useState } from 'preact/hooks';
import { Button } from '../parts/button';
import { Card } from '../parts/card';
import { Field, NumberField } from '../parts/fields';
import { Notice } from '../parts/notice';
import { Stat } from '../parts/stat';
import { bytes, count, percent } from '../format';
import { settings } from '../state/route';
import {
  convertToUtf8,
  fingerprint,
  STORIES_BYTES,
  STORIES_SEED,
  textState,
  takeAddress,
  takeStories,
} from '../state/text';
import { useStore } from '../store';
import { TextBox } from './text_box';
import { WantedText } from './wanted_text';

export default function TextView() {
  return (
    <div class="stack">
      <WantedText />
      <div class="columns">
        <div class="stack">
          <Card title="The text">
            <TextBox rows={14} />
          </Card>
          <Address />
        </div>
        <div class="stack">
          <Findings />
          <Stories />
        </div>
      </div>
    </div>
  );
}

function Findings() {
  const t = useStore(textState);
  const val = useStore(settings, (s) => s.valFraction);
  const size = t.blob?.size ?? 0;
  const foreign = t.encoding !== null && /UTF-16|Latin/.test(t.encoding);
  return (
    <Card title="What it is" aside={t.encoding ?? ''}>
      <dl class="stats">
        <Stat name="Size" value={bytes(size)} note={size >= 1000 ? `${count(size)} bytes` : ''} />
        <Stat
          name="Kept for checking"
          value={bytes(size * val)}
          note={`the last ${percent(val)}`}
        />
      </dl>
      <div class="text-findings" aria-live="polite">
        {t.findings === null && t.status === 'ready' && <p class="quiet">Reading it…</p>}
        {t.findings?.map((f) => (
          <Notice key={f.code} kind={f.level === 'remark' ? 'info' : f.level}>
            <p>{sentence(f.text)}</p>
          </Notice>
        ))}
        {t.findings?.length === 0 && (
          <Notice kind="good">
            <p>Nothing in it would trip a model up.</p>
          </Notice>
        )}
        {foreign && <Button onClick={() => void convertToUtf8()}>Convert it to UTF-8</Button>}
      </div>
      <div>
        <h3>Fingerprint</h3>
        <p class="field-help">
          The SHA-256 of the text stands in the link to this run, the text itself never does.
        </p>
        {t.sha256 !== '' && (
          <p class="text-hash">
            {(t.sha256.match(/.{8}/g) ?? []).map((part, i) => (
              <span key={i}>{part}</span>
            ))}
          </p>
        )}
        {t.sha256 === '' && t.hashing && <p class="quiet">Reading all of it…</p>}
        {t.sha256 === '' && !t.hashing && t.blob && t.findings !== null && (
          <Button onClick={() => void fingerprint()}>Find it out (reads {bytes(size)})</Button>
        )}
      </div>
    </Card>
  );
}

function sentence(text: string): string {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}

function Stories() {
  const [seed, setSeed] = useState(STORIES_SEED);
  const [size, setSize] = useState(STORIES_BYTES);
  return (
    <Card title="Story generator">
      <p class="muted small">
        Small stories from a built-in grammar: simple enough for a small model to learn well. The
        same seed gives the same stories everywhere.
      </p>
      <div class="grid">
        <NumberField
          label="Bytes"
          value={size}
          min={1000}
          max={200_000_000}
          whole
          onChange={setSize}
        />
        <NumberField label="Seed" value={seed} min={0} max={1e15} whole onChange={setSeed} />
      </div>
      <div class="row">
        <Button icon="dice" onClick={() => void takeStories(seed, size)}>
          Write stories
        </Button>
      </div>
    </Card>
  );
}

function Address() {
  const [url, setUrl] = useState('');
  const loading = useStore(textState, (t) => t.status === 'loading');
  return (
    <Card title="From an address">
      <form
        class="text-url"
        onSubmit={(e) => {
          e.preventDefault();
          void takeAddress(url);
        }}
      >
        <Field label="Address of a plain text">
          {({ id, describedBy }) => (
            <input
              id={id}
              class="input"
              type="text"
              inputMode="url"
              autoComplete="off"
              spellcheck={false}
              placeholder="https://"
              value={url}
              aria-describedby={describedBy}
              onInput={(e) => setUrl(e.currentTarget.value)}
            />
          )}
        </Field>
        <Button submit disabled={loading} icon="download">
          Fetch
        </Button>
      </form>
      <p class="field-help">
        The only request this page ever makes to another host, and only when you press Fetch. That
        host has to allow it (CORS); raw.githubusercontent.com does, for instance.
      </p>
    </Card>
  );
}
