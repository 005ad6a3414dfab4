// SPDX-License-Identifier: Apache-2.0
/** verdict_card.tsx - the end of a run: what came of it, and what to do next. */
import { Button } from '../parts/button';
import { Card } from '../parts/card';
import { Notice } from '../parts/notice';
import { P } from '../parts/term';
import { count } from '../format';
import { findSize } from '../model/presets';
import { withSize } from '../run/settings';
import { openView, settings, sizeChosen } from '../state/route';
import { controller, goOn, useRun } from '../state/run';
import { VIEWS } from '../state/views';
import type { NextAction } from './verdict';

export function VerdictCard() {
  const v = useRun((s) => s.verdict);
  const problem = useRun((s) => (s.phase === 'failed' ? s.problem : ''));
  if (problem !== '') return <Failure problem={problem} />;
  if (!v) return null;
  return (
    <Card title={v.title} class="live-verdict">
      {v.reasons.map((r) => (
        <P key={r}>{r}</P>
      ))}
      <div class="row">
        {v.actions.map((a, i) => (
          <ActionButton key={a.do} action={a} first={i === 0} />
        ))}
      </div>
    </Card>
  );
}

function Failure({ problem }: { problem: string }) {
  const saved = useRun((s) => s.savedStep);
  return (
    <Card title="The run has stopped">
      <Notice kind="error">
        <P>{problem}</P>
        {saved !== null && <P>The save at step {count(saved)} is intact.</P>}
      </Notice>
      <div class="row">
        {controller.lastSave && (
          <Button icon="folder" onClick={() => openView('files')}>
            Download the last save
          </Button>
        )}
        <Button icon="sliders" onClick={() => openView('run')}>
          Change the settings
        </Button>
      </div>
    </Card>
  );
}

function ActionButton({ action: a, first }: { action: NextAction; first: boolean }) {
  const kind = first ? 'primary' : undefined;
  switch (a.do) {
    case 'write':
      if (!VIEWS.some((v) => v.id === 'write')) return null;
      return (
        <Button kind={kind} icon="pen" onClick={() => openView('write')}>
          Let it write
        </Button>
      );
    case 'download':
      return (
        <Button kind={kind} icon="download" onClick={() => openView('files')}>
          Download it
        </Button>
      );
    case 'continue':
      return (
        <Button kind={kind} icon="play" onClick={() => goOn(a.steps)}>
          {a.steps > 0 ? `Continue for ${count(a.steps)} more` : 'Continue'}
        </Button>
      );
    case 'size': {
      const size = findSize(a.name);
      if (!size) return null;
      return (
        <Button
          kind={kind}
          icon="layers"
          onClick={() => {
            sizeChosen.set(true);
            settings.set(withSize(settings.get(), size));
            openView('start');
          }}
        >
          Try {a.name}
        </Button>
      );
    }
    case 'text':
      return (
        <Button kind={kind} icon="text" onClick={() => openView('text')}>
          Give it more text
        </Button>
      );
    case 'settings':
      return (
        <Button kind={kind} icon="sliders" onClick={() => openView('run')}>
          Change the settings
        </Button>
      );
  }
}
