// SPDX-License-Identifier: Apache-2.0
/** help.tsx - all keys and all words of the page, over the view. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { IconButton } from '../parts/button';
import { GLOSSARY } from '../parts/glossary';
import { openHelp, type Place, type Shortcut, SHORTCUTS } from '../shortcuts';
import './help.css';

const PLACES: Readonly<Record<Place, string>> = {
  page: 'Everywhere',
  write: 'In a text that the model goes on with',
  chat: 'In Chat',
  side: 'Beside a conversation',
  picture: 'In a curve, a map, a table or a row of letters',
  tour: 'In the tour',
};

const KEYS: Readonly<Record<string, string>> = {
  ArrowLeft: '←',
  ArrowRight: '→',
  ArrowUp: '↑',
  ArrowDown: '↓',
  PageUp: 'Page up',
  PageDown: 'Page down',
};

export function Help() {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => box.current?.showModal(), []);
  return (
    <dialog
      ref={box}
      class="help"
      aria-label="Keys and words"
      onClose={() => openHelp(false)}
      onClick={(e) => {
        // The ground around it is the dialog itself; everything else is in its body.
        if (e.target === box.current) box.current?.close();
      }}
    >
      <div class="help-body">
        <div class="help-close">
          <IconButton icon="close" label="Close" onClick={() => box.current?.close()} />
        </div>
        <h2>Keys</h2>
        {(Object.keys(PLACES) as Place[]).map((place) => (
          <section key={place}>
            <h3>{PLACES[place]}</h3>
            <dl class="help-keys">
              {(SHORTCUTS[place] as readonly Shortcut[]).map(([id, keys, does]) => (
                <div key={id}>
                  <dt>
                    {keys.map((key) => (
                      <kbd key={key}>{key.split('+').map((k) => KEYS[k] ?? k).join(' + ')}</kbd>
                    ))}
                  </dt>
                  <dd>{does}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
        <h2>Words</h2>
        <p class="quiet">A word with dots under it tells the same when it is tapped.</p>
        <Glossary />
      </div>
    </dialog>
  );
}

/** All words, in the order of the alphabet; a search when one is looked for. */
function Glossary() {
  const [wanted, setWanted] = useState('');
  const names = Object.keys(GLOSSARY).sort((a, b) => a.localeCompare(b));
  const shown = names.filter((name) =>
    `${name} ${GLOSSARY[name]?.means}`.toLowerCase().includes(wanted.trim().toLowerCase()));
  return (
    <>
      <input
        class="input"
        type="search"
        aria-label="Search a word"
        placeholder="Search"
        value={wanted}
        onInput={(e) => setWanted(e.currentTarget.value)}
      />
      <dl class="glossary">
        {shown.map((name) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{GLOSSARY[name]?.means}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}
