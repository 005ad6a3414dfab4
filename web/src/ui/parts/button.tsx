// SPDX-License-Identifier: Apache-2.0
/** button.tsx - buttons, all at least 44 px high. */
import type { ComponentChildren } from 'preact';
import { Icon, type IconName } from './icon';

export interface ButtonProps {
  children: ComponentChildren;
  onClick?: () => void;
  kind?: 'primary' | 'plain' | 'danger';
  size?: 'big';
  wide?: boolean;
  icon?: IconName;
  disabled?: boolean;
  /** Shown on hover, and read out: why it is disabled, for instance. */
  title?: string;
  submit?: boolean;
}

export function Button(p: ButtonProps) {
  const names = ['button'];
  if (p.kind) names.push(`button-${p.kind}`);
  if (p.size) names.push(`button-${p.size}`);
  if (p.wide) names.push('button-wide');
  return (
    <button
      class={names.join(' ')}
      type={p.submit ? 'submit' : 'button'}
      disabled={p.disabled}
      title={p.title}
      onClick={p.onClick}
    >
      {p.icon && <Icon name={p.icon} size={p.size === 'big' ? 22 : 18} />}
      {p.children}
    </button>
  );
}

/** A button that is only an icon; the label is for those who cannot see it. */
export function IconButton(p: { icon: IconName; label: string; onClick: () => void }) {
  return (
    <button
      class="button button-icon button-plain"
      type="button"
      aria-label={p.label}
      title={p.label}
      onClick={p.onClick}
    >
      <Icon name={p.icon} />
    </button>
  );
}
