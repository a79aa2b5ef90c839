/**
 * One room, the same on every platform, through the real gateway and the platform's real library: three personas come
 * into a group, hear each other, are told apart, argue until they are stopped, leave and come back; and the gateway is
 * killed between the turns of two.
 */
import { expect } from 'vitest';
import type { ChatBody, ModelScript } from '../fakes/model.js';
import { eventually, type Running } from '../harness/gateway.js';
import { type Person, type Place, type Platform, type Shown, seenBy, wordsOf } from '../harness/platform.js';
import { type PlatformStage, stageOn } from '../harness/stage.js';

const ANNA: Person = { number: 1, name: 'Anna' };
const BEN: Person = { number: 2, name: 'Ben' };
const GROUP: Place = { kind: 'group', number: 7 };
/** As `personas.max_replies` is if nobody sets it. */
const MOST_REPLIES = 8;

/** What a persona says to a request, by its id; `arbiter` is whoever decides who answers. */
type Voices = Partial<Record<'luna' | 'max' | 'iris' | 'arbiter', (body: ChatBody) => ModelScript | string>>;

export async function share(platform: Platform): Promise<void> {
  const on = await stageOn(platform, {
    access: { direct: 'open', groups: 'open', owners: [platform.personId(ANNA)] },
    personas: { natural: true },
  });
  try {
    const gateway = await on.start();
    await arrival(on);
    const first = await twoAddressed(on);
    await reply(on, first);
    await reaction(on, first);
    await natural(on);
    await quarrel(on);
    await absence(on);
    await killBetween(on, gateway);
  } finally {
    await on.close();
  }
}

/** Whoever is made last is the active one; the others are invited. */
async function arrival(on: PlatformStage): Promise<void> {
  for (const name of ['Luna', 'Max', 'Iris']) {
    await command(on, `/persona new ${name}`, `Created persona ${name} and switched to it.`);
  }
  for (const name of ['Luna', 'Max']) await command(on, `/persona invite ${name}`, `${name} is here now.`);
}

/** Both answer, in the order they were called; the second is shown what the first has just said. */
async function twoAddressed(on: PlatformStage): Promise<Shown> {
  const asked = voices(on, {
    luna: () => 'To the harbour, by the early boat.',
    max: (body) =>
      lastWords(body).includes('early boat') ? 'Luna is right: the harbour.' : 'I heard nobody.',
  });
  const id = on.platform.say({ from: BEN, in: GROUP, text: '@Luna and @Max, where shall we go?' });
  const [luna, max] = await spoken(on, ['luna', 'To the harbour'], ['max', 'Luna is right']);
  expect(asked()).toEqual(['luna', 'max']);
  const toMax = on.model.requests.at(-1)?.body;
  expect(lastWords(toMax)).toMatch(/sender="Ben"[^>]*>@Luna and @Max.*sender="Luna"[^>]*>To the harbour/s);
  // The name that stands before a text is not part of what was said.
  expect(JSON.stringify(toMax?.messages)).not.toMatch(/\*Luna\*|>Luna\\n/);
  if (!on.platform.hasFaces) expect(luna?.replyTo).toBe(id);
  if (luna === undefined || max === undefined) throw new Error('both have spoken');
  return luna;
}

/** An answer to somebody's message is for them, and for nobody else. */
async function reply(on: PlatformStage, to: Shown): Promise<void> {
  const asked = voices(on, { luna: () => 'Then by the late boat.' });
  on.platform.say({ from: ANNA, in: GROUP, text: 'and if we oversleep?', replyTo: to.id });
  await spoken(on, ['luna', 'late boat']);
  expect(asked()).toEqual(['luna']);
  expect(lastWords(on.model.requests.at(-1)?.body)).toContain('early boat');
}

/** A sign asks nobody for an answer; who spoke knows of it when it speaks next, and so does who was there. */
async function reaction(on: PlatformStage, to: Shown): Promise<void> {
  on.platform.react(BEN, GROUP, to.id, '🎉');
  await command(on, '/whoami', 'Anna');
  const asked = voices(on, { luna: () => 'At nine, then.', max: () => 'At nine.' });
  on.platform.say({ from: ANNA, in: GROUP, text: '@Luna and @Max, when?' });
  await spoken(on, ['luna', 'At nine, then.'], ['max', 'At nine.']);
  expect(asked()).toEqual(['luna', 'max']);
  for (const { body } of on.model.requests.slice(-2)) {
    const heard = JSON.stringify(body.messages).match(
      /<in_reply_to sender=\\"Luna\\">[^<]*<\/in_reply_to>\\n<user_message sender=\\"Ben\\"[^>]*>\(reacts with 🎉\)/g,
    );
    expect(heard).toHaveLength(1);
    expect(heard?.[0]).toContain('To the harbour, by the early boat.');
  }
}

/** Nobody is named: an arbiter picks one, who is not the active persona. */
async function natural(on: PlatformStage): Promise<void> {
  const asked = voices(on, { arbiter: () => 'Max', max: () => 'Bread and olives.' });
  on.platform.say({ from: BEN, in: GROUP, text: 'what shall we eat?', mention: true });
  await spoken(on, ['max', 'Bread and olives.']);
  expect(asked()).toEqual(['arbiter', 'max']);
  expect(JSON.stringify(on.model.requests.at(-2)?.body.messages)).toContain('what shall we eat?');
}

