/**
 * Fake platforms by other authors (`@openclaw/crabline`, its local provider servers) as a second opinion beside our
 * own, for the conversation script. They support less; `lacks` says what.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startDiscordServer, startTelegramServer, startWhatsAppServer } from '@openclaw/crabline';
import { BufferJSON, initAuthCreds } from '@whiskeysockets/baileys';
import { systemClock } from '../../src/core/clock.js';
import { openSqliteStore } from '../../src/store/open.js';
import { hushLibsignal } from '../fakes/whatsapp-console.js';
import { eventually } from './gateway.js';
import { type Exchange, passThrough } from './passthrough.js';
import type { Person, Place, Platform, Shown } from './platform.js';
import { quietLog } from './quiet.js';

/** Required by the common harness, but not used by any script on these platforms. */
const UNKNOWN_HERE = {
  environment: {},
  edit: () => lacking('edits by people'),
  react: () => lacking('reactions by people'),
  remove: () => lacking('deletions by people'),
  typing: () => 0,
  signs: () => [],
  onEvent: () => lacking('events'),
};

function lacking(what: string): never {
  throw new Error(`crabline has no ${what}`);
}

/** One message of ours in its present form, after edits. */
type Standing = Shown & { place: string };

/** These servers assign a message's ID when they receive it; until then it has a name of ours. */
function named() {
  const nameOf = new Map<string, string>();
  let given = 0;
  return {
    give(id: Promise<string>): string {
      const name = `said-${++given}`;
      void id.then((known) => nameOf.set(known, name));
      return name;
    },
    shown: (standing: Standing[], there: string): Shown[] =>
      standing
        .filter(({ place }) => place === there)
        .map((each) => ({
          ...each,
          replyTo: each.replyTo === null ? null : (nameOf.get(each.replyTo) ?? each.replyTo),
        })),
  };
}

