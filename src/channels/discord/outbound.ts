/** Converts replies to Discord's messages and chat commands to native ones. Pure. */
import * as Discord from 'discord-api-types/v10';
import type {
  Choice,
  CommandDescription,
  CommandVerb,
  Part,
  Recipient,
  ShownSpeaker,
} from '../../core/channel.js';
import { DEFAULT_PERSONA } from '../../core/ids.js';
import { shortLine, withSpeakerName } from '../kit/outgoing.js';
import { composed } from '../markdown/compose.js';
import { cut, type MessageLimits } from '../markdown/cut.js';
import { discordLength, discordText, TABLE_WIDTH } from '../markdown/discord.js';
import { isSnowflake, listOf, type Told } from './payload.js';

/** In characters (code points), with markup. */
const MAX_TEXT = 2000;
/** Maximum quote of an answered message: a name, sixty characters, most of them escaped, and a link. */
const QUOTE_CHARS = 260;

export function compose(markdown: string, spare = 0): Part[] {
  return composed(markdown, TABLE_WIDTH, limits(spare));
}

/** Leaves room in each message for a bold name of `spare` characters, and then also for a quote. */
function limits(spare: number): MessageLimits {
  // Each character may need an escape.
  const name = Math.min(2 * spare + 4, MAX_TEXT / 2);
  const kept = spare === 0 ? 0 : Math.min(name + QUOTE_CHARS, MAX_TEXT / 2);
  return { limit: MAX_TEXT - kept, measure: discordLength };
}

/** Whether it fits Discord's limit for a message's text. */
export function isShort(text: string): boolean {
  return Array.from(text).length <= MAX_TEXT;
}

/** Whether a part's text fits into one message. */
export function fits(part: Part): boolean {
  return discordLength(part) <= MAX_TEXT;
}

/** Splits a text that does not fit into messages that do. */
export function pieces({ text, marks }: Part, spare = 0): Part[] {
  return cut({ text, marks }, limits(spare));
}

/** Where a message goes: a thread is a channel of its own. */
export function roomOf({ address, threadId }: { address: string; threadId: string | null }): string {
  return threadId ?? address;
}

/** The content of a message, the same for every way of sending it. */
export interface Content {
  content?: string;
  allowed_mentions: { parse: []; replied_user: boolean; users?: string[] };
  flags?: number;
  components?: ReturnType<typeof componentsOf>;
}

/** Pings only the person being answered. Without previews Discord fetches no links in it. */
export function contentOf(part: Part, { linkPreviews }: { linkPreviews: boolean }): Content {
  const content = discordText(part);
  return {
    ...(content.trim() === '' ? {} : { content }),
    allowed_mentions: { parse: [], replied_user: true },
    ...(linkPreviews ? {} : { flags: Discord.MessageFlags.SuppressEmbeds }),
    ...(part.choices === undefined ? {} : { components: componentsOf(part.choices) }),
  };
}

/** For a message whose buttons are refused: the words say what they are for. */
export function withoutButtons<Said extends Content>({ components: _refused, ...rest }: Said) {
  return rest;
}

const LONGEST_BUTTON = 80;
const MOST_IN_A_ROW = 5;
const MOST_BUTTONS = 25;

function componentsOf(choices: readonly Choice[]) {
  const buttons = choices.slice(0, MOST_BUTTONS).map((choice) => ({
    type: Discord.ComponentType.Button,
    // Grey: none is recommended.
    style: Discord.ButtonStyle.Secondary,
    label: shortLine(choice.label, LONGEST_BUTTON),
    custom_id: choice.value,
  }));
  return Array.from({ length: Math.ceil(buttons.length / MOST_IN_A_ROW) }, (_, row) => ({
    type: Discord.ComponentType.ActionRow,
    components: buttons.slice(row * MOST_IN_A_ROW, (row + 1) * MOST_IN_A_ROW),
  }));
}

