/**
 * The route's steps joined: what step 1 accepted wakes the control lane and the inbox, what a turn or a command
 * leaves in the outbox wakes delivery. Starting means taking up what the store says is unfinished; there is no
 * second code for recovery.
 */
import type { Archives } from '../core/archive.js';
import type { Media } from '../core/attachments.js';
import type { Receive } from '../core/channel.js';
import type { RoomId } from '../core/ids.js';
import { estimateTokens } from '../core/model.js';
import type { Recall } from '../core/recall.js';
import type { Pending, Store } from '../core/store.js';
import type { Aside } from '../core/tool.js';
import { createArbiter } from './arbiter.js';
import { sayAside } from './aside.js';
import type { CommandParts } from './commands/command.js';
import { COMMAND_NAMES, COMMANDS } from './commands/list.js';
import type { CompactionSettings } from './compaction/parts.js';
import { createWindows } from './compaction/windows.js';
import type { ContextParts } from './context.js';
import { createControl } from './control.js';
import { createDeliver } from './deliver.js';
import { createIdentity } from './identity.js';
import { createInbox } from './inbox.js';
import { createPace } from './pace.js';
import { createQuestions } from './questions.js';
import { createReceive, type ReceiveParts } from './receive.js';
import { createRoute, type RouteParts } from './route.js';
import { createSlots } from './slots.js';
import type { TurnParts } from './turn.js';

export interface ConversationParts
  extends Pick<
    RouteParts,
    'channels' | 'personas' | 'rulesFor' | 'maxAgeMs' | 'newId' | 'clock' | 'log' | 'metrics'
  > {
  store: Store;
  /** Whether replies are shown in a channel while they are written, where it can; left out: they are. */
  streams?: RouteParts['streams'];
  chatFiles: ReceiveParts['chatFiles'];
  memory: ContextParts['memory'];
  zone: ContextParts['zone'];
  archives: Archives;
  recall: Recall;
  media: Media;
  settings: ContextParts['settings'] &
    CompactionSettings & {
      debounceMs: number;
      maxToolRounds: number;
      natural: boolean;
      caps: RouteParts['caps'];
    };
  model: TurnParts['model'];
  tools: TurnParts['tools'];
  toolDescriptions: TurnParts['toolDescriptions'];
  /** What a memory flush is offered. */
  flushTools: { tools: TurnParts['tools']; descriptions: TurnParts['toolDescriptions'] };
  newPairingCode: ReceiveParts['newPairingCode'];
  facts: CommandParts['facts'];
}

export interface Conversation {
  receive: Receive;
  /** Says something beside the answer of a turn. */
  sayAside(aside: Aside): Promise<'posted' | 'unknown chat'>;
  /** Takes up what stands in the store: after a crash, and when another process wrote to it. */
  takeUp(pending: Pending): void;
  /** Makes up for the flushes that are owed in these channels' chats. */
  takeUpWindows(channels: string[]): void;
  /** Resolves when no flush or compaction is under way. */
  resting(): Promise<void>;
  /** Resolves when nothing of this channel waits, runs or is to be sent. */
  idle(channel: string): Promise<void>;
  /** Ends turns and sends within the time given; what is not over by then is parked and taken up next time. */
  stop(withinMs: number): Promise<void>;
}

/** Turns side by side: enough for every chat that talks, few enough for a model server after an outage. */
const MOST_TURNS = 100;
/** What is cut off at the deadline has this long to come to rest. */
const REST_MS = 2_000;

export function createConversation(parts: ConversationParts): Conversation {
  const { store, channels, clock, log, metrics, rulesFor } = parts;
  const pace = createPace();
  const questions = createQuestions(clock);
  const windows = createWindows({
    ...parts,
    flushTools: {
      ...parts.flushTools,
      tokens: estimateTokens(JSON.stringify(parts.flushTools.descriptions)),
    },
  });
  const deliver = createDeliver({
    ...{ store, channels, clock, log, metrics, maxAgeMs: parts.maxAgeMs },
    onMoved: createIdentity(parts).link,
  });
  const route = createRoute({
    ...{ store, channels, clock, log, metrics, rulesFor, deliver, pace, windows },
    onHeard: parts.recall.heard,
    streams: parts.streams ?? (() => true),
    caps: parts.settings.caps,
    arbiter: parts.settings.natural ? createArbiter(parts) : null,
    ...{ personas: parts.personas, maxAgeMs: parts.maxAgeMs, newId: parts.newId },
    context: { ...parts, toolTokens: estimateTokens(JSON.stringify(parts.toolDescriptions)) },
    files: parts,
    turn: { ...parts, maxToolRounds: parts.settings.maxToolRounds, timezone: parts.zone.name },
  });
  const control = createControl({
    ...{ store, channels, clock, log, metrics },
    commandParts: { ...parts, commands: COMMANDS, questions, windows },
    abortTurn: route.abort,
    giveUpOpening: route.giveUpOpening,
    interruptTurns: route.interrupt,
    onAnswered: deliver.wake,
    wakeRoom: (room) => inbox.wake(room, 'settled'),
  });
  const inbox = createInbox({
    ...{ store, clock, log, pace },
    slots: createSlots(MOST_TURNS, clock),
    takeTurn: route.takeTurn,
    commandsDone: control.idle,
    debounceMs: (channel) => channels.get(channel)?.limits.debounceMs ?? parts.settings.debounceMs,
    owner: parts.newId(),
  });
  const receive = createReceive({
    ...parts,
    questions,
    commandNames: COMMAND_NAMES,
    compose: (channel, markdown) => channels.get(channel)?.compose(markdown) ?? [],
    onReceived({ commands, rooms }) {
      control.run(commands);
      wakeAll(rooms, 'fresh');
    },
    onPosted: deliver.wake,
  });

  function wakeAll(rooms: RoomId[], burst: 'fresh' | 'settled'): void {
    for (const room of rooms) inbox.wake(room, burst);
  }

  return {
    receive,
    sayAside: (aside) => sayAside({ ...parts, roomOf: route.roomOf, onPosted: deliver.wake }, aside),
    takeUp({ commands, rooms, chats }) {
      control.run(commands);
      wakeAll(rooms, 'settled');
      for (const chat of chats) deliver.wake(chat);
    },
    takeUpWindows: windows.start,
    resting: windows.resting,
    async idle(channel) {
      await control.idle();
      await inbox.idle(channel);
      await deliver.idle(channel);
    },
    async stop(withinMs) {
      const enough = new AbortController();
      const deadline = clock.sleep(withinMs, enough.signal);
      const turns = inbox.stop();
      // Nothing is flushed in a hurry: the windows are as full at the next start.
      const rest = windows.stop();
      await Promise.race([Promise.all([control.stop(), turns.done]), deadline]);
      turns.force();
      await Promise.race([rest, clock.sleep(REST_MS, enough.signal)]);
      await Promise.race([turns.done, clock.sleep(REST_MS, enough.signal)]);
      await Promise.race([deliver.drain(), deadline]);
      const sends = deliver.stop();
      await Promise.race([sends.done, deadline]);
      sends.force();
      await Promise.race([sends.done, clock.sleep(REST_MS, enough.signal)]);
      enough.abort();
    },
  };
}
