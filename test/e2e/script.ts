/**
 * One conversation, the same on every platform, through the real gateway and the platform's real library: what people
 * do in their first days with a persona.
 */
import { expect } from 'vitest';
import type { ChatBody } from '../fakes/model.js';
import { madeCard, pngCard } from '../harness/cards.js';
import { eventually, type Running } from '../harness/gateway.js';
import type { Ability, Person, Place, Platform, Shown } from '../harness/platform.js';
import { type PlatformStage, stageOn } from '../harness/stage.js';
import { SMALL_PNG } from './pictures.js';

const ANNA: Person = { number: 1, name: 'Anna' };
const BEN: Person = { number: 2, name: 'Ben' };
const DIRECT: Place = { kind: 'direct', number: 1 };
const GROUP: Place = { kind: 'group', number: 7 };

const CODE = Array.from({ length: 400 }, (_, n) => `const line${n} = ${n};`).join('\n');
const TABLE = ['| Fruit | Price |', '|---|---|', '| apple | 1 |', '| pear | 2 |'].join('\n');
const LONG = `Here is **all** of it:\n\n${TABLE}\n\n\`\`\`js\n${CODE}\n\`\`\`\n\nThat is the end.`;

/** `store`: as in the configuration. */
export async function converse(platform: Platform, store: object = {}): Promise<void> {
  const on = await stageOn(platform, { conversation: { debounce_ms: 200 }, store });
  try {
    await on.start();
    for (const step of stepsOn(on)) await step(on);
  } finally {
    await on.close();
  }
}

/**
 * The same with two gateways on one store, of which the one that holds the platform ends every few steps: in good order, or
 * by kill -9. The other goes on, and it comes back.
 */
export async function converseOnTwo(platform: Platform, store: { url: string }): Promise<void> {
  // From the environment, as there is one configuration.
  const node = { name: '$'.concat('{NODE}'), lease_seconds: LEASE_SECONDS };
  const on = await stageOn(platform, { conversation: { debounce_ms: 200 }, store, node });
  const isTaken = new RegExp(`"event":"lease taken","lease":"channel:${platform.name}"`, 'g');
  const terms = (gateway: Running) => gateway.err().match(isTaken)?.length ?? 0;
  const start = async (name: string, sees: string) => {
    const gateway = on.launch({ NODE: name });
    await gateway.saw(sees);
    return { name, gateway };
  };
  try {
    let holds = await start('a', 'coterie is up');
    await platform.connected();
    let waits = await start('b', '"event":"standby"');
    for (const [n, step] of stepsOn(on).entries()) {
      if (n > 0 && n % EVERY === 0) {
        const before = terms(waits.gateway);
        await holds.gateway.stop(n % (2 * EVERY) === 0 ? 'SIGKILL' : 'SIGTERM');
        await eventually(() => terms(waits.gateway) > before, 'the other takes over', 30_000);
        [holds, waits] = [waits, await start(holds.name, '"event":"standby"')];
      }
      await step(on);
    }
  } finally {
    await on.close();
  }
}

const LEASE_SECONDS = 4;
const EVERY = 3;

function stepsOn(on: PlatformStage): ((on: PlatformStage) => Promise<void>)[] {
  const [groups, files] = [can(on, 'groups'), can(on, 'files')];
  return [
    greeting,
    command,
    ...(groups ? [mention] : []),
    ...(groups && can(on, 'replies') ? [reply] : []),
    ...(groups ? [aside] : []),
    ...(can(on, 'edits') ? [edit] : []),
    ...(can(on, 'reactions') ? [reaction] : []),
    ...(files ? [image] : []),
    ...(groups && files ? [pictureBeside] : []),
    album,
    forward,
    saving,
    // Answers are replaced and taken back where the server can delete them.
    ...(can(on, 'deletions') ? [saidAnew] : []),
    longAnswer,
    ...(files ? [cardSent] : []),
    personaSwitch,
    reset,
  ];
}

function can({ platform }: PlatformStage, ability: Ability): boolean {
  return platform.lacks?.has(ability) !== true;
}

