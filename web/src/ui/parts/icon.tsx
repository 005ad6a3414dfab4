// SPDX-License-Identifier: Apache-2.0
/** icon.tsx - line icons, 24 units square, drawn with the colour of the text around them. */
const PATHS = {
  spark: 'M12 3v4M12 17v4M3 12h4M17 12h4M6 6l2.5 2.5M15.5 15.5 18 18M18 6l-2.5 2.5M8.5 15.5 6 18',
  text: 'M5 5h14M5 10h14M5 15h9M5 20h6',
  layers: 'm12 3 9 5-9 5-9-5 9-5ZM3 13l9 5 9-5',
  sliders: 'M5 4v7M5 15v5M12 4v3M12 11v9M19 4v9M19 17v3M3 13h4M10 9h4M17 15h4',
  pulse: 'M3 12h4l3-8 4 16 3-8h4',
  folder:
    'M3 6.5A1.5 1.5 0 0 1 4.5 5H9l2 2.5h8.5A1.5 1.5 0 0 1 21 9v8.5a1.5 1.5 0 0 1-1.5 ' +
    '1.5h-15A1.5 1.5 0 0 1 3 17.5Z',
  pen: 'm4 20 1-4L16 5l3 3L8 19ZM14 7l3 3',
  eye:
    'M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12ZM12 9.2a2.8 2.8 0 ' +
    '1 1 0 5.6 2.8 2.8 0 0 1 0-5.6Z',
  chip: 'M7 7h10v10H7ZM10 3v4M14 3v4M10 17v4M14 17v4M3 10h4M3 14h4M17 10h4M17 14h4',
  gauge: 'M4 17a8.5 8.5 0 1 1 16 0M12 15l4-5',
  play: 'M8 5.5v13l10.5-6.5Z',
  pause: 'M8.5 5.5v13M15.5 5.5v13',
  stop: 'M6.5 6.5h11v11h-11Z',
  reset: 'M5 12a7 7 0 1 0 2.3-5.2M5 4v4h4',
  sun:
    'M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8ZM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 ' +
    '1.4M17.3 17.3l1.4 1.4M18.7 5.3l-1.4 1.4M6.7 17.3l-1.4 1.4',
  moon: 'M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10Z',
  contrast: 'M12 3.5a8.5 8.5 0 1 1 0 17 8.5 8.5 0 0 1 0-17Zm0 0v17',
  download: 'M12 4v11M7.5 10.5 12 15l4.5-4.5M5 19.5h14',
  upload: 'M12 15V4M7.5 8.5 12 4l4.5 4.5M5 19.5h14',
  link:
    'M10 14a4 4 0 0 0 5.7 0l3-3a4 4 0 1 0-5.7-5.7l-1 1M14 10a4 4 0 0 0-5.7 0l-3 3a4 4 0 1 ' +
    '0 5.7 5.7l1-1',
  bell: 'M6 16.5V11a6 6 0 0 1 12 0v5.5l1.5 1.5h-15ZM10 20.5h4',
  shelf: 'M4 4v16M20 4v16M4 12h16M4 20h16M8 12V7M12 12V7M9.5 20v-5M14.5 20v-5',
  chat: 'M4 5h16v11H10l-5 4v-4H4Z',
  trash: 'M5 7h14M10 7V4.5h4V7M7 7l1 12.5h8L17 7',
  check: 'm5 12.5 4.5 4.5L19 7.5',
  close: 'm6 6 12 12M18 6 6 18',
  info: 'M12 3.5a8.5 8.5 0 1 1 0 17 8.5 8.5 0 0 1 0-17ZM12 11v5.5M12 7.6v.4',
  warning: 'M12 4 21 19.5H3ZM12 10v4.5M12 17v.3',
  dice: 'M5 5h14v14H5ZM9 9v.3M15 9v.3M12 12v.3M9 15v.3M15 15v.3',
  flag: 'M6 21V4M6 5h11l-2 4 2 4H6',
  shield: 'M12 3.5 19 6v6c0 4.5-3 7-7 8.5C8 19 5 16.5 5 12V6Z',
  copy: 'M9 9h10v11H9ZM5 15V4h10',
  arrow: 'M5 12h14M13 6l6 6-6 6',
} as const;

export type IconName = keyof typeof PATHS;

/** Decoration beside words; it is hidden from screen readers. */
export function Icon({ name, size = 20 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
