/** Tabs and other rows of which one is chosen, moved by arrows. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId } from 'preact/hooks';

export function Tabs<Name extends string>({
  label,
  tabs,
  chosen,
  choose,
  children,
}: {
  label: string;
  tabs: readonly { name: Name; title: string }[];
  chosen: Name;
  choose: (name: Name) => void;
  /** The panel of the chosen one. */
  children: ComponentChildren;
}) {
  const id = useId();
  // On a narrow screen it may lie beyond the edge.
  useEffect(() => {
    document.getElementById(`${id}-${chosen}`)?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [id, chosen]);
  return (
    <>
      <div role="tablist" aria-label={label} onKeyDown={moveFocus}>
        {tabs.map(({ name, title }) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`${id}-${name}`}
            aria-selected={name === chosen}
            aria-controls={`${id}-panel`}
            tabIndex={name === chosen ? 0 : -1}
            onClick={() => choose(name)}
            onFocus={() => name !== chosen && choose(name)}
          >
            {title}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${chosen}`}>
        {children}
      </div>
    </>
  );
}

const STEPS: Record<string, number> = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };

/** For `onKeyDown` of a tablist or radiogroup: arrows, Home and End move the focus among its tabs or radios. */
export function moveFocus(event: KeyboardEvent): void {
  const group = event.currentTarget as HTMLElement;
  const all = [...group.querySelectorAll<HTMLElement>('[role="tab"], [role="radio"]')];
  const at = all.indexOf(document.activeElement as HTMLElement);
  const step = STEPS[event.key];
  if (at < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
  const sign = getComputedStyle(group).direction === 'rtl' ? -1 : 1;
  let next: number;
  if (step !== undefined) next = (at + step * sign + all.length) % all.length;
  else if (event.key === 'Home') next = 0;
  else if (event.key === 'End') next = all.length - 1;
  else return;
  event.preventDefault();
  all[next]?.focus();
}
