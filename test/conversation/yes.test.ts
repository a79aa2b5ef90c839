/** What a command asks and a person answers: through step 1 and the control lane, over a store of plain arrays. */
import { describe, expect, it } from 'vitest';
import { COMMAND_NAMES } from '../../src/conversation/commands/list.js';
import { isYes } from '../../src/conversation/commands/parse.js';
import { createControl } from '../../src/conversation/control.js';
import { createReceive } from '../../src/conversation/receive.js';
import type { Channel } from '../../src/core/channel.js';
import { roomId } from '../../src/core/ids.js';
import type { InboundMessage } from '../../src/core/message.js';
import type {
  AccessStore,
  NewDelivery,
  PendingCommand,
  Receipt,
  StoredCommand,
} from '../../src/core/store.js';
import { quietMetrics } from '../harness/quiet.js';
import { commandOf, standIn } from './memory-stand-in.js';

function line() {
  const on = standIn();
  on.tiers.set('default', { 1: 'the word is swordfish\nnot marlin', 2: '', 3: '' });
  const receipts: Receipt[] = [];
  const commands: StoredCommand[] = [];
  const sent: NewDelivery[] = [];
  const interrupted: string[] = [];
  const full = { disk: false };
  const seen = new Set<string>();
  const administrators = new Set<string>();

  const nothing = async () => null;
  const access: AccessStore = {
    standing: async () => ({ chat: true, sender: true, owner: false }),
    requestPairing: async () => 'quiet',
    noteGroup: async () => false,
    waiting: async () => [],
    approve: nothing,
    revoke: async () => false,
  };
  const channel: Channel = {
    name: 'test',
    limits: { messagesPerSecond: 1, perChatBurst: 1, perChatPerSecond: { direct: 1, group: 1 } },
    compose: (text) => [{ text, marks: [] }],
    start: async () => {},
    send: async () => ({ kind: 'refused', reason: 'a test' }),
    stop: async () => {},
    status: () => ({ connected: true, since: 0, lastError: null }),
    isAdministrator: async (_chat, sender) => administrators.has(sender),
  };
  const control = createControl({
    ...{ commandParts: on.parts, clock: on.clock, log: on.parts.log, metrics: quietMetrics },
    channels: new Map([['test', channel]]),
    store: {
      ...access,
      takeCommand: async (id) => commands[id] ?? null,
      async finishCommand({ deliveries }) {
        sent.push(...deliveries);
        return { abortedTurn: null };
      },
    },
    abortTurn: () => {},
    giveUpOpening: () => {},
    interruptTurns: async (chatId) => void interrupted.push(chatId),
    onAnswered: () => {},
    wakeRoom: () => {},
  });
  const receive = createReceive({
    ...{ questions: on.questions, clock: on.clock, log: on.parts.log, metrics: quietMetrics },
    ...{ rulesFor: on.parts.rulesFor, commandNames: COMMAND_NAMES, compose: () => [] },
    chatFiles: {
      setTitle: async () => {},
      addAlias: async () => {},
      resolve: nothing,
      prepare: async () => {},
    },
    media: { tell: (words) => words },
    newPairingCode: () => 'ABCDEFGH',
    newId: () => 'id',
    store: {
      ...access,
      ...{ cursor: nothing, aliasOf: nothing, addAlias: async () => {}, durable: async () => {} },
      ...{
        chat: nothing,
        lastReply: nothing,
        running: nothing,
        waits: async () => false,
        newest: async () => [],
      },
      async receive(batch) {
        if (full.disk) throw new Error('the disk is full');
        const pending: PendingCommand[] = [];
        for (const receipt of batch.receipts) {
          if (receipt.kind === 'moved' || receipt.kind === 'deleted' || receipt.kind === 'reaction') continue;
          if (seen.has(receipt.platformMessageId)) continue;
          seen.add(receipt.platformMessageId);
          receipts.push(receipt);
          if (receipt.kind !== 'command') continue;
          const room = roomId(receipt.chat.id, receipt.threadId);
          const { platformMessageId, sender } = receipt;
          const chat = { ...commandOf({}).chat, id: receipt.chat.id, kind: receipt.chat.kind };
          const id = commands.push(commandOf({ ...receipt.command, room, chat, platformMessageId, sender }));
          pending.push({ id: id - 1, room });
        }
        return { rooms: [], commands: pending, duplicates: 0 };
      },
    },
    onReceived: (received) => control.run(received.commands),
    onPosted: () => {},
  });

  let lastId = 100;
  const message = (text: string, more: Partial<InboundMessage> = {}): InboundMessage => ({
    ...{ kind: 'message', chat: { address: '1', kind: 'direct', title: 'Anna' }, threadId: null, text },
    ...{ platformMessageId: String(++lastId), sentAt: 0, mentionsBot: false, replyTo: null },
    sender: { address: 'anna', name: 'Anna', administrator: false },
    ...more,
  });
  const hand = async (...events: InboundMessage[]) => {
    await receive({ channel: 'test', account: 'bot', events });
    await control.idle();
  };
  return {
    ...{ on, receipts, sent, full, administrators, interrupted, message, hand },
    say: (text: string, more: Partial<InboundMessage> = {}) => hand(message(text, more)),
    /** What the last thing said became. */
    last: () => receipts.at(-1),
    remembers: (word: string) => on.tiers.get('default')?.[1].includes(word),
  };
}