/** Everybody turns to everybody else with every word: eight replies in three rounds, and then silence. */
async function quarrel(on: PlatformStage): Promise<void> {
  const asked = voices(on, {
    luna: () => '@Max @Iris, mine is the best.',
    max: () => '@Iris @Luna, mine is the best.',
    iris: () => '@Luna @Max, mine is the best.',
  });
  const before = on.platform.shown(GROUP).length;
  on.platform.say({ from: ANNA, in: GROUP, text: '@Luna @Max @Iris, whose tea is the best?' });
  await on.replies(GROUP, before + MOST_REPLIES);
  // By the time it has answered this, it would have gone on.
  await command(on, '/whoami', 'Anna');
  const speakers = asked();
  expect(speakers).toHaveLength(MOST_REPLIES);
  const rounds = [speakers.slice(0, 3), speakers.slice(3, 6), speakers.slice(6)];
  for (const round of rounds) expect(new Set(round).size, String(speakers)).toBe(round.length);
  const shown = on.platform.shown(GROUP).slice(before, -1);
  expect(shown.map((each) => seenBy(each)?.toLowerCase())).toEqual(speakers);
}

/** Who is away hears nothing, also afterwards. */
async function absence(on: PlatformStage): Promise<void> {
  await command(on, '/persona leave Max', 'Max has left.');
  voices(on, { luna: () => 'A kite, how lovely.' });
  on.platform.say({ from: ANNA, in: GROUP, text: '@Luna the surprise for Max is a kite' });
  await spoken(on, ['luna', 'A kite']);
  await command(on, '/persona invite Max', 'Max is here now.');
  const asked = voices(on, { max: () => 'Only about tea.' });
  on.platform.say({ from: BEN, in: GROUP, text: '@Max what have you heard?' });
  await spoken(on, ['max', 'Only about tea.']);
  expect(asked()).toEqual(['max']);
  const told = JSON.stringify(on.model.requests.at(-1)?.body.messages);
  expect(told).not.toMatch(/kite/i);
  expect(told).toContain('whose tea is the best?');
  expect(told).toContain('early boat');
}

/** The first has spoken and the second is thinking when the process is killed: each answers once. */
async function killBetween(on: PlatformStage, gateway: Running): Promise<void> {
  let thinking = () => {};
  const began = new Promise<void>((resolve) => {
    thinking = resolve;
  });
  const before = on.platform.shown(GROUP).length;
  const asked = voices(on, {
    luna: () => 'I am here.',
    max() {
      thinking();
      return { stall: 'headers' };
    },
  });
  on.platform.say({ from: ANNA, in: GROUP, text: '@Luna and @Max, who is there?' });
  await began;
  await spoken(on, ['luna', 'I am here.']);
  // Whoever answers this has noted that what came before it was sent.
  await command(on, '/whoami', 'Anna');
  await gateway.stop('SIGKILL');
  expect(asked()).toEqual(['luna', 'max']);

  const askedAgain = voices(on, { luna: () => 'Twice?', max: () => 'So am I.' });
  await on.start();
  await spoken(on, ['max', 'So am I.']);
  await command(on, '/whoami', 'Anna');
  expect(askedAgain()).toEqual(['max']);
  expect(lastWords(on.model.requests.at(-1)?.body)).toMatch(/who is there\?.*I am here\./s);
  // Of the gateway's own answer nobody can know whether it was noted, too; the personas' words stand once each.
  const words = on.platform
    .shown(GROUP)
    .slice(before)
    .filter((shown) => seenBy(shown) !== null);
  expect(words.map(wordsOf)).toEqual(['I am here.', 'So am I.']);
}

/** From now on they speak so; the result says whose words were asked for since. */
function voices(on: PlatformStage, voicesNow: Voices): () => string[] {
  const asked: string[] = [];
  on.model.reply((body) => {
    const who = whoIsAsked(body);
    asked.push(who);
    return voicesNow[who]?.(body) ?? `${who} was not to be asked`;
  });
  return () => [...asked];
}

function whoIsAsked({ messages }: ChatBody): keyof Voices {
  const prompt = messages[0]?.content ?? '';
  const [, id] = /persona_id is (luna|max|iris)\./.exec(prompt) ?? [];
  return (id as 'luna' | 'max' | 'iris' | undefined) ?? 'arbiter';
}

/** Resolves with the newest messages of these personas, when each stands there under its name, in this order. */
async function spoken(on: PlatformStage, ...wanted: [who: string, words: string][]): Promise<Shown[]> {
  const found = () => {
    const newest = on.platform.shown(GROUP).slice(-wanted.length);
    return newest.length === wanted.length &&
      newest.every((shown, n) => wordsOf(shown).includes(wanted[n]?.[1] ?? ''))
      ? newest
      : null;
  };
  const newest = await eventually(found, `these stand last: ${JSON.stringify(wanted)}`).catch((error) => {
    const there = on.platform.shown(GROUP).map((shown) => `${seenBy(shown)}: ${wordsOf(shown)}`);
    throw new Error(`${error instanceof Error ? error.message : error}\n${there.join('\n')}`);
  });
  for (const [n, shown] of newest.entries()) expectFace(on.platform, shown, wanted[n]?.[0] ?? '');
  return newest;
}

/** By the platform's own means where it has some; else the name in bold before the words. */
function expectFace(platform: Platform, { speaker, heading }: Shown, who: string): void {
  const name = who.replace(/^./, (letter) => letter.toUpperCase());
  expect({ speaker, heading }).toEqual(
    platform.hasFaces ? { speaker: name, heading: null } : { speaker: null, heading: name },
  );
}

async function command(on: PlatformStage, text: string, answer: string): Promise<void> {
  const before = on.platform.shown(GROUP).length;
  on.platform.command(ANNA, GROUP, text);
  const shown = await on.replies(GROUP, before + 1);
  expect(shown.at(-1)?.text).toContain(answer);
  // It is the gateway that answers, not one of those who are there.
  expect(shown.at(-1)).toMatchObject({ speaker: null, heading: null });
}

function lastWords(body: ChatBody | undefined): string {
  return body?.messages.findLast(({ role }) => role === 'user')?.content ?? '';
}
