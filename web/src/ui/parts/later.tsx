// SPDX-License-Identifier: Apache-2.0
/** later.tsx - a part of a view whose script comes when the part is wanted. */
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';

/** A part that does not come leaves the rest of the view as it is. */
export function Later({ load }: { load: () => Promise<ComponentType> }) {
  const [part, setPart] = useState<{ component: ComponentType } | null>(null);
  useEffect(() => {
    let gone = false;
    load().then(
      (component) => gone || setPart({ component }),
      () => {},
    );
    return () => {
      gone = true;
    };
  }, []);
  return part && <part.component />;
}
