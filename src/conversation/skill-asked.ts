/** `/skill NAME …` loads a skill for a person: a message for step 1; step 4 puts the instructions before it. */

import type { ChatRecord } from '../core/chat-record.js';
import { cutWithMarker } from '../core/cut.js';
import { composed } from '../core/file-names.js';
import { type ChatId, channelOf, DEFAULT_PERSONA, type PersonaId } from '../core/ids.js';
import { fenced } from '../core/origin.js';
import type { ReceiptOrigin } from '../core/receipt.js';
import { mayLoad, type Skill } from '../core/skills.js';
import type { ToolSet } from '../core/tool.js';
import type { StoredMessage } from '../core/transcript.js';
import type { Services } from './services.js';
import { charsWithin } from './turn/tokens.js';

export const SKILL = 'skill';
/** Matches the command again after step 1, with invisible characters removed. */
const ASKED = /^(?:@\S+\s+)?[/\uff0f]skill(?:@\S+)?\s+(\S[\s\S]*)$/i;
const UNSEEN = /[\u200b-\u200f\u202a-\u202e\u2060\ufeff]/g;
const SKILLS_SHARE = 0.5;
const IN_QUOTES = /^["'“„«]([^"'”“»]*)["'”“»]/u;

/** Whether `/skill …` works where it was received, and so becomes a message to the persona. */
export async function hasSkill(
  services: Services,
  { chat: { id, kind }, sender }: ReceiptOrigin,
  addressed: PersonaId | undefined,
  argument: string,
): Promise<boolean> {
  const personaId = addressed ?? (await services.store.chat(id))?.activePersona ?? DEFAULT_PERSONA;
  const chat = { id, kind, channel: channelOf(id) };
  return (await skillFor(services, { chat, personaId, senderId: sender.id }, argument)).ok;
}

interface SkillAsk {
  chat: { id: ChatId; channel: string; kind: ChatRecord['kind'] };
  personaId: PersonaId;
  senderId: ChatId;
}

/** The skill, if this person may load it for the persona there; else a sentence for them. */
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
    return refuse(`${which}: /skill NAME, and its task. There are: ${names.join(', ') || 'none'}.`);
  }
  if (!mayLoad(found, 'people')) return refuse('This skill is not for people to load; it says so itself.');
  if (!(await canLoad(services, ask))) {
    return refuse('The persona here has no use of skills: whoever runs me can allow them (`tools.allow`).');
  }
  return { ok: true, skill: found };
}

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

/** The skills that the people of a batch ask for, each once; forwarded text and bots do not count. */
function skillsAsked(batch: readonly StoredMessage[], skills: readonly Skill[]): Skill[] {
  const asked = batch.flatMap(({ author, forwardedFrom, words, text, mentionsBot }) => {
    if (!mentionsBot || author.kind !== 'person' || author.bot || forwardedFrom !== undefined) return [];
    const [, argument] = ASKED.exec((words ?? text).replaceAll(UNSEEN, '').trim()) ?? [];
    const skill = argument === undefined ? null : skillNamed(skills, argument);
    return skill && mayLoad(skill, 'people') ? [skill] : [];
  });
  return [...new Set(asked)];
}

/** Instructions of skills loaded by people with `/skill`, as far as they fit into their share of the budget (tokens). */
export async function skillsLoaded(
  { skills }: Services,
  batch: readonly StoredMessage[],
  { tools }: ToolSet,
  budget: number,
): Promise<string> {
  if (skills === undefined || !tools.some(({ name }) => name === 'activate_skill')) return '';
  const asked = skillsAsked(batch, (await skills.list()).skills);
  const share = Math.floor((budget * SKILLS_SHARE) / Math.max(1, asked.length));
  const loaded: string[] = [];
  for (const { name } of asked) {
    const found = await skills.load(name, { by: 'people', paths: 'placed' });
    // It may be gone since it was listed.
    if (!found.ok) continue;
    const shown = cutWithMarker(found.text, charsWithin(found.text, share), 'skill-max-chars');
    loaded.push(`${SKILL_NOTE}\n${fenced(shown)}\n`);
  }
  return loaded.join('');
}

const SKILL_NOTE =
  '(Instructions of a skill, which a person has asked for with /skill: follow them for what is said there.)';

/** Finds the skill by its name at the start of the typed text; the name may contain spaces; case-insensitive. */
function skillNamed(skills: readonly Skill[], argument: string): Skill | null {
  const typed = composed(argument);
  const quoted = IN_QUOTES.exec(typed)?.[1]?.trim().toLowerCase();
  const named = skills.filter(({ name }) => {
    const begins = typed.slice(0, name.length).toLowerCase() === name.toLowerCase();
    return quoted === name.toLowerCase() || (begins && /^(?:\s|$)/.test(typed.slice(name.length)));
  });
  return named.sort((one, other) => other.name.length - one.name.length)[0] ?? null;
}
