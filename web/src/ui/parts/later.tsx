// SPDX-License-Identifier: Apache-2.0
/** later.tsx - a view, or a part of one, whose script comes when it is wanted. */
import type { ComponentChildren, ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Missing } from './missing';

/** Stylesheets that did not come. */
const lost = new Set<string>();

function lose({ target }: Event): void {
  if (!(target instanceof HTMLLinkElement) || target.rel !== 'stylesheet') return;
  lost.add(target.href);
  target.remove();
}
addEventListener('error', lose, { capture: true });

/** The bundler asks for a stylesheet once (Vite 8.3.8), and has what needs it shown without it from
 *  then on: it is asked for here until it comes. */
async function styles(): Promise<void> {
  const asked = [...lost].map((href) => new Promise<void>((resolve, reject) => {
    const link = document.createElement('link');
    link.rel = 'stylesheet';
    link.href = href;
    link.onload = () => {
      lost.delete(href);
      resolve();
    };
    link.onerror = reject;
    document.head.append(link);
  }));
  await Promise.all(asked);
}

type Part = { is: 'ready'; component: ComponentType } | { is: 'loading' | 'failed' };

/** Until the script is there it shows `wait`; one that does not come can be asked for again. */
export function Later({ load, wait }: {
  load: () => Promise<ComponentType>;
  wait?: ComponentChildren;
}) {
  const [part, setPart] = useState<Part>({ is: 'loading' });
  const [tries, setTries] = useState(1);
  useEffect(() => {
    let gone = false;
    load()
      .then(async (component) => {
        await styles();
        if (!gone) setPart({ is: 'ready', component });
      })
      .catch(() => gone || setPart({ is: 'failed' }));
    return () => {
      gone = true;
    };
  }, [tries]);
  if (part.is === 'ready') return <part.component />;
  if (part.is === 'loading') return <>{wait}</>;
  return <Missing again={() => setTries(tries + 1)} />;
}
