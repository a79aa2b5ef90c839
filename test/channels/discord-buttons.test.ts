/** Buttons below messages on Discord, and what becomes of a press. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Choice, ChoiceOutcome, Part, Recipient, SendOptions } from '../../src/core/channel.js';
import { buttonsIn } from '../fakes/discord-components.js';
import { PERMISSION } from '../fakes/discord-permissions.js';
import type { Interaction } from '../fakes/discord-words.js';
import { letIn, sendOptions } from '../harness/sending.js';
import { ANNA, BEN, CHANNEL, GUILD, garden, openStage, type Stage } from './discord-stage.js';

const GROUP: Recipient = { address: CHANNEL, threadId: null, kind: 'group' };
const KEY = '0f8fad5b-d9cb-469f-a165-70867728950e';
const CHOICES: Choice[] = [
  { label: 'Luna', value: `${KEY}.0` },
  { label: 'Marlow', value: `${KEY}.1` },
];
const part = (choices: Choice[] = CHOICES): Part => ({ text: 'Which?', marks: [], choices });

let stage: Stage;
let became: ChoiceOutcome;

beforeEach(async () => {
  stage = await openStage();
  garden(stage.fake);
  became = 'taken';
  stage.store = async (batch) => letIn(batch, became);
  await stage.listen();
});
afterEach(() => stage.close());

async function ask(to = GROUP, asked = part(), more: Partial<SendOptions> = {}): Promise<string> {
  const options = sendOptions({ createdAt: stage.clock.now(), ...more });
  const sent = await stage.channel.send(to, asked, options);
  if (sent.kind !== 'sent') throw new Error(`not sent: ${JSON.stringify(sent)}`);
  return sent.platformMessageId;
}
const labels = (id: string, channelId = CHANNEL) =>
  buttonsIn(stage.fake.message(channelId, id)?.components).map(({ label }) => label);
const choices = () => stage.events().filter((event) => event.kind === 'choice');
const answered = (press: Interaction) => stage.fake.until(() => press.answered, 'the press is answered');

describe('buttons', () => {
  test('stand below the message, five in a row and 25 in all, with labels of one line that are cut', async () => {
    const many = Array.from({ length: 30 }, (_, n) => ({ label: `Persona ${n}`, value: `k.${n}` }));
    const id = await ask(GROUP, part(many));
    const rows = stage.fake.message(CHANNEL, id)?.components as { components: unknown[] }[];
    expect(rows.map(({ components }) => components.length)).toEqual([5, 5, 5, 5, 5]);
    const long = await ask(GROUP, part([{ label: `ليلى \n${'é'.repeat(200)}`, value: 'k.0' }]), { key: '2' });
    const [label = ''] = labels(long);
    expect(label).toMatch(/^ليلى é+…$/);
    expect(label.length).toBeLessThanOrEqual(80);
  });

  test('that Discord does not take are left out: the words are there, once', async () => {
    const refusal = {
      code: 50035,
      message: 'Invalid Form Body',
      errors: {
        components: { 0: { components: { 0: { custom_id: { _errors: [{ code: 'X', message: 'no' }] } } } } },
      },
    };
    stage.fake.fail({ method: 'POST', path: /messages/ }, { status: 400, body: refusal });
    const id = await ask();
    expect(labels(id)).toEqual([]);
    const command = stage.fake.command({ from: ANNA, channelId: CHANNEL, name: 'persona' });
    await stage.until(() => stage.messages().length === 1);
    stage.fake.fail({ method: 'POST', path: /callback/ }, { status: 400, body: refusal });
    expect(labels(await ask(GROUP, part(), { replyTo: command.id, key: '2' }))).toEqual([]);
    expect(stage.fake.sent).toMatchObject([{ content: 'Which?' }, { content: 'Which?', via: 'callback' }]);
  });

  test('stand below what is said through a webhook, and below the answer to a native command', async () => {
    stage.fake.guild({
      id: GUILD,
      name: 'The Garden',
      channels: [{ id: CHANNEL, name: 'roses' }],
      roles: [{ id: '9', name: 'Coterie', permissions: PERMISSION.manageWebhooks, botId: stage.fake.bot.id }],
    });
    const appearance = { personaId: 'luna', name: 'Luna', avatar: null };
    const id = await ask(GROUP, part(), { appearance, leads: true });
    expect(stage.fake.sent.at(-1)?.username).toBe('Luna');
    expect(labels(id)).toEqual(['Luna', 'Marlow']);
    const before = stage.messages().length;
    const command = stage.fake.command({ from: ANNA, channelId: CHANNEL, name: 'persona' });
    await stage.until(() => stage.messages().length > before);
    const answer = await ask(GROUP, part(), { replyTo: command.id, key: '2' });
    expect(stage.fake.sent.at(-1)?.via).toBe('callback');
    expect(labels(answer)).toEqual(['Luna', 'Marlow']);
  });

  test('stay in an edit that has them, and go in one that has none', async () => {
    const id = await ask();
    const edit = (edited: Part) => stage.channel.edit(GROUP, id, edited, sendOptions());
    expect(await edit({ ...part(), text: 'Which one?' })).toMatchObject({ kind: 'sent' });
    expect(labels(id)).toEqual(['Luna', 'Marlow']);
    expect(await edit({ text: 'Never mind.', marks: [] })).toMatchObject({ kind: 'sent' });
    expect(labels(id)).toEqual([]);
  });
});

describe('a press', () => {
  test('is handed in as the choice of whoever pressed, with their rights, and takes the buttons away', async () => {
    const id = await ask();
    const press = stage.fake.press({ from: BEN, messageId: id, which: 'Marlow' });
    await answered(press);
    expect(choices()).toMatchObject([
      {
        chat: { address: CHANNEL, kind: 'group', within: GUILD },
        threadId: null,
        sender: { address: BEN.id, name: 'ben', administrator: false },
        platformMessageId: press.id,
        value: `${KEY}.1`,
      },
    ]);
    expect(labels(id)).toEqual([]);
    expect(stage.fake.message(CHANNEL, id)?.content).toBe('Which?');
    expect(press.messages).toEqual([]);
    // The token of an interaction goes without ours.
    expect(stage.fake.callsTo('POST', /callback/)).toMatchObject([
      { authorization: null, body: { type: 7 } },
    ]);
  });

  test('in a direct chat', async () => {
    const dm = stage.fake.dm(ANNA);
    const id = await ask({ address: dm, threadId: null, kind: 'direct' });
    await answered(stage.fake.press({ from: ANNA, messageId: id, which: 0 }));
    expect(choices()).toMatchObject([
      { chat: { address: dm, kind: 'direct' }, sender: { name: 'Anna Berg' } },
    ]);
    expect(labels(id, dm)).toEqual([]);
  });

  test('on what is not theirs is answered to them alone, and the buttons stay', async () => {
    became = 'not yours';
    const id = await ask();
    const press = stage.fake.press({ from: BEN, messageId: id, which: 'Luna' });
    await answered(press);
    expect(press.messages).toMatchObject([
      { content: 'This is for somebody else to decide.', ephemeral: true },
    ]);
    expect(labels(id)).toEqual(['Luna', 'Marlow']);
  });

  test('on what is over takes the buttons away, and is answered to them alone', async () => {
    became = 'over';
    const id = await ask();
    const press = stage.fake.press({ from: BEN, messageId: id, which: 'Luna' });
    await stage.fake.until(() => press.messages.length === 1);
    expect(press.messages).toMatchObject([{ content: 'This is over.', ephemeral: true }]);
    expect(labels(id)).toEqual([]);
  });

  test('is acknowledged in time where storing takes longer; the rest follows', async () => {
    let stored: () => void = () => {};
    const storing = new Promise<void>((resolve) => {
      stored = resolve;
    });
    stage.store = async (batch) => {
      await storing;
      return letIn(batch, 'over');
    };
    const id = await ask();
    const press = stage.fake.press({ from: BEN, messageId: id, which: 'Luna' });
    await stage.passes(1_800);
    await answered(press);
    expect(press.deferred).toBe(true);
    expect(labels(id)).toEqual(['Luna', 'Marlow']);
    stored();
    await stage.fake.until(() => press.messages.length === 1);
    expect(labels(id)).toEqual([]);
    expect(press.messages).toMatchObject([{ content: 'This is over.', ephemeral: true }]);
  });

  test('whose answer Discord took without our hearing of it loses its buttons all the same', async () => {
    const id = await ask();
    stage.fake.fail({ method: 'POST', path: /callback$/ }, { drop: 'after' });
    await answered(stage.fake.press({ from: BEN, messageId: id, which: 'Luna' }));
    expect(labels(id)).toEqual([]);
    const other = await ask(GROUP, part(), { key: '2' });
    stage.fake.settings.interactionAnswerMs = -1;
    const late = stage.fake.press({ from: BEN, messageId: other, which: 'Luna' });
    await stage.until(() => choices().length === 2);
    await stage.until(() => stage.logged.some((line) => /answering a Discord interaction failed/.test(line)));
    expect(late.answered).toBe(false);
    expect(stage.logged.filter((line) => /^(warn|error)/.test(line))).toEqual([]);
  });

  test('that the gateway brings twice is handed in under one id', async () => {
    const id = await ask();
    const press = stage.fake.press({ from: BEN, messageId: id, which: 'Luna' });
    await answered(press);
    stage.fake.again(press);
    await stage.until(() => choices().length === 2);
    expect(new Set(choices().map(({ platformMessageId }) => platformMessageId)).size).toBe(1);
  });
});