const LONGEST_NONCE = 25;

/**
 * A message's dedupe key: Discord remembers nonces for some minutes. Includes the time, because a new
 * database restarts its keys, and Discord would take its first reply for one sent a few minutes ago.
 */
export function nonceOf(key: string, createdAt: number): string {
  const nonce = `${key}.${createdAt.toString(36)}`;
  return nonce.length <= LONGEST_NONCE ? nonce : key;
}

/** The answered message; if it was deleted, the reply is still sent. */
export function referenceTo(replyTo: string | null) {
  if (replyTo === null || !isSnowflake(replyTo)) return {};
  return { message_reference: { message_id: replyTo, fail_if_not_exists: false } };
}

/** Name of our webhooks, and of a persona whose name Discord refuses. */
export const NEUTRAL_NAME = 'Coterie';
const LONGEST_NAME = 80;
const LONGEST_LINK = 2_048;
/** A space too thin to be seen, which Discord keeps. */
const HAIR = '\u200a';
/** Discord refuses names that contain the first two, and the others as a whole name. */
const WITHIN_FORBIDDEN = /(?<=d)(?=iscord)|(?<=c)(?=lyde)|(?<=^e)(?=veryone$)|(?<=^h)(?=ere$)/gi;
/** Characters that Discord reserves, and their full-width forms. */
const WIDE: Record<string, string> = { '@': '＠', '#': '＃', ':': '：' };

/** The author of a message that goes through a webhook. */
export interface Author {
  username: string;
  avatar_url?: string;
}

/** null if the bot itself speaks: for `default`, and in direct chats, which have no webhooks. */
export function authorOf({ kind }: Recipient, { appearance }: ShownSpeaker): Author | null {
  if (kind === 'direct' || appearance === undefined || appearance.personaId === DEFAULT_PERSONA) return null;
  const { name, avatar } = appearance;
  return {
    username: acceptable(name),
    ...(avatar !== null && isPicture(avatar) ? { avatar_url: avatar } : {}),
  };
}

/** The part after the persona's name in bold, unless the author's name already tells the speaker. */
export function withName(part: Part, { appearance, leads = false }: ShownSpeaker): Part {
  if (appearance === undefined || !leads || appearance.personaId === DEFAULT_PERSONA) return part;
  const shown = withSpeakerName(part, { appearance, leads });
  return fits(shown) || !fits(part) ? shown : part;
}

