// SPDX-License-Identifier: Apache-2.0
/** chat_view.tsx - Chat: third-party models, kept in this browser, and conversations with them. */
import { useEffect } from 'preact/hooks';
import { useStore } from '../store';
import { models } from './models';
import { ForecastCard, ModelsCard } from './models_card';
import { SettingsCard } from './settings_card';
import { startTalks, talk } from './talk';
import { TalkCard } from './talk_card';
import { TalksCard } from './talks_card';
import './chat.css';

export default function ChatView() {
  const open = useStore(models, (m) => m.opened !== null);
  const said = useStore(talk, (t) => t.turns.length > 0);
  useEffect(() => void startTalks(), []);
  return (
    <div class={open || said ? 'columns' : 'stack'}>
      {(open || said) && <TalkCard />}
      <div class="stack">
        {!open && <ModelsCard />}
        <ForecastCard />
        <TalksCard />
        {open && <ModelsCard />}
        <SettingsCard />
      </div>
    </div>
  );
}
