/**
 * A webhook cannot reply. Instead, what a persona says through one begins with a quote of what it answers: whose it is,
 * who hears of it by that, and the beginning, with a link to the whole.
 */
import type { Mark, Recipient } from '../../core/channel.js';
import { cutAt } from '../../core/cut.js';
import type { InboundMessage } from '../../core/message.js';
import { bounded } from '../kit/bounded.js';
import { discordText } from '../markdown/discord.js';
import { type Base, MOST_NOTED } from './api.js';
import type { Directory } from './directory.js';
import { failureOf } from './failure.js';
import type { Content } from './outbound.js';
import { roomOf } from './outbound.js';
import { read } from './payload.js';
import { nameOf } from './said.js';
import { isSnowflake } from './snowflake.js';

const LONGEST_BEGINNING = 60;
const PLACE = 'https://discord.com/channels';

/** A message that may be answered. */
interface Said {
  /** null for a program, which cannot be called. */
  by: string | null;
  name: string;
  beginning: string;
}

export interface Quote {
  /** The whole line, with its end. */
  line: string;
  /** Whom it calls. */
  users: string[];
}

export type Quotes = ReturnType<typeof createQuotes>;

export function createQuotes({ api, log }: Base, directory: Pick<Directory, 'channel' | 'noteChannel'>) {
  /** By id; null where it cannot be known. */
  const said = bounded<string, Said | null>(MOST_NOTED);

  async function ask(room: string, id: string, signal: AbortSignal): Promise<Said | null> {
    try {
      const told = read.message(await api.get(`/channels/${room}/messages/${id}`, signal));
      const { author, webhook_id, content = '' } = told ?? {};
      if (author === undefined) return null;
      const isProgram = author.bot === true || webhook_id !== undefined;
      return { by: isProgram ? null : author.id, name: nameOf(author), beginning: beginningOf(content) };
    } catch (error) {
      const { reason } = failureOf(error);
      log.debug({ channel: 'discord', reason }, 'it is not known what is answered, so it is not quoted');
      return null;
    }
  }

  /** null in a direct chat, and where Discord does not say. */
  async function guildOf(room: string, signal: AbortSignal): Promise<string | null> {
    try {
      const known =
        directory.channel(room) ?? directory.noteChannel(await api.get(`/channels/${room}`, signal));
      return known?.guildId ?? null;
    } catch (error) {
      const { reason } = failureOf(error);
      log.debug({ channel: 'discord', reason }, 'a quote goes without its link');
      return null;
    }
  }

  return {
    note({ platformMessageId, sender, text }: InboundMessage): void {
      const by = sender.bot ? null : sender.address;
      said.set(platformMessageId, { by, name: sender.name, beginning: beginningOf(text) });
    },
    /** null where nothing is answered, or nothing is known of it. */
    async of(to: Recipient, id: string | null, signal: AbortSignal): Promise<Quote | null> {
      if (id === null || !isSnowflake(id)) return null;
      const room = roomOf(to);
      const known = said.get(id);
      const found = known === undefined ? await ask(room, id, signal) : known;
      if (known === undefined && !signal.aborted) said.set(id, found);
      if (found === null) return null;
      const guildId = await guildOf(room, signal);
      return quoteOf(found, guildId === null ? null : `${PLACE}/${guildId}/${room}/${id}`);
    },
  };
}

function quoteOf({ by, name, beginning }: Said, url: string | null): Quote {
  const text = beginning || '↪';
  const marks: Mark[] = url === null ? [] : [{ kind: 'link', offset: 0, length: text.length, url }];
  const words = discordText({ text, marks });
  const who =
    by === null
      ? discordText({ text: name, marks: [{ kind: 'bold', offset: 0, length: name.length }] })
      : `<@${by}>`;
  return { line: `> ${who} ${words}\n`, users: by === null ? [] : [by] };
}

/** What a link's label may hold, on one line. */
function beginningOf(text: string): string {
  const line = text
    // Who opens it decides to read it.
    .replace(/\|\|.+?\|\|/gs, '▒▒▒')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .replaceAll('](', '] (')
    .trim();
  const cut = cutAt(line, LONGEST_BEGINNING);
  return cut.length < line.length ? `${cut.trimEnd()}…` : cut;
}

/** The same below a quote; without it where both do not fit. */
export function quoted(content: Content, quote: Quote | null, fits: (text: string) => boolean): Content {
  const text = quote === null ? '' : quote.line + (content.content ?? '');
  if (quote === null || !fits(text)) return content;
  return { ...content, content: text, allowed_mentions: { ...content.allowed_mentions, users: quote.users } };
}
