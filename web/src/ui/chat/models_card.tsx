// SPDX-License-Identifier: Apache-2.0
/** models_card.tsx - the list of models, ways to add one, and what the chosen one will need. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { StoredModel } from '../../lib/models/index';
import type { KeyType } from '../../lib/types';
import { bytes, count, percent, roughCount } from '../format';
import { Button, IconButton } from '../parts/button';
import { Card, Disclosure } from '../parts/card';
import { Field, SelectField } from '../parts/fields';
import { Later } from '../parts/later';
import { Notice } from '../parts/notice';
import { Bar, Stat } from '../parts/stat';
import { P } from '../parts/term';
import { Wait } from '../parts/wait';
import { useStore } from '../store';
import { FileButton } from '../text/text_box';
import { deviceGib, needs, nearest, warning } from './forecast';
import { CATALOGUE } from './hub';
import {
  addAddress,
  addFile,
  addFolder,
  addHubFile,
  cancel,
  chatSettings,
  choose,
  chooseTemplate,
  findOnHub,
  type Looked,
  models,
  openChosen,
  openWithoutTemplate,
  refresh,
  remove,
  resume,
  useForVisit,
} from './models';
import { talk } from './talk';
import { KEY_TYPES, NO_TEMPLATE, templateFor } from './settings';

export function ModelsCard() {
  const { list, noStore, busy, problem } = useStore(models);
  useEffect(() => void refresh(), []);
  return (
    <Card title="Models" aside="They stay on this machine">
      <Messages />
      {list === null && <P class="quiet">Looking for models…</P>}
      {list?.length === 0 && noStore === '' && problem === '' && busy === '' && (
        <P class="muted small">
          None yet. Take a .gguf file or a folder of safetensors from this machine, drop it anywhere
          on this page, or type the address of one. It is kept in this browser, for use without a network. It holds
          a language model that others have trained; begin with a small one that was taught to
          answer (“instruct” or “it” in its name, some 100 MB to 1 GB).
        </P>
      )}
      {noStore !== '' && (
        <Notice kind="warning">
          <P>{noStore} A file can be used for this visit.</P>
        </Notice>
      )}
      {list !== null && list.length > 0 && (
        <ul class="chat-models">
          {list.map((stored) => (
            <Row key={stored.id} stored={stored} busy={busy !== ''} />
          ))}
        </ul>
      )}
      <Add busy={busy !== ''} />
      <Others />
      <Found busy={busy !== ''} />
      <Catalogue busy={busy !== ''} open={list?.length === 0} />
    </Card>
  );
}

function Messages() {
  const { copying, loading, busy, problem, visit } = useStore(models);
  const checking = copying?.stage === 'checking';
  const share = copying && copying.bytes > 0 ? copying.done / copying.bytes : (loading ?? 0);
  return (
    <div class="stack-tight" aria-live="polite">
      {busy !== '' && <p class="muted small">{busy}…</p>}
      {(copying || loading !== null) && (
        <>
          <Bar
            label={copying ? `${copying.name}, ${checking ? 'checked' : 'copied'}` : 'Loaded'}
            share={share}
          />
          <P class="quiet number" aria-live="off">
            {checking ? 'What is here already, checked: ' : ''}
            {copying && bytes(copying.done)}
            {copying && copying.bytes > 0 && ` of ${bytes(copying.bytes)}, `}
            {(!copying || copying.bytes > 0) && percent(share)}
          </P>
        </>
      )}
      {busy !== '' && <Wait onCancel={cancel} />}
      {problem !== '' && (
        <Notice kind="error">
          <P>{problem}</P>
          <TextInstead />
          {visit && (
            <Button onClick={() => void useForVisit()}>Use it for this visit, without a copy</Button>
          )}
        </Notice>
      )}
    </div>
  );
}

/** The way out where turns cannot be written as a template has them. */
export function TextInstead() {
  const untold = useStore(models, (m) => m.untold);
  return (
    untold && (
      <Button onClick={() => void openWithoutTemplate()}>Let it go on with a text</Button>
    )
  );
}

const loadForeign = () => import('../shelf/foreign_list').then((m) => m.ForeignList);

/** What other pages keep, once room was short. */
function Others() {
  return useStore(models, (m) => m.short) && <Later load={loadForeign} />;
}

