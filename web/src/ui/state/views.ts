// SPDX-License-Identifier: Apache-2.0
/**
 * views.ts - the list of views, in the order of the navigation, which has five entries: the views of
 * an entry are shown below it while one of them is open.
 *
 * How to add a view:
 *  - Put it into a folder of its own, `name/name_view.tsx`, default export: a component without
 *    props. Pure logic goes into files of its own with tests beside them. Add a line below, and
 *    one to shell/body.tsx. The file is loaded when the view is first opened, and ahead of time
 *    when the page is idle.
 *  - The shell draws <main>, the <h1> with the title, and the hint under it. A view starts with
 *    <Card> sections (parts/card.tsx), whose headings are <h2>.
 *  - A view is unmounted when another one is opened: what should survive lies in a Store at module
 *    level (store.ts; read by useStore).
 *  - engine.ts: useEngine() gives { status, engine, info, generation }; whenEngine() waits for it.
 *    `generation` grows when the module was rebuilt after a trap: objects made before are gone.
 *  - state/current.ts: the model that Write and Watch it think work on, be it in training or from a
 *    file; `tick` grows as it learns. Never free that model.
 *  - state/notices.ts: notify('error', text) for what a person must hear wherever they are.
 *    plain_error.ts: plainError(e) gives a plain sentence for any thrown value.
 *  - parts/: Button, Card, Field, NumberField, SelectField, Choice, Stat, Notice, Chart, Icon.
 *  - CSS: a file beside the view, imported by it; class names start with the view's id; colours,
 *    spaces and type sizes only by the custom properties of styles/tokens.css. No style attributes
 *    in HTML strings and no <style> elements: the page's CSP has no 'unsafe-inline'. The style prop
 *    of Preact is fine, it goes through the CSSOM.
 *  - Targets are at least 44 px (--touch). Charts and pictures have a text alternative. Progress is
 *    told in a polite live region, at most once in some seconds.
 */
import type { IconName } from '../parts/icon';

export type ViewId =
  | 'start'
  | 'text'
  | 'model'
  | 'run'
  | 'live'
  | 'shelf'
  | 'write'
  | 'think'
  | 'chat'
  | 'files'
  | 'machine'
  | 'bench';

export const GROUPS = ['Learn', 'Write', 'Watch it think', 'Chat', 'More'] as const;
export type Group = (typeof GROUPS)[number];

export const GROUP_ICONS: Readonly<Record<Group, IconName>> = {
  Learn: 'spark',
  Write: 'pen',
  'Watch it think': 'eye',
  Chat: 'chat',
  More: 'sliders',
};

export interface View {
  id: ViewId;
  title: string;
  /** One sentence under the title. */
  hint: string;
  group: Group;
  icon: IconName;
}

export const VIEWS: readonly View[] = [
  {
    id: 'start',
    title: 'Start',
    hint: 'Teach a small language model, on this machine. Nothing leaves it.',
    group: 'Learn',
    icon: 'spark',
  },
  {
    id: 'text',
    title: 'Text',
    hint: 'What the model learns from. It stays on this machine.',
    group: 'Learn',
    icon: 'text',
  },
  {
    id: 'model',
    title: 'Model',
    hint: 'How big it is: what it can learn, and how long that takes.',
    group: 'Learn',
    icon: 'layers',
  },
  {
    id: 'run',
    title: 'Run',
    hint: 'How it learns: steps, rate, validation. A link keeps all of it.',
    group: 'Learn',
    icon: 'sliders',
  },
  {
    id: 'live',
    title: 'Live',
    hint: 'The model while it learns.',
    group: 'Learn',
    icon: 'pulse',
  },
  {
    id: 'shelf',
    title: 'Your models',
    hint: 'All that you trained here: open, go on, compare, take along.',
    group: 'Learn',
    icon: 'shelf',
  },
  {
    id: 'write',
    title: 'Write',
    hint: 'Let it go on from your words, also while it learns.',
    group: 'Write',
    icon: 'pen',
  },
  {
    id: 'think',
    title: 'Watch it think',
    hint: 'What happens inside, layer by layer, while it learns.',
    group: 'Watch it think',
    icon: 'eye',
  },
  {
    id: 'chat',
    title: 'Chat',
    hint: 'Talk with a language model from a file, on this machine. Nothing leaves it.',
    group: 'Chat',
    icon: 'chat',
  },
  {
    id: 'files',
    title: 'Files',
    hint: 'Take the model with you, or bring one.',
    group: 'More',
    icon: 'folder',
  },
  {
    id: 'machine',
    title: 'Machine',
    hint: 'What this browser offers, and what to do about what is missing.',
    group: 'More',
    icon: 'chip',
  },
  {
    id: 'bench',
    title: 'Benchmark',
    hint: 'Which build is how much faster here, measured in turns.',
    group: 'More',
    icon: 'gauge',
  },
];
