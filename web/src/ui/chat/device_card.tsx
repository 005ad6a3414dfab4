// SPDX-License-Identifier: Apache-2.0
/** device_card.tsx - where Chat computes: what is in use, and what the other device would bring. */
import { useEffect } from 'preact/hooks';
import type { DeviceName } from '../../lib/types';
import { Button } from '../parts/button';
import { Card } from '../parts/card';
import { Choice } from '../parts/fields';
import { Notice } from '../parts/notice';
import { P } from '../parts/term';
import { useStore } from '../store';
import { device, findDevice, gain, isOffered } from './device';
import { changeDevice, measureDevices, models } from './models';
import { talk } from './talk';

const DEVICES: readonly { value: DeviceName; label: string }[] = [
  { value: 'cpu', label: 'CPU' },
  { value: 'webgpu', label: 'GPU' },
];

export function DeviceCard() {
  const state = useStore(device);
  const { opened, busy, place } = useStore(models);
  const writing = useStore(talk, (t) => t.writing !== null);
  useEffect(() => void findDevice(), []);
  const { adapter, wanted, speeds } = state;
  if (!adapter) return null;
  const fell = place && wanted === 'webgpu' && place.device === 'cpu';
  const told = speeds && speeds.model === opened?.name ? gain(speeds.of) : '';
  return (
    <Card title="Where it computes">
      {isOffered(state) ? (
        <Choice
          label="Device"
          unlabelled
          value={wanted}
          options={DEVICES}
          disabled={busy !== '' || writing}
          onChange={(to) => void changeDevice(to)}
        />
      ) : (
        <P class="quiet">On the CPU. {adapter.note}</P>
      )}
      {place && <P class="quiet" role="status">In use: {place.name}</P>}
      {place?.software && (
        <Notice kind="info">
          <P>This adapter is software: it computes on the CPU, and slower than the CPU itself.</P>
        </Notice>
      )}
      {fell && place.note !== '' && (
        <Notice kind="warning">
          <P>{place.note}</P>
        </Notice>
      )}
      {told !== '' && <P class="small">{told}</P>}
      {adapter.state === 'hardware' && opened?.info.writes && (
        <div class="row">
          <Button disabled={busy !== '' || writing} onClick={() => void measureDevices()}>
            Measure both
          </Button>
        </div>
      )}
    </Card>
  );
}
