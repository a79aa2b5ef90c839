/** Steps 4 to 6 of the route for a turn that says an answer anew: what its request has besides, and how it ends. */

import type { Anew } from '../../core/anew.js';
import { element } from '../../core/origin.js';
import { personaName } from '../../core/persona.js';
import type { StoredMessage } from '../../core/transcript.js';
import { keepMemory } from '../anew-memory.js';
import type { ContextRequest } from '../context/context.js';
import { CUT_OFF } from '../turn/turn.js';
import { type Finished, finish } from './finish.js';
import type { RoomServices, Turn } from './turn.js';

export interface SayingAnew extends Anew {
  /** The answer that it replaces. */
  before: string;
  /** For below the answer, about memory that could not follow. */
  aside: string | null;
}

const NOTE = 'your answer';
const GO_ON =
  'Your last message is to be continued: go on exactly where it ends. Do not repeat it, and do not begin anew.';
const DIFFERENTLY = 'You have answered this with the very same words before. Answer it anew, in another way.';
export const THE_SAME =
  'I came to the same answer again, so it stays. A wish may help: /again shorter, for example.';

/** Lets memory follow, before the model is asked. null if the answer is gone. */
export async function prepareAnew(
  services: RoomServices,
  { chat, room, turn }: Turn,
): Promise<SayingAnew | null> {
  const { anew } = turn;
  if (anew === undefined) return null;
  const answer = await services.store.newestAnswer(room);
  const aside = await keepMemory(services, chat.id, anew);
  return { ...anew, before: answer?.text ?? '', aside };
}

/** An edit, or another version: no model is asked. */
export async function sayGiven(services: RoomServices, work: Turn, anew: SayingAnew): Promise<Finished> {
  const speaker = personaName(work.personas, work.turn.personaId);
  const { text, tainted = false, aside } = anew;
  return finish(services, work, { outcome: 'answered', text, speaker, tainted, aside });
}

/** Additions to the request, and messages that it leaves out. */
export function requestAnew(anew: SayingAnew, batch: readonly StoredMessage[]): ContextRequest['anew'] {
  if (anew.how === 'more')
    return { except: [], goesOn: true, note: element('event', { about: NOTE }, GO_ON) };
  const said = wishOf(anew, batch);
  return { except: [anew.messageId], goesOn: false, note: '', ...(said && { said }) };
}

export function asDifferent(request: ContextRequest): ContextRequest {
  const { except, goesOn, note, said } = request.anew ?? { except: [], goesOn: false, note: '' };
  const more = `${note}\n${element('event', { about: NOTE }, DIFFERENTLY)}`;
  return { ...request, anew: { except, goesOn, note: more, ...(said && { said }) } };
}

/** The wish as a message of who has it, whose rights count for its calls, too; null if there is none. */
export function wishOf(anew: Anew, batch: readonly StoredMessage[]): StoredMessage | null {
  const [first] = batch;
  if (anew.how !== 'again' || anew.text === '' || first === undefined) return null;
  const sentAt = batch.at(-1)?.sentAt ?? first.sentAt;
  const none = { replyTo: null, edited: false, turnId: null, platformMessageId: null, mentionsBot: true };
  const author = { kind: 'person' as const, ...anew.by };
  return {
    ...none,
    id: anew.messageId,
    room: first.room,
    author,
    text: anew.text,
    sentAt,
    receivedAt: sentAt,
  };
}

export function isSameText(a: string, b: string): boolean {
  const plain = (text: string) => text.replaceAll(/\s+/g, ' ').trim();
  return plain(a) === plain(b);
}

/** The answer with what was added. A model may begin with all of it once more. */
export function continued(before: string, more: string): string {
  const said = before.endsWith(CUT_OFF) ? before.slice(0, -CUT_OFF.length) : before.trimEnd();
  if (more.startsWith(said)) return more;
  const isOpen = (said.match(/^```/gm)?.length ?? 0) % 2 === 1;
  if (isOpen) return `${said}\n${more}`;
  if (/[.!?…。！？"”»)*_`:]$/u.test(said)) return `${said}\n\n${more}`;
  return /^[\p{P}]/u.test(more) ? said + more : `${said} ${more}`;
}
