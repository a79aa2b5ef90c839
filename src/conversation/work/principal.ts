/** The principal of an agent: the chat and persona that delegated its task, or a program. It pays, and lends its rights. */
import { type AskedCall, type CallDecision, isAboutRun, type NewQuestion } from '../../core/access.js';
import type { Asker, Authorisation } from '../../core/authorisation.js';
import type { ChatRecord } from '../../core/chat-record.js';
import { Fault } from '../../core/errors.js';
import { type ChatId, channelOf, DEFAULT_PERSONA, type PersonaId } from '../../core/ids.js';
import { personaName } from '../../core/persona.js';
import { BOARD_CHAT, type Task, type WorkAsk } from '../../core/task.js';
import { type Asking, expireCall, questionAbout, reachable, sentence, shownName } from '../approvals.js';
import { askerOf } from '../asker.js';
import type { Services } from '../services.js';

export interface Principal extends Asking {
  personaId: PersonaId;
  senderId: ChatId;
  asker: Asker;
}

/** Programs have no chat; nothing is sent to this one. */
const BOARD: ChatRecord = {
  id: BOARD_CHAT,
  channel: channelOf(BOARD_CHAT),
  account: 'board',
  address: 'main',
  kind: 'direct',
  title: 'a program',
  activePersona: DEFAULT_PERSONA,
};

/** The holder of the board's token counts as an owner. */
const OPERATOR: Asker = {
  senders: async () => [],
  isOwner: async () => true,
  mayChange: async () => 'yes',
};

/** Throws if the chat that delegated the task no longer exists. */
export async function principalOf(services: Services, { parent }: Task): Promise<Principal> {
  if (parent === null) {
    const rules = [...services.channels.keys()].map(services.rulesFor);
    const controlChats = rules.flatMap((each) => each.controlChats);
    const place = { chat: BOARD, room: BOARD.id, personaId: DEFAULT_PERSONA };
    return { ...place, senderId: '', controlChats, asker: OPERATOR };
  }
  const { room, personaId, senderId, chatId } = parent;
  const chat = await services.store.chat(chatId);
  if (chat === null) throw new Fault('internal', `the chat ${chatId}, which gave a task, is not known`);
  const { controlChats } = services.rulesFor(chat.channel);
  const author = { kind: 'person', id: senderId, name: '', administrator: false } as const;
  // Nobody counts as the asker if untrusted text may have led to the task.
  const words = senderId === '' || parent.tainted ? [] : [{ author, platformMessageId: null }];
  const asker = askerOf(services, chat, async () => words);
  return { chat, room, personaId, senderId, controlChats, asker };
}

export function authorisationFor(
  { chat, personaId, senderId, controlChats, asker }: Principal,
  { task, place }: WorkAsk,
): Authorisation {
  return {
    chatId: chat.id,
    personaId,
    senderId,
    channel: chat.channel,
    asker,
    // A program may use the board only, which cannot reach other chats.
    controlChats: task.parent === null ? [] : controlChats,
    agent: place,
  };
}

/** Whether anybody could approve a call: in a control chat or, without control chats, an owner in the chat itself. */
export async function isSomebodyThere(services: Services, whose: Principal): Promise<boolean> {
  const { chat, controlChats, asker } = whose;
  if (reachable(controlChats, services).length > 0) return true;
  if (chat.id === BOARD_CHAT || !services.channels.has(chat.channel)) return false;
  if (await asker.isOwner()) return true;
  const { ids, chats } = await services.store.owners(services.rulesFor(chat.channel).owners);
  if (chat.kind === 'direct') return chats.some(({ id }) => id === chat.id);
  // The members of a group are unknown.
  return ids.some((id) => channelOf(id) === chat.channel);
}

const TITLE_CHARS = 200;
const PATH_CHARS = 300;

/** Asks about the whole run or, once owners have refused that, about this call. */
export async function questionOf(
  services: Services,
  whose: Principal,
  { task, place }: WorkAsk,
  call: AskedCall,
): Promise<NewQuestion> {
  const { title } = task.request.viap ?? {};
  const named = shownName(typeof title === 'string' && title.trim() !== '' ? title : task.goal, TITLE_CHARS);
  const { chat, personaId } = whose;
  const persona = personaName(await services.personas.list(chat.id), personaId);
  const giver =
    task.parent === null
      ? 'a program'
      : `${shownName(persona)} in the chat ${shownName(chat.title)} (${shownName(chat.id)})`;
  const wants = [
    `The agent ${shownName(place.id)} works on the task ${named} for ${giver}.`,
    `It wants to call ${shownName(call.tool)}. ${sentence(call.why)}`,
    `It reaches these folders: ${place.roots.map((root) => shownName(root, PATH_CHARS)).join(', ')}.`,
  ].join('\n\n');
  const yes = isAboutRun(call) ? 'To allow the whole run' : 'To allow it once';
  return questionAbout(services, whose, call, wants, yes, place.env);
}

/** Resolves once the call is decided or has expired. An abort makes it expire. */
export async function decisionOn(
  services: Services,
  { id, until }: AskedCall,
  signal: AbortSignal,
): Promise<CallDecision> {
  const { store, clock } = services;
  const decided = async () => {
    const [call] = await store.askedCalls({ id }, clock.now());
    // A question that is no longer stored cannot be decided.
    return call === undefined ? 'ended' : call.decision;
  };
  let wake = () => {};
  const changed = () => wake();
  const stopWatching = store.watch(changed, 'task');
  signal.addEventListener('abort', changed, { once: true });
  try {
    for (;;) {
      // Made before the look, so that no change is missed.
      const news = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const decision = await decided();
      if (decision !== null) return decision;
      if (signal.aborted || clock.now() >= until) {
        // An earlier decision takes precedence.
        await expireCall(services, id);
        return (await decided()) ?? 'expired';
      }
      const cancel = clock.after(Math.max(1, until - clock.now()), changed);
      await news;
      cancel();
    }
  } finally {
    stopWatching();
    signal.removeEventListener('abort', changed);
  }
}
