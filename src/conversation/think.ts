/**
 * Steps 4 and 5 of the route for one turn: gather what the persona knows, ask the model until the request fits, show
 * the reply while it is written. What comes of it is an ending, for step 6.
 */
import type { Clock } from '../core/clock.js';
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { TurnStore } from '../core/store.js';
import type { Step, StoredMessage } from '../core/transcript.js';
import type { Measured } from '../core/view.js';
import type { AccessRules } from './access.js';
import type { Begun } from './begin.js';
import type { Windows } from './compaction/windows.js';
import { buildContext, type Context, type ContextParts } from './context.js';
import type { Ending } from './finish.js';
import { stepMessages, tokensOf } from './history.js';
import { createLive, type Live, NOT_LIVE } from './live.js';
import { faceOf } from './presence.js';
import { recipientIn, replyOf } from './reply.js';
import type { Showing } from './showing.js';
import { runTurn, type TurnOutcome, type TurnParts } from './turn.js';

export interface ThinkParts {
  store: Pick<TurnStore, 'addStep'>;
  context: ContextParts;
  turn: TurnParts;
  windows: Windows;
  deliver: { show: Showing['change'] };
  /** Whether replies are shown there while they are written. */
  streams(channel: string): boolean;
  rulesFor(channel: string): AccessRules;
  maxAgeMs: number;
  clock: Clock;
  log: Log;
}

export interface Thought {
  ending: Ending;
  /** When the turn has finished: begins a compaction where the window fills up. */
  consider(): void;
}

const HOUR_MS = 3_600_000;

/** null when the turn was aborted, or its claim is lost. */
export async function think(parts: ThinkParts, begun: Begun, signal: AbortSignal): Promise<Thought | null> {
  const { windows } = parts;
  const { turn, batch, personas } = begun;
  const { chat, claim } = begun.claimed;
  const lateByHours = waitedTooLong(batch, turn.startedAt, parts.maxAgeMs);
  const subject = { chat, room: claim.room, personaId: turn.personaId, personas };
  const now = parts.clock.now();
  const gather = () => buildContext(parts.context, { ...subject, batch, now, lateByHours });
  const makeRoom = async (refused: number | null) => {
    await windows.makeRoom(subject, turn.id, refused);
    context = await gather();
  };

  let context = await gather();
  if (windows.isFull(context.sizes, context.view.measured)) await makeRoom(null);
  const live = liveFor(parts, begun, context, lateByHours);
  signal.addEventListener('abort', live.end, { once: true });
  const ask = () => askModel(parts, begun, context, live, signal);
  const askUntilItFits = async () => {
    const first = await ask();
    if (first.kind !== 'failed' || first.fault.code !== 'context_too_long' || signal.aborted) return first;
    parts.log.warn(
      { room: claim.room, why: describe(first.fault) },
      'a request did not fit; compacting first',
    );
    await makeRoom(context.requestTokens);
    return ask();
  };
  const outcome = await askUntilItFits().finally(live.end);
  if (outcome.kind === 'dropped') return null;
  if (outcome.kind === 'failed') {
    parts.log.warn(
      { code: outcome.fault.code, room: claim.room, turn: turn.id, why: describe(outcome.fault) },
      'the model gave no answer; the chat is told',
    );
  }

  const measured = windows.credible(claim.room, turn.personaId, measuredOf(outcome, context, turn.steps));
  const { persona, given, sizes, view } = context;
  return {
    ending: { ...wordsOf(outcome), speaker: persona.name, lateByHours, measured, given },
    consider() {
      if (outcome.kind === 'answered') windows.consider(subject, sizes, measured ?? view.measured);
    },
  };
}

function askModel(
  parts: ThinkParts,
  { claimed, turn, batch }: Begun,
  context: Context,
  live: Live,
  signal: AbortSignal,
): Promise<TurnOutcome> {
  const { chat, claim } = claimed;
  return runTurn(parts.turn, {
    turnId: turn.id,
    context,
    authorisation: {
      chatId: chat.id,
      personaId: turn.personaId,
      senderId: senderOf(batch),
      channel: chat.channel,
      controlChats: parts.rulesFor(chat.channel).controlChats,
    },
    cause: { kind: 'turn', personaId: turn.personaId, turnId: turn.id },
    steps: turn.steps,
    save: (step) => parts.store.addStep(claim, turn.id, step),
    onText: live.tell,
    signal,
  });
}

/** What is written is shown, where the channel can do that and may. */
function liveFor(parts: ThinkParts, begun: Begun, context: Context, lateByHours: number | null): Live {
  const { claimed, channel, turn, batch, personas } = begun;
  const { chat, claim } = claimed;
  const canShow =
    channel.preview !== undefined || (channel.edit !== undefined && channel.remove !== undefined);
  if (!canShow || !parts.streams(channel.name)) return NOT_LIVE;
  const face = faceOf(chat, personas, turn.personaId);
  const said = {
    ...{ turnId: turn.id, personaId: turn.personaId, speaker: context.persona.name, face },
    ...{ batch, kind: chat.kind, lateByHours },
  };
  return createLive(
    { show: parts.deliver.show, clock: parts.clock },
    {
      ...{ turnId: turn.id, room: claim.room, chatId: chat.id, channel },
      to: recipientIn(claimed),
      deliveriesOf: (text) => replyOf(channel, said, text),
    },
  );
}

function waitedTooLong(batch: StoredMessage[], startedAt: number, maxAgeMs: number): number | null {
  const oldest = Math.min(...batch.map((message) => message.receivedAt));
  const waited = startedAt - oldest;
  return waited > maxAgeMs ? Math.floor(waited / HOUR_MS) : null;
}

/** What the server counted of the turn's last request, beside our estimate of that very request. */
function measuredOf(outcome: TurnOutcome, context: Context, steps: Step[]): Measured | null {
  if (outcome.kind !== 'answered' || !outcome.last || outcome.last.inputTokens <= 0) return null;
  const estimated = context.requestTokens + tokensOf(stepMessages(steps));
  return { counted: outcome.last.inputTokens, estimated };
}

function senderOf(batch: StoredMessage[]): string {
  const last = batch.findLast(({ author }) => author.kind === 'person')?.author;
  return last?.kind === 'person' ? last.id : '';
}

function wordsOf(
  outcome: Exclude<TurnOutcome, { kind: 'dropped' }>,
): Pick<Ending, 'outcome' | 'text' | 'usage'> {
  const { usage } = outcome;
  if (outcome.kind === 'answered' && outcome.text !== '')
    return { outcome: 'answered', text: outcome.text, usage };
  const fault = outcome.kind === 'failed' ? outcome.fault : new Fault('model_empty', 'no words');
  return { outcome: 'failed', text: fault.sentence, usage };
}
