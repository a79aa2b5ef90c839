/** Who takes part in a chat, for steps 3 to 6: the active persona and those invited. Pure. */
import type { Appearance, Channel } from '../core/channel.js';
import type { ChatRecord } from '../core/chat-record.js';
import { cutAt } from '../core/cut.js';
import { DEFAULT_PERSONA, type PersonaId } from '../core/ids.js';
import { type Persona, personaName } from '../core/persona.js';

type Chat = Pick<ChatRecord, 'activePersona' | 'invited' | 'away'>;

/** The active persona comes first. If its file has been removed, `default` takes its place. */
export function presentIn(chat: Chat, personas: readonly Pick<Persona, 'id'>[]): PersonaId[] {
  const exists = (id: PersonaId) => personas.some((persona) => persona.id === id);
  const active = exists(chat.activePersona) ? chat.activePersona : DEFAULT_PERSONA;
  return [active, ...(chat.invited ?? []).filter((id) => id !== active && exists(id))];
}

/**
 * Whom a persona talks with, if it is one person: `{{user}}` in its texts. null in a group. People choose their names
 * themselves, and it stands in the system prompt: it is one short line.
 */
export function userIn({ kind, title }: Pick<ChatRecord, 'kind' | 'title'>): string | null {
  const name = cutAt(
    title
      .replaceAll(/\p{Bidi_C}/gu, '')
      .replaceAll(/[\s\p{Cc}]+/gu, ' ')
      .trim(),
    USER_CHARS,
  );
  return kind === 'direct' && name !== '' ? name : null;
}

const USER_CHARS = 80;

/** Whether several personas take part, so that replies must show which one is speaking. */
export function hasSeveral(chat: Chat, personas: readonly Pick<Persona, 'id'>[]): boolean {
  return presentIn(chat, personas).length > 1;
}

/**
 * The name and picture a persona is shown with when several take part, or always where the channel wants it; undefined
 * for `default`, which has no name of its own.
 */
export function appearanceOf(
  { facesAlone }: Pick<Channel, 'facesAlone'>,
  chat: Chat,
  personas: Persona[],
  personaId: PersonaId,
): Appearance | undefined {
  const alone = !hasSeveral(chat, personas);
  if (alone && !facesAlone) return undefined;
  const name = personaName(personas, personaId);
  if (name === DEFAULT_PERSONA) return undefined;
  const avatar = personas.find(({ id }) => id === personaId)?.avatar ?? null;
  return { personaId, name, avatar, ...(alone ? { alone } : {}) };
}
