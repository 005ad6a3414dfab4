// SPDX-License-Identifier: Apache-2.0
/** start_problem.ts - why a run cannot begin now, in words of the page; '' if it can. */
import { engineState } from '../engine';
import { bytes } from '../format';
import { useStore } from '../store';
import { findingWords } from '../text/finding_words';
import { forecast } from './forecast';
import { wantedText } from './route';
import { textState } from './text';

export const GETTING_READY = 'Getting ready';

export function useStartProblem(): string {
  const engine = useStore(engineState, (e) => e.status);
  const text = useStore(textState);
  const wanted = useStore(wantedText);
  const needs = useStore(forecast, (f) => f.value);
  if (engine === 'failed') return 'The engine could not be started.';
  if (text.status === 'loading' || engine === 'opening') return GETTING_READY;
  if (!text.blob) return 'A text is needed.';
  const error = text.findings?.find((f) => f.level === 'error');
  if (error) return findingWords(error);
  if (needs && needs.memoryAvailableBytes > 0 && needs.memoryBytes > needs.memoryAvailableBytes) {
    return (
      `This model needs ${bytes(needs.memoryBytes)} of memory, and there are ` +
      `${bytes(needs.memoryAvailableBytes)}. A smaller size or a smaller batch fits.`
    );
  }
  return wanted && text.hashing ? GETTING_READY : '';
}
