// SPDX-License-Identifier: Apache-2.0
/** wait.tsx - something that takes its time: what it is, how far it is if that is known, a way out. */
import { useEffect, useState } from 'preact/hooks';
import { Button } from './button';
import { Bar } from './stat';

/** What is over sooner shows no button, which would only come and go. */
const SOON_MS = 800;

export function Wait(p: {
  /** What is being done; it may be said elsewhere. */
  words?: string;
  /** 0..1 of it; null: not known. */
  share?: number | null;
  onCancel: () => void;
}) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), SOON_MS);
    return () => clearTimeout(timer);
  }, []);
  const known = p.share !== undefined && p.share !== null;
  if (!late && !known) return p.words ? <p class="muted small">{p.words}…</p> : null;
  return (
    <div class="row wait">
      {p.words && <p class="muted small">{p.words}…</p>}
      {known && <Bar label={p.words ?? 'Share of it that has arrived'} share={p.share ?? 0} />}
      <Button icon="close" onClick={p.onCancel}>
        Cancel
      </Button>
    </div>
  );
}
