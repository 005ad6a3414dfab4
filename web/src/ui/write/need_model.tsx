// SPDX-License-Identifier: Apache-2.0
/** need_model.tsx - what Write and Watch it think show while there is no model. */
import { Button } from '../parts/button';
import { Card } from '../parts/card';
import { Later } from '../parts/later';
import { P } from '../parts/term';
import { Wait } from '../parts/wait';
import { cancelFiles } from '../state/files';
import { openView } from '../state/route';
import { opensModel } from '../state/tour';
import { useStore } from '../store';

const loadReady = () => import('../gallery/ready_models').then((m) => m.default);

export function NeedModel({ what }: { what: string }) {
  if (useStore(opensModel)) return <Wait words="Opening a model" onCancel={cancelFiles} />;
  return (
    <Card title="No model yet">
      <P class="muted">
        There is no model to {what}. Train one: some seconds are enough, and it can go on learning
        meanwhile. Or open a model file.
      </P>
      <div class="row">
        <Button kind="primary" icon="play" onClick={() => openView('start')}>
          Train one
        </Button>
        <Button icon="folder" onClick={() => openView('files')}>
          Open a file
        </Button>
      </div>
      <Later load={loadReady} />
    </Card>
  );
}
