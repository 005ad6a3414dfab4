// SPDX-License-Identifier: Apache-2.0
/** missing.tsx - what stands in place of a part of the page whose script did not come. */
import { Button } from './button';
import { Notice } from './notice';

/** A connection that is back helps the first button; where the page's server has a newer version, and
 *  the old scripts no more, it is the second. Before it leaves what is not saved the page asks. */
export function Missing({ again }: { again: () => void }) {
  return (
    <Notice kind="error">
      <p>
        This part of the page could not be loaded. Is the connection to its server still there? If
        the page has been renewed meanwhile, load it again.
      </p>
      <div class="row">
        <Button onClick={again}>Try again</Button>
        <Button onClick={() => location.reload()}>Load the page again</Button>
      </div>
    </Notice>
  );
}
