// SPDX-License-Identifier: Apache-2.0
/** tokens_choice.tsx - what a fresh model reads and writes one by one. */
import { Choice } from '../parts/fields';
import { P } from '../parts/term';
import { SettingFields } from '../run/setting_fields';
import { TOKENS } from '../run/settings';
import { settings } from '../state/route';
import { useStore } from '../store';

export function TokensChoice() {
  const chosen = useStore(settings, (s) => s.tokens);
  return (
    <div class="stack-tight">
      <Choice
        label="It reads"
        value={chosen}
        options={TOKENS}
        onChange={(tokens) => settings.patch({ tokens })}
      />
      <P class="field-help">{TOKENS.find((t) => t.value === chosen)?.about}</P>
      {chosen === 'pieces' && <SettingFields group="tokens" />}
    </div>
  );
}
