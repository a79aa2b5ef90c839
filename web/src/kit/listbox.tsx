/** A list of which one option is chosen. The keys are those of the field that it belongs to. */
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';

export interface Option {
  name: string;
  shown: ComponentChildren;
}

export function Listbox({
  id,
  label,
  options,
  active,
  choose,
}: {
  /** For `aria-controls` of the field; `ID-N` is that of an option, for `aria-activedescendant`. */
  id: string;
  label: string;
  options: readonly Option[];
  active: number;
  choose: (n: number) => void;
}) {
  useEffect(() => {
    document.getElementById(`${id}-${active}`)?.scrollIntoView({ block: 'nearest' });
  }, [id, active]);
  return (
    <div role="listbox" id={id} aria-label={label} tabIndex={-1}>
      {options.map(({ name, shown }, n) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the focus and the keys.
        <div
          key={name}
          id={`${id}-${n}`}
          role="option"
          tabIndex={-1}
          aria-selected={n === active}
          // The field keeps the focus.
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => choose(n)}
        >
          {shown}
        </div>
      ))}
    </div>
  );
}

/** The option after a key; null if the key is not one that moves. */
export function movedBy(key: string, active: number, count: number): number | null {
  if (key === 'ArrowDown') return (active + 1) % count;
  if (key === 'ArrowUp') return (active - 1 + count) % count;
  return null;
}