async function greeting(on: PlatformStage): Promise<void> {
  on.model.reply('Good morning, Anna!');
  const [shown] = await said(on, DIRECT, () =>
    on.platform.say({ from: ANNA, in: DIRECT, text: 'good morning' }),
  );
  expect(shown?.text).toContain('Good morning, Anna!');
  expect(lastAsked(on)).toContain('good morning');
  expect(prompt(on)).toContain(`chat_id is ${on.platform.chatId(DIRECT)} and persona_id is default`);
}

async function command(on: PlatformStage): Promise<void> {
  const asked = on.model.count();
  const [shown] = await said(on, DIRECT, () => on.platform.command(ANNA, DIRECT, '/help'));
  expect(shown?.text).toContain('/persona');
  expect(on.model.count()).toBe(asked);
}

/** Without a mention nobody answers; with one the persona does, as a reply to it. */
async function mention(on: PlatformStage): Promise<void> {
  on.platform.say({ from: BEN, in: GROUP, text: 'lovely weather' });
  on.model.reply('It is.');
  let id = '';
  const [answer] = await said(on, GROUP, () => {
    id = on.platform.say({ from: BEN, in: GROUP, text: 'is it not?', mention: true });
  });
  expect(answer?.text).toContain('It is.');
  expect(answer?.replyTo).toBe(id);
  expect(lastAsked(on)).toContain('is it not?');
  expect(JSON.stringify(on.model.requests.at(-1)?.body.messages)).toContain('lovely weather');
}

/** A reply to what the persona said asks it, without a mention. */
async function reply(on: PlatformStage): Promise<void> {
  const answer = on.platform.shown(GROUP).at(-1);
  on.model.reply('Very much so.');
  const [second] = await said(on, GROUP, () =>
    on.platform.say({ from: ANNA, in: GROUP, text: 'really?', replyTo: answer?.id ?? '' }),
  );
  expect(second?.text).toContain('Very much so.');
  expect(lastAsked(on)).toMatch(/<in_reply_to sender=[^>]+>It is\.</);
}

/** What somebody else says between two questions is read between them. */
async function aside(on: PlatformStage): Promise<void> {
  on.model.reply((body) => (lastOf(body).includes('so?') ? 'Then I leave it.' : 'One moment.'));
  on.platform.say({ from: ANNA, in: GROUP, text: 'shall I delete it?', mention: true });
  on.platform.say({ from: BEN, in: GROUP, text: 'not that one' });
  on.platform.say({ from: ANNA, in: GROUP, text: 'so?', mention: true });
  await eventually(
    () => on.platform.shown(GROUP).at(-1)?.text.includes('Then I leave it.'),
    'the last question is answered',
  );
  const told = JSON.stringify(on.model.requests.at(-1)?.body.messages);
  expect(told).toMatch(/shall I delete it\?.*not that one.*so\?/s);
}

/** A message that waits is answered as it is after the edit. */
async function edit(on: PlatformStage): Promise<void> {
  on.model.reply(() => ({ text: 'Paris.', headerDelayMs: 500 }));
  const before = on.model.count();
  on.platform.say({ from: ANNA, in: DIRECT, text: 'one moment' });
  await on.model.received(before + 1);
  const shown = on.platform.shown(DIRECT).length;
  const id = on.platform.say({ from: ANNA, in: DIRECT, text: 'capital of Fance?' });
  on.platform.edit(DIRECT, id, 'capital of France?');
  await on.replies(DIRECT, shown + 2);
  expect(lastAsked(on)).toContain('capital of France?');
  expect(lastAsked(on)).not.toContain('Fance');
}

/** Heard, and not answered: it is there when something is said. */
async function reaction(on: PlatformStage): Promise<void> {
  const [greeted] = on.platform.shown(DIRECT);
  const before = on.model.count();
  on.platform.react(ANNA, DIRECT, greeted?.id ?? '', '👍');
  on.model.reply('So I thought.');
  await said(on, DIRECT, () => on.platform.say({ from: ANNA, in: DIRECT, text: 'that was it' }));
  expect(on.model.count()).toBe(before + 1);
  expect(JSON.stringify(on.model.requests.at(-1)?.body.messages)).toMatch(
    /<in_reply_to sender=\\"default\\">Good morning, Anna!<\/in_reply_to>\\n<user_message sender=\\"Anna[^>]*>\(reacts with 👍\)/,
  );
}