export async function crablineTelegram(): Promise<Platform> {
  const folder = await mkdtemp(join(tmpdir(), 'coterie-crabline-'));
  const server = await startTelegramServer({ recorderPath: join(folder, 'telegram.jsonl') });
  const { adminToken, botToken, endpoints } = server.manifest;
  const standing: Standing[] = [];
  let polls = 0;
  const way = await passThrough(
    endpoints.apiRoot,
    (exchange) => noteTelegram(standing, exchange),
    (path) => {
      if (path.includes('/getUpdates')) polls++;
    },
  );
  const names = named();

  function inbound(from: Person, place: Place, text: string): string {
    const taken = post(endpoints.adminInboundUrl, adminToken, {
      ...{ text, fromId: telegramPerson(from), fromName: from.name },
      ...{ chatId: telegramChat(place), chatType: place.kind === 'direct' ? 'private' : 'supergroup' },
    });
    return names.give(
      taken.then((answer) => String((answer as { update: Update }).update.message.message_id)),
    );
  }

  return {
    ...UNKNOWN_HERE,
    name: 'telegram',
    recognisesResends: false,
    hasFaces: false,
    lacks: new Set(['deletions', 'edits', 'reactions', 'replies', 'files']),
    config: { token: botToken, api_root: way.url, messages_per_second: 1000, per_chat_burst: 1000 },
    async connected() {
      await eventually(() => polls > 0, 'the gateway asks for updates');
    },
    say: ({ from, in: place, text, mention }) =>
      inbound(from, place, mention ? `@crabline_bot ${text}` : text),
    command: (from, place, text) => void inbound(from, place, text),
    shown: (place) => names.shown(standing, String(telegramChat(place))),
    chatId: (place) => `telegram_${telegramChat(place)}`,
    personId: (person) => `telegram_${telegramPerson(person)}`,
    async close() {
      await way.close();
      await server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function noteTelegram(standing: Standing[], { path, asked, status, answered, at }: Exchange): void {
  const method = path.split('/').at(-1)?.split('?')[0] ?? '';
  if (status !== 200) return;
  const { result } = JSON.parse(answered.toString()) as { result: TelegramResult };
  if (/^send(?!Chat)/.test(method)) {
    const request = JSON.parse(asked.toString()) as { reply_parameters?: { message_id: number } };
    standing.push({
      ...{ id: String(result.message_id), place: String(result.chat.id), text: result.text ?? '' },
      ...{ files: [], at, cut: false, speaker: null, heading: null },
      replyTo: request.reply_parameters === undefined ? null : String(request.reply_parameters.message_id),
    });
  } else if (method === 'editMessageText') {
    const edited = standing.find(
      ({ id, place }) => id === String(result.message_id) && place === String(result.chat.id),
    );
    if (edited) edited.text = result.text ?? '';
  }
}

interface Update {
  message: { message_id: number };
}

interface TelegramResult {
  message_id: number;
  chat: { id: number };
  text?: string;
}

function telegramPerson({ number }: Person): number {
  return 1_000 + number;
}

function telegramChat({ kind, number }: Place): number {
  return kind === 'direct' ? 1_000 + number : -1_001_000_000_000 - number;
}

export async function crablineDiscord(): Promise<Platform> {
  const folder = await mkdtemp(join(tmpdir(), 'coterie-crabline-'));
  const server = await startDiscordServer({ recorderPath: join(folder, 'discord.jsonl') });
  const { adminToken, botToken, botUserId, endpoints, fixture } = server.manifest;
  const standing: Standing[] = [];
  const apiRoot = new URL(endpoints.apiRoot);
  const way = await passThrough(apiRoot.origin, (exchange) => noteDiscord(standing, exchange));
  const names = named();
  let log: () => string = () => '';

  const direct = new Map<number, string>();
  for (const number of PEOPLE) direct.set(number, await openDirect(endpoints.apiRoot, botToken, number));

  function channelOf({ kind, number }: Place): string {
    if (kind === 'group') return fixture.channelId;
    const channel = direct.get(number);
    if (channel === undefined) throw new Error(`nobody has the number ${number}`);
    return channel;
  }

  function inbound(from: Person, place: Place, content: string, replyTo?: string): string {
    const taken = post(endpoints.adminInboundUrl, adminToken, {
      ...{ channelId: channelOf(place), senderId: discordPerson(from), senderName: from.name, content },
      ...(place.kind === 'direct' ? {} : { guildId: fixture.guildId }),
      ...(replyTo === undefined
        ? {}
        : { message_reference: { message_id: replyTo, channel_id: channelOf(place) } }),
    });
    return names.give(taken.then((answer) => (answer as { message: { id: string } }).message.id));
  }

  return {
    ...UNKNOWN_HERE,
    name: 'discord',
    recognisesResends: true,
    hasFaces: false,
    lacks: new Set(['edits', 'reactions', 'files']),
    config: {
      ...{ token: botToken, api_root: `${way.url}${apiRoot.pathname}` },
      ...{ messages_per_second: 1000, per_chat_burst: 1000 },
    },
    attend(source) {
      log = source;
    },
    // The server does not say who has logged in.
    async connected() {
      await eventually(() => /"channel":"discord".*"logged in"/.test(log()), 'the gateway is connected');
    },
    say: ({ from, in: place, text, mention, replyTo }) =>
      inbound(from, place, mention ? `<@${botUserId}> ${text}` : text, replyTo),
    command: (from, place, text) => void inbound(from, place, text),
    shown: (place) => names.shown(standing, channelOf(place)),
    chatId: (place) => `discord_${channelOf(place)}`,
    personId: (person) => `discord_${discordPerson(person)}`,
    async close() {
      await way.close();
      await server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The people of the conversation script. */
const PEOPLE = [1, 2];

async function openDirect(apiRoot: string, botToken: string, number: number): Promise<string> {
  const response = await fetch(`${apiRoot}/v10/users/@me/channels`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bot ${botToken}` },
    body: JSON.stringify({ recipient_id: discordPerson({ number, name: '' }) }),
  });
  return ((await response.json()) as { id: string }).id;
}

const DISCORD_MESSAGE = /^\/api\/v\d+\/channels\/(\d+)\/messages(?:\/(\d+))?(?:\?|$)/;

function noteDiscord(standing: Standing[], { method, path, status, answered, at }: Exchange): void {
  const [, place = '', id] = DISCORD_MESSAGE.exec(path) ?? [];
  if (place === '' || status >= 300 || method === 'GET') return;
  if (method === 'DELETE') {
    const gone = standing.findIndex((each) => each.id === id);
    if (gone >= 0) standing.splice(gone, 1);
    return;
  }
  const message = JSON.parse(answered.toString()) as DiscordResult;
  const found = standing.find((each) => each.id === message.id);
  if (found) {
    found.text = message.content;
    return;
  }
  standing.push({
    ...{ id: message.id, place, text: message.content, files: [], at, cut: false },
    ...{ speaker: null, heading: null, replyTo: message.message_reference?.message_id ?? null },
  });
}

interface DiscordResult {
  id: string;
  content: string;
  message_reference?: { message_id: string };
}

function discordPerson({ number }: Person): string {
  return `2${String(number).padStart(17, '0')}`;
}

/** Direct chats only: it does not decrypt messages to groups. */
export async function crablineWhatsApp(): Promise<Platform> {
  const endHush = hushLibsignal();
  const folder = await mkdtemp(join(tmpdir(), 'coterie-crabline-'));
  const standing: Standing[] = [];
  const server = await startWhatsAppServer({
    recorderPath: join(folder, 'whatsapp.jsonl'),
    onEvent: (event) => noteWhatsApp(standing, event.body),
  });
  const { adminToken, endpoints, selfJid } = server.manifest;
  const names = named();
  let log: () => string = () => '';

  function inbound(from: Person, text: string): string {
    const jid = whatsappPerson(from);
    const body = { chatJid: jid, senderJid: jid, pushName: from.name, text };
    const taken = post(endpoints.adminInboundUrl, adminToken, body);
    return names.give(
      taken.then((answer) => (answer as { message: { key: { id: string } } }).message.key.id),
    );
  }

  return {
    ...UNKNOWN_HERE,
    name: 'whatsapp',
    recognisesResends: true,
    hasFaces: false,
    lacks: new Set(['deletions', 'edits', 'reactions', 'replies', 'files', 'groups']),
    config: {
      ...{ enabled: true, web_socket_url: endpoints.baileysWebSocketUrl },
      access: { direct: 'open' },
      ...{ messages_per_second: 1000, per_chat_burst: 1000 },
    },
    prepare: (home) => link(home, selfJid),
    attend(source) {
      log = source;
    },
    async connected() {
      await eventually(() => /"channel":"whatsapp".*"logged in"/.test(log()), 'the gateway is logged in');
    },
    say: ({ from, text }) => inbound(from, text),
    command: (from, _place, text) => void inbound(from, text),
    shown: (place) => names.shown(standing, whatsappPerson({ number: place.number, name: '' })),
    chatId: (place) => `whatsapp_${whatsappPerson({ number: place.number, name: '' })}`,
    personId: (person) => `whatsapp_${whatsappPerson(person)}`,
    async close() {
      await server.close();
      endHush();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The server accepts any device but cannot link one, so credentials are written before the gateway starts. */
async function link(home: string, selfJid: string): Promise<void> {
  const account = {
    details: Buffer.alloc(1),
    accountSignatureKey: Buffer.alloc(32),
    accountSignature: Buffer.alloc(64),
    deviceSignature: Buffer.alloc(64),
  };
  const me = { id: selfJid.replace('@', ':1@'), name: 'Coterie' };
  const creds = { ...initAuthCreds(), registered: true, me, account };
  await mkdir(join(home, 'data'), { recursive: true });
  const store = await openSqliteStore({
    file: join(home, 'data/coterie.db'),
    migrationsFolder: fileURLToPath(new URL('../../migrations/sqlite', import.meta.url)),
    clock: systemClock,
    log: quietLog,
  });
  const values = { creds: JSON.stringify(creds, BufferJSON.replacer), 'paired-at': '1' };
  await store.setValues({ stateOf: 'whatsapp' }, new Map(Object.entries(values)));
  await store.close();
}

/** The server reports decrypted messages in the library's format. */
function noteWhatsApp(standing: Standing[], body: unknown): void {
  const { key, message } = (body ?? {}) as {
    key?: { id: string; fromMe: boolean; remoteJid: string };
    message?: { conversation?: string };
  };
  if (key?.fromMe !== true || standing.some(({ id }) => id === key.id)) return;
  standing.push({
    ...{ id: key.id, place: key.remoteJid, text: message?.conversation ?? '', files: [] },
    ...{ at: Date.now(), cut: false, speaker: null, heading: null, replyTo: null },
  });
}

function whatsappPerson({ number }: Person): string {
  return `${4_915_000_000 + number}@s.whatsapp.net`;
}

async function post(url: string, adminToken: string, body: object): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-crabline-admin-token': adminToken },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`crabline refuses ${JSON.stringify(body)}: ${await response.text()}`);
  return response.json();
}
