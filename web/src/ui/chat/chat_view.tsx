// SPDX-License-Identifier: Apache-2.0
/**
 * chat_view.tsx - Chat: third-party models, kept in this browser, and conversations with them.
 *
 * Without a model and a conversation it is a page of cards. With one it is as high as the window:
 * the conversation, what is typed at the bottom, and a drawer beside them, over them on a phone.
 */
import { useEffect, useRef } from 'preact/hooks';
import { IconButton } from '../parts/button';
import { Icon } from '../parts/icon';
import { keys } from '../shortcuts';
import { useStore } from '../store';
import { DeviceCard } from './device_card';
import { type Drawer, drawer, openDrawer } from './drawer';
import { models } from './models';
import { ForecastCard, ModelsCard } from './models_card';
import { NotesPane } from './notes_pane';
import { SettingsCard } from './settings_card';
import { newTalk, startTalks, talk } from './talk';
import { talkName } from './talk_doc';
import { TalkPane } from './talk_pane';
import { TalksCard } from './talks_card';
import { TextPane } from './text_pane';
import './chat.css';

export default function ChatView() {
  const opened = useStore(models, (m) => m.opened);
  const said = useStore(talk, (t) => t.turns.length > 0);
  const open = useStore(drawer, (d) => d.open);
  useEffect(() => void startTalks(), []);
  if (!opened && !said) {
    return (
      <div class="stack">
        <ForecastCard />
        <ModelsCard />
        <DeviceCard />
        <SettingsCard />
        <TalksCard />
      </div>
    );
  }
  return (
    <div class="chat-full">
      <Head />
      <div class="chat-body">
        <Pane />
        {open !== '' && <Aside open={open} />}
      </div>
    </div>
  );
}

/** By what the open model can do. */
function Pane() {
  const opened = useStore(models, (m) => m.opened);
  if (opened && !opened.info.writes) return <NotesPane />;
  return opened?.template === null ? <TextPane /> : <TalkPane />;
}

function Head() {
  const { name, turns, draft, model } = useStore(talk);
  const opened = useStore(models, (m) => m.opened);
  const place = useStore(models, (m) => m.place);
  const where = place?.device === 'webgpu' ? `, on ${place.name}` : '';
  // A model that does not write has no conversations.
  const talks = opened === null || opened.info.writes;
  const title = turns.length > 0 ? talkName({ name, turns, draft }) : 'New conversation';
  return (
    <header class="chat-head">
      <div class="chat-title">
        <h2>{talks ? title : 'Search my notes'}</h2>
        <p class="quiet">{opened ? opened.name + where : (model?.name ?? '')}</p>
      </div>
      <div class="chat-bar">
        {talks && (
          <>
            <button class="button button-plain" type="button" onClick={newTalk} aria-label="New conversation">
              <Icon name="pen" size={18} />
              <span>New</span>
            </button>
            <Toggle of="talks" icon="chat" label="Conversations" />
          </>
        )}
        <Toggle of="models" icon="layers" label="Models" />
        {talks && <Toggle of="settings" icon="sliders" label="Settings" />}
      </div>
    </header>
  );
}

function Toggle({ of, icon, label }: {
  of: Drawer;
  icon: 'chat' | 'layers' | 'sliders';
  label: string;
}) {
  const open = useStore(drawer, (d) => d.open === of);
  return (
    <button
      class="button button-plain"
      type="button"
      aria-label={label}
      aria-expanded={open}
      aria-controls={open ? 'chat-aside' : undefined}
      onClick={() => openDrawer(open ? '' : of)}
    >
      <Icon name={icon} size={18} />
      <span>{label}</span>
    </button>
  );
}

function Aside({ open }: { open: Drawer }) {
  const box = useRef<HTMLElement>(null);
  useEffect(() => box.current?.focus({ preventScroll: true }), [open]);
  const close = () => openDrawer('');
  return (
    <aside
      ref={box}
      id="chat-aside"
      class="chat-aside"
      tabIndex={-1}
      aria-label="Beside the conversation"
      onKeyDown={keys('side', { close })}
    >
      <div class="chat-aside-close">
        <IconButton icon="close" label="Close this side" onClick={close} />
      </div>
      {open === 'talks' && <TalksCard />}
      {open === 'models' && (
        <>
          <ForecastCard />
          <ModelsCard />
          <DeviceCard />
        </>
      )}
      {open === 'settings' && <SettingsCard />}
    </aside>
  );
}
