// SPDX-License-Identifier: Apache-2.0
/** foreign_list.tsx - what other pages at this address keep, to be deleted where room is short. */
import { useEffect, useState } from 'preact/hooks';
import { Button } from '../parts/button';
import { Notice } from '../parts/notice';
import { P } from '../parts/term';
import { bytes } from '../format';
import { plainError } from '../plain_error';
import { type Foreign, findForeign, foreign, removeForeign } from '../state/foreign';
import { useStore } from '../store';
import './foreign.css';

const KINDS: Record<Foreign['kind'], string> = {
  files: 'Files',
  cache: 'Cache',
  database: 'Database',
};

/** Nothing, where there is none. */
export function ForeignList() {
  const list = useStore(foreign);
  const [problem, setProblem] = useState('');
  useEffect(() => void findForeign(), []);
  if (!list || (list.length === 0 && problem === '')) return null;
  return (
    <section class="stack-tight" aria-label="Kept by other pages">
      <h3>Kept by other pages</h3>
      <P class="quiet">
        Pages at {location.host} share one room. These things are not this page’s. Whoever needs them
        may miss them.
      </P>
      <ul class="foreign">
        {list.map((one) => (
          <Row key={`${one.kind} ${one.name}`} one={one} onProblem={setProblem} />
        ))}
      </ul>
      {problem !== '' && (
        <Notice kind="error">
          <P>{problem}</P>
        </Notice>
      )}
    </section>
  );
}

function Row({ one, onProblem }: { one: Foreign; onProblem: (problem: string) => void }) {
  const [asking, setAsking] = useState(false);
  const remove = () => {
    setAsking(false);
    onProblem('');
    removeForeign(one).catch((e: unknown) => onProblem(plainError(e)));
  };
  return (
    <li>
      <p class="foreign-name">
        {one.name}
        <span class="field-help">
          {KINDS[one.kind]}
          {one.bytes !== null && `, ${bytes(one.bytes)}`}
        </span>
      </p>
      {asking ? (
        <div class="row">
          <Button kind="danger" onClick={remove}>
            Delete it for good
          </Button>
          <Button onClick={() => setAsking(false)}>Keep it</Button>
        </div>
      ) : (
        <button
          class="button"
          type="button"
          aria-label={`Delete ${one.name}`}
          onClick={() => setAsking(true)}
        >
          Delete
        </button>
      )}
    </li>
  );
}
