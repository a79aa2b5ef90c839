/** Buttons below messages on Telegram, and what becomes of a press. */
import { afterEach, describe, expect, test } from 'vitest';
import type { Choice, Part, Recipient } from '../../src/core/channel.js';
import type { InboundChoice } from '../../src/core/message.js';
import type { SentMessage } from '../fakes/telegram.js';
import { ANNA, group } from '../fakes/telegram-chats.js';
import { buttonsOf } from '../fakes/telegram-presses.js';
import { sendOptions } from '../harness/sending.js';
import { type Stage, stage } from './telegram-stage.js';

const TO_ANNA: Recipient = { address: String(ANNA.id), threadId: null, kind: 'direct' };
const GARDEN = -1_001_234_567_890;
const BEN = { id: 77, first_name: 'Ben', last_name: 'Zöe' };
const KEY = '0f8fad5b-d9cb-469f-a165-70867728950e';
const CHOICES: Choice[] = [
  { label: 'Luna', value: `${KEY}.0` },
  { label: 'Marlow', value: `${KEY}.1` },
];
const asking = (choices: Choice[] = CHOICES): Part => ({ text: 'Which?', marks: [], choices });

let on: Stage;
afterEach(() => on.close());

async function ask(to: Recipient = TO_ANNA, part = asking(), more = {}): Promise<SentMessage> {
  const sent = await on.channel.send(to, part, sendOptions(more));
  expect(sent.kind).toBe('sent');
  return on.fake.sent.at(-1) as SentMessage;
}
const pressed = () =>
  on.batches.flatMap(({ events }) =>
    events.filter((event): event is InboundChoice => event.kind === 'choice'),
  );
const labels = (message: SentMessage) => buttonsOf(message).map(({ text }) => text);

describe('buttons', () => {
  test('stand below the message, several in a row where they are short, cut to one line otherwise', async () => {
    on = await stage({ personaTokens: {} });
    const family = '👨‍👩‍👧'.repeat(30);
    const long = `The  Lady\nof ${family}`;
    const message = await ask(
      TO_ANNA,
      asking([...CHOICES, { label: long, value: 'k.2' }, { label: 'ليلى', value: 'k.3' }]),
    );
    const rows = (message.markup as { inline_keyboard: { text: string }[][] }).inline_keyboard;
    expect(rows.map((row) => row.map(({ text }) => text))).toEqual([
      ['Luna', 'Marlow'],
      [expect.stringMatching(/^The Lady of (👨‍👩‍👧)+…$/u)],
      ['ليلى'],
    ]);
    expect(rows[1]?.[0]?.text.length).toBeLessThanOrEqual(60);
    expect(buttonsOf(message)[0]?.data).toBe(`${KEY}.0`);
  });

  test('that Telegram does not take are left out: the words are there, once', async () => {
    on = await stage({ personaTokens: {} });
    on.fake.fail('sendMessage', { status: 400, description: 'Bad Request: BUTTON_DATA_INVALID' });
    const many = Array.from({ length: 120 }, (_, n) => ({ label: `Persona ${n}`, value: `k.${n}` }));
    expect((await ask()).markup).toBeNull();
    expect(labels(await ask(TO_ANNA, asking(many)))).toHaveLength(100);
    expect(on.fake.sent).toMatchObject([{ text: 'Which?' }, { text: 'Which?' }]);
  });

  test('stay in an edit that has them, and go in one that has none', async () => {
    on = await stage({ personaTokens: {} });
    const message = await ask();
    const edit = (part: Part) => on.channel.edit(TO_ANNA, String(message.messageId), part, sendOptions());
    expect(await edit({ ...asking(), text: 'Which one?' })).toMatchObject({ kind: 'sent' });
    expect(labels(message)).toEqual(['Luna', 'Marlow']);
    expect(await edit({ text: 'Never mind.', marks: [] })).toMatchObject({ kind: 'sent' });
    expect(labels(message)).toEqual([]);
  });
});

