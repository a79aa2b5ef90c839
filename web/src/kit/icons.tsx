/** Small pictures of controls, drawn with the colour of the text; the control itself carries the name. */
const PATHS = {
  chat: 'M4 5h16v11H9l-5 4V5z',
  conversations: 'M3 4h12v8H8l-5 4V4zM18 9h3v11l-4-3h-7v-2',
  memory: 'M6 3h12v18l-6-4-6 4V3z',
  work: 'M5 4h14v16H5zM9 9l1.5 1.5L13 8M9 15h6',
  operations: 'M3 13h4l3-8 4 14 3-6h4',
  setup:
    'M4 7h9M19 7h1M4 17h1M11 17h9M16 4.5a2.5 2.5 0 1 1 0 5a2.5 2.5 0 0 1 0-5zM8 14.5a2.5 2.5 0 1 1 0 5a2.5 2.5 0 0 1 0-5z',
  menu: 'M4 7h16M4 12h16M4 17h16',
  close: 'M6 6l12 12M18 6L6 18',
  back: 'M15 5l-7 7 7 7',
  forward: 'M9 5l7 7-7 7',
  again: 'M19 5v5h-5M18.5 10a7 7 0 1 0 .5 4',
  plus: 'M12 5v14M5 12h14',
  attach: 'M20 11l-8.5 8.5a5 5 0 0 1-7-7L13 4a3.4 3.4 0 0 1 5 5l-8.5 8.5a1.7 1.7 0 0 1-2.5-2.5L14.5 7.5',
  send: 'M12 20V5M5 12l7-7 7 7',
  stop: 'M7 7h10v10H7z',
  down: 'M12 4v15M5 12l7 7 7-7',
  more: 'M5 12h.01M12 12h.01M19 12h.01',
  signOut: 'M10 4H5v16h5M15 8l4 4-4 4M9 12h10',
  file: 'M6 3h8l4 4v14H6zM14 3v4h4',
  tool: 'M14 6a4 4 0 0 1 5-2l-3 3 1 1 3-3a4 4 0 0 1-5.5 5L7 17.5a1.8 1.8 0 0 1-2.5-2.5L12 7.5',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      viewBox="0 0 24 24"
      width="1.25rem"
      height="1.25rem"
      fill="none"
      stroke="currentColor"
      stroke-width="1.75"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
