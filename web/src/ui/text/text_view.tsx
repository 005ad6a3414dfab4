// SPDX-License-Identifier: Apache-2.0
/** text_view.tsx - where the text comes from, what was found in it, and its fingerprint. */
import { useState } from 'preact/hooks';
import { Button } from '../parts/button';
import { Card } from '../parts/card';
import { Choice, Field, NumberField } from '../parts/fields';
import { Notice } from '../parts/notice';
import { Stat } from '../parts/stat';
import { P, Words } from '../parts/term';
import { Wait } from '../parts/wait';
import { bytes, count, percent } from '../format';
import { settings } from '../state/route';
import {
  convertToUtf8,
  fingerprint,
  stopReading,
  STORIES_BYTES,
  STORIES_SEED,
  textState,
  takeAddress,
  takePublic,
  takeStories,
  textLicence,
} from '../state/text';
import { useStore } from '../store';
import { findingWords } from './finding_words';
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
          <Elsewhere />
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
      {textLicence(t.origin) !== '' && (
        <P class="field-help">Licence: {textLicence(t.origin)}.</P>
      )}
      <div class="text-findings" aria-live="polite">
        {t.findings === null && t.status === 'ready' && <P class="quiet">Reading it…</P>}
        {t.findings?.map((f) => (
          <Notice key={f.code} kind={f.level === 'remark' ? 'info' : f.level}>
            <P>{findingWords(f)}</P>
          </Notice>
        ))}
        {t.findings?.length === 0 && (
          <Notice kind="good">
            <P>Nothing in it would trip a model up.</P>
          </Notice>
        )}
        {foreign && <Button onClick={() => void convertToUtf8()}>Convert it to UTF-8</Button>}
      </div>
      <div>
        <h3>
          <Words>Fingerprint</Words>
        </h3>
        <P class="field-help">
          64 signs that no other text has (its SHA-256). They stand in the link to this run; the text
          itself never does.
        </P>
        {t.sha256 !== '' && (
          <p class="text-hash">
            {(t.sha256.match(/.{8}/g) ?? []).map((part, i) => (
              <span key={i}>{part}</span>
            ))}
          </p>
        )}
        {t.sha256 === '' && t.hashing && <Wait words="Reading all of it" onCancel={stopReading} />}
        {t.sha256 === '' && !t.hashing && t.blob && t.findings !== null && (
          <Button onClick={() => void fingerprint()}>Find it out (reads all {bytes(size)})</Button>
        )}
      </div>
    </Card>
  );
}

function Stories() {
  const [seed, setSeed] = useState(STORIES_SEED);
  const [size, setSize] = useState(STORIES_BYTES);
  return (
    <Card title="Story generator">
      <P class="muted small">
        Small stories from a built-in grammar: simple enough for a small model to learn well. The
        same seed gives the same stories everywhere.
      </P>
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

const SOURCES = {
  address: { label: 'Address of a plain text', example: 'https://' },
  wikipedia: { label: 'Titles of articles', example: 'Fox; Hen; de:Fuchs' },
  dataset: { label: 'Name of a data set', example: 'roneneldan/TinyStories' },
} as const;
type Source = keyof typeof SOURCES;

const ABOUT: Record<Source, string> = {
  address:
    'The host has to let other pages read its texts (CORS); raw.githubusercontent.com does, for instance.',
  wikipedia:
    'Several with semicolons between them; a language before its colon. Their text is under CC BY-SA 4.0.',
  dataset:
    'As Hugging Face names it: the first rows of its training part. Its licence is shown with the text.',
};

const DATASET_BYTES = 1_000_000;

function Elsewhere() {
  const [source, setSource] = useState<Source>('address');
  const [typed, setTyped] = useState('');
  const [size, setSize] = useState(DATASET_BYTES);
  const loading = useStore(textState, (t) => t.status === 'loading');
  const { label, example } = SOURCES[source];
  return (
    <Card title="From elsewhere">
      <Choice<Source>
        label="Where the text is"
        value={source}
        options={[
          { value: 'address', label: 'Address' },
          { value: 'wikipedia', label: 'Wikipedia' },
          { value: 'dataset', label: 'Hugging Face' },
        ]}
        onChange={setSource}
      />
      <form
        class="text-url"
        onSubmit={(e) => {
          e.preventDefault();
          if (source === 'address') void takeAddress(typed);
          else void takePublic(source, typed, size);
        }}
      >
        <Field label={label}>
          {({ id, describedBy }) => (
            <input
              id={id}
              class="input"
              type="text"
              inputMode={source === 'address' ? 'url' : 'text'}
              autoComplete="off"
              spellcheck={false}
              placeholder={example}
              value={typed}
              aria-describedby={describedBy}
              onInput={(e) => setTyped(e.currentTarget.value)}
            />
          )}
        </Field>
        <Button submit disabled={loading} icon="download">
          Fetch
        </Button>
      </form>
      {source === 'dataset' && (
        <NumberField
          label="Bytes at most"
          value={size}
          min={1000}
          max={50_000_000}
          whole
          onChange={setSize}
        />
      )}
      <P class="field-help">
        {ABOUT[source]} Nothing is asked of any host before you press Fetch; then it sees this
        machine’s address, and what you asked for.
      </P>
    </Card>
  );
}