function Row({ stored, busy }: { stored: StoredModel; busy: boolean }) {
  const source = useStore(models, (m) => m.opened?.source);
  const open = source !== undefined && 'stored' in source && source.stored === stored.id;
  const [asking, setAsking] = useState(false);
  const size = stored.whole
    ? bytes(stored.bytes)
    : `${bytes(stored.have)} of ${stored.bytes > 0 ? bytes(stored.bytes) : 'it'} are here`;
  return (
    <li>
      <div class="chat-name">
        <h3>{stored.name}</h3>
        <P class="field-help">
          {size}
          {open && <span class="tag tag-accent chat-open">open</span>}
        </P>
        {!stored.whole && stored.address === '' && (
          <P class="field-help">Pick the same file again, and the copy goes on.</P>
        )}
      </div>
      {asking ? (
        <div class="row">
          <Button
            kind="danger"
            onClick={() => {
              setAsking(false);
              void remove(stored);
            }}
          >
            Delete it
          </Button>
          <Button onClick={() => setAsking(false)}>Keep it</Button>
        </div>
      ) : (
        <div class="row">
          {stored.whole && !open && (
            <button
              class="button"
              type="button"
              disabled={busy}
              aria-label={`Choose ${stored.name}`}
              onClick={() => void choose(stored)}
            >
              Choose
            </button>
          )}
          {!stored.whole && stored.address !== '' && (
            <button
              class="button"
              type="button"
              disabled={busy}
              aria-label={`Go on with ${stored.name}`}
              onClick={() => void resume(stored)}
            >
              Go on
            </button>
          )}
          <IconButton
            icon="trash"
            label={`Delete ${stored.name}`}
            onClick={() => !busy && setAsking(true)}
          />
        </div>
      )}
    </li>
  );
}