const asCommand = { kind: 'command', command: { name: 'memory', argument: 'yes swordfish' } };
const GROUP = { chat: { address: '-5', kind: 'group' as const, title: 'Garden' } };
const BEN = { sender: { address: 'ben', name: 'Ben', administrator: false } };

describe('a yes', () => {
  it('becomes the command that was asked about, and is never conversation', async () => {
    const { say, last, sent, remembers, interrupted } = line();
    await say('/memory forget swordfish');
    expect(remembers('swordfish')).toBe(true);
    await say(' Yes! ');
    expect(last()).toMatchObject(asCommand);
    expect(remembers('swordfish')).toBe(false);
    expect(remembers('marlin')).toBe(true);
    expect(sent.at(-1)?.body.text).toMatch(/^It is forgotten/);
    expect(sent.at(-1)?.body.text).not.toContain('swordfish');
    expect(interrupted).toEqual(['test_1', 'test_1']);
  });

  it('is conversation before the question, the second time, and after two minutes', async () => {
    const { say, last, on, remembers } = line();
    await say('yes');
    expect(last()).toMatchObject({ kind: 'message', text: 'yes' });
    await say('/memory forget marlin');
    await on.clock.advance(119_999);
    await say('yes');
    expect(last()).toMatchObject({ kind: 'command' });
    await say('yes');
    expect(last()).toMatchObject({ kind: 'message' });
    await say('/memory forget swordfish');
    await on.clock.advance(120_000);
    await say('yes');
    expect(last()).toMatchObject({ kind: 'message' });
    expect(remembers('swordfish')).toBe(true);
  });

  it('counts from nobody else and from no other room', async () => {
    const { say, last, remembers } = line();
    await say('/memory forget swordfish');
    await say('yes', { sender: { address: 'ben', name: 'Ben', administrator: true } });
    expect(last()).toMatchObject({ kind: 'message' });
    await say('yes', { threadId: '7' });
    expect(last()).toMatchObject({ kind: 'message' });
    expect(remembers('swordfish')).toBe(true);
    await say('yes');
    expect(last()).toMatchObject(asCommand);
  });

  it('is no answer any more once anything else was said, also in one batch; that is handled as usual', async () => {
    for (const other of ['no', 'yes please', '/status', 'yes?']) {
      const { hand, message, say, receipts, remembers } = line();
      await say('/memory forget swordfish');
      await hand(message(other), message('yes'));
      expect(receipts.at(-2)?.kind).toBe(other === '/status' ? 'command' : 'message');
      expect(receipts.at(-1)).toMatchObject({ kind: 'message', text: 'yes' });
      expect(remembers('swordfish')).toBe(true);
    }
  });

  it('answers the newer of two questions', async () => {
    const { say, last, remembers } = line();
    await say('/memory forget swordfish');
    await say('/memory forget marlin');
    await say('YES.');
    expect(last()).toMatchObject({ command: { argument: 'yes marlin' } });
    expect([remembers('swordfish'), remembers('marlin')]).toEqual([true, false]);
  });

  it('still counts when the platform hands in the question again, or the disk was full when it came', async () => {
    const { hand, message, say, last, full } = line();
    const question = message('/memory forget swordfish');
    await hand(question);
    await hand(question);
    const yes = message('yes');
    full.disk = true;
    await expect(hand(yes)).rejects.toThrow('the disk is full');
    full.disk = false;
    await hand(yes);
    expect(last()).toMatchObject(asCommand);
    await say('yes');
    expect(last()).toMatchObject({ kind: 'message' });
  });

  it('needs no mention in a group, but the right to change things there', async () => {
    const { say, last, sent, remembers, administrators } = line();
    await say('/memory forget swordfish', GROUP);
    expect(sent.at(-1)?.body.text).toBe('Only owners and administrators of this group can do that.');
    await say('yes', GROUP);
    expect(last()).toMatchObject({ kind: 'message' });
    await say('/memory yes swordfish', { ...GROUP, ...BEN });
    expect(sent.at(-1)?.body.text).toBe('Only owners and administrators of this group can do that.');
    expect(remembers('swordfish')).toBe(true);
    administrators.add('anna');
    await say('/memory forget swordfish', GROUP);
    await say('yes', { ...GROUP, ...BEN });
    expect(last()).toMatchObject({ kind: 'message' });
    await say('yes', GROUP);
    expect(last()).toMatchObject(asCommand);
    expect(remembers('swordfish')).toBe(false);
  });

  it('typed as a command needs no question; nothing to forget asks none', async () => {
    const { say, last, remembers } = line();
    await say('/memory forget herring');
    await say('yes');
    expect(last()).toMatchObject({ kind: 'message' });
    await say('/memory yes swordfish');
    expect(remembers('swordfish')).toBe(false);
  });

  it('survives in the store what it was asked with: signs, quotes, line ends', async () => {
    const { say, last } = line();
    await say('/memory forget "the\n word"');
    await say('yes');
    expect(last()).toMatchObject({ command: { argument: 'yes "the\n word"' } });
  });
});

