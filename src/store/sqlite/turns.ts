/**
 * Steps 2 to 6 of the route: a room's lease and the turn in it. A claim is held while the room has an owner and
 * the claim's fence; every claim and every abort moves the fence on.
 */
import { Fault } from '../../core/errors.js';
import type { Exchange } from '../../core/exchange.js';
import { type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { Usage } from '../../core/model.js';
import type { Claim, TurnStore } from '../../core/store.js';
import type { Chats } from './chats.js';
import type { Connection } from './connection.js';
import type { Deliver } from './deliveries.js';
import { toChat, toMessage } from './rows.js';
import { MOST_WAITING, prepareTurnStatements } from './turn-statements.js';
import { usageAdderOf } from './usage.js';
import { giveNoterOf } from './versions.js';
import type { Views } from './views.js';

const NO_TOKENS: Usage = { inputTokens: 0, outputTokens: 0 };

type WorkingStore = Omit<TurnStore, 'recover' | 'pending'>;

export function turnStore(
  connection: Connection,
  chats: Chats,
  deliver: Deliver,
  views: Views,
): WorkingStore {
  const { write } = connection;
  const noteGiven = giveNoterOf(connection);
  const addUsage = usageAdderOf(connection);
  const statements = prepareTurnStatements(connection);

  function holds(claim: Claim): boolean {
    return statements.held.get({ ...claim }) !== undefined;
  }

  /** The claim's running turn. */
  function runningTurn(claim: Claim, turnId: string) {
    const row = holds(claim) ? statements.running.get({ room: claim.room }) : undefined;
    return row?.id === turnId ? row : undefined;
  }

  function chatOf(room: RoomId) {
    const { chatId } = roomParts(room);
    const row = chats.find(chatId);
    if (!row) throw new Fault('internal', `room ${room} has no chat in the store`);
    return row;
  }

  return {
    claim: ({ room, owner, now, leaseMs }) =>
      write(() => {
        const free = statements.takeable.get({ room, owner, now });
        if (!free) return null;
        const unfinished = statements.running.get({ room });
        const waiting = unfinished ? [] : statements.waiting.all({ room });
        if (!unfinished && waiting.length === 0 && free.exchange === null) return null;
        statements.lease.run({ room, owner, until: now + leaseMs });
        return {
          claim: { room, fence: free.fence + 1 },
          chat: toChat(chatOf(room)),
          turn: unfinished
            ? {
                id: unfinished.id,
                personaId: unfinished.personaId,
                startedAt: unfinished.startedAt,
                attempts: unfinished.attempts,
                crashes: unfinished.crashes,
                steps: statements.steps.all({ turnId: unfinished.id }).map((row) => row.body),
              }
            : null,
          batch: unfinished
            ? statements.batch.all({ batch: JSON.stringify(unfinished.batch) }).map(toMessage)
            : [],
          waiting: waiting.slice(0, MOST_WAITING).map(toMessage),
          more: waiting.length > MOST_WAITING,
          exchange: free.exchange,
          turnsForBots: free.turnsForBots,
        };
      }),

    renew: (claim, now, leaseMs) =>
      write(() => statements.renew.run({ ...claim, until: now + leaseMs }).changes === 1),

    release: (claim) => write(() => void statements.release.run({ ...claim })),

    beginTurn: ({ claim, turn, noted, hearers, exchange = null, forBots, spent, now }) =>
      write(() => {
        if (!holds(claim)) return null;
        const { room } = claim;
        /** What was admitted must still wait: the claim keeps it from everybody else. */
        const take = (id: number, state: 'taken' | 'done', turnId: string | null) => {
          if (statements.take.run({ id, room, state, turnId }).changes !== 1)
            throw new Fault('internal', `message ${id} does not wait in ${room}`);
        };
        const heardAfter = statements.newestMessage.get()?.id ?? 0;
        const hear = (personaId: string, addressed: boolean, ids: number[]) => {
          for (const id of ids) statements.hear.run({ room, personaId, addressed, heardAfter, id });
        };
        const taken = turn?.taken ?? turn?.batch ?? [];
        const addressed = turn ? new Set([turn.personaId, ...(turn.addressed ?? [])]) : new Set<PersonaId>();
        if (turn) {
          const { id: turnId, personaId } = turn;
          const batch = [...turn.batch].sort((a, b) => a - b);
          if (batch.length === 0) throw new Fault('internal', `turn ${turnId} would answer nothing`);
          statements.begin.run({ id: turnId, room, personaId, now, batch });
          for (const id of taken) take(id, 'taken', turnId);
          for (const hearer of addressed) hear(hearer, true, taken);
        }
        if (forBots !== undefined && (turn || !forBots)) {
          statements.countForBots.run({ room, forBots: Number(forBots) });
        }
        if (spent) addUsage({ room, personaId: spent.personaId }, { turns: 0, ...spent.usage }, now);
        for (const id of noted) take(id, 'done', null);
        for (const hearer of hearers) {
          hear(hearer, false, addressed.has(hearer) ? noted : [...taken, ...noted]);
        }
        statements.setExchange.run({ room, exchange: asJson(exchange) });
        return turn ? statements.batch.all({ batch: JSON.stringify(turn.batch) }).map(toMessage) : [];
      }),

    complete: (claim, { id, text, attachments }) =>
      write(() => {
        if (!holds(claim)) return false;
        const asked = { id, room: claim.room, text, attachments: JSON.stringify(attachments) };
        return statements.complete.run(asked).changes === 1;
      }),

    addStep: (claim, turnId, step) =>
      write(() => {
        const running = runningTurn(claim, turnId);
        if (!running) return false;
        statements.addStep.run({ turnId, body: step });
        const usesTools = step.kind !== 'answer' || step.calls.length > 0;
        if (usesTools && !running.usedTools) statements.usedTools.run({ turnId });
        return true;
      }),

    finishTurn: (finish) =>
      write(() => {
        const { claim, turnId, outcome, reply, hearers, deliveries, usage, measured, given, now } = finish;
        const running = runningTurn(claim, turnId);
        if (!running) return 'lost';
        const { room } = claim;
        const { personaId } = running;
        let exchange = finish.exchange ?? null;
        const chat = chatOf(room);
        statements.answered.run({ batch: JSON.stringify(running.batch) });
        statements.end.run({ turnId, outcome, now });
        if (reply !== null) {
          const { account, moves } = chat;
          const said = { room, chatId: chat.id, account, moves, personaId, text: reply, now, turnId };
          const { id } = statements.say.get(said);
          statements.spoke.run({ room, personaId, now });
          const heard = { room, heardAfter: id - 1, id };
          const addressed = new Set([personaId, ...(finish.addressed ?? [])]);
          for (const hearer of addressed)
            statements.hear.run({ ...heard, personaId: hearer, addressed: true });
          for (const hearer of hearers) {
            if (!addressed.has(hearer)) {
              statements.hear.run({ ...heard, personaId: hearer, addressed: false });
            }
          }
          if (exchange !== null) exchange = { ...exchange, said: [...exchange.said, { id, by: personaId }] };
        }
        statements.setExchange.run({ room, exchange: asJson(exchange) });
        const { id: chatId, channel, address, kind } = chat;
        const { threadId } = roomParts(room);
        deliver({ chatId, channel, address, threadId, kind, now }, deliveries);
        deliver.open.takeBack(turnId, now);
        if (usage || outcome === 'answered') {
          addUsage({ room, personaId }, { turns: 1, ...(usage ?? NO_TOKENS) }, now);
        }
        if (measured) views.measure(room, personaId, measured);
        if (given) noteGiven(room, personaId, given);
        statements.release.run({ ...claim });
        return 'finished';
      }),

    failAttempt: (claim, turnId) =>
      write(() => {
        if (runningTurn(claim, turnId)) {
          statements.fail.run({ turnId });
          statements.release.run({ ...claim });
        }
        return statements.attempts.get({ turnId })?.attempts ?? 0;
      }),
  };
}

/** The placeholder of a column for JSON is not told what it is for. */
function asJson(exchange: Exchange | null): string | null {
  return exchange === null ? null : JSON.stringify(exchange);
}