/** The files of a model that was asked for by its name. */
function Found({ busy }: { busy: boolean }) {
  const found = useStore(models, (m) => m.found);
  if (!found) return null;
  return (
    <div class="stack-tight">
      <h3>{found.repo}</h3>
      {found.licence !== '' && <P class="field-help">Licence: {found.licence}</P>}
      <ul class="chat-models">
        {found.files.map((file) => (
          <li key={file.name}>
            <div class="chat-name">
              <p>{file.name}</p>
              <P class="field-help">{bytes(file.bytes)}</P>
            </div>
            <button
              class="button"
              type="button"
              disabled={busy}
              aria-label={`Fetch ${file.name}`}
              onClick={() => void addHubFile(file)}
            >
              Fetch
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** What a model takes while one talks: its weights, and a conversation. */
const TALK_BYTES = 150e6;

/** Small models to begin with. Nothing is asked of their host until one is wanted. */
function Catalogue({ busy, open }: { busy: boolean; open: boolean }) {
  return (
    <Disclosure summary="Small models to begin with" open={open}>
      <P class="field-help">
        From Hugging Face, which then sees this machine’s address. A copy that breaks off goes on
        later, and is checked by its SHA-256.
      </P>
      <ul class="chat-models">
        {CATALOGUE.map(({ title, repo, file, bytes: size, licence, about }) => (
          <li key={repo}>
            <div class="chat-name">
              <h3>{title}</h3>
              <P class="field-help">
                {about} {bytes(size)}, about {bytes(size + TALK_BYTES)} of memory. Licence: {licence}.
              </P>
            </div>
            <button
              class="button"
              type="button"
              disabled={busy}
              aria-label={`Fetch ${title}`}
              onClick={() => void findOnHub(repo, file)}
            >
              Fetch
            </button>
          </li>
        ))}
      </ul>
    </Disclosure>
  );
}

/** Picks a folder as transformers keeps a model. */
function FolderButton() {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={(element) => {
          input.current = element;
          // Preact knows no such attribute of inputs.
          element?.setAttribute('webkitdirectory', '');
        }}
        type="file"
        hidden
        aria-label="A folder of safetensors"
        onChange={(e) => {
          const files = [...(e.currentTarget.files ?? [])];
          e.currentTarget.value = '';
          if (files.length > 0) void addFolder(files);
        }}
      />
      <Button icon="folder" onClick={() => input.current?.click()}>
        Add a folder
      </Button>
    </>
  );
}

function Add({ busy }: { busy: boolean }) {
  const [address, setAddress] = useState('');
  return (
    <div class="stack-tight">
      <div class="row">
        <FileButton
          label="Add a file"
          single
          onFiles={([file]) => {
            if (file) void addFile(file);
          }}
        />
        <FolderButton />
      </div>
      <form
        class="chat-address"
        onSubmit={(e) => {
          e.preventDefault();
          if (!busy) void addAddress(address);
        }}
      >
        <Field
          label="Or an address"
          help="Of a .gguf file, on a host that lets other pages read it; or a name of Hugging Face, owner/model."
        >
          {({ id, describedBy }) => (
            <input
              id={id}
              class="input"
              type="text"
              inputMode="url"
              autoComplete="off"
              placeholder="https://"
              aria-describedby={describedBy}
              value={address}
              onInput={(e) => setAddress(e.currentTarget.value)}
            />
          )}
        </Field>
        <Button icon="download" submit disabled={busy || address.trim() === ''}>
          Fetch
        </Button>
      </form>
    </div>
  );
}

const OWN: Record<string, string> = {
  true: 'its own template',
  false: 'it has none, and continues a text',
};

/** What counts when a model is loaded: the context, the template, and how exact its memory is. */
export function LoadFields({ of }: { of: Looked }) {
  const { facts } = of;
  const settings = useStore(chatSettings);
  const { ctx, keys } = settings;
  const untold = useStore(models, (m) => m.untold !== null && m.untold.key === of.key);
  const rows = needs(facts, keys);
  const need = nearest(rows, ctx);
  if (!need) return null;
  return (
    <>
      <SelectField
        label="Context"
        value={String(need.ctx)}
        options={rows.map((row) => ({
          value: String(row.ctx),
          label: `${count(row.ctx)} tokens, ${bytes(row.total)}`,
        }))}
        help="How much of a conversation it can look back on."
        onChange={(value) => chatSettings.patch({ ctx: Number(value) })}
      />
      <Disclosure summary="Template and kind of memory" open={untold}>
        <SelectField
          label="How turns are written"
          value={templateFor(settings, of.key)}
          options={[
            { value: '', label: `As the file says: ${OWN[String(facts.template)]}` },
            ...facts.templates.map((name) => ({ value: name, label: name })),
            { value: NO_TEMPLATE, label: 'Not at all: it continues a text' },
          ]}
          onChange={(value) => chooseTemplate(of, value)}
        />
        <SelectField
          label="The conversation is kept"
          value={keys}
          options={Object.entries(KEY_TYPES).map(([value, label]) => ({
            value: value as KeyType,
            label,
          }))}
          help="Less exact keys and values take less memory, and a little longer to read."
          onChange={(value) => chatSettings.patch({ keys: value })}
        />
      </Disclosure>
    </>
  );
}

/** What the chosen model is and takes, before it is loaded. */
export function ForecastCard() {
  const { chosen, opened, busy } = useStore(models);
  const { ctx, keys } = useStore(chatSettings);
  const writing = useStore(talk, (t) => t.writing !== null);
  if (!chosen || chosen.source === opened?.source) return null;
  const { facts } = chosen;
  const rows = needs(facts, keys);
  const need = nearest(rows, ctx);
  if (!need) return null;
  const problem = warning(need, deviceGib());
  return (
    <Card title={<span>{chosen.name}</span>} aside={<span>{facts.name}</span>}>
      <dl class="stats">
        <Stat
          name="Parameters"
          value={roughCount(facts.params)}
          note={`${facts.family}, ${facts.layers} layers`}
        />
        <Stat name="Weights" value={bytes(need.weights)} />
        <Stat name="Conversation" value={bytes(need.cache)} note={`${count(need.ctx)} tokens`} />
        <Stat name="Memory in all" value={bytes(need.total)} />
      </dl>
      <LoadFields of={chosen} />
      {problem !== '' && (
        <Notice kind="warning">
          <P>{problem}</P>
        </Notice>
      )}
      <div class="row">
        <Button
          kind="primary"
          icon="play"
          disabled={busy !== '' || writing}
          onClick={() => void openChosen()}
        >
          Load it
        </Button>
      </div>
    </Card>
  );
}
