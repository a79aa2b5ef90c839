/**
 * Buttons below messages on the fake Discord: what it takes (discord.com/developers/docs/components/reference: rows of at
 * most 5, at most 5 rows, labels of 80 and ids of 100 characters, no id twice), and how they look to a person.
 */
import { isPayload } from './discord-form.js';
import { invalid, type Outcome } from './discord-outcome.js';
import type { Payload } from './discord-words.js';

const ROW = 1;
const BUTTON = 2;
const STYLES = [1, 2, 3, 4];

export interface Button {
  label: string;
  id: string;
}

/** What is wrong with the components of a message; null for nothing. */
export function componentsRefusal({ components }: Payload): Outcome | null {
  if (components === undefined || components === null) return null;
  const wrong = (field: string, code: string, message: string) => invalid(field, code, message);
  if (!Array.isArray(components) || components.length > 5) {
    return wrong('components', 'BASE_TYPE_MAX_LENGTH', 'Must be 5 or fewer in length.');
  }
  const ids: string[] = [];
  for (const [at, row] of components.entries()) {
    const field = `components.${at}`;
    const buttons: unknown = isPayload(row) ? row.components : undefined;
    if (!isPayload(row) || row.type !== ROW || !Array.isArray(buttons)) {
      return wrong(`${field}.type`, 'UNION_TYPE_CHOICES', 'Value of field "type" must be one of (1,).');
    }
    if (buttons.length < 1 || buttons.length > 5) {
      return wrong(`${field}.components`, 'BASE_TYPE_BAD_LENGTH', 'Must be between 1 and 5 in length.');
    }
    for (const [n, given] of buttons.entries()) {
      const { type, style, label, custom_id: id } = isPayload(given) ? given : {};
      const which = `${field}.components.${n}`;
      if (type !== BUTTON || !STYLES.includes(Number(style))) {
        return wrong(`${which}.style`, 'BASE_TYPE_CHOICES', 'Must be one of (1, 2, 3, 4).');
      }
      for (const [name, text, most] of [
        ['label', label, 80],
        ['custom_id', id, 100],
      ] as const) {
        if (typeof text === 'string' && text.trim() !== '' && text.length <= most) continue;
        return wrong(`${which}.${name}`, 'BASE_TYPE_BAD_LENGTH', `Must be between 1 and ${most} in length.`);
      }
      ids.push(String(id));
    }
  }
  return new Set(ids).size === ids.length
    ? null
    : wrong('components', 'COMPONENT_CUSTOM_ID_DUPLICATED', 'Component custom id cannot be duplicated');
}

export function buttonsIn(components: unknown): Button[] {
  const rows = Array.isArray(components) ? components.filter(isPayload) : [];
  return rows
    .flatMap((row) => (Array.isArray(row.components) ? row.components.filter(isPayload) : []))
    .map(({ label, custom_id: id }) => ({ label: String(label), id: String(id) }));
}

/** The one with this label, or the n-th. Throws where there is none. */
export function buttonOf(components: unknown, which: string | number): Button {
  const buttons = buttonsIn(components);
  const found = typeof which === 'number' ? buttons[which] : buttons.find(({ label }) => label === which);
  if (found !== undefined) return found;
  throw new Error(`there is no button ${which}: ${buttons.map(({ label }) => label).join(', ') || 'none'}`);
}
