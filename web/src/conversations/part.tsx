/** Sections of an opened turn, which are made when they are opened. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { languageOfPage } from '../kit/words.ts';

interface FoldedProps {
  title: ComponentChildren;
  note: string;
  children: ComponentChildren;
}

export function Part({ title, note, isOpen = false, children }: FoldedProps & { isOpen?: boolean }) {
  const [shown, setShown] = useState(isOpen);
  return (
    <details class="part" open={isOpen} onToggle={({ currentTarget }) => setShown(currentTarget.open)}>
      <summary>
        <h3>{title}</h3> <span class="soft small">{note}</span>
      </summary>
      {shown && <div class="inside">{children}</div>}
    </details>
  );
}

/** Its inside is made when it is opened: a prompt may be as long as a book. */
export function Fold({ title, note, share = 0, children }: FoldedProps & { share?: number }) {
  const [shown, setShown] = useState(false);
  return (
    <details class="fold" onToggle={({ currentTarget }) => setShown(currentTarget.open)}>
      <summary>
        <span class="name">{title}</span> <span class="soft small">{note}</span>
        {share > 0 && (
          <span class="share" aria-hidden="true">
            <span style={{ width: `${Math.max(1, Math.round(share * 100))}%` }} />
          </span>
        )}
      </summary>
      {shown && children}
    </details>
  );
}

export function numberOf(value: number | null): string {
  return value === null ? '–' : new Intl.NumberFormat(languageOfPage()).format(value);
}
