// SPDX-License-Identifier: Apache-2.0
/** device_card.tsx - where it computes: the CPU or the GPU, and what that is. */
import type { DeviceName } from '../../lib/types';
import { useEngine, wantedDevice } from '../engine';
import { Card } from '../parts/card';
import { Choice } from '../parts/fields';
import { Notice } from '../parts/notice';
import { P } from '../parts/term';
import { chooseDevice, moving, useRun } from '../state/run';
import { useStore } from '../store';

const DEVICES: readonly { value: DeviceName; label: string }[] = [
  { value: 'cpu', label: 'CPU' },
  { value: 'webgpu', label: 'GPU' },
];

export function DeviceCard() {
  const { info, status } = useEngine();
  const busy = useStore(moving);
  const preparing = useRun((r) => r.phase === 'preparing');
  const device = info?.device ?? null;
  const note = device === 'cpu' && wantedDevice() === 'webgpu' ? info?.notes.at(-1) : '';
  return (
    <Card title="Where it computes">
      <Choice
        label="Device"
        unlabelled
        value={device}
        options={DEVICES}
        disabled={busy || preparing || status !== 'ready'}
        onChange={(wanted) => void chooseDevice(wanted)}
      />
      <P class="quiet" role="status">
        {busy
          ? 'Changing over …'
          : info?.gpu
            ? info.gpu.adapter
            : 'A run goes along when the device is changed.'}
      </P>
      {info?.gpu?.software && (
        <Notice kind="info">
          <P>This adapter is software: it computes on the CPU, and slower than the CPU itself.</P>
        </Notice>
      )}
      {note && (
        <Notice kind="warning">
          <P>{note}</P>
        </Notice>
      )}
    </Card>
  );
}