/** A name that reads the same and that Discord accepts. */
export function acceptable(name: string): string {
  const plain = name
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
    .replace(/[@#:]/g, (sign) => WIDE[sign] ?? sign)
    .replace(/``(?=`)/g, `\`${HAIR}\`${HAIR}`)
    .replace(WITHIN_FORBIDDEN, HAIR);
  return shortened(plain) || NEUTRAL_NAME;
}

/** Whether two names read the same: Discord may change invisible characters. */
export function readsAs(one: string, other: string): boolean {
  const visible = (name: string) => name.replace(/[\s\p{Cf}]/gu, '');
  return visible(one) === visible(other);
}

function shortened(name: string): string {
  if (Array.from(name).length <= LONGEST_NAME) return name;
  let kept = '';
  let length = 1;
  for (const { segment } of new Intl.Segmenter().segment(name)) {
    length += Array.from(segment).length;
    if (length > LONGEST_NAME) break;
    kept += segment;
  }
  return `${kept.trimEnd()}…`;
}

function isPicture(address: string): boolean {
  if (address.length > LONGEST_LINK || !URL.canParse(address)) return false;
  return /^https?:$/.test(new URL(address).protocol);
}

/** In guilds where the bot was invited, and in direct chats with it. */
const WHERE = {
  contexts: [Discord.InteractionContextType.Guild, Discord.InteractionContextType.BotDM],
  integration_types: [Discord.ApplicationIntegrationType.GuildInstall],
};
const LONGEST_DESCRIPTION = 100;
const MOST_CHOICES = 25;
const LONGEST_CHOICE = 100;
const ANY_TEXT = {
  type: Discord.ApplicationCommandOptionType.String,
  name: 'text',
  description: 'What to say with it, if anything',
  required: false,
};

/** Discord has a `/me` of its own. */
const TAKEN: ReadonlySet<string> = new Set(['me']);

/** A command for every name and alias. Its verbs become subcommands; other text, one option. */
export function applicationCommands(commands: readonly CommandDescription[]) {
  return commands.flatMap(({ name, aliases, description, verbs }) =>
    [name, ...aliases]
      .filter((each) => !TAKEN.has(each))
      .map((each) => ({
        type: Discord.ApplicationCommandType.ChatInput,
        name: each,
        description: shortLine(description, LONGEST_DESCRIPTION),
        options: verbs === undefined ? [ANY_TEXT] : verbs.map(subcommand),
        ...WHERE,
      })),
  );
}

function subcommand({ name, description, rest, file }: CommandVerb) {
  const option = {
    type: Discord.ApplicationCommandOptionType.Subcommand,
    name,
    description: shortLine(description, LONGEST_DESCRIPTION),
  };
  if (rest === undefined) return option;
  const text = {
    type: Discord.ApplicationCommandOptionType.String,
    name: rest.name,
    description: shortLine(rest.description, LONGEST_DESCRIPTION),
    required: rest.required,
    autocomplete: rest.suggest === 'persona',
  };
  if (file === undefined) return { ...option, options: [text] };
  const upload = {
    type: Discord.ApplicationCommandOptionType.Attachment,
    name: 'file',
    description: shortLine(file, LONGEST_DESCRIPTION),
    required: false,
  };
  return { ...option, options: [text, upload] };
}

type Given = Told<Discord.APIChatInputApplicationCommandInteractionData>;

/** An option of a command, or a subcommand with its options. */
interface Option {
  type?: Discord.ApplicationCommandOptionType;
  name: string;
  value?: unknown;
  focused?: boolean;
  options?: Option[];
}

/** The options of a command, followed by those of its subcommand. */
function optionsIn({ options }: Given): Told<Option>[] {
  return listOf(options as Option[]).flatMap((option) => [option, ...listOf(option.options)]);
}

/** `/persona switch Luna`. The text stays as typed: it may be more than a name (`Luna from Muse`). */
export function typedForm(given: Given): string | null {
  if (!given.name) return null;
  const words = optionsIn(given)
    .filter(({ type }) => type !== Discord.ApplicationCommandOptionType.Attachment)
    .map(({ name, value }) => (value === undefined ? (name ?? '') : givenText(value).trim()));
  return [`/${given.name}`, ...words.filter((word) => word !== '')].join(' ');
}

function givenText(value: unknown): string {
  return typeof value === 'object' || value === undefined ? '' : String(value);
}

/** The text of the option being typed; null if none is. */
export function beingTyped(given: Given): string | null {
  const focused = optionsIn(given).find((option) => option.focused === true);
  return focused === undefined ? null : givenText(focused.value);
}

/** Names that match the typed text, prefix matches first. A name of several words is inserted in quotes. */
export function choices(names: readonly string[], typed: string): { name: string; value: string }[] {
  const wanted = typed
    .replace(/^["'“„«]/, '')
    .trim()
    .toLowerCase();
  const rank = (name: string) => name.toLowerCase().indexOf(wanted);
  return [...new Set(names)]
    .filter((name) => name.trim() !== '' && rank(name) >= 0 && quoted(name).length <= LONGEST_CHOICE)
    .sort((one, other) => Number(rank(one) > 0) - Number(rank(other) > 0))
    .slice(0, MOST_CHOICES)
    .map((name) => ({ name, value: quoted(name) }));
}

function quoted(name: string): string {
  return /\s/.test(name) && !name.includes('"') ? `"${name}"` : name;
}
