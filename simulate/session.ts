/**
 * A conversation as it is led line by line: who speaks, where, and what comes of it. The same for somebody at a terminal,
 * for piped lines and for a script.
 */
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import type { Image, Person, Place, Platform, Saying } from '../test/harness/platform.js';
import { type Chat, type Line, openChat } from './chat.js';
import { actOf, type Say, type Sought, type Which } from './lines.js';
import type { Screen } from './screen.js';
import { HELP, nameOf, printedOf } from './words.js';
import type { World } from './world.js';

/** Why a line could not be done, or what was expected did not come. */
export class Failed extends Error {}

export interface Session {
  /** Does what a line says. False where it was the last one. Rejects with `Failed`. */
  perform(line: string): Promise<boolean>;
  /** Resolves when nothing comes any more of what was said since something was expected last. */
  rest(): Promise<void>;
  close(): void;
}

const LOOK_EVERY_MS = 25;

export function openSession(
  world: World,
  screen: Screen,
  options: { patienceMs: number; silenceMs: number; platform?: Platform },
): Session {
  const people: Person[] = [];
  const chats = new Map<string, Chat>();
  let platform = options.platform ?? firstOf(world);
  let group: number | null = null;
  let me = personOf('Anna');
  let lastSightAt = Date.now();
  let told = '';
  /** Something was said, and nobody has waited for what comes of it. */
  let open = false;

  function personOf(name: string): Person {
    const known = people.find((person) => person.name.toLowerCase() === name.toLowerCase());
    if (known !== undefined) return known;
    const person = { number: people.length + 1, name };
    people.push(person);
    return person;
  }

  const place = (): Place =>
    group === null ? { kind: 'direct', number: me.number } : { kind: 'group', number: group };
  const note = (text: string) => screen.print({ text, key: null });

  function here(): Chat {
    const key = `${platform.name} ${place().kind} ${place().number}`;
    const known = chats.get(key) ?? openChat(platform, place());
    chats.set(key, known);
    return known;
  }

  /** Where one is now. */
  function moved(): void {
    const where = `${nameOf(platform, place())}, as ${me.name}`;
    screen.prompt(where);
    if (where !== told) note(`── ${where}`);
    told = where;
  }

  function look(): void {
    const current = here();
    for (const chat of chats.values()) {
      for (const sight of chat.look()) {
        lastSightAt = Date.now();
        screen.print(printedOf(sight, chat === current ? '' : `(${nameOf(chat.platform, chat.place)}) `));
      }
    }
  }
  const watch = setInterval(look, LOOK_EVERY_MS);

  async function until(holds: () => boolean, otherwise: () => string): Promise<void> {
    const deadline = Date.now() + options.patienceMs;
    while (!holds()) {
      if (world.died()) throw new Failed(`the gateway ended by itself:\n${complaintsOf(world.log())}`);
      if (Date.now() > deadline) throw new Failed(otherwise());
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
  }

  const settle = () =>
    until(
      () => world.thinking() === 0 && Date.now() - lastSightAt > options.silenceMs,
      () => 'it did not come to rest',
    );

  function theLine(which: Which): Line {
    const line = here().find(which);
    if (line === undefined) throw new Failed(`there is no such message here: ${JSON.stringify(which)}`);
    return line;
  }

  async function say(act: Say): Promise<void> {
    const { mention, forwardedFrom } = act;
    const replyTo = act.replyTo === null ? null : theLine(act.replyTo).id;
    const images = await Promise.all(act.photos.map(pictureAt));
    const saying = {
      ...{ from: me, in: place(), text: act.text, mention },
      ...(replyTo === null ? {} : { replyTo }),
    };
    const ids = sent(saying, images, forwardedFrom);
    for (const [n, id] of ids.entries()) {
      const files = ids.length === 1 ? act.photos : act.photos.slice(n, n + 1);
      const words = forwardedFrom === null ? act.text : `(from ${forwardedFrom}) ${act.text}`;
      const text = n > 0 ? '' : mention ? `@Coterie ${words}` : words;
      show(here().said(me.name, { id, text, replyTo, files }));
    }
  }

  /** The ids of the messages that come of it. */
  function sent(saying: Saying, images: Image[], author: string | null): string[] {
    const { name, album, forward } = platform;
    const [image] = images;
    if (images.length > 1) {
      if (album === undefined) throw new Failed(`there are no albums on the fake of ${name}`);
      return album(saying, images);
    }
    if (author !== null) {
      if (forward === undefined) throw new Failed(`nothing can be passed on on the fake of ${name}`);
      return [forward(saying, author)];
    }
    return [platform.say({ ...saying, ...(image === undefined ? {} : { image }) })];
  }

  function command(text: string): void {
    // Discord has commands of its own; what is none there is said as it is.
    const typed = platform.knowsCommand?.(text) === false;
    const id = typed ? platform.say({ from: me, in: place(), text }) : '';
    if (!typed) platform.command(me, place(), text);
    show(here().said(me.name, { id, text, replyTo: null }));
  }

  function show(line: Line): void {
    lastSightAt = Date.now();
    open = true;
    screen.print({ ...printedOf({ kind: 'new', line }, ''), key: null });
  }

  function take(line: Line, text: string): void {
    if (line.ours) throw new Failed(`[${line.number}] is not a person's message`);
    platform.edit(place(), line.id, text);
    screen.print(printedOf(here().changed(line, text), ''));
  }

  async function expectHere(sought: Sought): Promise<void> {
    await until(
      () => here().meets(sought) !== undefined,
      () => `this was expected and did not come: ${inWords(sought)}`,
    );
  }

  async function perform(line: string): Promise<boolean> {
    const act = actOf(line);
    look();
    switch (act.kind) {
      case 'nothing':
        break;
      case 'say':
        await say(act);
        break;
      case 'command':
        command(act.text);
        break;
      case 'edit':
        take(theLine(act.which), act.text);
        break;
      case 'delete': {
        const gone = theLine(act.which);
        platform.remove(place(), gone.id);
        if (!gone.ours) {
          gone.gone = true;
          screen.print(printedOf({ kind: 'gone', line: gone }, ''));
        }
        break;
      }
      case 'react': {
        const { number, id, ours } = theLine(act.which);
        if (!ours) throw new Failed(`[${number}] is not a message of the account`);
        platform.react(me, place(), id, act.sign);
        note(`[${number}] has ${act.sign} from ${me.name}`);
        break;
      }
      case 'platform': {
        const found = world.platforms.find(({ name }) => name === act.name);
        if (found === undefined) throw new Failed(`${act.name} was not started: --platform all starts all`);
        platform = found;
        moved();
        break;
      }
      case 'go':
        group = act.group;
        moved();
        break;
      case 'as':
        me = personOf(act.name);
        moved();
        break;
      case 'expect':
        await expectHere(act.sought);
        open = false;
        break;
      case 'never': {
        const found = here().holds(act.sought);
        if (found !== undefined)
          throw new Failed(`[${found.number}] should never have been said: ${inWords(act.sought)}`);
        break;
      }
      case 'kill':
        await world.kill();
        look();
        note('── kill -9; the gateway starts again');
        await world.start();
        break;
      case 'settle':
        await settle();
        open = false;
        break;
      case 'log':
        note(complaintsOf(world.log()) || 'The gateway complains of nothing.');
        break;
      case 'help':
        note(HELP);
        break;
      case 'quit':
        return false;
      case 'wrong':
        throw new Failed(act.why);
    }
    return true;
  }

  moved();
  return {
    perform,
    async rest() {
      if (open) await settle();
      open = false;
    },
    close: () => clearInterval(watch),
  };
}

function firstOf({ platforms: [first] }: World): Platform {
  if (first === undefined) throw new Failed('no platform was started');
  return first;
}

async function pictureAt(path: string): Promise<Image> {
  const bytes = await readFile(path).catch((error: unknown) => {
    throw new Failed(`this picture cannot be read: ${error instanceof Error ? error.message : path}`);
  });
  const kind = extname(path).slice(1).toLowerCase();
  return { bytes, mimeType: `image/${kind === 'jpg' ? 'jpeg' : kind}` };
}

function inWords({ by, words }: Sought): string {
  return `${by === null ? '' : `@${by} `}${words instanceof RegExp ? words : `“${words}”`}`;
}

/** Of a log in JSON, the newest warnings and errors. */
function complaintsOf(log: string): string {
  const lines = log.split('\n').filter((line) => /"level":(?:"(?:warn|error|fatal)"|[456]0)/.test(line));
  return lines.slice(-20).join('\n');
}
