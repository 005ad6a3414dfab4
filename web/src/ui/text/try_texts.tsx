// SPDX-License-Identifier: Apache-2.0
/** try_texts.tsx - texts made by rule, for who has none at hand: what else a model can learn. */
import { P } from '../parts/term';
import { useStore } from '../store';
import { takeFiles, textState } from '../state/text';
import { MADE, madeText } from './made';

const BYTES = 500_000;
const SEED = 1;

export function TryTexts() {
  const name = useStore(textState, ({ origin: o }) => (o.kind === 'files' ? o.names[0] : ''));
  return (
    <div class="text-try">
      <P class="field-help" id="text-try">
        Or one that is made by rule, 500 kB, free to use (Apache-2.0):
      </P>
      <ul aria-labelledby="text-try">
        {MADE.map(({ id, title, about }) => (
          <li key={id}>
            <button
              type="button"
              class="chip"
              title={about}
              aria-pressed={name === `${id}.txt`}
              onClick={() => {
                void takeFiles([new File([madeText(id, SEED, BYTES)], `${id}.txt`)]);
              }}
            >
              {title}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
