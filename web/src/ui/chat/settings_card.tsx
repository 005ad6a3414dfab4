// SPDX-License-Identifier: Apache-2.0
/** settings_card.tsx - the system prompt, how tokens are drawn, and how long answers may be. */
import { Button } from '../parts/button';
import { Card, Disclosure } from '../parts/card';
import { Field, NumberField } from '../parts/fields';
import { P } from '../parts/term';
import { useStore } from '../store';
import { describe } from '../write/settings';
import { SettingsFields } from '../write/settings_fields';
import { chatSettings, closeModel, models, openAgain } from './models';
import { LoadFields } from './models_card';
import { CHAT_FIELDS } from './settings';

function Lines(p: { label: string; help: string; of: 'system' | 'banned' | 'stops' | 'bias' }) {
  const settings = useStore(chatSettings);
  return (
    <Field label={p.label} help={p.help}>
      {({ id, describedBy }) => (
        <textarea
          id={id}
          class="input"
          rows={2}
          aria-describedby={describedBy}
          value={settings[p.of]}
          onInput={(e) => chatSettings.patch({ [p.of]: e.currentTarget.value })}
        />
      )}
    </Field>
  );
}

export function SettingsCard() {
  const { opened, chosen, busy } = useStore(models);
  const settings = useStore(chatSettings);
  if (!opened && !chosen) return null;
  return (
    <Card title="Settings" aside={describe(settings.sampling, 'token')}>
      <Lines
        label="System prompt"
        help="What the model is told before everything else. Empty: nothing."
        of="system"
      />
      <Disclosure summary="How tokens are drawn">
        <SettingsFields
          value={settings.sampling}
          fields={CHAT_FIELDS}
          onChange={(sampling) => chatSettings.patch({ sampling })}
        />
      </Disclosure>
      <Disclosure summary="Words">
        <Lines label="Never write" help="A text a line." of="banned" />
        <Lines label="End at" help="A text a line; the answer ends before it." of="stops" />
        <Lines
          label="More or less likely"
          help="A text, a space and a number a line, such as “blue -5”: added to the logits of its tokens."
          of="bias"
        />
      </Disclosure>
      <Disclosure summary="Length of answers">
        <NumberField
          label="An answer has at most"
          value={settings.limit}
          min={1}
          max={1_000_000}
          whole
          help="Tokens. One that was cut there can go on."
          onChange={(limit) => chatSettings.patch({ limit })}
        />
      </Disclosure>
      {opened && (
        <Disclosure summary="How the model is loaded">
          <LoadFields of={opened} />
          <P class="quiet">What you change here counts once the model is loaded again.</P>
          <Button disabled={busy !== ''} onClick={() => void openAgain()}>
            Load it again
          </Button>
          <Button disabled={busy !== ''} onClick={() => void closeModel()}>
            Close the model
          </Button>
        </Disclosure>
      )}
    </Card>
  );
}