describe('what counts as a plain yes', () => {
  it('is the word alone, whatever its case, stops and white space', () => {
    for (const text of ['yes', 'YES', ' Yes.', 'yes!!', 'yes . !', '\u200eyes\n'])
      expect(isYes(text, false)).toBe(true);
    for (const text of ['yes?', 'yesyes', 'yes, please', 'no', '', 'y', '"yes"', '@bot yes'])
      expect(isYes(text, false)).toBe(false);
    expect(isYes('@coterie_bot yes!', true)).toBe(true);
    expect(isYes('yes @coterie_bot', true)).toBe(true);
    expect(isYes('@coterie_bot yes please', true)).toBe(false);
  });
});

describe('files of an answer', () => {
  it('follow its text, a message each, and only the text is shown as a reply', async () => {
    const { say, sent, on, administrators } = line();
    administrators.add('anna');
    on.files.set('memory/2026-11-22.md', 'x');
    await say('/memory export', GROUP);
    expect(
      sent.map(({ part, body, replyTo }) => ({ part, file: body.file?.name, replies: replyTo !== null })),
    ).toEqual([
      { part: 0, file: undefined, replies: true },
      { part: 1, file: 'default-MEMORY.md', replies: false },
      { part: 2, file: 'memory-2026-11-22.md', replies: false },
    ]);
  });
});
