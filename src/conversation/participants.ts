/** The participants of a chat: the active persona and those invited, and their appearance. */
import type { Appearance } from '../core/channel.js';
import type { ChatRecord } from '../core/chat-record.js';
import { cutAt } from '../core/cut.js';
import { DEFAULT_PERSONA, type PersonaId } from '../core/ids.js';
import { type Persona, personaName } from '../core/persona.js';

type Members = Pick<ChatRecord, 'activePersona' | 'invited'>;

/** The active persona comes first. If its file was removed, `default` takes its place. */
export function presentIn(chat: Members, personas: readonly { id: PersonaId }[]): PersonaId[] {
  const exists = (id: PersonaId) => personas.some((persona) => persona.id === id);
  const active = exists(chat.activePersona) ? chat.activePersona : DEFAULT_PERSONA;
  return [active, ...(chat.invited ?? []).filter((id) => id !== active && exists(id))];
}

export function hasSeveral(chat: Members, personas: readonly { id: PersonaId }[]): boolean {
  return presentIn(chat, personas).length > 1;
}

const USER_CHARS = 80;

/** `{{user}}` in a persona's texts; null in a group. People choose their names, and this one is in the system prompt: one short line. */
export function userIn({ kind, title }: ChatRecord): string | null {
  const line = title
    .replaceAll(/\p{Bidi_C}/gu, '')
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  const name = cutAt(line, USER_CHARS);
  return kind === 'direct' && name !== '' ? name : null;
}

/** A persona's name and picture, if they are shown; undefined for `default`, which has no name of its own. */
export function appearanceOf(
  { facesAlone }: { facesAlone?: true },
  chat: Members,
  personas: readonly Persona[],
  personaId: PersonaId,
): Appearance | undefined {
  const alone = !hasSeveral(chat, personas);
  if (alone && !facesAlone) return undefined;
  const name = personaName(personas, personaId);
  if (name === DEFAULT_PERSONA) return undefined;
  const avatar = personas.find(({ id }) => id === personaId)?.avatar ?? null;
  return { personaId, name, avatar, ...(alone ? { alone } : {}) };
}
