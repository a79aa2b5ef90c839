/**
 * `/skill NAME …`, by which a person has a skill loaded: for step 1, which takes it for a message of theirs, and for step 4,
 * which puts the instructions before their words.
 */

import { composed } from '../core/beneath.js';
import type { ChatRecord } from '../core/chat-record.js';
import { type ChatId, channelOf, DEFAULT_PERSONA, type PersonaId } from '../core/ids.js';
import { mayLoad, type Skill } from '../core/persona.js';
import type { ReceiptOrigin } from '../core/receipt.js';
import type { StoredMessage } from '../core/transcript.js';
import type { Services } from './services.js';

export const SKILL = 'skill';
/** What was recognised as this command in step 1, once more: the signs that nobody sees are gone. */
const ASKED = /^(?:@\S+\s+)?[/\uff0f]skill(?:@\S+)?\s+(\S[\s\S]*)$/i;
const UNSEEN = /[\u200b-\u200f\u202a-\u202e\u2060\ufeff]/g;
const IN_QUOTES = /^["'“„«]([^"'”“»]*)["'”“»]/u;

/** Whether `/skill …` can be done where it was received, and thereby is a message to the persona. */
export async function hasSkill(
  services: Services,
  { chat: { id, kind }, sender }: Pick<ReceiptOrigin, 'chat' | 'sender'>,
  addressed: PersonaId | undefined,
  argument: string,
): Promise<boolean> {
  const personaId = addressed ?? (await services.store.chat(id))?.activePersona ?? DEFAULT_PERSONA;
  const chat = { id, kind, channel: channelOf(id) };
  return (await skillFor(services, { chat, personaId, senderId: sender.id }, argument)).ok;
}

/** Where it is asked for, and of whom. */
export interface SkillAsk {
  chat: Pick<ChatRecord, 'id' | 'channel' | 'kind'>;
  personaId: PersonaId;
  senderId: ChatId;
}

/** Whether a persona could have this skill loaded by a person there: the skill, or a sentence for them. */
export async function skillFor(
  services: Services,
  ask: SkillAsk,
  argument: string,
): Promise<{ ok: true; skill: Skill } | { ok: false; reason: string }> {
  const all = (await services.skills?.list())?.skills ?? [];
  const found = skillNamed(all, argument);
  const refuse = (reason: string) => ({ ok: false as const, reason });
  if (argument === '' || found === null) {
    const names = all.filter((skill) => mayLoad(skill, 'people')).map(({ name }) => name);
    const which = argument === '' ? 'Please name a skill' : 'There is no such skill';
    return refuse(`${which}: /skill NAME, and what it is to do. There are: ${names.join(', ') || 'none'}.`);
  }
  if (!mayLoad(found, 'people')) return refuse('This skill is not for people to load; it says so itself.');
  if (!(await canLoad(services, ask))) {
    return refuse('The persona here has no use of skills: whoever runs me can allow them (`tools.allow`).');
  }
  return { ok: true, skill: found };
}

/** Whether skills are among the tools of a persona there. */
export async function canLoad(
  { personas, toolsFor }: Services,
  { chat, personaId, senderId }: SkillAsk,
): Promise<boolean> {
  const persona = await personas.get(chat.id, personaId);
  const { tools } = toolsFor({
    ...{ kind: 'answer', chatId: chat.id, personaId, senderId },
    ...{ allowed: persona?.tools ?? null, channel: chat.channel, chatKind: chat.kind },
  });
  return tools.some(({ name }) => name === 'activate_skill');
}

/** Those that the people of a batch ask for, each once. What somebody else wrote asks for nothing. */
export function skillsAsked(batch: readonly StoredMessage[], skills: readonly Skill[]): Skill[] {
  const asked = batch.flatMap(({ author, forwardedFrom, words, text, mentionsBot }) => {
    if (!mentionsBot || author.kind !== 'person' || author.bot || forwardedFrom !== undefined) return [];
    const [, argument] = ASKED.exec((words ?? text).replaceAll(UNSEEN, '').trim()) ?? [];
    const skill = argument === undefined ? null : skillNamed(skills, argument);
    return skill && mayLoad(skill, 'people') ? [skill] : [];
  });
  return [...new Set(asked)];
}

/** By its name at the beginning of what was typed, which may have blanks; capitals make no difference. */
function skillNamed(skills: readonly Skill[], argument: string): Skill | null {
  const typed = composed(argument);
  const quoted = IN_QUOTES.exec(typed)?.[1]?.trim().toLowerCase();
  const named = skills.filter(({ name }) => {
    const begins = typed.slice(0, name.length).toLowerCase() === name.toLowerCase();
    return quoted === name.toLowerCase() || (begins && /^(?:\s|$)/.test(typed.slice(name.length)));
  });
  return named.sort((one, other) => other.name.length - one.name.length)[0] ?? null;
}
