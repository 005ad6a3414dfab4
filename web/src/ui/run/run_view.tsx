// SPDX-License-Identifier: Apache-2.0
/** run_view.tsx - how a run learns, its buttons, the link that reproduces it, and other runs. */
import { useState } from 'preact/hooks';
import { Button } from '../parts/button';
import { Card, Disclosure } from '../parts/card';
import { Field, SelectField } from '../parts/fields';
import { Notice } from '../parts/notice';
import { P } from '../parts/term';
import { ForecastCard } from '../model/forecast_card';
import { settings, shareLink, sizeChosen, textRef, view } from '../state/route';
import { askToNotify, tellAtEnd, useRun } from '../state/run';
import { useStore } from '../store';
import { WantedText } from '../text/wanted_text';
import { DeviceCard } from './device_card';
import { CompareList } from './compare_list';
import { ContinueForm, RunButtons } from './run_buttons';
import { SettingFields } from './setting_fields';
import { SCHEDULES } from './settings';
import './run.css';

export default function RunView() {
  const s = useStore(settings);
  const busy = useRun((r) => r.phase === 'running' || r.phase === 'paused');
  return (
    <div class="stack">
      <WantedText />
      <div class="columns">
        <div class="stack">
          <Card title="How it learns">
            {busy && (
              <Notice kind="info">
                <P>
                  A run is in progress with the settings it was started with. Changes count for the
                  next one.
                </P>
              </Notice>
            )}
            <div class="run-groups">
              <section aria-label="Length">
                <h3>Length</h3>
                <SettingFields group="length" />
                <Disclosure summary="More about length">
                  <SettingFields group="length" advanced />
                </Disclosure>
              </section>
              <section aria-label="Rate">
                <h3>Rate</h3>
                <div class="grid">
                  <SelectField
                    label="Schedule"
                    help="What the rate does after the warm-up."
                    value={s.schedule}
                    options={SCHEDULES}
                    onChange={(schedule) => {
                      sizeChosen.set(true);
                      settings.patch({ schedule });
                    }}
                  />
                </div>
                <SettingFields group="rate" />
                <Disclosure summary="More about rate">
                  <SettingFields group="rate" advanced />
                </Disclosure>
              </section>
              <section aria-label="Checks and samples">
                <h3>Checks and samples</h3>
                <SettingFields group="check" />
                <Disclosure summary="More about checks">
                  <SettingFields group="check" advanced />
                </Disclosure>
              </section>
              <section aria-label="To repeat it">
                <h3>To repeat it</h3>
                <SettingFields group="repeat" />
              </section>
            </div>
          </Card>
        </div>
        <div class="stack">
          <Card title="The run">
            <RunButtons />
            <ContinueForm />
            <TellMe />
          </Card>
          <DeviceCard />
          <ForecastCard />
          <ShareCard />
          <Card title="Compare with">
            <CompareList />
          </Card>
        </div>
      </div>
    </div>
  );
}

/** A notification at the end; the browser is asked for leave only on this click. */
export function TellMe() {
  const on = useStore(tellAtEnd);
  const [refused, setRefused] = useState(false);
  if (!('Notification' in window)) return null;
  if (on)
    return (
      <P class="quiet" role="status">
        You will be told when it has finished.
      </P>
    );
  return (
    <div>
      <Button
        icon="bell"
        onClick={() =>
          void askToNotify().then(
            (yes) => setRefused(!yes),
            () => setRefused(true),
          )
        }
      >
        Tell me when it is done
      </Button>
      {refused && (
        <P class="field-help" role="status">
          The browser does not let this page notify you. Its settings for this page can change that.
        </P>
      )}
    </div>
  );
}

function ShareCard() {
  // All three decide the link.
  useStore(settings);
  useStore(view);
  const ref = useStore(textRef);
  const [copied, setCopied] = useState('');
  const link = shareLink();
  const copy = () => {
    navigator.clipboard.writeText(link).then(
      () => setCopied('Copied.'),
      () => setCopied('The browser does not let this page copy: select the link and copy it.'),
    );
  };
  return (
    <Card title="Link to this run">
      <P class="small muted">
        Holds every setting{ref ? ', and the fingerprint of the text' : ''}, never the text itself.
        {ref?.stories === undefined
          ? ' Whoever opens it and gives the same text gets the same curve.'
          : ' The stories are written anew from their seed, so that whoever opens it gets the ' +
            'same curve.'}
      </P>
      <Field label="Link">
        {({ id }) => (
          <textarea
            id={id}
            class="input run-link"
            rows={4}
            readOnly
            value={link}
            spellcheck={false}
          />
        )}
      </Field>
      <div class="row">
        <Button icon="copy" onClick={copy}>
          Copy
        </Button>
        <span class="quiet" role="status">
          {copied}
        </span>
      </div>
    </Card>
  );
}
