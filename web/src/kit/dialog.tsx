/** A modal dialog: takes the focus, ends with Escape, and gives the focus back. */
import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';

export function Dialog({
  title,
  close,
  isWide = false,
  children,
}: {
  title: string;
  /** By Escape; the caller stops showing it. */
  close: () => void;
  isWide?: boolean;
  children: ComponentChildren;
}) {
  const id = useId();
  const ref = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      // Everything around it is inert until then, and takes no focus.
      dialog?.close();
      const isThere = before instanceof HTMLElement && before.isConnected;
      (isThere ? before : document.getElementById('main'))?.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      aria-labelledby={id}
      class={isWide ? 'wide' : ''}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
    >
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}
