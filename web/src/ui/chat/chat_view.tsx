// SPDX-License-Identifier: Apache-2.0
/** chat_view.tsx - Chat: third-party models, kept in this browser, and a conversation with one. */
import { useStore } from '../store';
import { models } from './models';
import { ForecastCard, ModelsCard } from './models_card';
import { SettingsCard } from './settings_card';
import { TalkCard } from './talk_card';
import './chat.css';

export default function ChatView() {
  const open = useStore(models, (m) => m.opened !== null);
  return (
    <div class={open ? 'columns' : 'stack'}>
      {open && <TalkCard />}
      <div class="stack">
        <ModelsCard />
        <ForecastCard />
        <SettingsCard />
      </div>
    </div>
  );
}