async function image(on: PlatformStage): Promise<void> {
  on.model.reply('A red square.');
  const [shown] = await said(on, DIRECT, () =>
    on.platform.say({
      ...{ from: ANNA, in: DIRECT, text: 'what is this?' },
      image: { bytes: SMALL_PNG, mimeType: 'image/png' },
    }),
  );
  expect(shown?.text).toContain('A red square.');
  const request = on.model.requests.at(-1)?.body.messages.at(-1);
  expect(request?.content).toContain('what is this?');
  expect(request?.images).toHaveLength(1);
}

/** In a group people send a picture first, and then ask about it. */
async function pictureBeside(on: PlatformStage): Promise<void> {
  on.platform.say({
    ...{ from: BEN, in: GROUP, text: 'look' },
    image: { bytes: SMALL_PNG, mimeType: 'image/png' },
  });
  on.model.reply('A red square, too.');
  const [shown] = await said(on, GROUP, () =>
    on.platform.say({ from: BEN, in: GROUP, text: 'what do you see?', mention: true }),
  );
  expect(shown?.text).toContain('A red square, too.');
  const request = on.model.requests.at(-1)?.body.messages.at(-1);
  expect(request?.content).toMatch(/look\n\[image.*what do you see\?/s);
  expect(request?.images).toHaveLength(1);
}

/** Several pictures with one caption are one message, however many the platform makes of it. */
async function album(on: PlatformStage): Promise<void> {
  if (on.platform.album === undefined) return;
  const png = { bytes: SMALL_PNG, mimeType: 'image/png' };
  const before = on.model.count();
  on.model.reply('All red.');
  const [shown] = await said(on, GROUP, () =>
    on.platform.album?.({ from: BEN, in: GROUP, text: 'and these?', mention: true }, [png, png, png]),
  );
  expect(shown?.text).toContain('All red.');
  expect(on.model.count()).toBe(before + 1);
  const request = on.model.requests.at(-1)?.body.messages.at(-1);
  expect(request?.content).toMatch(/and these\?\n(\[image[^\]]*\]\n?){3}<\/user_message>$/);
  expect(request?.images).toHaveLength(3);
}

/** Words of somebody else are shown as theirs, and order nothing. */
async function forward(on: PlatformStage): Promise<void> {
  if (on.platform.forward === undefined) return;
  on.model.reply('So says Cara.');
  const [shown] = await said(on, DIRECT, () =>
    on.platform.forward?.({ from: ANNA, in: DIRECT, text: '/reset' }, 'Cara'),
  );
  expect(shown?.text).toContain('So says Cara.');
  expect(lastAsked(on)).toMatch(/sender=\\"Anna[^>]*><forwarded[^>]*>\/reset<\/forwarded><\/user_message>"$/);
}

/** What is saved stands small under the reply, is no word of the persona, and is taken back by an undo. */
async function saving(on: PlatformStage): Promise<void> {
  on.model.reply((body) =>
    body.messages.at(-1)?.role === 'tool'
      ? 'Noted, *Anna*.'
      : { calls: [{ name: 'write_tiered_memory', arguments: { tier: 1, content: '- likes _blue_ roses' } }] },
  );
  const [noted] = await said(on, DIRECT, () =>
    on.platform.say({ from: ANNA, in: DIRECT, text: 'I like blue roses' }),
  );
  expect(noted?.text).toMatch(/Noted, .*Anna.*\n\n.*— remembered: likes .*blue.* roses/);
  if (!can(on, 'replies')) return;
  on.model.reply('You did.');
  const replyTo = noted?.id ?? '';
  // What is said next leaves only when it is known under which id the note stands.
  await said(on, DIRECT, () => on.platform.command(ANNA, DIRECT, '/whoami'));
  await said(on, DIRECT, () => on.platform.say({ from: ANNA, in: DIRECT, text: 'did I?', replyTo }));
  expect(lastAsked(on)).toMatch(/Noted, .?Anna.*did I\?/);
  expect(JSON.stringify(on.model.requests.at(-1)?.body.messages)).not.toContain('— remembered');
  const asked = on.model.count();
  const [undone] = await said(on, DIRECT, () =>
    on.platform.say({ from: ANNA, in: DIRECT, text: 'Undo', replyTo }),
  );
  expect(undone?.text).toMatch(/^Undone: the change of tier 1/);
  expect(on.model.count()).toBe(asked);
  const memory = await on.home.read(`groups/${on.platform.chatId(DIRECT)}/default/MEMORY.md`);
  expect(memory).not.toContain('roses');
}

