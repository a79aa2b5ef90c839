/** A button that opens a few more controls beside it; choosing one, Escape and a click elsewhere close them. */
import type { ComponentChildren } from 'preact';
import { useId, useRef, useState } from 'preact/hooks';
import { Icon } from './icons.tsx';

const WIDEST_PX = 416;
const EDGE_PX = 16;

export function Popover({
  label,
  children,
}: {
  label: string;
  /** `act`: closes it, and then does this. */
  children: (act: (work: () => void) => () => void) => ComponentChildren;
}) {
  const id = useId();
  const menu = useRef<HTMLDivElement>(null);
  const opener = useRef<HTMLButtonElement>(null);
  const [isOpen, setOpen] = useState(false);
  const act = (work: () => void) => () => {
    menu.current?.hidePopover();
    work();
  };
  return (
    <>
      <button
        ref={opener}
        type="button"
        class="icon quiet"
        aria-label={label}
        title={label}
        popovertarget={id}
      >
        <Icon name="more" />
      </button>
      <div
        ref={menu}
        id={id}
        popover="auto"
        class="popover"
        onBeforeToggle={({ newState }) => {
          setOpen(newState === 'open');
          stand(menu.current, opener.current);
        }}
      >
        {isOpen && children(act)}
      </div>
    </>
  );
}

/** Below its button or above it, where there is more room, within the screen. */
function stand(menu: HTMLElement | null, opener: HTMLElement | null): void {
  if (menu === null || opener === null) return;
  const { left, top, bottom } = opener.getBoundingClientRect();
  const wide = Math.min(WIDEST_PX, innerWidth - 2 * EDGE_PX);
  const x = Math.max(EDGE_PX, Math.min(left, innerWidth - wide - EDGE_PX));
  const isLow = bottom > innerHeight / 2;
  menu.style.inset = isLow
    ? `auto auto ${innerHeight - top + 8}px ${x}px`
    : `${bottom + 8}px auto auto ${x}px`;
  menu.style.margin = '0';
}
