// SPDX-License-Identifier: Apache-2.0
/**
 * text_box.tsx - the text in hand, shown by its beginning, and the ways to another one. A short
 * typed text is edited in place; everything else is shown read-only, and replaced by a paste.
 */
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { Button } from '../parts/button';
import { Notice } from '../parts/notice';
import { P } from '../parts/term';
import { Wait } from '../parts/wait';
import { bytes } from '../format';
import {
  EDITABLE_CHARS,
  stopTaking,
  STORIES_BYTES,
  textName,
  textState,
  takeFiles,
  takeStories,
  takeTyped,
  typing,
} from '../state/text';
import { useStore } from '../store';
import { TryTexts } from './try_texts';
import './text.css';

export function TextBox({ rows }: { rows: number }) {
  const t = useStore(textState);
  const [draft, setDraft] = useState<string | null>(null);
  const box = useRef<HTMLTextAreaElement>(null);
  const id = useId();
  const editing = draft !== null;

  // Another source was chosen elsewhere: the draft is history.
  useEffect(() => {
    if (t.origin.kind !== 'typed') setDraft(null);
  }, [t.origin]);

  const edit = (text: string) => {
    setDraft(text);
    typing(text);
  };
  const write = () => {
    stopTaking();
    setDraft('');
    requestAnimationFrame(() => box.current?.focus());
  };
  const paste = (e: ClipboardEvent) => {
    const pasted = e.clipboardData?.getData('text/plain') ?? '';
    if (pasted === '' || (editing && pasted.length <= EDITABLE_CHARS)) return;
    e.preventDefault();
    if (pasted.length <= EDITABLE_CHARS) edit(pasted);
    else {
      setDraft(null);
      void takeTyped(pasted);
    }
  };
  const shown = draft ?? (t.status === 'loading' ? '' : t.preview);
  return (
    <div class="text-box">
      <label class="text-facts" for={id}>
        <strong>{editing ? 'Your own text' : textName(t.origin)}</strong>
        <span>{facts(t.status, t.blob?.size ?? 0)}</span>
      </label>
      <textarea
        id={id}
        ref={box}
        class="input text-area"
        rows={rows}
        spellcheck={false}
        readOnly={!editing}
        placeholder={editing ? 'Paste or type here. A few pages at least; a book is better.' : ''}
        aria-busy={t.status === 'loading'}
        value={shown}
        onInput={(e) => {
          const typed = e.currentTarget.value;
          if (typed.length <= EDITABLE_CHARS) edit(typed);
          else {
            setDraft(null);
            void takeTyped(typed);
          }
        }}
        onPaste={paste}
      />
      {t.status === 'loading' && <Wait share={t.progress} onCancel={stopTaking} />}
      {t.problem !== '' && (
        <Notice kind="error">
          <P>{t.problem}</P>
        </Notice>
      )}
      <div class="row">
        <FileButton label="Open files" onFiles={(f) => void takeFiles(f)} />
        {!editing && (
          <Button icon="pen" onClick={write}>
            Paste or type
          </Button>
        )}
        {t.origin.kind !== 'stories' && (
          <Button icon="dice" onClick={() => void takeStories(42, STORIES_BYTES)}>
            Stories
          </Button>
        )}
      </div>
      <TryTexts />
    </div>
  );
}

function facts(status: string, size: number): string {
  if (status === 'loading') return 'One moment';
  return size === 0 ? 'Empty' : bytes(size);
}

/** A button that opens the system's file dialog. */
export function FileButton(p: {
  label: string;
  accept?: string;
  single?: boolean;
  primary?: boolean;
  disabled?: boolean;
  onFiles: (files: File[]) => void;
}) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        hidden
        disabled={p.disabled}
        multiple={!p.single}
        accept={p.accept}
        aria-label={p.label}
        onChange={(e) => {
          const files = [...(e.currentTarget.files ?? [])];
          // The same file can be chosen again after it was changed.
          e.currentTarget.value = '';
          if (files.length > 0) p.onFiles(files);
        }}
      />
      <Button
        icon="upload"
        kind={p.primary ? 'primary' : undefined}
        disabled={p.disabled}
        onClick={() => input.current?.click()}
      >
        {p.label}
      </Button>
    </>
  );
}