/** Another try stands where the first one stood; the exchange after it is taken back. */
async function saidAnew(on: PlatformStage): Promise<void> {
  const withText = (text: string) => on.platform.shown(DIRECT).find((each) => each.text.includes(text));
  const isShown = (text: string) => withText(text) !== undefined;
  const isInPlaceOf = (text: string, before: string) => isShown(text) && !isShown(before);
  const told = () => JSON.stringify(on.model.requests.at(-1)?.body.messages);
  on.model.reply('Heads.');
  await said(on, DIRECT, () => on.platform.say({ from: ANNA, in: DIRECT, text: 'toss a coin' }));
  on.model.reply('Tails.');
  on.platform.command(ANNA, DIRECT, '/again');
  await eventually(() => isInPlaceOf('Tails.', 'Heads.'), 'the second try in place of the first');
  expect(told()).toContain('toss a coin');
  const press = (text: string, label: string) =>
    on.platform.press?.(ANNA, DIRECT, withText(text)?.id ?? '', label);
  if (on.platform.press) {
    const hasButtons = (text: string) => withText(text)?.buttons?.join('') === '◀▶🔁';
    await eventually(() => hasButtons('Tails.'), 'buttons below the second try');
    press('Tails.', '◀');
    await eventually(() => isInPlaceOf('Heads.', 'Tails.') && hasButtons('Heads.'), 'the first version');
    press('Heads.', '▶');
    await eventually(() => isInPlaceOf('Tails.', 'Heads.') && hasButtons('Tails.'), 'the second version');
  }
  on.platform.command(ANNA, DIRECT, '/edit On its edge.');
  await eventually(() => isInPlaceOf('On its edge.', 'Tails.'), 'the words of a person in place of them');
  on.model.reply('It stands.');
  on.platform.command(ANNA, DIRECT, '/continue');
  await eventually(() => withText('On its edge.')?.text.includes('It stands.'), 'the same answer goes on');
  on.platform.command(ANNA, DIRECT, '/again 2');
  await eventually(() => isInPlaceOf('Tails.', 'On its edge.'), 'the second version again');
  on.model.reply('It was tails, as I said.');
  await said(on, DIRECT, () => on.platform.say({ from: ANNA, in: DIRECT, text: 'which one was it?' }));
  expect(withText('Tails.')?.buttons ?? []).toEqual([]);
  expect(told()).toContain('Tails.');
  expect(told()).not.toContain('Heads.');
  on.platform.command(ANNA, DIRECT, '/undo');
  await eventually(() => isInPlaceOf('Taken back.', 'as I said'), 'the exchange is taken back');
  on.model.reply('You are welcome.');
  await said(on, DIRECT, () => on.platform.say({ from: ANNA, in: DIRECT, text: 'thanks' }));
  expect(told()).toContain('Tails.');
  expect(told()).not.toContain('which one was it?');
  // Telegram offers no such reaction.
  if (on.platform.name === 'telegram' || !can(on, 'reactions')) return;
  // By then it is known under which id the answer stands.
  await said(on, DIRECT, () => on.platform.command(ANNA, DIRECT, '/whoami'));
  on.model.reply('Any time.');
  on.platform.react(ANNA, DIRECT, withText('You are welcome.')?.id ?? '', '🔁');
  await eventually(
    () => isInPlaceOf('Any time.', 'You are welcome.'),
    'a reaction that asks for another try',
  );
}