describe('a press', () => {
  test('is handed in as the choice of whoever pressed, then answered, and the buttons go', async () => {
    on = await stage({ personaTokens: {} });
    await on.start();
    await on.fake.until(() => on.fake.polls.count > 0);
    const message = await ask();
    const press = on.fake.press(ANNA, message, 'Marlow');
    await on.fake.until(() => press.answered && labels(message).length === 0, 'the press is answered');
    expect(pressed()).toEqual([
      {
        kind: 'choice',
        chat: { address: String(ANNA.id), kind: 'direct' },
        threadId: null,
        sender: { address: String(ANNA.id), name: 'Anna Berg', administrator: false },
        platformMessageId: `press-${press.id}`,
        value: `${KEY}.1`,
        sentAt: 0,
      },
    ]);
    expect(press.text).toBeNull();
  });

  test('in a topic says where', async () => {
    on = await stage({ personaTokens: {} });
    await on.start();
    await on.fake.until(() => on.fake.polls.count > 0);
    const message = await ask({ address: String(GARDEN), threadId: '45', kind: 'group' });
    const press = on.fake.press(BEN, message, 0);
    await on.fake.until(() => press.answered);
    expect(pressed()).toMatchObject([
      {
        chat: { address: String(GARDEN), kind: 'group' },
        threadId: '45',
        sender: { address: '77', name: 'Ben Zöe' },
      },
    ]);
  });

  test('on what is over is told so, and the buttons go; on what is not theirs, they stay', async () => {
    on = await stage({ personaTokens: {} });
    await on.start();
    await on.fake.until(() => on.fake.polls.count > 0);
    const message = await ask();
    on.parts.became = 'not yours';
    const first = on.fake.press(BEN, message, 'Luna');
    await on.fake.until(() => first.answered);
    expect(first.text).toBe('This is for somebody else to decide.');
    expect(labels(message)).toEqual(['Luna', 'Marlow']);
    on.parts.became = 'over';
    const second = on.fake.press(BEN, message, 'Luna');
    await on.fake.until(() => second.answered && labels(message).length === 0);
    expect(second.text).toBe('This is over.');
  });

  test('is answered only when it is stored, and again if it could not be', async () => {
    on = await stage({ personaTokens: {} });
    let full = true;
    on.parts.store = async () => {
      if (full) throw new Error('the disk is full');
    };
    await on.start();
    await on.fake.until(() => on.fake.polls.count > 0);
    const press = on.fake.press(ANNA, await ask(), 'Luna');
    await on.clock.asleep(1_000);
    expect(press.answered).toBe(false);
    full = false;
    await on.clock.advance(1_000);
    await on.fake.until(() => press.answered);
    expect(pressed()).toHaveLength(1);
  });

  test('whose answer comes too late, or that nothing can be told, keeps nothing else from coming in', async () => {
    on = await stage({ personaTokens: {} });
    on.fake.settings.pressAnswerMs = -1;
    await on.start();
    await on.fake.until(() => on.fake.polls.count > 0);
    const message = await ask();
    const late = on.fake.press(ANNA, message, 'Luna');
    await on.fake.until(() => on.fake.callsOf('editMessageReplyMarkup').length === 1);
    expect(late.answered).toBe(false);
    on.fake.settings.pressAnswerMs = 15_000;
    const vanished = await ask();
    const gone = on.fake.press(ANNA, vanished, 'Luna');
    on.fake.vanish(vanished);
    on.fake.say({ from: ANNA, text: 'hello' });
    await on.heard(1);
    await on.fake.until(() => gone.answered);
    expect(on.logged.filter((entry) => /^(warn|error)/.test(entry))).toEqual([]);
  });

  test('is answered although Telegram does not show its message any more, or it names nothing', async () => {
    on = await stage({ personaTokens: {} });
    await on.start();
    await on.fake.until(() => on.fake.polls.count > 0);
    const message = await ask();
    const from = { ...ANNA, is_bot: false };
    const old = on.fake.press(ANNA, message, 0);
    await on.fake.until(() => old.answered);
    on.fake.push({ callback_query: { id: 'without', from, chat_instance: '1' } });
    await on.fake.until(() => on.fake.callsOf('answerCallbackQuery').length === 2);
    expect(pressed()).toHaveLength(1);
  });

  test('below a message of a persona’s bot comes to that bot, which answers it and speaks next', async () => {
    on = await stage();
    await on.start();
    const anna = group(GARDEN, 'Garden');
    on.fake.join(on.luna, anna.id);
    await on.fake.until(() => on.luna.polls.count > 0);
    on.fake.say({ from: ANNA, text: 'hi', to: on.luna });
    await on.heard(1);
    const message = await ask();
    expect(message.bot).toBe(on.luna.id);
    const press = on.fake.press(ANNA, message, 'Luna');
    await on.fake.until(() => press.answered && labels(message).length === 0);
    expect(pressed()).toMatchObject([{ platformMessageId: `${on.luna.id}:press-${press.id}` }]);
    const [call] = on.fake.calls.filter(({ method }) => method === 'answerCallbackQuery');
    expect(call?.bot).toBe(on.luna.id);
    expect(
      (await ask(TO_ANNA, { text: 'Switched.', marks: [] }, { replyTo: `${on.luna.id}:press-1` })).replyTo,
    ).toBeNull();
  });
});