async function longAnswer(on: PlatformStage): Promise<void> {
  on.model.reply(LONG);
  const before = on.platform.shown(DIRECT).length;
  on.platform.say({ from: ANNA, in: DIRECT, text: 'everything, please' });
  await eventually(
    () => on.platform.shown(DIRECT).at(-1)?.text.includes('That is the end.'),
    'the end of the long answer stands there',
  );
  const parts = on.platform.shown(DIRECT).slice(before);
  expect(parts.length).toBeGreaterThan(1);
  const all = parts.map(({ text }) => text).join('\n');
  const found = Array.from(all.matchAll(/const line(\d+) = \1;/g), (match) => Number(match[1]));
  expect(found).toEqual(Array.from({ length: 400 }, (_, n) => n));
  for (const word of ['apple', 'pear', 'Price']) expect(all).toContain(word);
  // Where the platform's marks stand in the text, a fence that a part opens is closed in it.
  for (const { text } of parts) expect((text.match(/```/g) ?? []).length % 2).toBe(0);
}

/** A card that is sent as a file is a persona: it greets, is what its card says, and lore joins where it is named. */
async function cardSent(on: PlatformStage): Promise<void> {
  const book = {
    entries: [
      { keys: ['lantern'], content: 'The lantern is called Old Brass.', enabled: true, insertion_order: 1 },
    ],
  };
  const bytes = await pngCard(madeCard({ character_book: book }));
  const asked = on.model.count();
  const before = on.platform.shown(DIRECT).length;
  const file = { bytes, mimeType: 'image/png', name: 'marla.png' };
  on.platform.say({ from: ANNA, in: DIRECT, text: '', file });
  const texts = () =>
    on.platform
      .shown(DIRECT)
      .slice(before)
      .map(({ text }) => text);
  await eventually(() => texts().some((text) => text.includes('Imported Marla.')), 'the card is imported');
  await eventually(() => texts().some((text) => text.includes('Mind the third step.')), 'the greeting');
  expect(on.model.count()).toBe(asked);
  const say = (text: string) => said(on, DIRECT, () => on.platform.say({ from: ANNA, in: DIRECT, text }));
  on.model.reply('Evening.');
  await say('good evening');
  expect(JSON.stringify(on.model.requests.at(-1)?.body.messages)).toMatch(/Marla keeps a lighthouse/);
  expect(lastAsked(on)).not.toContain('Old Brass');
  on.model.reply('All night.');
  await say('does the lantern burn?');
  expect(lastAsked(on)).toContain('The lantern is called Old Brass.');
  const [lore] = await said(on, DIRECT, () => on.platform.command(ANNA, DIRECT, '/lore show'));
  expect(lore?.text).toContain('lantern');
}

async function personaSwitch(on: PlatformStage): Promise<void> {
  const [made] = await said(on, DIRECT, () => on.platform.command(ANNA, DIRECT, '/persona new Luna'));
  expect(made?.text).toContain('Created persona Luna and switched to it.');
  on.model.reply('I am Luna.');
  const [shown] = await said(on, DIRECT, () =>
    on.platform.say({ from: ANNA, in: DIRECT, text: 'who are you?' }),
  );
  expect(shown?.text).toContain('I am Luna.');
  expect(prompt(on)).toContain('persona_id is luna');
  expect(JSON.stringify(on.model.requests.at(-1)?.body.messages)).not.toContain('everything, please');
}

async function reset(on: PlatformStage): Promise<void> {
  const [shown] = await said(on, DIRECT, () => on.platform.command(ANNA, DIRECT, '/reset'));
  expect(shown?.text).toBe('Conversation cleared. Principles and per-persona memory are unchanged.');
  on.model.reply('Hello again.');
  await said(on, DIRECT, () => on.platform.say({ from: ANNA, in: DIRECT, text: 'hello' }));
  expect(JSON.stringify(on.model.requests.at(-1)?.body.messages)).not.toContain('who are you?');
}

/** Does it, and resolves with what we said in that place after that: at least one message. */
async function said(on: PlatformStage, place: Place, act: () => void): Promise<Shown[]> {
  const before = on.platform.shown(place).length;
  act();
  return (await on.replies(place, before + 1)).slice(before);
}

function lastAsked(on: PlatformStage): string {
  return lastOf(on.model.requests.at(-1)?.body);
}

function lastOf(body: ChatBody | undefined): string {
  return JSON.stringify(body?.messages.at(-1)?.content ?? '');
}

function prompt(on: PlatformStage): string {
  return String(on.model.requests.at(-1)?.body.messages[0]?.content ?? '');
}
